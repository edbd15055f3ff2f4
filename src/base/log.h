/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Lines on stderr, as text or as JSON:
 *
 *     2026-01-02T03:04:05.678Z warden  info  text
 *     {"time":"2026-01-02T03:04:05.678Z","level":"info","process":"warden","message":"text"}
 *
 * Log at the edges (main, handlers, loops); code below returns errors. A line that is written while
 * something is done for a request has the request's id. Level, format and errand are the program's
 * only mutable globals. Never log a secret.
 */

#include <stddef.h>
#include <stdint.h>

#include "base/errand.h"

enum log_level { LOG_LEVEL_ERROR, LOG_LEVEL_WARN, LOG_LEVEL_INFO, LOG_LEVEL_DEBUG };

/* Says "json" when lines are to be JSON; processes hand it on to those they start. */
#define LOG_FORMAT_ENV "CELLA_LOG_FORMAT"

/* who: the process's name in each line; a string literal. The format is what LOG_FORMAT_ENV says.
 */
void log_init(const char *who, enum log_level level);
bool log_shows(enum log_level level);
void log_write(enum log_level level, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* On whose behalf this thread goes on: borrowed, until it is told another; NULL: nobody's. */
void log_set_errand(const struct errand *errand);

/* What a line says besides its message: a member in JSON, " name=value" in text. */
struct log_field {
    const char *name;
    const char *text; /* NULL: it is the number */
    double number;
};
void log_write_fields(enum log_level level, const char *message, const struct log_field *fields,
                      size_t count);

#define log_error(...) log_write(LOG_LEVEL_ERROR, __VA_ARGS__)
#define log_warn(...)  log_write(LOG_LEVEL_WARN, __VA_ARGS__)
#define log_info(...)  log_write(LOG_LEVEL_INFO, __VA_ARGS__)
#define log_debug(...) log_write(LOG_LEVEL_DEBUG, __VA_ARGS__)
