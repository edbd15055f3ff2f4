/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A group as somebody asks for it, and one more sandbox in it: whatever the bytes, no crash; a
 * refusal says why, and what is accepted is what the header promises. The same bytes are an
 * address, too: reading one for a sandbox of a group never makes it another kind of path.
 */

#include "api/v0/group_json.h"

#include <stdlib.h>
#include <string.h>

#include "api/group_path.h"
#include "api/v0/sandbox_create.h"
#include "base/limits.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds)
{
    if (!holds)
        abort();
}

static void check_group(struct arena *arena, yyjson_val *body)
{
    const struct sandbox_create each = {.workspace = "default", .actor = "me"};
    struct group_create request = {.workspace = "default", .actor = "me"};
    struct error err = {.code = ERROR_NONE};
    if (group_create_from_json(arena, body, &each, &request, &err) < 0) {
        check(err.code != ERROR_NONE && err.code != ERROR_INTERNAL && err.message[0] != '\0');
        return;
    }
    check(request.count <= GROUP_SANDBOXES_MAX && request.spec != NULL);
    for (size_t i = 0; i < request.count; i++)
        check(strcmp(request.sandboxes[i].actor, "me") == 0);
    /* Its spec is one that another can be laid over, and that a sandbox can have. */
    struct sandbox_create one = each;
    yyjson_val *whole;
    check(request.plain != NULL);
    check(group_lay_over(arena, request.spec, NULL, &whole, &err) == 0);
    check(sandbox_create_from_json(arena, whole, &one, &err) == 0);
}

static void check_path(struct arena *arena, const uint8_t *data, size_t size)
{
    const char *path = arena_dup(arena, data, size);
    const char *read_as = group_path(arena, path);
    if (read_as == path)
        return;
    check(strncmp(path, "/v0/groups/", 11) == 0 && strncmp(read_as, "/v0/sandbox/", 12) == 0);
    check(strstr(read_as, "%2F") != NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena *arena = arena_new();
    yyjson_val *body;
    check_path(arena, data, size);
    if (json_parse(arena, (struct slice){(const char *)data, size}, &body, NULL) == 0 &&
        yyjson_is_obj(body))
        check_group(arena, body);
    arena_free(arena);
    return 0;
}
