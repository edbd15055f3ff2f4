/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The UPLOAD_* verbs but for completing (upload_complete.c). Nothing is held in memory between
 * requests, so it does not matter who restarts meanwhile; parts lie on the sandbox's own quota.
 */

#include "agent/uploads.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "agent/file_new.h"
#include "agent/md5.h"
#include "agent/state_dir.h"
#include "agent/upload_dir.h"
#include "base/cleanup.h"
#include "base/limits.h"

enum { START_TRIES = 16 };

/* --- the directory of one --- */

static bool is_id(const char *id)
{
    return strlen(id) == UPLOAD_ID_LEN && strspn(id, "0123456789abcdef") == UPLOAD_ID_LEN;
}

int upload_open(const char *state_dir, const char *id, int lock, int *ret_fd, struct error *err)
{
    _cleanup_fd_ int top = is_id(id) ? state_dir_find(state_dir, STATE_UPLOADS) : -1;
    _cleanup_fd_ int fd =
        top < 0 ? -1 : openat(top, id, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return error_set(err, ERROR_UPLOAD_NOT_FOUND,
                         "there is no upload \"%.40s\": it was completed, aborted, or has expired",
                         id);
    if (lock != 0 && flock(fd, lock | LOCK_NB) < 0)
        return error_set(err, ERROR_CONFLICT, "upload %.40s: %s", id,
                         lock == LOCK_EX ? "a part of it is being received"
                                         : "it is being completed or aborted");
    *ret_fd = steal_fd(&fd);
    return 0;
}

int upload_read_meta(int fd, const char *id, struct upload_meta *ret_meta, struct error *err)
{
    _cleanup_fd_ int meta = openat(fd, "meta", O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    ssize_t len = meta < 0 ? -1 : read(meta, ret_meta->text, sizeof(ret_meta->text) - 1);
    if (len < 0)
        return error_sys(err, "upload %.40s", id);
    ret_meta->text[len] = '\0';
    struct slice list = {ret_meta->text, (size_t)len};
    const char *path = strv_valid(list) ? strv_first(list) : NULL;
    const char *mode = path == NULL ? NULL : strv_next(list, path);
    const char *started = mode == NULL ? NULL : strv_next(list, mode);
    if (started == NULL)
        return error_set(err, ERROR_INTERNAL, "upload %.40s: what is known of it is damaged", id);
    ret_meta->about = (struct upload_about){
        .id = id,
        .path = path,
        .mode = strtoull(mode, NULL, 8),
        .started_ms = strtoull(started, NULL, 10),
    };
    return 0;
}

void upload_part_name(uint64_t number, char name[UPLOAD_PART_NAME_SIZE])
{
    snprintf(name, UPLOAD_PART_NAME_SIZE, "p%05u", (unsigned)number);
}

int upload_part_look(int fd, const char *name, struct upload_part_info *ret_info)
{
    struct stat st;
    _cleanup_fd_ int part = openat(fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    unsigned char digest[MD5_SIZE];
    if (part < 0 || fstat(part, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size < MD5_SIZE ||
        pread(part, digest, MD5_SIZE, st.st_size - MD5_SIZE) != MD5_SIZE)
        return -1;
    ret_info->number = strtoull(name + 1, NULL, 10);
    ret_info->size = (uint64_t)st.st_size - MD5_SIZE;
    md5_text(digest, ret_info->etag);
    return 0;
}

static int by_number(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

int upload_parts_find(int fd, uint64_t **ret_numbers, size_t *ret_count, struct error *err)
{
    int copy = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    _cleanup_dir_ DIR *dir = copy < 0 ? NULL : fdopendir(copy);
    _cleanup_free_ uint64_t *numbers = calloc(UPLOAD_PARTS_MAX, sizeof(*numbers));
    size_t count = 0;
    if (dir == NULL || numbers == NULL) {
        error_sys(err, "an upload's parts");
        if (dir == NULL)
            cleanup_fd(&copy);
        return -1;
    }
    const struct dirent *entry;
    while ((entry = readdir(dir)) != NULL && count < UPLOAD_PARTS_MAX)
        if (entry->d_name[0] == 'p' && strlen(entry->d_name) == UPLOAD_PART_NAME_SIZE - 1)
            numbers[count++] = strtoull(entry->d_name + 1, NULL, 10);
    qsort(numbers, count, sizeof(*numbers), by_number);
    *ret_numbers = steal_ptr(numbers);
    *ret_count = count;
    return 0;
}

void upload_drop(const char *state_dir, const char *id, int fd)
{
    int copy = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    _cleanup_dir_ DIR *dir = copy < 0 ? NULL : fdopendir(copy);
    const struct dirent *entry;
    while (dir != NULL && (entry = readdir(dir)) != NULL)
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            unlinkat(fd, entry->d_name, 0);
    _cleanup_fd_ int top = state_dir_find(state_dir, STATE_UPLOADS);
    if (top >= 0)
        unlinkat(top, id, AT_REMOVEDIR);
    state_dir_tidy(state_dir, STATE_UPLOADS);
}

unsigned uploads_expire(const char *state_dir, bool all)
{
    unsigned left = 0;
    int top = state_dir_find(state_dir, STATE_UPLOADS);
    _cleanup_dir_ DIR *dir = top < 0 ? NULL : fdopendir(top);
    if (dir == NULL) {
        cleanup_fd(&top);
        return 0;
    }
    const struct dirent *entry;
    while ((entry = readdir(dir)) != NULL) {
        struct stat st;
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        _cleanup_fd_ int fd =
            openat(top, entry->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        bool old = all || (fd >= 0 && fstat(fd, &st) == 0 &&
                           time(NULL) - st.st_mtim.tv_sec > UPLOAD_IDLE_S);
        if (fd >= 0 && old && flock(fd, LOCK_EX | LOCK_NB) == 0)
            upload_drop(state_dir, entry->d_name, fd);
        else
            left++;
    }
    if (left == 0)
        state_dir_tidy(state_dir, STATE_UPLOADS);
    return left;
}

/* --- starting --- */

static int make_id(char id[UPLOAD_ID_LEN + 1], struct error *err)
{
    uint64_t random;
    if (getrandom(&random, sizeof(random), 0) != sizeof(random))
        return error_sys(err, "getrandom");
    snprintf(id, UPLOAD_ID_LEN + 1, "%016" PRIx64, random);
    return 0;
}

/* A directory as the target is told now, not after gigabytes. */
static int check_target(const char *path, struct error *err)
{
    struct path_place place = {.dir_fd = -1};
    struct stat st;
    bool exists;
    if (new_file_place(path, &place, err) < 0)
        return -1;
    _cleanup_fd_ int dir_fd = place.dir_fd;
    return dir_fd < 0 ? 0 : new_file_look(&place, path, &exists, &st, err);
}

/* Made under another name first: an upload without its meta is never seen. */
static int make_upload(int top, const char *id, const struct file_write *start, uint64_t now_ms,
                       struct error *err)
{
    char temporary[UPLOAD_ID_LEN + 8];
    _cleanup_buf_ struct buf meta = BUF_INIT(2 * PATH_BYTES_MAX);
    buf_add(&meta, start->path, strlen(start->path) + 1);
    buf_addf(&meta, "%" PRIo64 "%c%" PRIu64 "%c", start->mode, '\0', now_ms, '\0');
    snprintf(temporary, sizeof(temporary), "new-%s", id);
    if (buf_check(&meta, "the upload", err) < 0)
        return -1;
    if (mkdirat(top, temporary, 0700) < 0)
        return error_sys(err, "starting an upload");
    _cleanup_fd_ int dir = openat(top, temporary, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    _cleanup_fd_ int fd =
        dir < 0 ? -1 : openat(dir, "meta", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        error_sys(err, "starting an upload");
    else if (write_whole(fd, meta.data, meta.len, "starting an upload", err) == 0) {
        if (renameat(top, temporary, top, id) == 0)
            return 0;
        error_sys(err, "starting an upload");
    }
    if (dir >= 0)
        unlinkat(dir, "meta", 0);
    unlinkat(top, temporary, AT_REMOVEDIR);
    return -1;
}

int upload_start(struct file_worker *worker, uint32_t id, const void *msg, struct error *err)
{
    const struct file_write *start = msg;
    char name[UPLOAD_ID_LEN + 1];
    struct timespec now;
    if (path_check(start->path, err) < 0 || path_check_mode(start->path, start->mode, err) < 0 ||
        check_target(start->path, err) < 0)
        return -1;
    if (uploads_expire(worker->state_dir, false) >= UPLOADS_MAX)
        return error_set(err, ERROR_LIMIT_EXCEEDED, "%d uploads are under way already",
                         UPLOADS_MAX);
    clock_gettime(CLOCK_REALTIME, &now);
    uint64_t now_ms = (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
    if (make_id(name, err) < 0)
        return -1;
    /* ENOENT: whoever ended the last upload has just tidied up. */
    for (int tries = 0;; tries++) {
        _cleanup_fd_ int top = -1;
        if (state_dir_open(worker->state_dir, STATE_UPLOADS, &top, err) < 0)
            return -1;
        if (make_upload(top, name, start, now_ms, err) == 0)
            break;
        if (err->sys != ENOENT || tries == START_TRIES)
            return -1;
    }
    struct upload_about about = {name, start->path, start->mode, now_ms};
    return file_answer(worker, &upload_about_schema, id, &about, err);
}

/* --- parts --- */

/* Reads the part back, from the page cache, for its etag. */
static int digest_part(struct file_worker *worker, int fd, uint64_t *ret_size,
                       unsigned char digest[MD5_SIZE], struct error *err)
{
    struct md5 md5;
    off_t at = 0;
    md5_init(&md5);
    for (;;) {
        ssize_t n = pread(fd, worker->piece, WIRE_DATA_CHUNK, at);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return error_sys(err, "reading a part");
        if (n == 0)
            break;
        md5_add(&md5, worker->piece, (size_t)n);
        at += n;
    }
    md5_end(&md5, digest);
    *ret_size = (uint64_t)at;
    return 0;
}

int upload_part(struct file_worker *worker, uint32_t id, const void *msg, struct error *err)
{
    const struct upload_part *part = msg;
    char name[UPLOAD_PART_NAME_SIZE], etag[MD5_TEXT_SIZE];
    unsigned char digest[MD5_SIZE];
    uint64_t size = 0;
    _cleanup_fd_ int dir = -1;
    if (part->number < 1 || part->number > UPLOAD_PARTS_MAX)
        return error_set(err, ERROR_INVALID_ARGUMENT,
                         "part %" PRIu64 ": parts are numbered from 1 to %d", part->number,
                         UPLOAD_PARTS_MAX);
    if (upload_open(worker->state_dir, part->id, LOCK_SH, &dir, err) < 0)
        return -1;
    _cleanup_fd_ int fd = new_file_unnamed(dir);
    if (fd < 0)
        return error_sys(err, "upload %.40s", part->id);
    upload_part_name(part->number, name);
    if (new_file_receive(worker, fd, name, NULL, err) < 0 ||
        digest_part(worker, fd, &size, digest, err) < 0 ||
        write_whole(fd, digest, MD5_SIZE, name, err) < 0 ||
        new_file_replace(fd, dir, name, name, err) < 0)
        return -1;
    md5_text(digest, etag);
    struct upload_part_about about = {part->number, size, etag};
    return file_answer(worker, &upload_part_about_schema, id, &about, err);
}

int upload_parts(struct file_worker *worker, uint32_t id, const void *msg, struct error *err)
{
    const struct upload_ref *ref = msg;
    struct upload_meta meta;
    _cleanup_fd_ int dir = -1;
    _cleanup_free_ uint64_t *numbers = NULL;
    size_t count = 0;
    if (upload_open(worker->state_dir, ref->id, 0, &dir, err) < 0 ||
        upload_read_meta(dir, ref->id, &meta, err) < 0 ||
        upload_parts_find(dir, &numbers, &count, err) < 0 ||
        file_answer(worker, &upload_about_schema, id, &meta.about, err) < 0)
        return -1;
    for (size_t i = 0; i < count; i++) {
        char name[UPLOAD_PART_NAME_SIZE];
        struct upload_part_info info;
        upload_part_name(numbers[i], name);
        if (upload_part_look(dir, name, &info) < 0)
            continue;
        struct upload_part_about about = {info.number, info.size, info.etag};
        if (file_answer(worker, &upload_part_about_schema, id, &about, err) < 0)
            return -1;
    }
    return file_answer(worker, &wire_ok_schema, id, NULL, err);
}

int upload_abort(struct file_worker *worker, uint32_t id, const void *msg, struct error *err)
{
    const struct upload_ref *ref = msg;
    _cleanup_fd_ int dir = -1;
    /* Without the lock: parts that are still coming in find their directory gone. */
    if (upload_open(worker->state_dir, ref->id, 0, &dir, err) < 0)
        return -1;
    upload_drop(worker->state_dir, ref->id, dir);
    return file_answer(worker, &wire_ok_schema, id, NULL, err);
}

int upload_list(struct file_worker *worker, uint32_t id, const void *msg, struct error *err)
{
    uploads_expire(worker->state_dir, false);
    int top = state_dir_find(worker->state_dir, STATE_UPLOADS);
    _cleanup_dir_ DIR *dir = top < 0 ? NULL : fdopendir(top);
    const struct dirent *entry;
    while (dir != NULL && (entry = readdir(dir)) != NULL) {
        _cleanup_fd_ int fd = -1;
        struct upload_meta meta;
        struct error ignored;
        if (upload_open(worker->state_dir, entry->d_name, 0, &fd, &ignored) < 0 ||
            upload_read_meta(fd, entry->d_name, &meta, &ignored) < 0)
            continue;
        if (file_answer(worker, &upload_about_schema, id, &meta.about, err) < 0)
            return -1;
    }
    return file_answer(worker, &wire_ok_schema, id, NULL, err);
}
