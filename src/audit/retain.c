/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Prunes old files of the log, and retains lines of workspaces that wrote little. Files hold the
 * lines of all workspaces, so a workspace that floods the log makes files go that hold lines of
 * others. So before a file goes because there are too many, the newest lines of each workspace in
 * it are copied, byte for byte, to a file of retained lines, as far as the workspace's quota goes;
 * the others are counted, and a line for each workspace says how many were left out.
 *
 * The line on the pruned file (audit.pruned) holds a hash over the retained lines, so that they are
 * as tamper-evident as the chain that this line is a part of. That line is itself retained when its
 * file is pruned.
 *
 * All of it is done by a coroutine that takes turns with everything else.
 */

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "audit/state.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "base/timetext.h"
#include "loop/co.h"

enum { PIECE = 1 << 20 };

#define NEW_NAME "kept.new"

/* ---- whose a line is ---- */

/* A member's text, as it stands in the line. */
static struct slice member_of(struct slice line, const char *member)
{
    const char *at = memmem(line.data, line.len, member, strlen(member));
    const char *begin = at == NULL ? NULL : at + strlen(member);
    const char *end =
        begin == NULL ? NULL : memchr(begin, '"', (size_t)(line.data + line.len - begin));
    return end == NULL ? (struct slice){"", 0} : (struct slice){begin, (size_t)(end - begin)};
}

/* Lines that are nobody's (of strangers, of the server) share one place, "". */
static struct retained *retained_of(struct audit *a, struct slice line)
{
    struct slice name = member_of(line, ",\"workspace\":\"");
    struct retained *r;
    if (name.len >= sizeof(r->workspace))
        name.len = 0;
    HASH_FIND(hh, a->retained, name.data, name.len, r);
    if (r != NULL)
        return r;
    r = calloc(1, sizeof(*r));
    if (r == NULL)
        abort(); /* a hundred bytes: nothing sensible can go on */
    memcpy(r->workspace, name.data, name.len);
    HASH_ADD_KEYPTR(hh, a->retained, r->workspace, name.len, r);
    return r;
}

/* A line on a pruned file stays for as long as what was retained of that file. */
static bool is_own(struct slice line)
{
    static const char own[] = ",\"event\":\"audit.pruned\"";
    return memmem(line.data, line.len, own, sizeof(own) - 1) != NULL;
}

void audit_retained_release(struct audit *a)
{
    struct retained *r, *next;
    HASH_ITER(hh, a->retained, r, next)
    {
        HASH_DEL(a->retained, r);
        free(r);
    }
    a->retained_bytes = 0;
    a->retained_known = false;
}

/* ---- walking ---- */

typedef int line_visit(struct audit *a, void *ctx, struct slice line, struct error *err);

/* Every line of a file, without its line break. Others have their turn after each piece. */
static int each_line(struct audit *a, int fd, line_visit *visit, void *ctx, struct error *err)
{
    _cleanup_buf_ struct buf in = BUF_INIT(2 * PIECE + AUDIT_LINE_MAX);
    uint64_t at = 0;
    for (;;) {
        char *to = buf_reserve(&in, PIECE);
        ssize_t n = to == NULL ? -1 : pread(fd, to, PIECE, (off_t)at);
        if (n < 0)
            return error_sys(err, "reading the audit log");
        if (n == 0)
            return 0;
        buf_commit(&in, (size_t)n);
        at += (uint64_t)n;
        size_t done = 0;
        const char *end;
        while ((end = memchr(in.data + done, '\n', in.len - done)) != NULL) {
            struct slice line = {in.data + done, (size_t)(end - in.data) - done};
            done += line.len + 1;
            if (line.len <= AUDIT_LINE_MAX && visit(a, ctx, line, err) < 0)
                return -1;
        }
        if (done == 0 && in.len > AUDIT_LINE_MAX) /* no line is that long */
            done = in.len;
        buf_consume(&in, done);
        if (a->loop != NULL && co_sleep(a->loop, 0, err) < 0)
            return -1;
    }
}

static int count_retained(struct audit *a, void *ctx, struct slice line, struct error *err)
{
    if (is_own(line))
        return 0;
    retained_of(a, line)->bytes += line.len + 1;
    a->retained_bytes += line.len + 1;
    return 0;
}

static int know_retained(struct audit *a, struct error *err)
{
    struct audit_files kept;
    if (a->retained_known)
        return 0;
    audit_retained_release(a);
    if (audit_kept_list(a->dir_fd, &kept, err) < 0)
        return -1;
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < kept.count; i++) {
        _cleanup_fd_ int fd = -1;
        if (audit_kept_open(a->dir_fd, kept.items[i].first, &fd, NULL) == 0)
            rc = each_line(a, fd, count_retained, NULL, err);
    }
    audit_files_release(&kept);
    a->retained_known = rc == 0;
    return rc;
}

/* ---- retaining ---- */

struct retaining {
    int from, to;
    struct buf out;
    struct audit_chain digest; /* its head is a hash over all lines that are retained */
    uint64_t lines;
};

static int count_in_file(struct audit *a, void *ctx, struct slice line, struct error *err)
{
    if (!is_own(line))
        retained_of(a, line)->in_file += line.len + 1;
    return 0;
}

static int flush_retained(struct retaining *r, struct error *err)
{
    size_t done = 0;
    while (done < r->out.len) {
        ssize_t n = write(r->to, r->out.data + done, r->out.len - done);
        if (n < 0)
            return error_sys(err, "retaining lines of the audit log");
        done += (size_t)n;
    }
    buf_clear(&r->out);
    return 0;
}

/* The oldest lines of each workspace are those that are left out. */
static int retain_line(struct audit *a, void *ctx, struct slice line, struct error *err)
{
    struct retaining *r = ctx;
    struct retained *whose = retained_of(a, line);
    uint64_t size = line.len + 1;
    if (!is_own(line) && whose->skip > 0) {
        whose->skip -= whose->skip < size ? whose->skip : size;
        whose->left_out++;
        return 0;
    }
    buf_add(&r->out, line.data, line.len);
    buf_addc(&r->out, '\n');
    audit_chain_fold(&r->digest, line);
    r->lines++;
    if (!is_own(line)) {
        whose->bytes += size;
        a->retained_bytes += size;
    }
    return r->out.len > PIECE ? flush_retained(r, err) : 0;
}

/* A workspace's share of one file. Nobody's retained lines ever go to make room for others'. */
static uint64_t allowance(const struct audit *a, const struct retained *r)
{
    uint64_t most = a->options.file_bytes * a->options.files;
    uint64_t left = most > a->retained_bytes ? (most - a->retained_bytes) / 2 : 0;
    uint64_t quota = a->quota == NULL ? AUDIT_QUOTA_DEFAULT : a->quota(a->quota_ctx, r->workspace);
    if (quota == 0) /* no limit */
        return left;
    uint64_t own = quota > r->bytes ? quota - r->bytes : 0;
    return own < left ? own : left;
}

static void set_shares(struct audit *a)
{
    for (struct retained *r = a->retained; r != NULL; r = r->hh.next) {
        uint64_t allowed = allowance(a, r);
        r->skip = r->in_file > allowed ? r->in_file - allowed : 0;
        r->in_file = r->left_out = 0;
    }
}

static int copy_retained(struct audit *a, const struct audit_file *file, struct retaining *r,
                         struct error *err)
{
    const struct timespec times[2] = {{.tv_sec = file->changed_ms / 1000},
                                      {.tv_sec = file->changed_ms / 1000}};
    char name[AUDIT_FILE_NAME_SIZE];
    if (audit_file_open(a->dir_fd, file->first, &r->from, err) < 0)
        return -1;
    for (struct retained *each = a->retained; each != NULL; each = each->hh.next)
        each->in_file = 0;
    if (each_line(a, r->from, count_in_file, NULL, err) < 0)
        return -1;
    set_shares(a);
    unlinkat(a->dir_fd, NEW_NAME, 0);
    r->to = openat(a->dir_fd, NEW_NAME, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (r->to < 0)
        return error_sys(err, "retaining lines of the audit log");
    if (each_line(a, r->from, retain_line, r, err) < 0 || flush_retained(r, err) < 0)
        return -1;
    (void)futimens(r->to, times); /* its age is that of its lines */
    audit_kept_name(file->first, name);
    if (r->lines == 0)
        unlinkat(a->dir_fd, NEW_NAME, 0);
    else if (renameat(a->dir_fd, NEW_NAME, a->dir_fd, name) < 0)
        return error_sys(err, "retaining lines of the audit log");
    return 0;
}

/* ---- pruning ---- */

/* Told before it is done: a file that is gone without a line of that was taken away by others. */
static void tell_pruned(struct audit *a, const struct audit_file *file, uint64_t through,
                        const struct retaining *r)
{
    char name[AUDIT_FILE_NAME_SIZE], hash[AUDIT_HASH_TEXT + 1];
    int64_t unix_ms = time_now_ms();
    audit_file_name(file->first, name);
    struct buf *line = audit_begin_own(a, "audit.pruned", unix_ms);
    audit_add_text(line, "file", slice_of(name), sizeof(name));
    audit_add_number(line, "first", (int64_t)file->first);
    audit_add_number(line, "through", (int64_t)through);
    if (r->lines > 0) {
        audit_hash_text(r->digest.head, hash);
        audit_add_number(line, "keptLines", (int64_t)r->lines);
        audit_add_text(line, "kept", slice_of(hash), AUDIT_HASH_TEXT);
    }
    audit_end(a);
    for (struct retained *each = a->retained; each != NULL; each = each->hh.next) {
        if (each->left_out == 0)
            continue;
        line = audit_begin_own(a, "audit.left_out", unix_ms);
        audit_add_text(line, "workspace", slice_of(each->workspace), sizeof(each->workspace));
        audit_add_text(line, "file", slice_of(name), sizeof(name));
        audit_add_number(line, "lines", (int64_t)each->left_out);
        audit_end(a);
        each->left_out = 0;
    }
}

/* `retain`: it goes for its size, and not for its age. */
static int prune_file(struct audit *a, const struct audit_file *file, uint64_t through, bool retain,
                      struct error *err)
{
    struct retaining r = {.from = -1, .to = -1};
    char name[AUDIT_FILE_NAME_SIZE];
    buf_init(&r.out, PIECE + 2 * AUDIT_LINE_MAX);
    int rc = audit_chain_init(&r.digest, err);
    if (rc == 0 && retain)
        rc = copy_retained(a, file, &r, err);
    if (rc == 0) {
        tell_pruned(a, file, through, &r);
        rc = audit_flush(a, err);
    }
    if (rc == 0) {
        audit_file_name(file->first, name);
        unlinkat(a->dir_fd, name, 0);
    } else {
        a->retained_known = false; /* it is done again, from the beginning */
    }
    audit_chain_release(&r.digest);
    buf_release(&r.out);
    cleanup_fd(&r.from);
    cleanup_fd(&r.to);
    return rc;
}

static int prune_files(struct audit *a, struct error *err)
{
    struct audit_files files;
    int64_t oldest_ms = time_now_ms() - a->options.keep_ms;
    if (audit_files_list(a->dir_fd, &files, err) < 0)
        return -1;
    size_t gone = 0;
    int rc = 0;
    while (rc == 0 && gone + 1 < files.count) {
        const struct audit_file *file = &files.items[gone];
        bool old = file->changed_ms < oldest_ms;
        if (!old && files.count - gone <= a->options.files)
            break;
        rc = prune_file(a, file, files.items[gone + 1].first - 1, !old, err);
        gone += rc == 0;
    }
    a->counters.files = files.count - gone;
    audit_files_release(&files);
    return rc;
}

/* Retained lines have the age of the file that they come from. */
static int expire_kept(struct audit *a, struct error *err)
{
    struct audit_files kept;
    int64_t oldest_ms = time_now_ms() - a->options.keep_ms;
    char name[AUDIT_FILE_NAME_SIZE];
    if (audit_kept_list(a->dir_fd, &kept, err) < 0)
        return -1;
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < kept.count && kept.items[i].changed_ms < oldest_ms; i++) {
        audit_kept_name(kept.items[i].first, name);
        struct buf *line = audit_begin_own(a, "audit.expired", time_now_ms());
        audit_add_text(line, "file", slice_of(name), sizeof(name));
        audit_add_number(line, "first", (int64_t)kept.items[i].first);
        audit_end(a);
        rc = audit_flush(a, err);
        if (rc == 0)
            unlinkat(a->dir_fd, name, 0);
        a->retained_known = false;
    }
    audit_files_release(&kept);
    return rc;
}

static void prune_all(void *arg)
{
    struct audit *a = arg;
    struct error err = {0};
    do {
        a->prune_again = false;
        /* Whoever set it off is in the middle of a line. */
        if ((a->loop != NULL && co_sleep(a->loop, 0, &err) < 0) || expire_kept(a, &err) < 0 ||
            know_retained(a, &err) < 0 || prune_files(a, &err) < 0)
            break;
    } while (a->prune_again);
    if (err.code != ERROR_NONE && err.code != ERROR_CANCELLED)
        log_warn("audit log: pruning its files: %s", err.message);
    a->pruning = false;
}

void audit_prune(struct audit *a)
{
    struct error err = {0};
    if (a->pruning) {
        a->prune_again = true;
        return;
    }
    a->pruning = true;
    if (a->loop == NULL) {
        prune_all(a);
    } else if (co_spawn(a->loop, prune_all, a, NULL, &err) < 0) {
        a->pruning = false;
        log_warn("audit log: pruning its files: %s", err.message);
    }
}

uint64_t audit_retained(const struct audit *a, const char *workspace)
{
    struct retained *r;
    HASH_FIND(hh, a->retained, workspace, strlen(workspace), r);
    return r == NULL ? 0 : r->bytes;
}
