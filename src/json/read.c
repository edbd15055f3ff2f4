/* SPDX-License-Identifier: Apache-2.0 */

/*
 * From values to structs, by table. The messages are most of the worth of it: whoever gets one
 * should be able to mend the request without looking anything up.
 */

#include "json/json.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/cleanup.h"

enum {
    QUOTED_MAX = 48,       /* bytes of a stranger's key or value that a message repeats */
    WHOLE_DOUBLE_MAX = 53, /* bits: up to here a double holds every whole number */
    KNOWN_MAX = 200,       /* bytes of a list of known fields */
};

struct reading {
    struct arena *arena;
    const char *where;
    const struct json_field *field;
    yyjson_val *value;
    void *member;
    struct error *err;
};

static const char *type_text(yyjson_val *value)
{
    switch (yyjson_get_type(value)) {
    case YYJSON_TYPE_NULL:
        return "null";
    case YYJSON_TYPE_BOOL:
        return "a boolean";
    case YYJSON_TYPE_NUM:
        return "a number";
    case YYJSON_TYPE_STR:
        return "a string";
    case YYJSON_TYPE_ARR:
        return "an array";
    case YYJSON_TYPE_OBJ:
        return "an object";
    default:
        return "nothing";
    }
}

/* "spec.resources" and "cpu": the path of a field, in two halves for one "%s%s". */
static const char *dot(const char *where)
{
    return where[0] == '\0' ? "" : ".";
}

static int refuse(const struct reading *r, const char *expected, const char *found)
{
    return error_set(r->err, ERROR_INVALID_ARGUMENT, "%s%s%s must be %s, not %s", r->where,
                     dot(r->where), r->field->name, expected, found);
}

static int fill_bytes(const struct reading *r)
{
    if (!yyjson_is_str(r->value))
        return refuse(r, "a string", type_text(r->value));
    *(struct slice *)r->member = (struct slice){yyjson_get_str(r->value), yyjson_get_len(r->value)};
    return 0;
}

static int fill_string(const struct reading *r)
{
    if (!yyjson_is_str(r->value))
        return refuse(r, "a string", type_text(r->value));
    const char *text = yyjson_get_str(r->value);
    if (memchr(text, '\0', yyjson_get_len(r->value)) != NULL)
        return refuse(r, "a string without NUL characters", "one with");
    *(const char **)r->member = text;
    return 0;
}

static int fill_scalar_text(const struct reading *r)
{
    if (yyjson_is_str(r->value))
        return fill_string(r);
    if (!yyjson_is_num(r->value))
        return refuse(r, "a string or a number", type_text(r->value));
    size_t len;
    _cleanup_free_ char *text = yyjson_val_write(r->value, 0, &len);
    if (text == NULL)
        return refuse(r, "a string or a number", "a number that cannot be written");
    *(const char **)r->member = arena_dup(r->arena, text, len);
    return 0;
}

static int fill_bool(const struct reading *r)
{
    if (!yyjson_is_bool(r->value))
        return refuse(r, "true or false", type_text(r->value));
    *(bool *)r->member = yyjson_get_bool(r->value);
    return 0;
}

/* Whole numbers, also when written as 3.0 or 1e3. */
static bool whole_number(yyjson_val *value, int64_t *ret)
{
    if (yyjson_is_uint(value)) {
        if (yyjson_get_uint(value) > INT64_MAX)
            return false;
        *ret = (int64_t)yyjson_get_uint(value);
        return true;
    }
    if (yyjson_is_sint(value)) {
        *ret = yyjson_get_sint(value);
        return true;
    }
    const double most = (double)(1LL << WHOLE_DOUBLE_MAX);
    double real = yyjson_get_real(value);
    if (real < -most || real > most || real != (double)(int64_t)real)
        return false;
    *ret = (int64_t)real;
    return true;
}

static int fill_int(const struct reading *r)
{
    const struct json_field *field = r->field;
    int64_t number;
    char expected[96] = "a whole number";
    if (field->max > field->min)
        snprintf(expected, sizeof(expected), "a whole number from %lld to %lld",
                 (long long)field->min, (long long)field->max);
    if (!yyjson_is_num(r->value))
        return refuse(r, expected, type_text(r->value));
    if (!whole_number(r->value, &number) ||
        (field->max > field->min && (number < field->min || number > field->max))) {
        _cleanup_free_ char *found = yyjson_val_write(r->value, 0, NULL);
        return refuse(r, expected, found == NULL ? "another number" : found);
    }
    *(int64_t *)r->member = number;
    return 0;
}

static int fill_object(const struct reading *r)
{
    if (!yyjson_is_obj(r->value))
        return refuse(r, "an object", type_text(r->value));
    *(yyjson_val **)r->member = r->value;
    return 0;
}

static int fill_array(const struct reading *r)
{
    if (!yyjson_is_arr(r->value))
        return refuse(r, "an array", type_text(r->value));
    *(yyjson_val **)r->member = r->value;
    return 0;
}

static int fill_any(const struct reading *r)
{
    *(yyjson_val **)r->member = r->value;
    return 0;
}

static int fill_nothing(const struct reading *r)
{
    return 0;
}

static int (*const fill[])(const struct reading *r) = {
    [JSON_STRING] = fill_string,   [JSON_BYTES] = fill_bytes,
    [JSON_BOOL] = fill_bool,       [JSON_INT] = fill_int,
    [JSON_OBJECT] = fill_object,   [JSON_ARRAY] = fill_array,
    [JSON_ANY] = fill_any,         [JSON_SCALAR_TEXT] = fill_scalar_text,
    [JSON_IGNORED] = fill_nothing,
};

static int unknown_field(const char *where, yyjson_val *key, const struct json_field *fields,
                         size_t n, struct error *err)
{
    _cleanup_buf_ struct buf known = BUF_INIT(KNOWN_MAX);
    for (size_t i = 0; i < n; i++)
        if (fields[i].kind != JSON_IGNORED)
            buf_addf(&known, "%s%s", known.len == 0 ? "" : ", ", fields[i].name);

    /* Not in the middle of a character, when it is long. */
    const char *name = yyjson_get_str(key);
    size_t len = yyjson_get_len(key);
    bool cut = len > QUOTED_MAX;
    if (cut)
        for (len = QUOTED_MAX; len > 0 && (name[len] & 0xc0) == 0x80;)
            len--;
    return error_set(err, ERROR_UNKNOWN_FIELD, "unknown field \"%.*s%s\"%s%s; known: %s%s",
                     (int)len, name, cut ? "…" : "", where[0] == '\0' ? "" : " in ", where,
                     known.len == 0 ? "none" : known.data, known.failed ? ", …" : "");
}

static const struct json_field *find_field(const struct json_field *fields, size_t n,
                                           yyjson_val *key)
{
    for (size_t i = 0; i < n; i++)
        if (yyjson_equals_str(key, fields[i].name))
            return &fields[i];
    return NULL;
}

int json_read(struct arena *arena, yyjson_val *object, const char *where,
              const struct json_field *fields, size_t n, void *into, struct error *err)
{
    if (!yyjson_is_obj(object))
        return error_set(err, ERROR_INVALID_ARGUMENT, "%s must be an object, not %s",
                         where[0] == '\0' ? "the body" : where, type_text(object));

    yyjson_obj_iter iter = yyjson_obj_iter_with(object);
    for (yyjson_val *key; (key = yyjson_obj_iter_next(&iter)) != NULL;) {
        const struct json_field *field = find_field(fields, n, key);
        if (field == NULL)
            return unknown_field(where, key, fields, n, err);
        struct reading r = {arena, where, field, yyjson_obj_iter_get_val(key), NULL, err};
        r.member = (char *)into + field->offset;
        if (!yyjson_is_null(r.value) && fill[field->kind](&r) < 0)
            return -1;
    }
    for (size_t i = 0; i < n; i++) {
        yyjson_val *value = fields[i].required ? yyjson_obj_get(object, fields[i].name) : object;
        if (value == NULL || yyjson_is_null(value))
            return error_set(err, ERROR_INVALID_ARGUMENT, "%s%s%s is required", where, dot(where),
                             fields[i].name);
    }
    return 0;
}
