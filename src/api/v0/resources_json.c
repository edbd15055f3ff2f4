/* SPDX-License-Identifier: Apache-2.0 */

/* Resources as they are asked for, in and out. */

#include "api/v0/resources_json.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

struct given {
    struct sandbox_resources resources;
};

static const struct json_field fields[] = {RESOURCE_FIELDS(struct given, resources)};
_Static_assert(ARRAY_LEN(fields) == RESOURCE_COUNT, "a field for each resource");

int resources_from_json(struct arena *arena, yyjson_val *object, const char *where,
                        struct sandbox_resources *into, struct error *err)
{
    struct given given = {*into};
    if (object == NULL)
        return 0;
    if (json_read(arena, object, where, fields, ARRAY_LEN(fields), &given, err) < 0)
        return -1;
    *into = given.resources;
    return 0;
}

static bool is_count(enum resource resource, const char *text)
{
    return (resource == RESOURCE_PIDS || resource == RESOURCE_DISK_READ_OPS ||
            resource == RESOURCE_DISK_WRITE_OPS) &&
           strspn(text, "0123456789") == strlen(text);
}

void resources_to_json(yyjson_mut_doc *doc, yyjson_mut_val *object,
                       const struct sandbox_resources *resources)
{
    for (int i = 0; i < RESOURCE_COUNT; i++) {
        const char *name = resource_name((enum resource)i), *text = resources->of[i];
        if (text == NULL)
            continue;
        if (is_count((enum resource)i, text))
            yyjson_mut_obj_add_uint(doc, object, name, strtoull(text, NULL, 10));
        else
            yyjson_mut_obj_add_str(doc, object, name, text);
    }
}
