/* SPDX-License-Identifier: Apache-2.0 */

/* Reading and showing how a sandbox's limits follow what it uses. */

#include "api/v0/auto_lower_json.h"

#include <stdlib.h>
#include <string.h>

#include "api/v0/resources_json.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "json/json.h"

enum { LIST_MAX = 1024 };

struct given {
    const char *factor;
    yyjson_val *minimum;
};

static const struct json_field fields[] = {
    {"factor", JSON_SCALAR_TEXT, .offset = offsetof(struct given, factor)},
    {"minimum", JSON_OBJECT, .offset = offsetof(struct given, minimum)},
};

int auto_lower_from_json(struct arena *arena, yyjson_val *value, struct slice *ret_list,
                         struct error *err)
{
    struct given given = {0};
    struct sandbox_resources minimum = {0};
    _cleanup_buf_ struct buf list = BUF_INIT(LIST_MAX);
    bool off = yyjson_is_false(value) || (yyjson_is_obj(value) && yyjson_obj_size(value) == 0);
    if (value == NULL || off) {
        *ret_list = (struct slice){"", 0};
        return 0;
    }
    if (!yyjson_is_obj(value))
        return error_set(err, ERROR_INVALID_ARGUMENT,
                         "spec.autoLower must be an object with a factor, or false, not %s",
                         yyjson_get_type_desc(value));
    if (json_read(arena, value, "spec.autoLower", fields, ARRAY_LEN(fields), &given, err) < 0 ||
        resources_from_json(arena, given.minimum, "spec.autoLower.minimum", &minimum, err) < 0)
        return -1;
    if (given.factor == NULL)
        return error_set(err, ERROR_INVALID_ARGUMENT,
                         "spec.autoLower.factor is missing: a number above 1, as 1.5");
    buf_addf(&list, "factor=%s", given.factor);
    buf_addc(&list, '\0');
    for (int i = 0; i < RESOURCE_COUNT; i++)
        if (minimum.of[i] != NULL) {
            buf_addf(&list, "%s=%s", resource_name((enum resource)i), minimum.of[i]);
            buf_addc(&list, '\0');
        }
    if (buf_check(&list, "spec.autoLower", err) < 0)
        return -1;
    *ret_list = (struct slice){arena_dup(arena, list.data, list.len), list.len};
    return 0;
}

void auto_lower_to_json(struct arena *arena, yyjson_mut_doc *doc, yyjson_mut_val *spec,
                        struct slice list)
{
    if (list.len == 0)
        return;
    yyjson_mut_val *object = yyjson_mut_obj_add_obj(doc, spec, "autoLower"), *minimum = NULL;
    strv_each (item, list) {
        const char *eq = strchr(item, '=');
        if (eq == NULL)
            continue;
        const char *name = arena_dup(arena, item, (size_t)(eq - item));
        if (strcmp(name, "factor") == 0) {
            yyjson_mut_obj_add_real(doc, object, "factor", strtod(eq + 1, NULL));
            continue;
        }
        if (minimum == NULL)
            minimum = yyjson_mut_obj_add_obj(doc, object, "minimum");
        yyjson_mut_obj_add_strcpy(doc, minimum, name, eq + 1);
    }
}
