/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Writing. The buffer holds whole lines that have their number and hash: a write that fails, or
 * takes only a part, changes nothing about them, and the next one goes on where it stopped.
 */

#include "audit/log.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "audit/state.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "base/timetext.h"

enum { SEAL_ROOM = 128 }; /* of a line, for its hash */
#define FILE_AGE_MS (INT64_C(24) * 3600 * 1000)

static int64_t now(const struct audit *a)
{
    return a->loop == NULL ? 0 : loop_now(a->loop);
}

/* --- the disk --- */

/* Said once when it begins, and once when it is over. */
static void set_failing(struct audit *a, bool failing, const char *why)
{
    if (failing)
        a->retry_at = a->loop == NULL ? 0 : now(a) + AUDIT_RETRY_MS;
    if (failing == a->counters.failing)
        return;
    a->counters.failing = failing;
    if (!failing)
        log_warn("the audit log is written again");
    else
        log_error("the audit log cannot be written: %s; %s", why,
                  a->options.go_on ? "requests are served without being recorded"
                                   : "requests that change something are refused");
}

/* How much an earlier process had taken: allocating that again needs no room. */
static void find_room(struct audit *a)
{
    for (uint64_t ahead = AUDIT_ROOM_STEP; a->room <= a->written && ahead >= AUDIT_ROOM_LAST;
         ahead /= 2)
        if (fallocate(a->fd, FALLOC_FL_KEEP_SIZE, (off_t)a->written, (off_t)ahead) == 0)
            a->room = a->written + ahead;
}

/* Room that was taken is there for lines of requests that were admitted. */
static void take_room(struct audit *a)
{
    uint64_t needed = a->written + a->lines.len + AUDIT_ROOM;
    if (a->no_room || (needed <= a->room && !a->low))
        return;
    uint64_t end = needed <= a->room ? a->room : needed + AUDIT_ROOM_STEP;
    if (fallocate(a->fd, FALLOC_FL_KEEP_SIZE, (off_t)a->written, (off_t)(end - a->written)) == 0) {
        a->room = end;
        a->low = false;
    } else if (errno == EOPNOTSUPP || errno == ENOSYS || errno == EINVAL || errno == EPERM) {
        a->no_room = true;
        a->low = false;
    } else {
        a->low = true;
        set_failing(a, true, strerror(errno));
        find_room(a);
    }
}

static void keep_head(struct audit *a)
{
    struct audit_head head = {.seq = a->chain.seq};
    struct error err;
    if (a->lines.len > 0 || head.seq == a->head_seq)
        return;
    memcpy(head.hash, a->chain.head, AUDIT_HASH_SIZE);
    if (audit_head_write(a->head_fd, &head, &err) == 0)
        a->head_seq = head.seq;
    else
        set_failing(a, true, err.message);
}

int audit_flush(struct audit *a, struct error *err)
{
    size_t done = 0;
    while (done < a->lines.len) {
        ssize_t n = write(a->fd, a->lines.data + done, a->lines.len - done);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0) {
            error_sys_as(err, ERROR_AUDIT_UNAVAILABLE, "writing the audit log");
            a->counters.failures++;
            set_failing(a, true, strerror(errno));
            break;
        }
        a->counters.writes++;
        done += (size_t)n;
    }
    a->written += done;
    a->counters.bytes += done;
    bool whole = done == a->lines.len;
    if (whole)
        buf_clear(&a->lines);
    else
        buf_consume(&a->lines, done);
    take_room(a);
    if (whole && !a->low)
        set_failing(a, false, NULL);
    return whole ? 0 : -1;
}

/* --- time --- */

static void timer_fired(struct timer *timer)
{
    struct audit *a = container_of(timer, struct audit, timer);
    if (a->tick != NULL)
        a->tick(a->tick_ctx);
    bool failing = a->counters.failing;
    if (failing && now(a) < a->retry_at) {
        timer_start(a->loop, &a->timer, a->retry_at - now(a), timer_fired);
        return;
    }
    audit_flush(a, NULL);
    keep_head(a);
    if (a->counters.failing)
        timer_start(a->loop, &a->timer, AUDIT_RETRY_MS, timer_fired);
}

void audit_wake(struct audit *a)
{
    if (a->loop != NULL && a->timer.loop == NULL)
        timer_start(a->loop, &a->timer, AUDIT_DELAY_MS, timer_fired);
}

void audit_set_tick(struct audit *a, void (*tick)(void *ctx), void *ctx)
{
    a->tick = tick;
    a->tick_ctx = ctx;
}

bool audit_saves_room(const struct audit *a)
{
    return a->low && !a->options.off && !a->options.go_on;
}

int audit_admit_removal(struct audit *a, struct error *err)
{
    if (audit_saves_room(a) && a->written + a->lines.len + AUDIT_ROOM_LAST <= a->room)
        return 0;
    return audit_admit(a, err);
}

int audit_admit(struct audit *a, struct error *err)
{
    if (a->options.off || a->options.go_on || !a->counters.failing)
        return 0;
    if (now(a) >= a->retry_at && audit_flush(a, NULL) == 0 && !a->counters.failing)
        return 0;
    a->counters.refused++;
    return error_set(err, ERROR_AUDIT_UNAVAILABLE,
                     "nothing that changes something is done while the audit log cannot be "
                     "written: is the server's disk full?");
}

/* --- lines --- */

static struct buf *begin_line(struct audit *a, const char *event, int64_t unix_ms)
{
    if (unix_ms / 1000 != a->time_ms / 1000 || a->time_ms == 0)
        audit_time_text(unix_ms, a->time_text);
    int64_t ms = unix_ms % 1000;
    for (int at = AUDIT_TIME_LEN - 2; at > AUDIT_TIME_LEN - 5; at--, ms /= 10)
        a->time_text[at] = (char)('0' + ms % 10);
    a->time_ms = unix_ms;
    a->start = a->lines.len;
    buf_addf(&a->lines, "{\"seq\":%" PRIu64 ",\"time\":\"%s\",\"event\":\"%s\"", a->chain.seq + 1,
             a->time_text, event);
    return &a->lines;
}

static void end_line(struct audit *a)
{
    if (a->lines.failed || a->lines.len - a->start + SEAL_ROOM > AUDIT_LINE_MAX) {
        a->lines.failed = false;
        a->lines.len = a->start;
        a->lost++;
        a->counters.lost++;
        return;
    }
    audit_chain_seal(&a->chain, &a->lines, a->start);
    a->counters.lines++;
    audit_wake(a);
}

static bool is_old(const struct audit *a, int64_t unix_ms)
{
    int64_t most = a->options.keep_ms < FILE_AGE_MS ? a->options.keep_ms : FILE_AGE_MS;
    return a->written + a->lines.len >= a->options.file_bytes || unix_ms - a->born_ms > most;
}

static void tell_count(struct audit *a, const char *event, uint64_t *count, int64_t unix_ms)
{
    if (*count == 0)
        return;
    audit_add_number(begin_line(a, event, unix_ms), "lines", (int64_t)*count);
    *count = 0;
    end_line(a);
}

struct buf *audit_begin(struct audit *a, const char *event, int64_t unix_ms)
{
    /* If it cannot be done now, then with a later line: the old file still has room. */
    if (is_old(a, unix_ms) && !a->counters.failing && unix_ms >= a->rotate_ms &&
        audit_rotate(a, NULL) < 0)
        a->rotate_ms = unix_ms + AUDIT_RETRY_MS;
    if (a->lines.len >= AUDIT_BUFFER_MAX && audit_flush(a, NULL) < 0) {
        a->lost++;
        a->counters.lost++;
        return NULL;
    }
    tell_count(a, "audit.lost", &a->lost, unix_ms);
    tell_count(a, "audit.skipped", &a->skipped, unix_ms);
    return begin_line(a, event, unix_ms);
}

struct buf *audit_begin_own(struct audit *a, const char *event, int64_t unix_ms)
{
    return begin_line(a, event, unix_ms);
}

void audit_set_quota(struct audit *a, audit_quota *quota, const void *ctx)
{
    a->quota = quota;
    a->quota_ctx = ctx;
}

void audit_skip(struct audit *a)
{
    a->skipped++;
    a->counters.skipped++;
}

bool audit_spare(struct audit *a, int64_t unix_ms)
{
    int64_t step = 1000 / AUDIT_SPARE_PER_S;
    if (a->spare_ms < unix_ms)
        a->spare_ms = unix_ms;
    if (a->spare_ms - unix_ms > AUDIT_SPARE_AT_ONCE * step) {
        audit_skip(a);
        return false;
    }
    a->spare_ms += step;
    return true;
}

void audit_end(struct audit *a)
{
    end_line(a);
}

/* --- rotation --- */

int audit_rotate(struct audit *a, struct error *err)
{
    char name[AUDIT_FILE_NAME_SIZE], previous[AUDIT_HASH_TEXT + 1];
    int64_t unix_ms = time_now_ms();
    if (a->fd >= 0 && audit_flush(a, err) < 0)
        return -1;
    audit_file_name(a->chain.seq + 1, name);
    int fd = openat(a->dir_fd, name, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return error_sys_as(err, ERROR_AUDIT_UNAVAILABLE, "starting %s", name);
    if (a->fd >= 0 && fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, AUDIT_ROOM_STEP) < 0 &&
        (errno == ENOSPC || errno == EDQUOT)) {
        error_sys_as(err, ERROR_AUDIT_UNAVAILABLE, "starting %s", name);
        close(fd);
        unlinkat(a->dir_fd, name, 0);
        return -1;
    }
    if (a->fd >= 0) {
        (void)!ftruncate(a->fd, (off_t)a->written); /* gives back the room behind it */
        close(a->fd);
    }
    a->fd = fd;
    a->written = a->room = 0;
    a->born_ms = unix_ms;
    audit_hash_text(a->chain.head, previous);
    struct buf *line = begin_line(a, "audit.file", unix_ms);
    audit_add_number(line, "version", 1);
    audit_add_text(line, "previous", slice_of(previous), AUDIT_HASH_TEXT);
    end_line(a);
    if (a->chain.seq > 1) /* in a place that whoever can write here cannot change */
        log_info("audit log: line %" PRIu64 " has the hash %s", a->chain.seq - 1, previous);
    audit_prune(a);
    return audit_flush(a, err);
}

/* --- the whole --- */

static void tell(struct audit *a, const char *event)
{
    if (audit_begin(a, event, time_now_ms()) == NULL)
        return;
    audit_add_number(&a->lines, "pid", getpid());
    audit_end(a);
}

int audit_open(struct loop *loop, int dir_fd, int head_fd, const struct audit_options *options,
               struct audit **ret_audit, struct error *err)
{
    struct audit *a = calloc(1, sizeof(*a));
    if (a == NULL)
        return error_sys(err, "opening the audit log");
    *a = (struct audit){
        .loop = loop, .dir_fd = dir_fd, .head_fd = head_fd, .options = *options, .fd = -1};
    buf_init(&a->lines, AUDIT_BUFFER_MAX + (2 * AUDIT_LINE_MAX));
    if (audit_chain_init(&a->chain, err) < 0 || (!options->off && audit_recover(a, err) < 0)) {
        audit_close(a);
        return -1;
    }
    if (!options->off) {
        audit_prune(a);
        tell(a, "server.started");
        audit_flush(a, NULL);
        keep_head(a);
    }
    *ret_audit = a;
    return 0;
}

void audit_close(struct audit *a)
{
    if (a == NULL)
        return;
    timer_stop(&a->timer);
    if (a->fd >= 0) {
        tell(a, "server.stopped");
        timer_stop(&a->timer);
        if (audit_flush(a, NULL) == 0)
            (void)!ftruncate(a->fd, (off_t)a->written);
        keep_head(a);
        close(a->fd);
    }
    audit_chain_release(&a->chain);
    audit_retained_release(a);
    buf_release(&a->lines);
    free(a);
}

const struct audit_options *audit_options_of(const struct audit *a)
{
    return &a->options;
}

int audit_dir_fd(const struct audit *a)
{
    return a->dir_fd;
}

struct audit_head audit_head_of(const struct audit *a)
{
    struct audit_head head = {.seq = a->chain.seq};
    memcpy(head.hash, a->chain.head, AUDIT_HASH_SIZE);
    return head;
}

struct audit_counters audit_counters_of(const struct audit *a)
{
    return a->counters;
}
