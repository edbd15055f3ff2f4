/* SPDX-License-Identifier: Apache-2.0 */

/* Times as text. By hand rather than by strftime(), whose names of days follow the locale. */

#include "base/timetext.h"

#include <stdbool.h>
#include <stdio.h>
#include <time.h>

static const char *const days[] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
static const char *const months[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                     "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};

int64_t time_now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static struct tm utc(int64_t ms)
{
    /* Downwards, so that a time before 1970 is not a second late. */
    time_t seconds = ms / 1000 - (ms % 1000 < 0);
    struct tm tm = {0};
    gmtime_r(&seconds, &tm); /* every int64_t of ms is in its range */
    return tm;
}

void time_rfc3339(int64_t ms, char out[TIME_TEXT_SIZE])
{
    struct tm tm = utc(ms);
    snprintf(out, TIME_TEXT_SIZE, "%04lld-%02d-%02dT%02d:%02d:%02dZ", tm.tm_year + 1900LL,
             tm.tm_mon + 1, tm.tm_mday, tm.tm_hour, tm.tm_min, tm.tm_sec);
}

void time_http(int64_t ms, char out[TIME_TEXT_SIZE])
{
    struct tm tm = utc(ms);
    snprintf(out, TIME_TEXT_SIZE, "%s, %02d %s %04lld %02d:%02d:%02d GMT", days[tm.tm_wday],
             tm.tm_mday, months[tm.tm_mon], tm.tm_year + 1900LL, tm.tm_hour, tm.tm_min, tm.tm_sec);
}

/* --- reading --- */

/* Exactly n digits, then the character `after` (NUL: whatever is there, which is not taken). */
static bool take_digits(const char **at, int n, char after, int *ret_value)
{
    int value = 0;
    for (; n > 0; n--, (*at)++) {
        if (**at < '0' || **at > '9')
            return false;
        value = value * 10 + (**at - '0');
    }
    if (after != '\0' && *(*at)++ != after)
        return false;
    *ret_value = value;
    return true;
}

static bool take_fraction(const char **at, int *ret_ms)
{
    int ms = 0, scale = 100;
    const char *digits = *at + 1;
    if (**at != '.')
        return true;
    for (*at = digits; **at >= '0' && **at <= '9'; (*at)++, scale /= 10)
        ms += (**at - '0') * scale;
    *ret_ms = ms;
    return *at > digits;
}

/* "Z" or "+02:00", to the end of the text. */
static bool take_zone(const char *at, int *ret_minutes)
{
    int hours, minutes;
    if ((*at | 0x20) == 'z')
        return at[1] == '\0';
    char sign = *at++;
    if ((sign != '+' && sign != '-') || !take_digits(&at, 2, ':', &hours) ||
        !take_digits(&at, 2, '\0', &minutes) || *at != '\0' || hours > 23 || minutes > 59)
        return false;
    *ret_minutes = (sign == '-' ? -1 : 1) * (hours * 60 + minutes);
    return true;
}

static bool read_rfc3339(const char *at, int64_t *ret_ms)
{
    struct tm tm = {0};
    int year, ms = 0, zone = 0;
    if (!take_digits(&at, 4, '-', &year) || !take_digits(&at, 2, '-', &tm.tm_mon) ||
        !take_digits(&at, 2, '\0', &tm.tm_mday) || (*at++ | 0x20) != 't' ||
        !take_digits(&at, 2, ':', &tm.tm_hour) || !take_digits(&at, 2, ':', &tm.tm_min) ||
        !take_digits(&at, 2, '\0', &tm.tm_sec) || !take_fraction(&at, &ms) || !take_zone(at, &zone))
        return false;
    tm.tm_year = year - 1900;
    tm.tm_mon--;
    struct tm given = tm;
    int64_t seconds = timegm(&tm);
    /* 30 February became 2 March. Leap seconds are refused: nobody plans with one. */
    if (tm.tm_mon != given.tm_mon || tm.tm_mday != given.tm_mday || given.tm_hour > 23 ||
        given.tm_min > 59 || given.tm_sec > 59)
        return false;
    *ret_ms = (seconds - (int64_t)zone * 60) * 1000 + ms;
    return true;
}

int time_parse_rfc3339(const char *text, int64_t *ret_ms, struct error *err)
{
    int64_t ms;
    if (!read_rfc3339(text, &ms))
        return error_set(err, ERROR_INVALID_ARGUMENT,
                         "\"%.40s\" is not a time such as 2026-12-31T23:59:59Z", text);
    *ret_ms = ms;
    return 0;
}
