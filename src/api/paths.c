/* SPDX-License-Identifier: Apache-2.0 */

/* Where a path of a request starts. Where it leads is the agent's business: links are resolved
 * inside the sandbox. */

#include "api/paths.h"

#include <string.h>

#include "base/limits.h"
#include "base/names.h"

static int normalize(struct arena *arena, const char *base, const char *path, const char **ret_path,
                     struct error *err)
{
    const char *whole = arena_printf(arena, "%s/%s", base, path);
    char *out = arena_alloc(arena, PATH_BYTES_MAX + 1);
    if (path_normalize(whole, strlen(whole), out, err) < 0)
        return -1;
    *ret_path = out;
    return 0;
}

int api_path(struct http_exchange *x, const struct route_params *params, const char *name,
             const char **ret_path, struct error *err)
{
    return normalize(http_arena(x), "", route_param(params, name), ret_path, err);
}

bool api_path_is_below(const char *root, const char *path)
{
    size_t len = strcmp(root, "/") == 0 ? 0 : strlen(root);
    return strncmp(root, path, len) == 0 && (path[len] == '/' || path[len] == '\0');
}

int api_path_below(struct arena *arena, const char *root, const char *path, const char **ret_path,
                   struct error *err)
{
    const char *whole;
    if (normalize(arena, path[0] == '/' ? "" : root, path, &whole, err) < 0)
        return -1;
    if (!api_path_is_below(root, whole))
        return error_set(err, ERROR_INVALID_PATH, "%.150s is not below %.150s", whole, root);
    *ret_path = whole;
    return 0;
}
