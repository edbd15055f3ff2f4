/* SPDX-License-Identifier: Apache-2.0 */

#include "api/blaxel/members.h"

#include <inttypes.h>
#include <string.h>

static yyjson_val *find(yyjson_val *object, const char *name)
{
    yyjson_val *value = yyjson_obj_get(object, name);
    return yyjson_is_null(value) ? NULL : value;
}

static int wrong(const char *where, const char *name, const char *wanted, struct error *err)
{
    return error_set(err, ERROR_INVALID_ARGUMENT, "%s%s%s must be %s", where,
                     where[0] == '\0' ? "" : ".", name, wanted);
}

int member_text(yyjson_val *object, const char *where, const char *name, const char **ret,
                struct error *err)
{
    yyjson_val *value = find(object, name);
    if (value == NULL)
        return 0;
    if (!yyjson_is_str(value) || strlen(yyjson_get_str(value)) != yyjson_get_len(value))
        return wrong(where, name, "a string", err);
    *ret = yyjson_get_str(value);
    return 0;
}

int member_object(yyjson_val *object, const char *where, const char *name, yyjson_val **ret,
                  struct error *err)
{
    yyjson_val *value = find(object, name);
    if (value == NULL)
        return 0;
    if (!yyjson_is_obj(value))
        return wrong(where, name, "an object", err);
    *ret = value;
    return 0;
}

int member_array(yyjson_val *object, const char *where, const char *name, yyjson_val **ret,
                 struct error *err)
{
    yyjson_val *value = find(object, name);
    if (value == NULL)
        return 0;
    if (!yyjson_is_arr(value))
        return wrong(where, name, "an array", err);
    *ret = value;
    return 0;
}

int member_bool(yyjson_val *object, const char *where, const char *name, bool *ret,
                struct error *err)
{
    yyjson_val *value = find(object, name);
    if (value == NULL)
        return 0;
    if (!yyjson_is_bool(value))
        return wrong(where, name, "true or false", err);
    *ret = yyjson_get_bool(value);
    return 0;
}

int member_uint(yyjson_val *object, const char *where, const char *name, uint64_t min, uint64_t max,
                uint64_t *ret, struct error *err)
{
    yyjson_val *value = find(object, name);
    if (value == NULL)
        return 0;
    if (!yyjson_is_uint(value) || yyjson_get_uint(value) < min || yyjson_get_uint(value) > max)
        return error_set(err, ERROR_INVALID_ARGUMENT,
                         "%s%s%s must be a whole number from %" PRIu64 " to %" PRIu64, where,
                         where[0] == '\0' ? "" : ".", name, min, max);
    *ret = yyjson_get_uint(value);
    return 0;
}
