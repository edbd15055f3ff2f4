/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Where the log ends. Whatever is found here, the server has to start: what is wrong is written
 * down as a line of the log, where `cella audit verify` finds it, and is not repaired away.
 */

#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "audit/state.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "base/timetext.h"

/* What was found at the end of the last file. */
struct ending {
    uint64_t torn;  /* bytes behind the last line break */
    bool damaged;   /* the last line is none */
    uint64_t lines; /* 0: there is not one whole line in it */
};

/* The last whole line of a file. */
static int find_end(int fd, struct audit_chain *chain, struct ending *ret_ending, uint64_t *ret_len,
                    struct error *err)
{
    char tail[2 * AUDIT_LINE_MAX];
    struct stat st;
    struct ending ending = {0};
    if (fstat(fd, &st) < 0)
        return error_sys(err, "reading the audit log");
    uint64_t size = (uint64_t)st.st_size, from = size > sizeof(tail) ? size - sizeof(tail) : 0;
    ssize_t n = pread(fd, tail, sizeof(tail), (off_t)from);
    if (n < 0)
        return error_sys(err, "reading the audit log");
    const char *end = memrchr(tail, '\n', (size_t)n);
    size_t whole = end == NULL ? 0 : (size_t)(end - tail) + 1;
    ending.torn = (size_t)n - whole;
    if (whole > 0) {
        const char *before = memrchr(tail, '\n', whole - 1);
        const char *begin = before == NULL ? tail : before + 1;
        struct audit_line line;
        ending.lines = 1;
        ending.damaged = !audit_line_parse((struct slice){begin, (size_t)(end - begin)}, &line);
        if (!ending.damaged) {
            chain->seq = line.seq;
            memcpy(chain->head, line.hash, AUDIT_HASH_SIZE);
        }
    } else if (from > 0) {
        ending.damaged = true; /* no line is that long */
        ending.torn = 0;
    }
    *ret_ending = ending;
    *ret_len = size - ending.torn;
    return 0;
}

/* When its first line was written. */
static int64_t birth_of(int fd)
{
    char front[128], text[AUDIT_TIME_LEN + 1];
    ssize_t n = pread(fd, front, sizeof(front), 0);
    const char *time = n <= 0 ? NULL : memmem(front, (size_t)n, "\"time\":\"", 8);
    int64_t ms;
    if (time == NULL || time + 8 + AUDIT_TIME_LEN > front + n)
        return time_now_ms();
    memcpy(text, time + 8, AUDIT_TIME_LEN);
    text[AUDIT_TIME_LEN] = '\0';
    return time_parse_rfc3339(text, &ms, NULL) == 0 ? ms : time_now_ms();
}

/* Opens the last file for more; one that has no line yet is begun anew. */
static int open_last(struct audit *a, const struct audit_files *files, struct ending *ret_ending,
                     struct error *err)
{
    char name[AUDIT_FILE_NAME_SIZE];
    audit_file_name(files->items[files->count - 1].first, name);
    _cleanup_fd_ int fd = openat(a->dir_fd, name, O_RDWR | O_APPEND | O_NOFOLLOW | O_CLOEXEC);
    uint64_t len;
    if (fd < 0)
        return error_sys(err, "opening %s", name);
    if (find_end(fd, &a->chain, ret_ending, &len, err) < 0)
        return -1;
    if (ret_ending->torn > 0 && ftruncate(fd, (off_t)len) < 0)
        return error_sys(err, "cutting off what was not written whole of %s", name);
    if (ret_ending->lines == 0 && !ret_ending->damaged) {
        struct ending before;
        uint64_t ignored;
        _cleanup_fd_ int last = -1;
        unlinkat(a->dir_fd, name, 0);
        return files->count == 1 ||
                       (audit_file_open(a->dir_fd, files->items[files->count - 2].first, &last,
                                        err) == 0 &&
                        find_end(last, &a->chain, &before, &ignored, err) == 0)
                   ? 0
                   : -1;
    }
    a->born_ms = birth_of(fd);
    a->written = a->room = len;
    a->fd = steal_fd(&fd);
    return 0;
}

static void tell_torn(struct audit *a, uint64_t torn)
{
    log_warn("audit log: the last line was not written whole: its %" PRIu64 " bytes were cut off",
             torn);
    audit_add_number(audit_begin(a, "audit.repaired", time_now_ms()), "tornBytes", (int64_t)torn);
    audit_end(a);
}

static void tell_missing(struct audit *a, uint64_t last, const struct audit_head *head)
{
    char hash[AUDIT_HASH_TEXT + 1];
    audit_hash_text(head->hash, hash);
    log_error("audit log: the lines %" PRIu64 " to %" PRIu64 " are missing at its end", last + 1,
              head->seq);
    struct buf *line = audit_begin(a, "audit.missing", time_now_ms());
    audit_add_number(line, "from", (int64_t)last + 1);
    audit_add_number(line, "through", (int64_t)head->seq);
    audit_add_text(line, "expected", slice_of(hash), AUDIT_HASH_TEXT);
    audit_end(a);
}

static void tell_damaged(struct audit *a, const char *what)
{
    log_error("audit log: %s", what);
    audit_add_text(audit_begin(a, "audit.damaged", time_now_ms()), "what", slice_of(what), 200);
    audit_end(a);
}

/* The last file's numbers are no higher than that, whatever has become of it. */
static uint64_t most_given(const struct audit_files *files)
{
    enum { LINE_LEAST = 128 };
    if (files->count == 0)
        return 0;
    return files->items[files->count - 1].first + files->items[files->count - 1].bytes / LINE_LEAST;
}

/* A head before the first line: one that is empty beside a line was taken away. On the disk, too:
 * after a power cut it must not look so. */
static void begin_head(struct audit *a)
{
    const struct audit_head none = {0};
    struct error why;
    if (audit_head_write(a->head_fd, &none, &why) < 0 || fsync(a->head_fd) < 0)
        log_warn("audit log: its head could not be begun");
}

int audit_recover(struct audit *a, struct error *err)
{
    struct audit_files files;
    struct audit_head head = {0};
    struct ending ending = {0};
    struct error why;
    bool bad_head = audit_head_read(a->head_fd, &head, &why) < 0;
    if (audit_files_list(a->dir_fd, &files, err) < 0)
        return -1;
    int rc = files.count == 0 ? 0 : open_last(a, &files, &ending, err);
    uint64_t given = most_given(&files);
    audit_files_release(&files);
    if (rc < 0)
        return -1;
    uint64_t last = a->chain.seq;
    bool no_head = bad_head && why.code == ERROR_FILE_NOT_FOUND;
    bool first = no_head && last == 0 && !ending.damaged;
    if (first)
        begin_head(a);
    bool missing = head.seq > last;
    if (missing) /* numbers are not given out twice */
        a->chain.seq = head.seq;
    if (ending.damaged) { /* nothing follows from it: go on from what is known to have been last */
        if (a->chain.seq < given)
            a->chain.seq = given;
        memcpy(a->chain.head, head.hash, AUDIT_HASH_SIZE);
        close(a->fd);
        a->fd = -1;
    }
    if (a->fd < 0 && audit_rotate(a, err) < 0)
        return -1;
    if (ending.torn > 0)
        tell_torn(a, ending.torn);
    if (ending.damaged)
        tell_damaged(a, "its last line is not one");
    if (missing)
        tell_missing(a, last, &head);
    if (bad_head && !first)
        tell_damaged(a, no_head ? "its head is gone" : "its head is not one");
    return 0;
}
