/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Environment variables are checked where they come in, because further down a bad one cannot be
 * told from a good one: a name with '=' in it would quietly become another variable, and a number
 * would have to be written in some way that its sender did not choose.
 */

#include "api/v0/env.h"

#include <ctype.h>
#include <string.h>

#include "base/limits.h"
#include "json/json.h"

static bool env_name_ok(struct slice name)
{
    if (name.len == 0 || isdigit((unsigned char)name.data[0]))
        return false;
    for (size_t i = 0; i < name.len; i++)
        if (!(isalnum((unsigned char)name.data[i]) || name.data[i] == '_'))
            return false;
    return true;
}

/* What the two kinds of pairs differ in. */
struct pairs {
    const char *where;
    bool patch; /* null: the name goes */
    bool names; /* are names of variables */
    size_t count_max;
    const char *what;
};

static int check_pair(const struct pairs *pairs, struct slice name, yyjson_val *value,
                      struct error *err)
{
    const char *where = pairs->where;
    if (memchr(name.data, '\0', name.len) != NULL || memchr(name.data, '=', name.len) != NULL ||
        name.len == 0 || (pairs->names && !env_name_ok(name)))
        return error_set(err, ERROR_INVALID_ARGUMENT,
                         pairs->names ? "%s: \"%.80s\" is not a name of letters, digits and _ that "
                                        "begins with no digit"
                                      : "%s: \"%.80s\" is not the key of a label",
                         where, name.data);
    if (pairs->patch && yyjson_is_null(value))
        return 0;
    if (!yyjson_is_str(value))
        return error_set(err, ERROR_INVALID_ARGUMENT, "%s.%.80s must be a string, not %s", where,
                         name.data, yyjson_get_type_desc(value));
    if (memchr(yyjson_get_str(value), '\0', yyjson_get_len(value)) != NULL)
        return error_set(err, ERROR_INVALID_ARGUMENT, "%s.%.80s holds a NUL", where, name.data);
    return 0;
}

static int measure(const struct pairs *pairs, yyjson_val *object, size_t *ret_bytes,
                   struct error *err)
{
    size_t idx, max, bytes = 0;
    yyjson_val *key, *value;

    if (yyjson_obj_size(object) > pairs->count_max)
        return error_set(err, ERROR_INVALID_ARGUMENT, "%s holds more than %zu %s", pairs->where,
                         pairs->count_max, pairs->what);
    json_obj_foreach(object, idx, max, key, value)
    {
        struct slice name = {yyjson_get_str(key), yyjson_get_len(key)};
        if (check_pair(pairs, name, value, err) < 0)
            return -1;
        bytes += name.len + yyjson_get_len(value) + 2;
    }
    if (bytes > ENV_BYTES_MAX)
        return error_set(err, ERROR_PAYLOAD_TOO_LARGE, "%s is larger than %d bytes", pairs->where,
                         ENV_BYTES_MAX);
    *ret_bytes = bytes;
    return 0;
}

static int read_pairs(struct arena *arena, const struct pairs *pairs, yyjson_val *object,
                      struct slice *ret_list, struct error *err)
{
    size_t idx, max, bytes = 0;
    yyjson_val *key, *value;

    if (measure(pairs, object, &bytes, err) < 0)
        return -1;
    char *list = arena_alloc(arena, bytes + 1);
    char *at = list;
    json_obj_foreach(object, idx, max, key, value)
    {
        at = mempcpy(at, yyjson_get_str(key), yyjson_get_len(key));
        if (yyjson_is_str(value)) {
            *at++ = '=';
            at = mempcpy(at, yyjson_get_str(value), yyjson_get_len(value));
        }
        *at++ = '\0';
    }
    *ret_list = (struct slice){list, (size_t)(at - list)};
    return 0;
}

int env_from_json(struct arena *arena, yyjson_val *object, const char *where, struct slice *ret_env,
                  struct error *err)
{
    const struct pairs pairs = {where, false, true, ENV_VARS_MAX, "variables"};
    return read_pairs(arena, &pairs, object, ret_env, err);
}

int env_patch_from_json(struct arena *arena, yyjson_val *object, const char *where,
                        struct slice *ret_env, struct error *err)
{
    const struct pairs pairs = {where, true, true, ENV_VARS_MAX, "variables"};
    return read_pairs(arena, &pairs, object, ret_env, err);
}

int labels_from_json(struct arena *arena, yyjson_val *object, bool patch, struct slice *ret_labels,
                     struct error *err)
{
    const struct pairs pairs = {"metadata.labels", patch, false, LABELS_MAX, "labels"};
    return read_pairs(arena, &pairs, object, ret_labels, err);
}

yyjson_mut_val *env_to_json(yyjson_mut_doc *doc, struct slice env)
{
    yyjson_mut_val *object = yyjson_mut_obj(doc);
    strv_each (item, env) {
        const char *equals = strchrnul(item, '=');
        const char *value = *equals == '=' ? equals + 1 : equals;
        yyjson_mut_obj_add(object, yyjson_mut_strncpy(doc, item, (size_t)(equals - item)),
                           yyjson_mut_strcpy(doc, value));
    }
    return object;
}
