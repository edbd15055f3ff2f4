/* SPDX-License-Identifier: Apache-2.0 */

/* Cookie fields, item by item: what is between semicolons, blanks around it aside (RFC 6265, 5.4
 * and 5.2). */

#include "api/cookie.h"

#include <string.h>
#include <strings.h>

#include "base/slice.h"

/* The next item of a field; *at goes behind it. False at the end. */
static bool next_item(const char **at, struct slice *ret_item)
{
    const char *from = *at + strspn(*at, " \t;");
    size_t len = strcspn(from, ";");
    *at = from + len;
    while (len > 0 && (from[len - 1] == ' ' || from[len - 1] == '\t'))
        len--;
    *ret_item = (struct slice){from, len};
    return len > 0;
}

/* Browsers leave blanks around a name out. */
static struct slice name_of(struct slice item)
{
    size_t len = 0;
    while (len < item.len && item.data[len] != '=')
        len++;
    while (len > 0 && (item.data[len - 1] == ' ' || item.data[len - 1] == '\t'))
        len--;
    return (struct slice){item.data, len};
}

static bool is_ours(struct slice name)
{
    size_t prefix = strlen(COOKIE_PORT_PREFIX);
    return slice_eq(name, slice_of(COOKIE_PREVIEW)) ||
           (name.len >= prefix && strncasecmp(name.data, COOKIE_PORT_PREFIX, prefix) == 0);
}

const char *cookie_get(struct arena *arena, const char *field, const char *name)
{
    struct slice item, wanted = slice_of(name);
    const char *at = field;
    while (at != NULL && next_item(&at, &item))
        if (item.len > wanted.len && item.data[wanted.len] == '=' &&
            memcmp(item.data, name, wanted.len) == 0)
            return arena_dup(arena, item.data + wanted.len + 1, item.len - wanted.len - 1);
    return NULL;
}

static size_t add(char *text, size_t used, struct slice item)
{
    if (used > 0) {
        memcpy(text + used, "; ", 2);
        used += 2;
    }
    memcpy(text + used, item.data, item.len);
    return used + item.len;
}

const char *cookie_for_program(struct arena *arena, const char *field)
{
    /* An item grows by the blank behind its semicolon at most. */
    char *text = arena_alloc(arena, 2 * strlen(field) + 1);
    struct slice item;
    const char *at = field;
    size_t used = 0;
    while (next_item(&at, &item))
        if (!is_ours(name_of(item)))
            used = add(text, used, item);
    return used == 0 ? NULL : text;
}

const char *cookie_from_program(struct arena *arena, const char *field)
{
    char *text = arena_alloc(arena, 2 * strlen(field) + 1);
    struct slice item;
    const char *at = field;
    size_t used = 0;
    for (bool first = true; next_item(&at, &item); first = false) {
        struct slice name = name_of(item);
        if (first && is_ours(name))
            return NULL;
        if (!first && name.len == 6 && strncasecmp(name.data, "Domain", 6) == 0)
            continue;
        used = add(text, used, item);
    }
    return used == 0 ? NULL : text;
}
