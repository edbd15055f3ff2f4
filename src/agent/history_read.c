/* SPDX-License-Identifier: Apache-2.0 */

/*
 * HISTORY_READ: contents. Whoever takes them has to say their length before their bytes, to git, so
 * what an entry says is kept: a file that shrinks is filled up with zeros, one that grows is cut,
 * and the end tells that it was torn.
 */

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/file_worker.h"
#include "agent/history_path.h"
#include "base/cleanup.h"
#include "base/limits.h"

enum { PIECE = 64 * 1024 };

/* What was announced, whatever is there. */
static int send_content(struct file_worker *worker, uint32_t id, int fd, uint64_t left,
                        bool *ret_torn, struct error *err)
{
    bool torn = false;
    while (left > 0) {
        size_t len = left < PIECE ? (size_t)left : PIECE, have = 0;
        while (have < len && !torn) {
            ssize_t n = read(fd, worker->piece + have, len - have);
            if (n < 0 && errno == EINTR)
                continue;
            torn = n <= 0;
            have += torn ? 0 : (size_t)n;
        }
        memset(worker->piece + have, 0, len - have);
        wire_encode_raw(&worker->out, FILE_DATA, id, worker->piece, len);
        if ((worker->out.failed || worker->out.len >= PIECE) && file_flush(worker, err) < 0)
            return -1;
        left -= len;
    }
    *ret_torn = torn;
    return 0;
}

static bool same(const struct stat *a, const struct stat *b)
{
    return a->st_size == b->st_size && a->st_mtim.tv_sec == b->st_mtim.tv_sec &&
           a->st_mtim.tv_nsec == b->st_mtim.tv_nsec && a->st_ctim.tv_sec == b->st_ctim.tv_sec &&
           a->st_ctim.tv_nsec == b->st_ctim.tv_nsec;
}

static int answer_file(struct file_worker *worker, uint32_t id, struct history_entry *entry, int fd,
                       const struct stat *st, struct error *err)
{
    struct stat after;
    struct history_read_end end = {0};
    bool torn;
    if (file_answer(worker, &history_entry_schema, id, entry, err) < 0 ||
        send_content(worker, id, fd, entry->size, &torn, err) < 0)
        return -1;
    end.torn = torn || fstat(fd, &after) < 0 || !same(st, &after);
    return file_answer(worker, &history_read_end_schema, id, &end, err);
}

/* It went, is reached through a link or a file by now, or has become a socket. Everything else, no
 * descriptors or somebody's lease, says nothing about what is there. */
static int give_up(struct history_entry *entry)
{
    bool gone = errno == ENOENT || errno == ENOTDIR || errno == ELOOP || errno == ENXIO;
    entry->flags = HISTORY_NO_CONTENT | (gone ? HISTORY_GONE : HISTORY_UNREAD);
    return -1;
}

/* Looked at before it is opened: opening a device or the other end of a fifo does things. -1: it is
 * no file with content, and the entry says what it is. */
static int open_file(const char *path, uint64_t size_max, struct history_entry *entry,
                     char target[PATH_BYTES_MAX], struct stat *ret_st)
{
    _cleanup_fd_ int look = history_open(path, O_PATH), fd = -1;
    if (look < 0 || fstat(look, ret_st) < 0)
        return give_up(entry);
    if (S_ISREG(ret_st->st_mode)) {
        fd = history_open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY);
        if (fd < 0 || fstat(fd, ret_st) < 0)
            return give_up(entry);
    }
    ssize_t len = S_ISLNK(ret_st->st_mode) ? readlinkat(look, "", target, PATH_BYTES_MAX - 1) : 0;
    if (len < 0)
        return give_up(entry);
    if (S_ISLNK(ret_st->st_mode)) {
        target[len] = '\0';
        entry->target = target;
    }
    entry->flags = 0;
    history_fill_entry(entry, ret_st);
    if (fd >= 0 && S_ISREG(ret_st->st_mode) && entry->size <= size_max)
        return steal_fd(&fd);
    entry->flags |= HISTORY_NO_CONTENT;
    return -1;
}

static int answer_path(struct file_worker *worker, uint32_t id, const char *path, uint64_t size_max,
                       struct error *err)
{
    char target[PATH_BYTES_MAX];
    struct stat st;
    struct history_entry entry = {.path = path};
    _cleanup_fd_ int fd = open_file(path, size_max, &entry, target, &st);
    if (fd < 0)
        return file_answer(worker, &history_entry_schema, id, &entry, err);
    return answer_file(worker, id, &entry, fd, &st, err);
}

int history_read(struct file_worker *worker, uint32_t id, const void *msg, struct error *err)
{
    const struct history_read *request = msg;
    unsigned count = 0;
    if (history_check_roots(request->roots, err) < 0)
        return -1;
    strv_each (path, request->paths) {
        if (++count > HISTORY_READ_MAX)
            return error_set(err, ERROR_LIMIT_EXCEEDED, "more than %d paths", HISTORY_READ_MAX);
        if (history_check_path(request->roots, path, err) < 0)
            return -1;
    }
    if (request->size_max > HISTORY_FILE_MAX)
        return error_set(err, ERROR_INVALID_ARGUMENT, "files of %llu bytes",
                         (unsigned long long)request->size_max);
    if (worker->piece == NULL)
        worker->piece = malloc(WIRE_DATA_CHUNK);
    if (worker->piece == NULL)
        return error_sys(err, "reading files");
    strv_each (path, request->paths)
        if (answer_path(worker, id, path, request->size_max, err) < 0)
            return -1;
    return file_answer(worker, &wire_ok_schema, id, NULL, err);
}
