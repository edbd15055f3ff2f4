/* SPDX-License-Identifier: Apache-2.0 */

/*
 * FILE_READ. A frame says its length before its bytes, so a regular file goes out by sendfile()
 * in pieces of WIRE_DATA_CHUNK, without a copy. A file that shrinks meanwhile cannot keep a
 * promise made in a header: then the connection ends, which is the one honest way to say it.
 */

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/file_entry.h"
#include "agent/file_path.h"
#include "agent/file_worker.h"
#include "base/cleanup.h"
#include "base/limits.h"

static int send_header(struct file_worker *worker, uint32_t id, size_t len, struct error *err)
{
    unsigned char header[FRAME_HEADER_SIZE];
    frame_header_encode(header, &(struct frame_header){(uint32_t)len, FILE_DATA, id});
    buf_add(&worker->out, header, sizeof(header));
    return file_flush(worker, err);
}

static int lose(struct file_worker *worker, struct error *err)
{
    worker->lost = true;
    return error_set(err, ERROR_UNAVAILABLE, "the file or the connection went away");
}

static int send_piece(struct file_worker *worker, int fd, off_t *offset, size_t len,
                      struct error *err)
{
    while (len > 0) {
        ssize_t n = sendfile(worker->fd, fd, offset, len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return lose(worker, err);
        len -= (size_t)n;
    }
    return 0;
}

static int send_mapped(struct file_worker *worker, uint32_t id, int fd, uint64_t offset,
                       uint64_t length, struct error *err)
{
    off_t at = (off_t)offset;
    while (length > 0) {
        size_t piece = length < WIRE_DATA_CHUNK ? (size_t)length : WIRE_DATA_CHUNK;
        if (send_header(worker, id, piece, err) < 0 || send_piece(worker, fd, &at, piece, err) < 0)
            return -1;
        length -= piece;
    }
    return 0;
}

/* For files that do not know their size (those of /proc and /sys say 0): read to the end. */
static int send_read(struct file_worker *worker, uint32_t id, int fd, const struct file_read *read,
                     struct error *err)
{
    enum { PIECE = 64 * 1024 };
    _cleanup_free_ char *data = malloc(PIECE);
    if (data == NULL)
        return error_sys(err, "%.200s", read->path);
    uint64_t left = read->length == 0 ? UINT64_MAX : read->length;
    off_t at = (off_t)read->offset;
    while (left > 0) {
        ssize_t n = pread(fd, data, left < PIECE ? (size_t)left : PIECE, at);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return error_sys(err, "%.200s", read->path);
        if (n == 0)
            return 0;
        wire_encode_raw(&worker->out, FILE_DATA, id, data, (size_t)n);
        if (file_flush(worker, err) < 0)
            return -1;
        at += n;
        left -= (uint64_t)n;
    }
    return 0;
}

static int open_for_reading(const struct file_read *read, struct stat *ret_st, struct error *err)
{
    if (path_check(read->path, err) < 0)
        return -1;
    /* Looked at before it is opened: opening a device or the other end of a fifo does things. */
    _cleanup_fd_ int look = path_open(read->path, O_PATH);
    struct stat st;
    if (look < 0 || fstat(look, &st) < 0)
        return error_sys(err, "%.200s", read->path);
    if (S_ISDIR(st.st_mode))
        return error_set(err, ERROR_IS_A_DIRECTORY, "%.200s: is a directory", read->path);
    if (!S_ISREG(st.st_mode))
        return error_set(err, ERROR_NOT_A_FILE, "%.200s: is not a regular file", read->path);
    _cleanup_fd_ int fd = path_open(read->path, O_RDONLY | O_NONBLOCK | O_NOCTTY);
    if (fd < 0 || fstat(fd, ret_st) < 0)
        return error_sys(err, "%.200s", read->path);
    if (!S_ISREG(ret_st->st_mode)) /* changed in between */
        return error_set(err, ERROR_NOT_A_FILE, "%.200s: is not a regular file", read->path);
    return steal_fd(&fd);
}

int file_read(struct file_worker *worker, uint32_t id, const void *msg, struct error *err)
{
    const struct file_read *read = msg;
    struct stat st;
    if (read->offset > INT64_MAX)
        return error_set(err, ERROR_INVALID_ARGUMENT, "%.200s: the offset is too large",
                         read->path);
    _cleanup_fd_ int fd = open_for_reading(read, &st, err);
    if (fd < 0)
        return -1;
    struct entry_names names = ENTRY_NAMES_INIT;
    if (file_answer_entry(worker, id, read->path, &st, NULL, &names, err) < 0)
        return -1;

    uint64_t size = (uint64_t)st.st_size;
    uint64_t there = read->offset < size ? size - read->offset : 0;
    uint64_t length = read->length != 0 && read->length < there ? read->length : there;
    int sent = size == 0 ? send_read(worker, id, fd, read, err)
                         : send_mapped(worker, id, fd, read->offset, length, err);
    if (sent < 0)
        return -1;
    return file_answer(worker, &file_end_schema, id, NULL, err);
}
