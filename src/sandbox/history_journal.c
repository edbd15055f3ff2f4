/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The file is not synced: it survives the death of this process, and a power cut may cost its end
 * or tear a line, which is then no line. Appends are short, so that one either fits or is taken
 * back.
 */

#include "sandbox/history_journal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/layout.h"
#include "base/limits.h"

enum { FLAGS = O_RDWR | O_APPEND | O_CREAT | O_NOFOLLOW };

int journal_open(struct journal *j, int dir_fd, struct error *err)
{
    struct stat st;
    *j = (struct journal){.dir_fd = dir_fd,
                          .fd = openat(dir_fd, LAYOUT_HISTORY_JOURNAL, FLAGS | O_CLOEXEC, 0600)};
    if (j->fd < 0 || fstat(j->fd, &st) < 0)
        return error_sys(err, "opening the journal of executions");
    j->bytes = (uint64_t)st.st_size;
    return 0;
}

void journal_close(struct journal *j)
{
    cleanup_fd(&j->fd);
}

/* ---- reading ---- */

static int read_all(const struct journal *j, struct buf *data, struct error *err)
{
    while (data->len < j->bytes) {
        char *to = buf_reserve(data, j->bytes - data->len);
        ssize_t n = to == NULL ? -1 : pread(j->fd, to, j->bytes - data->len, (off_t)data->len);
        if (n < 0)
            return error_sys(err, "reading the journal of executions");
        if (n == 0)
            break;
        buf_commit(data, (size_t)n);
    }
    return 0;
}

int journal_read(struct journal *j, journal_visit *visit, void *ctx, struct error *err)
{
    _cleanup_buf_ struct buf data = BUF_INIT(j->bytes);
    if (read_all(j, &data, err) < 0)
        return -1;
    const char *end = data.data + data.len;
    for (const char *at = data.data, *next; at < end; at = next) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        if (stop == NULL) { /* torn: what comes next must not be its end */
            j->bytes = (uint64_t)(at - data.data);
            return ftruncate(j->fd, (off_t)j->bytes) < 0
                       ? error_sys(err, "mending the journal of executions")
                       : 0;
        }
        next = stop + 1;
        const char *space = memchr(at, ' ', (size_t)(stop - at));
        if (space != NULL && space > at)
            visit(ctx, (struct slice){at, (size_t)(space - at)},
                  (struct slice){space + 1, (size_t)(next - space - 1)});
    }
    return 0;
}

/* ---- writing ---- */

int journal_add(struct journal *j, const char *sandbox, struct slice line, struct error *err)
{
    const struct iovec parts[] = {
        {(char *)sandbox, strlen(sandbox)}, {(char *)" ", 1}, {(char *)line.data, line.len}};
    size_t len = parts[0].iov_len + 1 + line.len;
    ssize_t n = writev(j->fd, parts, ARRAY_LEN(parts));
    if (n == (ssize_t)len) {
        j->bytes += len;
        return 0;
    }
    if (n > 0) {
        (void)!ftruncate(j->fd, (off_t)j->bytes);
        errno = ENOSPC;
    }
    return error_sys(err, "writing down an execution");
}

bool journal_is_old(const struct journal *j)
{
    return j->bytes > HISTORY_JOURNAL_BYTES + 2 * j->kept;
}

int journal_replace(struct journal *j, struct slice lines, struct error *err)
{
    static const char name[] = LAYOUT_HISTORY_JOURNAL ".new";
    _cleanup_fd_ int fd = openat(j->dir_fd, name, FLAGS | O_TRUNC | O_CLOEXEC, 0600);
    size_t done = 0;
    for (ssize_t n = 0; fd >= 0 && done < lines.len; done += (size_t)n) {
        n = write(fd, lines.data + done, lines.len - done);
        if (n <= 0)
            break;
    }
    if (fd < 0 || done < lines.len ||
        renameat(j->dir_fd, name, j->dir_fd, LAYOUT_HISTORY_JOURNAL) < 0) {
        error_sys(err, "writing the journal of executions anew");
        if (fd >= 0)
            unlinkat(j->dir_fd, name, 0);
        j->kept = j->bytes; /* it is tried again when it has grown */
        return -1;
    }
    cleanup_fd(&j->fd);
    j->fd = steal_fd(&fd);
    j->bytes = j->kept = lines.len;
    return 0;
}
