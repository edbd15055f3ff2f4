/* SPDX-License-Identifier: Apache-2.0 */

/* Times as text. By hand rather than by strftime(), whose names of days follow the locale. */

#include "base/timetext.h"

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
