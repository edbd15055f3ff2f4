/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Borrowed bytes: pointer and length, never owned, not NUL-terminated unless said. */

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

struct slice {
    const char *data;
    size_t len;
};

static inline struct slice slice_of(const char *str)
{
    return (struct slice){str, str == NULL ? 0 : strlen(str)};
}

static inline bool slice_eq(struct slice a, struct slice b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.data, b.data, a.len) == 0);
}

/* Without blanks and tabs at either end. */
static inline struct slice slice_trim(struct slice text)
{
    while (text.len > 0 && (text.data[0] == ' ' || text.data[0] == '\t'))
        text = (struct slice){text.data + 1, text.len - 1};
    while (text.len > 0 && (text.data[text.len - 1] == ' ' || text.data[text.len - 1] == '\t'))
        text.len--;
    return text;
}

/*
 * A list of strings in one piece, each with its NUL, as in /proc/PID/environ. It can be
 * sent, stored and walked without an allocation:
 *
 *     strv_each (s, list)
 *         puts(s);
 */
static inline const char *strv_first(struct slice list)
{
    return list.len == 0 ? NULL : list.data;
}

static inline const char *strv_next(struct slice list, const char *item)
{
    const char *next = item + strlen(item) + 1;
    return next >= list.data + list.len ? NULL : next;
}

#define strv_each(item, list)                                                                      \
    for (const char *item = strv_first(list); item != NULL; item = strv_next((list), item))

/* Whether the bytes are a list: empty, or ending in a NUL. */
static inline bool strv_valid(struct slice list)
{
    return list.len == 0 || list.data[list.len - 1] == '\0';
}
