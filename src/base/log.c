/* SPDX-License-Identifier: Apache-2.0 */

/*
 * One line, one write(2): lines of several processes on one stderr do not mix. Everything is put
 * together on the stack, so that a line can be written when there is no memory left.
 */

#include "base/log.h"
#include "base/utf8.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { MESSAGE_MAX = 900, LINE_MAX_BYTES = 4096, TIME_SIZE = 32 };

static struct {
    const char *who;
    enum log_level level;
    bool json;
} log_state = {"cella", LOG_LEVEL_INFO, false};

/* Each thread's own: workers do what they do for nobody in particular. */
static _Thread_local const struct errand *log_errand;

static const char *const level_names[] = {"error", "warn", "info", "debug"};

void log_init(const char *who, enum log_level level)
{
    const char *format = getenv(LOG_FORMAT_ENV);
    log_state.who = who;
    log_state.level = level;
    log_state.json = format != NULL && strcmp(format, "json") == 0;
}

bool log_shows(enum log_level level)
{
    return level <= log_state.level;
}

void log_set_errand(const struct errand *errand)
{
    log_errand = errand;
}

/* A line in the making. What does not fit is left out: the end always has its place. */
struct line {
    char text[LINE_MAX_BYTES];
    size_t len;
};

enum { LINE_END_ROOM = 8 };

static void add(struct line *line, const char *text, size_t len)
{
    size_t room = sizeof(line->text) - LINE_END_ROOM - line->len;
    if (len > room)
        len = room;
    memcpy(line->text + line->len, text, len);
    line->len += len;
}

static void adds(struct line *line, const char *text)
{
    add(line, text, strlen(text));
}

static void add_time(struct line *line)
{
    struct timespec now;
    struct tm tm;
    char text[TIME_SIZE];
    clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &tm);
    size_t len = strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &tm);
    len += (size_t)snprintf(text + len, sizeof(text) - len, ".%03ldZ", now.tv_nsec / 1000000);
    add(line, text, len);
}

static void add_hex(struct line *line, const uint8_t *bytes, size_t count)
{
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < count; i++)
        add(line, (char[]){digits[bytes[i] >> 4], digits[bytes[i] & 15]}, 2);
}

/* Whole characters only, so that a line that is cut is still JSON. */
static void add_json_text(struct line *line, const char *str)
{
    for (const unsigned char *at = (const unsigned char *)str; *at != '\0';) {
        char piece[8];
        size_t len = utf8_len(at), taken = len == 0 ? 1 : len;
        if (len == 0)
            len = (size_t)snprintf(piece, sizeof(piece), "\\ufffd");
        else if (*at == '"' || *at == '\\')
            len = (size_t)snprintf(piece, sizeof(piece), "\\%c", *at);
        else if (*at < 0x20 || *at == 0x7f)
            len = (size_t)snprintf(piece, sizeof(piece), "\\u%04x", *at);
        else
            memcpy(piece, at, len);
        if (line->len + len > sizeof(line->text) - 2 * LINE_END_ROOM)
            return;
        add(line, piece, len);
        at += taken;
    }
}

static void add_json(struct line *line, const char *name, const char *value)
{
    size_t needed = strlen(name) + sizeof(",\"\":\"\"");
    if (line->len + needed > sizeof(line->text) - 2 * LINE_END_ROOM)
        return;
    adds(line, ",\"");
    adds(line, name);
    adds(line, "\":\"");
    add_json_text(line, value);
    adds(line, "\"");
}

static void add_number(struct line *line, const char *before, const char *name, const char *between,
                       double number)
{
    char text[160];
    int n = snprintf(text, sizeof(text), "%s%s%s%.15g", before, name, between, number);
    if (n > 0 && line->len + (size_t)n <= sizeof(line->text) - 2 * LINE_END_ROOM)
        add(line, text, (size_t)n);
}

static void add_json_errand(struct line *line)
{
    if (log_errand == NULL)
        return;
    if (log_errand->request_id[0] != '\0')
        add_json(line, "request_id", log_errand->request_id);
    if (!log_errand->traced || line->len + 96 > sizeof(line->text) - 2 * LINE_END_ROOM)
        return;
    adds(line, ",\"trace_id\":\"");
    add_hex(line, log_errand->trace_id, TRACE_ID_SIZE);
    adds(line, "\",\"span_id\":\"");
    add_hex(line, log_errand->span_id, SPAN_ID_SIZE);
    adds(line, "\"");
}

static void build_json(struct line *line, enum log_level level, const char *message,
                       const struct log_field *fields, size_t count)
{
    adds(line, "{\"time\":\"");
    add_time(line);
    adds(line, "\"");
    add_json(line, "level", level_names[level]);
    add_json(line, "process", log_state.who);
    add_json_errand(line); /* before what may be too long */
    add_json(line, "message", message);
    for (size_t i = 0; i < count; i++)
        if (fields[i].text != NULL)
            add_json(line, fields[i].name, fields[i].text);
        else
            add_number(line, ",\"", fields[i].name, "\":", fields[i].number);
    adds(line, "}");
}

static void build_text(struct line *line, enum log_level level, const char *message,
                       const struct log_field *fields, size_t count)
{
    char head[64];
    add_time(line);
    snprintf(head, sizeof(head), " %-10s %-5s ", log_state.who, level_names[level]);
    adds(line, head);
    adds(line, message);
    for (size_t i = 0; i < count; i++) {
        if (fields[i].text == NULL) {
            add_number(line, " ", fields[i].name, "=", fields[i].number);
            continue;
        }
        adds(line, " ");
        adds(line, fields[i].name);
        adds(line, "=");
        adds(line, fields[i].text);
    }
    if (log_errand != NULL && log_errand->request_id[0] != '\0') {
        adds(line, " request=");
        adds(line, log_errand->request_id);
    }
    /* A message may quote a stranger: keep it on its line. */
    for (size_t i = 0; i < line->len; i++)
        if ((unsigned char)line->text[i] < ' ' && line->text[i] != '\t')
            line->text[i] = ' ';
}

void log_write_fields(enum log_level level, const char *message, const struct log_field *fields,
                      size_t count)
{
    if (!log_shows(level))
        return;
    struct line line;
    line.len = 0;
    if (log_state.json)
        build_json(&line, level, message, fields, count);
    else
        build_text(&line, level, message, fields, count);
    line.text[line.len++] = '\n';
    (void)!write(STDERR_FILENO, line.text, line.len);
}

void log_write(enum log_level level, const char *fmt, ...)
{
    if (!log_shows(level))
        return;
    char message[MESSAGE_MAX];
    va_list args;
    va_start(args, fmt);
    if (vsnprintf(message, sizeof(message), fmt, args) < 0)
        message[0] = '\0';
    va_end(args);
    log_write_fields(level, message, NULL, 0);
}
