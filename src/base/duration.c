/* SPDX-License-Identifier: Apache-2.0 */

/* Lengths of time: numbers with units, one table of units. */

#include "base/duration.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "base/cleanup.h"

static const struct {
    char unit;
    uint64_t seconds;
} units[] = {{'s', 1}, {'m', 60}, {'h', 60 * 60}, {'d', 24 * 60 * 60}, {'w', 7 * 24 * 60 * 60}};

/* 0: no such unit. */
static uint64_t unit_seconds(char unit)
{
    for (size_t i = 0; i < ARRAY_LEN(units); i++)
        if (units[i].unit == unit)
            return units[i].seconds;
    return 0;
}

/* One number with its unit; NULL when it is none. *alone: it had no unit. */
static const char *take_part(const char *at, uint64_t *total, bool *alone)
{
    uint64_t number = 0, seconds = 0;
    const char *digits = at;
    for (; *at >= '0' && *at <= '9'; at++)
        if (__builtin_mul_overflow(number, UINT64_C(10), &number) ||
            __builtin_add_overflow(number, (uint64_t)(*at - '0'), &number))
            return NULL;
    if (at == digits)
        return NULL;
    *alone = *at == '\0';
    uint64_t scale = *alone ? 1 : unit_seconds(*at++);
    if (scale == 0 || __builtin_mul_overflow(number, scale, &seconds) ||
        __builtin_add_overflow(*total, seconds, total))
        return NULL;
    return at;
}

int duration_seconds(const char *text, uint64_t *ret_seconds, struct error *err)
{
    uint64_t total = 0;
    const char *at = text;
    bool alone = false;
    unsigned parts = 0;
    do {
        at = take_part(at, &total, &alone);
        parts++;
    } while (at != NULL && *at != '\0');
    if (at == NULL || (alone && parts > 1) || total > INT64_MAX) /* "1h30": of what? */
        return error_set(err, ERROR_INVALID_ARGUMENT,
                         "\"%.40s\" is not a length of time such as 30s, 15m, 1h, 7d or 1h30m",
                         text);
    *ret_seconds = total;
    return 0;
}

void duration_text(uint64_t seconds, char out[DURATION_TEXT_SIZE])
{
    static const char used[] = {'d', 'h', 'm', 's'};
    int len = 0;
    if (seconds == 0)
        len = snprintf(out, DURATION_TEXT_SIZE, "0s");
    for (size_t i = 0; i < ARRAY_LEN(used); i++) {
        uint64_t scale = unit_seconds(used[i]);
        if (seconds >= scale)
            len += snprintf(out + len, (size_t)(DURATION_TEXT_SIZE - len), "%" PRIu64 "%c",
                            seconds / scale, used[i]);
        seconds %= scale;
    }
}
