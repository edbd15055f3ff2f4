/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Lines on stderr: "2026-01-02T03:04:05.678Z warden  info  text". Log at the edges (main,
 * handlers, loops); code below returns errors. The level is the program's only mutable global.
 * Never log a secret.
 */

enum log_level { LOG_LEVEL_ERROR, LOG_LEVEL_WARN, LOG_LEVEL_INFO, LOG_LEVEL_DEBUG };

/* who: the process's name in each line; a string literal. */
void log_init(const char *who, enum log_level level);
void log_write(enum log_level level, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#define log_error(...) log_write(LOG_LEVEL_ERROR, __VA_ARGS__)
#define log_warn(...)  log_write(LOG_LEVEL_WARN, __VA_ARGS__)
#define log_info(...)  log_write(LOG_LEVEL_INFO, __VA_ARGS__)
#define log_debug(...) log_write(LOG_LEVEL_DEBUG, __VA_ARGS__)
