/* SPDX-License-Identifier: Apache-2.0 */

/* Percent-decoding and query parameters. A decoded NUL is refused: no string here could hold it. */

#include <string.h>

#include "http/server.h"

static int hex_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* The byte that an escape at text stands for; -1 when there is none, or a NUL. */
static int escaped_byte(struct slice text)
{
    if (text.len < 3)
        return -1;
    int high = hex_value(text.data[1]), low = hex_value(text.data[2]);
    if (high < 0 || low < 0 || (high == 0 && low == 0))
        return -1;
    return high << 4 | low;
}

static int decode(struct arena *arena, struct slice text, bool plus_is_space, struct slice *ret,
                  struct error *err)
{
    char *to = arena_alloc(arena, text.len + 1);
    size_t n = 0;
    for (size_t i = 0; i < text.len; i++) {
        char c = text.data[i];
        if (c == '%') {
            int value = escaped_byte((struct slice){text.data + i, text.len - i});
            if (value < 0)
                return error_set(err, ERROR_INVALID_ARGUMENT, "a broken %%-escape in %.*s",
                                 (int)(text.len > 200 ? 200 : text.len), text.data);
            c = (char)value;
            i += 2;
        } else if (c == '+' && plus_is_space)
            c = ' ';
        else if (c == '\0')
            return error_set(err, ERROR_INVALID_ARGUMENT, "a NUL in a name");
        to[n++] = c;
    }
    *ret = (struct slice){to, n};
    return 0;
}

int http_decode(struct arena *arena, struct slice text, struct slice *ret, struct error *err)
{
    return decode(arena, text, false, ret, err);
}

int http_query(struct http_exchange *x, const char *name, const char **ret_value, struct error *err)
{
    return http_query_nth(x, name, 0, ret_value, err);
}

int http_query_nth(struct http_exchange *x, const char *name, size_t index, const char **ret_value,
                   struct error *err)
{
    return http_form_field(http_arena(x), http_request(x)->query, name, index, ret_value, err);
}

int http_form_field(struct arena *arena, const char *form, const char *name, size_t index,
                    const char **ret_value, struct error *err)
{
    const char *at = form;
    while (*at != '\0') {
        size_t len = strcspn(at, "&");
        const char *equals = memchr(at, '=', len);
        size_t key_len = equals == NULL ? len : (size_t)(equals - at);
        struct slice key, value = {"", 0};
        if (decode(arena, (struct slice){at, key_len}, true, &key, err) != 0)
            return -1;
        if (slice_eq(key, slice_of(name)) && index-- == 0) {
            struct slice raw = {at + key_len + 1, equals == NULL ? 0 : len - key_len - 1};
            if (equals != NULL && decode(arena, raw, true, &value, err) != 0)
                return -1;
            *ret_value = value.data;
            return 0;
        }
        at += len;
        at += *at == '&';
    }
    *ret_value = NULL;
    return 0;
}
