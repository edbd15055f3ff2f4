/* SPDX-License-Identifier: Apache-2.0 */

/* Hides the values of secret environment variables, and puts them back. */

#include "api/secret_env.h"

#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/limits.h"

/* Every variable may become longer by what is shown in the place of its value. */
enum { SHOWN_MAX = 2 * ENV_BYTES_MAX * (int)sizeof(SECRET_ENV_SHOWN) };

/* The names that are marked; NULL: none. */
static yyjson_val *marks_of(struct arena *arena, const struct sandbox_info *info)
{
    yyjson_val *spec = NULL;
    const char *text = info->metadata.blaxel_spec;
    if (text == NULL || json_parse(arena, slice_of(text), &spec, NULL) < 0)
        return NULL;
    return yyjson_ptr_get(spec, "/runtime/secretEnvs");
}

static size_t name_len(const char *item)
{
    return strcspn(item, "=");
}

static bool is_marked(yyjson_val *marks, const char *item)
{
    size_t index, max;
    yyjson_val *mark;
    yyjson_arr_foreach(marks, index, max, mark)
    {
        if (yyjson_equals_strn(mark, item, name_len(item)))
            return true;
    }
    return false;
}

/* The item of the same name; NULL: there is none. */
static const char *find(struct slice env, const char *item)
{
    size_t len = name_len(item);
    strv_each (other, env)
        if (name_len(other) == len && strncmp(other, item, len) == 0)
            return other;
    return NULL;
}

static void add_item(struct buf *list, const char *item)
{
    buf_add(list, item, strlen(item) + 1);
}

struct slice secret_env_shown(struct arena *arena, const struct sandbox_info *info)
{
    yyjson_val *marks = marks_of(arena, info);
    _cleanup_buf_ struct buf list = BUF_INIT(SHOWN_MAX);
    if (marks == NULL)
        return info->env;
    strv_each (item, info->env) {
        if (!is_marked(marks, item)) {
            add_item(&list, item);
            continue;
        }
        buf_add(&list, item, name_len(item));
        buf_add(&list, "=" SECRET_ENV_SHOWN, sizeof("=" SECRET_ENV_SHOWN));
    }
    if (list.failed) /* larger than any environment can be: better shown as none */
        return (struct slice){NULL, 0};
    return (struct slice){arena_dup(arena, list.data, list.len), list.len};
}

int secret_env_restore(struct arena *arena, const struct sandbox_info *info, struct slice *env,
                       struct error *err)
{
    yyjson_val *marks = marks_of(arena, info);
    _cleanup_buf_ struct buf list = BUF_INIT(2 * ENV_BYTES_MAX);
    if (marks == NULL)
        return 0;
    strv_each (item, *env) {
        const char *had = find(info->env, item);
        bool same = had != NULL && strcmp(item + name_len(item), "=" SECRET_ENV_SHOWN) == 0 &&
                    is_marked(marks, item);
        add_item(&list, same ? had : item);
    }
    if (buf_check(&list, "the environment", err) < 0)
        return -1;
    *env = (struct slice){arena_dup(arena, list.data, list.len), list.len};
    return 0;
}
