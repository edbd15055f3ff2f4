/* SPDX-License-Identifier: Apache-2.0 */

/* Reading and showing what the history of a sandbox keeps. */

#include "api/v0/history_rules_json.h"

#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/limits.h"
#include "json/json.h"
#include "sandbox/history_rules.h"

/* What the domain takes, and its words for it. */
enum { LIST_MAX = (HISTORY_IGNORE_LEN_MAX + 16) * HISTORY_IGNORE_MAX + 256 };

struct given {
    yyjson_val *enabled;
    const char *size;
    yyjson_val *ignore;
};

static const struct json_field fields[] = {
    {"enabled", JSON_ANY, .offset = offsetof(struct given, enabled)},
    {"maxFileSize", JSON_SCALAR_TEXT, .offset = offsetof(struct given, size)},
    {"ignore", JSON_ARRAY, .offset = offsetof(struct given, ignore)},
};

static int add_ignore(yyjson_val *patterns, struct buf *list, struct error *err)
{
    size_t i, count;
    yyjson_val *pattern;
    if (yyjson_arr_size(patterns) > HISTORY_IGNORE_MAX)
        return error_set(err, ERROR_INVALID_ARGUMENT, "spec.history.ignore: at most %d patterns",
                         HISTORY_IGNORE_MAX);
    buf_adds(list, "ignore=");
    buf_addc(list, '\0');
    yyjson_arr_foreach(patterns, i, count, pattern)
    {
        size_t len = yyjson_get_len(pattern);
        if (!yyjson_is_str(pattern) || len == 0 || memchr(yyjson_get_str(pattern), '\0', len))
            return error_set(err, ERROR_INVALID_ARGUMENT,
                             "spec.history.ignore[%zu] must be a pattern, as \"dist\" or \"*.log\"",
                             i);
        if (len > HISTORY_IGNORE_LEN_MAX)
            return error_set(err, ERROR_INVALID_ARGUMENT,
                             "spec.history.ignore[%zu] has %zu bytes, and %d are the most", i, len,
                             HISTORY_IGNORE_LEN_MAX);
        buf_adds(list, "ignore=");
        buf_add(list, yyjson_get_str(pattern), len + 1);
    }
    return 0;
}

int history_rules_from_json(struct arena *arena, yyjson_val *value, struct slice *ret_list,
                            struct error *err)
{
    struct given given = {0};
    _cleanup_buf_ struct buf list = BUF_INIT(LIST_MAX);
    if (value != NULL &&
        json_read(arena, value, "spec.history", fields, ARRAY_LEN(fields), &given, err) < 0)
        return -1;
    if (given.enabled != NULL && !yyjson_is_bool(given.enabled))
        return error_set(err, ERROR_INVALID_ARGUMENT,
                         "spec.history.enabled must be true or false, not %s",
                         yyjson_get_type_desc(given.enabled));
    if (given.enabled != NULL) {
        buf_addf(&list, "enabled=%s", yyjson_get_bool(given.enabled) ? "true" : "false");
        buf_addc(&list, '\0');
    }
    if (given.size != NULL) {
        buf_addf(&list, "maxFileSize=%.64s", given.size);
        buf_addc(&list, '\0');
    }
    if (given.ignore != NULL && add_ignore(given.ignore, &list, err) < 0)
        return -1;
    if (buf_check(&list, "spec.history", err) < 0)
        return -1;
    *ret_list = (struct slice){arena_dup(arena, list.data, list.len), list.len};
    return 0;
}

void history_rules_to_json(struct arena *arena, yyjson_mut_doc *doc, yyjson_mut_val *spec,
                           struct slice list)
{
    yyjson_mut_val *history = yyjson_mut_obj_add_obj(doc, spec, "history");
    yyjson_mut_obj_add_bool(doc, history, "enabled", history_rules_enabled(list));
    yyjson_mut_obj_add_str(doc, history, "maxFileSize", history_rules_size(list));
    yyjson_mut_val *ignore = yyjson_mut_obj_add_arr(doc, history, "ignore");
    struct slice patterns = history_rules_ignore(list, arena);
    strv_each (pattern, patterns)
        yyjson_mut_arr_add_str(doc, ignore, pattern);
}
