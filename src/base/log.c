/* SPDX-License-Identifier: Apache-2.0 */

/* One line, one write(2): lines of several processes on one stderr do not mix. */

#include "base/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static struct {
    const char *who;
    enum log_level level;
} log_state = {"cella", LOG_LEVEL_INFO};

static const char *const level_names[] = {"error", "warn", "info", "debug"};

void log_init(const char *who, enum log_level level)
{
    log_state.who = who;
    log_state.level = level;
}

void log_write(enum log_level level, const char *fmt, ...)
{
    if (level > log_state.level)
        return;
    struct timespec now;
    struct tm tm;
    clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &tm);

    char line[1024];
    size_t len = strftime(line, sizeof(line), "%Y-%m-%dT%H:%M:%S", &tm);
    len += (size_t)snprintf(line + len, sizeof(line) - len, ".%03ldZ %-10s %-5s ",
                            now.tv_nsec / 1000000, log_state.who, level_names[level]);
    va_list args;
    va_start(args, fmt);
    int n = vsnprintf(line + len, sizeof(line) - len - 1, fmt, args);
    va_end(args);
    if (n > 0)
        len += (size_t)n < sizeof(line) - len - 1 ? (size_t)n : sizeof(line) - len - 2;

    /* A message may quote a stranger: keep it on its line. */
    for (size_t i = 0; i < len; i++)
        if ((unsigned char)line[i] < ' ' && line[i] != '\t')
            line[i] = ' ';
    line[len++] = '\n';
    (void)!write(STDERR_FILENO, line, len);
}
