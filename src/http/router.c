/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Finding the row for a request. A table of some dozens of rows is walked from top to bottom:
 * comparing a few segments is nothing next to what a handler does, and "the first row that fits"
 * needs no explaining. Most rows are of another method, which a glance tells.
 */

#include "http/router.h"

#include <stdio.h>
#include <string.h>

/* What a row's parameters took of the path, still encoded. */
struct captures {
    struct slice names[ROUTE_PARAMS_MAX];
    struct slice values[ROUTE_PARAMS_MAX];
    size_t count;
};

static bool ends_segment(char c)
{
    return c == '/' || c == '\0';
}

/* The segment at *at (up to the next slash), and moves *at behind it and its slash. */
static struct slice take_segment(const char **at)
{
    const char *start = *at, *end = start;
    while (!ends_segment(*end))
        end++;
    *at = end + (*end == '/');
    return (struct slice){start, (size_t)(end - start)};
}

/* Goes over a literal segment that both have. Most rows end here, so it comes without a copy. */
static bool skip_literal(const char **row, const char **path)
{
    const char *a = *row, *b = *path;
    while (*a == *b && !ends_segment(*a))
        a++, b++;
    if (!ends_segment(*a) || !ends_segment(*b))
        return false;
    *row = a + (*a == '/');
    *path = b + (*b == '/');
    return true;
}

static bool capture(struct captures *captures, struct slice name, struct slice value)
{
    if (captures->count == ROUTE_PARAMS_MAX)
        return false;
    captures->names[captures->count] = name;
    captures->values[captures->count++] = value;
    return true;
}

/* Both begin with a slash. An end of the path is the same with a slash behind it or without. */
static bool matches(const char *row, const char *path, struct captures *captures)
{
    captures->count = 0;
    if (*row++ != '/' || *path++ != '/')
        return false;
    while (*row != '\0') {
        if (*row != '{') {
            if (!skip_literal(&row, &path))
                return false;
            continue;
        }
        struct slice want = take_segment(&row); /* "{name}" or "{path*}" */
        if (want.data[want.len - 2] == '*')
            return capture(captures, (struct slice){want.data + 1, want.len - 3}, slice_of(path));
        struct slice got = take_segment(&path);
        if (got.len == 0 || !capture(captures, (struct slice){want.data + 1, want.len - 2}, got))
            return false;
    }
    return *path == '\0';
}

static bool serves_method(const struct route *route, const char *method)
{
    if (route->method[0] != method[0] && route->method[0] != 'A' && method[0] != 'H')
        return false;
    if (strcmp(route->method, method) == 0 || strcmp(route->method, "ANY") == 0)
        return true;
    return strcmp(method, "HEAD") == 0 && strcmp(route->method, "GET") == 0;
}

static int decode_params(struct http_exchange *x, const struct captures *captures,
                         struct route_params *ret_params, struct error *err)
{
    struct route_params params = {.count = captures->count};
    for (size_t i = 0; i < captures->count; i++) {
        struct slice name = captures->names[i];
        params.items[i].name = arena_dup(http_arena(x), name.data, name.len);
        params.items[i].raw = captures->values[i];
        if (http_decode(http_arena(x), captures->values[i], &params.items[i].value, err) != 0)
            return error_set(err, ERROR_INVALID_PATH, "a broken %%-escape in the path");
    }
    *ret_params = params;
    return 0;
}

/* "GET, HEAD, PUT": each method once. */
static const char *allowed(const struct route *table, size_t n, struct http_exchange *x,
                           const char *path)
{
    struct captures captures;
    char *list = arena_alloc(http_arena(x), 128);
    size_t at = 0;
    for (size_t i = 0; i < n; i++) {
        if (!matches(table[i].path, path, &captures))
            continue;
        if (strstr(list, table[i].method) != NULL)
            continue;
        const char *head = strcmp(table[i].method, "GET") == 0 ? ", HEAD" : "";
        int len =
            snprintf(list + at, 128 - at, "%s%s%s", at == 0 ? "" : ", ", table[i].method, head);
        if (len < 0 || (size_t)len >= 128 - at)
            break;
        at += (size_t)len;
    }
    return list;
}

const char *route_methods(const struct route *table, size_t n, struct http_exchange *x,
                          const char *path, bool *ret_any)
{
    struct captures captures;
    *ret_any = false;
    for (size_t i = 0; i < n; i++)
        if (strcmp(table[i].method, "ANY") == 0 && matches(table[i].path, path, &captures))
            *ret_any = true;
    return *ret_any ? "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS" : allowed(table, n, x, path);
}

const struct route *route_find(const struct route *table, size_t n, struct http_exchange *x,
                               struct route_params *ret_params, struct error *err)
{
    return route_find_at(table, n, x, http_request(x)->path, ret_params, err);
}

const struct route *route_find_at(const struct route *table, size_t n, struct http_exchange *x,
                                  const char *path, struct route_params *ret_params,
                                  struct error *err)
{
    const struct http_request *request = http_request(x);
    for (size_t i = 0; i < n; i++) {
        struct captures captures;
        if (serves_method(&table[i], request->method) && matches(table[i].path, path, &captures))
            return decode_params(x, &captures, ret_params, err) == 0 ? &table[i] : NULL;
    }
    const char *methods = allowed(table, n, x, path);
    if (methods[0] != '\0') {
        http_set_header(x, "Allow", "%s", methods);
        error_set(err, ERROR_METHOD_NOT_ALLOWED, "%s is not allowed here, only %s", request->method,
                  methods);
        return NULL;
    }
    error_set(err, ERROR_ROUTE_NOT_FOUND, "no such path: %s", path);
    return NULL;
}

const char *route_param(const struct route_params *params, const char *name)
{
    for (size_t i = 0; i < params->count; i++)
        if (strcmp(params->items[i].name, name) == 0)
            return params->items[i].value.data;
    return "";
}

struct slice route_param_raw(const struct route_params *params, const char *name)
{
    for (size_t i = 0; i < params->count; i++)
        if (strcmp(params->items[i].name, name) == 0)
            return params->items[i].raw;
    return (struct slice){"", 0};
}
