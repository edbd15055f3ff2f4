/* SPDX-License-Identifier: Apache-2.0 */

/* Reading Range, If-Range and If-None-Match. */

#include "http/range.h"

#include <string.h>

/* Digits at *at, moved behind them; false without any, or past 2^63. */
static bool take_number(const char **at, uint64_t *ret_value)
{
    uint64_t value = 0;
    const char *p = *at;
    for (; *p >= '0' && *p <= '9'; p++) {
        if (value > (INT64_MAX - 9) / 10)
            return false;
        value = value * 10 + (uint64_t)(*p - '0');
    }
    if (p == *at)
        return false;
    *at = p;
    *ret_value = value;
    return true;
}

/* "bytes=" without regard to case; NULL when it is another unit. */
static const char *after_unit(const char *value)
{
    static const char unit[] = "bytes=";
    return strncasecmp(value, unit, sizeof(unit) - 1) == 0 ? value + sizeof(unit) - 1 : NULL;
}

enum http_range_kind http_range_parse(const char *value, uint64_t size,
                                      struct http_range *ret_range)
{
    uint64_t first = 0, last = UINT64_MAX;
    const char *at = value == NULL ? NULL : after_unit(value);
    if (at == NULL)
        return HTTP_RANGE_NONE;
    at += strspn(at, " \t");
    bool from_end = *at == '-';
    if (from_end) {
        at++;
        if (!take_number(&at, &last))
            return HTTP_RANGE_NONE;
    } else {
        if (!take_number(&at, &first) || *at++ != '-')
            return HTTP_RANGE_NONE;
        if (*at >= '0' && *at <= '9' && !take_number(&at, &last))
            return HTTP_RANGE_NONE;
    }
    at += strspn(at, " \t");
    if (*at != '\0' || (!from_end && last < first))
        return HTTP_RANGE_NONE;
    if (from_end) {
        if (last == 0 || size == 0)
            return HTTP_RANGE_UNSATISFIABLE;
        uint64_t length = last < size ? last : size;
        *ret_range = (struct http_range){size - length, length};
        return HTTP_RANGE_PART;
    }
    if (first >= size)
        return HTTP_RANGE_UNSATISFIABLE;
    uint64_t left = size - first;
    *ret_range = (struct http_range){first, last - first < left ? last - first + 1 : left};
    return HTTP_RANGE_PART;
}

enum http_range_kind http_range(const struct http_exchange *x, uint64_t size, const char *etag,
                                const char *last_modified, struct http_range *ret_range)
{
    const char *condition = http_header(x, "If-Range");
    bool same = condition == NULL || (etag != NULL && strcmp(condition, etag) == 0) ||
                (last_modified != NULL && strcmp(condition, last_modified) == 0);
    return same ? http_range_parse(http_header(x, "Range"), size, ret_range) : HTTP_RANGE_NONE;
}

bool http_not_modified(const struct http_exchange *x, const char *etag)
{
    const char *at = http_header(x, "If-None-Match");
    size_t len = strlen(etag);
    if (at == NULL)
        return false;
    while (*at != '\0') {
        at += strspn(at, " \t,");
        size_t n = strcspn(at, " \t,");
        const char *tag = n > 2 && strncmp(at, "W/", 2) == 0 ? at + 2 : at;
        size_t tag_len = n - (size_t)(tag - at);
        if ((n == 1 && *at == '*') || (tag_len == len && memcmp(tag, etag, len) == 0))
            return true;
        at += n;
    }
    return false;
}
