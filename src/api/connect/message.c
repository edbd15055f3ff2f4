/* SPDX-License-Identifier: Apache-2.0 */

/* protobuf's JSON, one field at a time. */

#include "api/connect/message.h"

#include <ctype.h>
#include <inttypes.h>
#include <string.h>

#include "api/blaxel/members.h"
#include "base/buf.h"
#include "base/cleanup.h"

enum { FIELD_NAME_MAX = 64, DIGITS_MAX = 20 };

/* "watcher_id" of "watcherId"; false when the two are the same. */
static bool snake_case(const char *name, char out[2 * FIELD_NAME_MAX])
{
    size_t n = 0;
    bool changed = false;
    for (const char *c = name; *c != '\0' && c - name < FIELD_NAME_MAX - 1; c++) {
        if (isupper((unsigned char)*c)) {
            out[n++] = '_';
            changed = true;
        }
        out[n++] = (char)tolower((unsigned char)*c);
    }
    out[n] = '\0';
    return changed;
}

/* As the object spells it; the name itself when it has neither. */
static const char *spelt(yyjson_val *object, const char *name, char other[2 * FIELD_NAME_MAX])
{
    if (yyjson_obj_get(object, name) == NULL && snake_case(name, other) &&
        yyjson_obj_get(object, other) != NULL)
        return other;
    return name;
}

static yyjson_val *find(yyjson_val *object, const char *name)
{
    char other[2 * FIELD_NAME_MAX];
    yyjson_val *value = yyjson_obj_get(object, spelt(object, name, other));
    return yyjson_is_null(value) ? NULL : value;
}

int message_text(yyjson_val *object, const char *where, const char *name, const char **ret,
                 struct error *err)
{
    char other[2 * FIELD_NAME_MAX];
    return member_text(object, where, spelt(object, name, other), ret, err);
}

int message_object(yyjson_val *object, const char *where, const char *name, yyjson_val **ret,
                   struct error *err)
{
    char other[2 * FIELD_NAME_MAX];
    return member_object(object, where, spelt(object, name, other), ret, err);
}

int message_array(yyjson_val *object, const char *where, const char *name, yyjson_val **ret,
                  struct error *err)
{
    char other[2 * FIELD_NAME_MAX];
    return member_array(object, where, spelt(object, name, other), ret, err);
}

int message_bool(yyjson_val *object, const char *where, const char *name, bool *ret,
                 struct error *err)
{
    char other[2 * FIELD_NAME_MAX];
    return member_bool(object, where, spelt(object, name, other), ret, err);
}

static int wrong(const char *where, const char *name, const char *wanted, struct error *err)
{
    return error_set(err, ERROR_INVALID_ARGUMENT, "%s%s%s must be %s", where,
                     where[0] == '\0' ? "" : ".", name, wanted);
}

/* --- numbers --- */

static bool digits_value(const char *text, size_t len, uint64_t *ret)
{
    uint64_t value = 0;
    if (len == 0 || len > DIGITS_MAX)
        return false;
    for (size_t i = 0; i < len; i++) {
        unsigned digit = (unsigned)(text[i] - '0');
        if (digit > 9 || __builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, digit, &value))
            return false;
    }
    *ret = value;
    return true;
}

static bool whole_number(yyjson_val *value, uint64_t *ret)
{
    if (yyjson_is_str(value))
        return digits_value(yyjson_get_str(value), yyjson_get_len(value), ret);
    if (yyjson_is_real(value)) {
        double number = yyjson_get_real(value);
        if (!(number >= 0 && number < 0x1p53) || (double)(uint64_t)number != number)
            return false;
        *ret = (uint64_t)number;
        return true;
    }
    *ret = yyjson_get_uint(value);
    return yyjson_is_uint(value);
}

int message_uint(yyjson_val *object, const char *where, const char *name, uint64_t min,
                 uint64_t max, uint64_t *ret, struct error *err)
{
    yyjson_val *value = find(object, name);
    uint64_t number;
    if (value == NULL)
        return 0;
    if (!whole_number(value, &number) || number < min || number > max)
        return error_set(err, ERROR_INVALID_ARGUMENT,
                         "%s%s%s must be a whole number from %" PRIu64 " to %" PRIu64, where,
                         where[0] == '\0' ? "" : ".", name, min, max);
    *ret = number;
    return 0;
}

/* --- bytes --- */

/* In the usual alphabet, and padded. */
static struct slice plain_base64(struct arena *arena, struct slice text)
{
    char *plain = arena_alloc(arena, text.len + 4);
    size_t len = text.len;
    for (size_t i = 0; i < len; i++)
        plain[i] = text.data[i] == '-' ? '+' : text.data[i] == '_' ? '/' : text.data[i];
    if (len == 0 || plain[len - 1] != '=')
        while (len % 4 != 0)
            plain[len++] = '=';
    return (struct slice){plain, len};
}

int message_bytes(struct arena *arena, yyjson_val *object, const char *where, const char *name,
                  struct slice *ret, struct error *err)
{
    yyjson_val *value = find(object, name);
    if (value == NULL)
        return 0;
    if (!yyjson_is_str(value))
        return wrong(where, name, "base64 in a string", err);
    struct slice text = {yyjson_get_str(value), yyjson_get_len(value)};
    if (json_base64_decode(arena, plain_base64(arena, text), ret, err) < 0)
        return error_prefix(err, "%s%s%s", where, where[0] == '\0' ? "" : ".", name);
    return 0;
}

/* --- enums --- */

int message_enum(yyjson_val *object, const char *where, const char *name,
                 const struct message_enum *values, size_t count, int *ret, struct error *err)
{
    yyjson_val *value = find(object, name);
    _cleanup_buf_ struct buf wanted = BUF_INIT(256);
    if (value == NULL)
        return 0;
    for (size_t i = 0; i < count; i++) {
        if (yyjson_equals_str(value, values[i].name) ||
            (yyjson_is_int(value) && yyjson_get_sint(value) == values[i].number)) {
            *ret = values[i].number;
            return 0;
        }
        buf_addf(&wanted, "%s%s", i == 0 ? "" : " or ", values[i].name);
    }
    return wrong(where, name, wanted.data, err);
}
