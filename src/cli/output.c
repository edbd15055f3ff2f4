/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What the program prints. Everything goes through write(2): stdio would keep bytes back and could
 * not say which of them were lost.
 */

#include "cli/output.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "cli/client.h"
#include "cli/table.h"

enum { PROGRESS_QUIET_MS = 500, PROGRESS_EVERY_MS = 100 };

static void end_by_sigpipe(void)
{
    signal(SIGPIPE, SIG_DFL);
    raise(SIGPIPE);
}

int output_bytes(int fd, const void *data, size_t len, struct error *err)
{
    const char *at = data;
    while (len > 0) {
        ssize_t n = write(fd, at, len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EPIPE)
            end_by_sigpipe();
        if (n < 0)
            return error_sys_as(err, ERROR_INTERNAL, "writing to %s",
                                fd == STDERR_FILENO ? "stderr" : "stdout");
        at += n;
        len -= (size_t)n;
    }
    return 0;
}

int output_buf(const struct buf *text, struct error *err)
{
    if (buf_check(text, "the output", err) < 0)
        return -1;
    return output_bytes(STDOUT_FILENO, text->data, text->len, err);
}

int output_table(const struct table *table, struct error *err)
{
    _cleanup_buf_ struct buf out = BUF_INIT(OUTPUT_MAX);
    table_write(table, &out);
    return output_buf(&out, err);
}

int output_json(const yyjson_val *value, struct error *err)
{
    size_t len;
    _cleanup_free_ char *text =
        yyjson_val_write_opts(value, YYJSON_WRITE_PRETTY_TWO_SPACES, NULL, &len, NULL);
    if (text == NULL)
        return error_set(err, ERROR_INTERNAL, "cannot write the answer as JSON");
    if (output_bytes(STDOUT_FILENO, text, len, err) < 0)
        return -1;
    return output_bytes(STDOUT_FILENO, "\n", 1, err);
}

int output_member(yyjson_val *root, const char *pointer, bool json, struct error *err)
{
    if (json)
        return output_json(root, err);
    _cleanup_buf_ struct buf out = BUF_INIT(OUTPUT_MAX);
    text_add_plain(&out, client_text(root, pointer));
    buf_addc(&out, '\n');
    return output_buf(&out, err);
}

int output_message(yyjson_val *root, struct error *err)
{
    return output_member(root, "/message", false, err);
}

void output_more(yyjson_val *root, yyjson_val *list)
{
    uint64_t total = yyjson_get_uint(yyjson_obj_get(root, "total"));
    if (total > yyjson_arr_size(list))
        fprintf(stderr, "%zu of %llu; see --limit and --offset\n", yyjson_arr_size(list),
                (unsigned long long)total);
}

void output_error(const struct error *err)
{
    _cleanup_buf_ struct buf line = BUF_INIT(8 * ERROR_MESSAGE_MAX);
    buf_adds(&line, "cella: ");
    text_add_plain(&line, slice_of(err->message));
    buf_addc(&line, '\n');
    output_bytes(STDERR_FILENO, line.data, line.len, NULL);
}

/* --- progress --- */

static int64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

void progress_start(struct progress *p, int64_t total, bool to_stdout)
{
    *p = (struct progress){.total = total, .started_ms = now_ms()};
    p->on = isatty(STDERR_FILENO) && !(to_stdout && isatty(STDOUT_FILENO));
}

void progress_add(struct progress *p, size_t bytes)
{
    p->done += bytes;
    if (!p->on)
        return;
    int64_t now = now_ms();
    if (now - p->started_ms < PROGRESS_QUIET_MS || now - p->last_ms < PROGRESS_EVERY_MS)
        return;
    p->last_ms = now;
    p->shown = true;
    char done[SIZE_TEXT_MAX], total[SIZE_TEXT_MAX], rate[SIZE_TEXT_MAX];
    uint64_t passed = (uint64_t)(now - p->started_ms), speed = p->done * 1000 / (passed + 1);
    size_text(p->done, done);
    size_text(p->total < 0 ? 0 : (uint64_t)p->total, total);
    size_text(speed, rate);
    if (p->total > 0 && p->done <= (uint64_t)p->total) {
        uint64_t left = speed == 0 ? 0 : ((uint64_t)p->total - p->done) / speed;
        dprintf(STDERR_FILENO, "\r\033[K  %s of %s (%d%%)  %s/s  %d:%02d left", done, total,
                (int)(p->done * 100 / (uint64_t)p->total), rate, (int)(left / 60),
                (int)(left % 60));
    } else
        dprintf(STDERR_FILENO, "\r\033[K  %s  %s/s", done, rate);
}

void progress_end(struct progress *p)
{
    if (p->shown)
        dprintf(STDERR_FILENO, "\r\033[K");
    p->on = p->shown = false;
}

void size_text(uint64_t bytes, char out[SIZE_TEXT_MAX])
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    size_t unit = 0;
    double value = (double)bytes;
    while (value >= 1024 && unit + 1 < sizeof(units) / sizeof(units[0])) {
        value /= 1024;
        unit++;
    }
    snprintf(out, SIZE_TEXT_MAX, unit == 0 ? "%.0f %s" : "%.1f %s", value, units[unit]);
}

int output_list(bool json, yyjson_val *root, const char *member, struct table *table,
                void (*add_row)(struct table *table, yyjson_val *item), struct error *err)
{
    _cleanup_table_ struct table *own = table;
    yyjson_val *item;
    size_t i, count;
    if (json)
        return output_json(root, err);
    yyjson_arr_foreach(yyjson_obj_get(root, member), i, count, item)
    {
        add_row(own, item);
    }
    return output_table(own, err);
}
