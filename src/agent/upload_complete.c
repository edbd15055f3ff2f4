/* SPDX-License-Identifier: Apache-2.0 */

/*
 * UPLOAD_COMPLETE: the parts, in order, become the file, which appears whole or not at all. Where
 * the file system can share blocks between files (btrfs, XFS), nothing is copied. An upload whose
 * completion failed is as it was, and can be completed again.
 */

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/file_entry.h"
#include "agent/file_new.h"
#include "agent/upload_dir.h"
#include "base/cleanup.h"

struct wanted {
    uint64_t number;
    const char *etag; /* NULL: any */
};

struct recipe {
    struct wanted *parts;
    size_t count;
};

static void recipe_release(struct recipe *recipe)
{
    free(recipe->parts);
}

static int by_number(const void *a, const void *b)
{
    const struct wanted *x = a, *y = b;
    return x->number < y->number ? -1 : x->number > y->number;
}

/* "NUMBER" or "NUMBER:ETAG" */
static int read_wanted(const char *text, struct wanted *ret_wanted, struct error *err)
{
    char *end;
    errno = 0;
    uint64_t number = strtoull(text, &end, 10);
    if (errno != 0 || end == text || (*end != '\0' && *end != ':') || number < 1 ||
        number > UPLOAD_PARTS_MAX)
        return error_set(err, ERROR_INVALID_ARGUMENT, "\"%.40s\" is no part: they go from 1 to %d",
                         text, UPLOAD_PARTS_MAX);
    *ret_wanted = (struct wanted){number, *end == ':' ? end + 1 : NULL};
    return 0;
}

static int recipe_from_list(struct slice list, struct recipe *recipe, struct error *err)
{
    size_t count = 0;
    strv_each (text, list)
        count++;
    recipe->parts = calloc(count, sizeof(*recipe->parts));
    if (recipe->parts == NULL)
        return error_sys(err, "%zu parts", count);
    strv_each (text, list)
        if (read_wanted(text, &recipe->parts[recipe->count++], err) < 0)
            return -1;
    qsort(recipe->parts, recipe->count, sizeof(*recipe->parts), by_number);
    for (size_t i = 1; i < recipe->count; i++)
        if (recipe->parts[i].number == recipe->parts[i - 1].number)
            return error_set(err, ERROR_INVALID_ARGUMENT, "part %" PRIu64 " is there twice",
                             recipe->parts[i].number);
    return 0;
}

static int recipe_from_dir(int dir, struct recipe *recipe, struct error *err)
{
    _cleanup_free_ uint64_t *numbers = NULL;
    size_t count = 0;
    if (upload_parts_find(dir, &numbers, &count, err) < 0)
        return -1;
    recipe->parts = calloc(count + 1, sizeof(*recipe->parts));
    if (recipe->parts == NULL)
        return error_sys(err, "%zu parts", count);
    while (recipe->count < count) {
        recipe->parts[recipe->count].number = numbers[recipe->count];
        recipe->count++;
    }
    return 0;
}

static int copy_plainly(int from, off_t *at, int to, size_t len, char *piece, struct error *err)
{
    ssize_t n = pread(from, piece, len < WIRE_DATA_CHUNK ? len : WIRE_DATA_CHUNK, *at);
    if (n <= 0)
        return error_sys(err, "reading a part");
    if (write_whole(to, piece, (size_t)n, "writing the file", err) < 0)
        return -1;
    *at += n;
    return 0;
}

static int copy_part(int from, int to, uint64_t size, char *piece, struct error *err)
{
    bool shares = true;
    for (off_t at = 0; (uint64_t)at < size;) {
        size_t left = size - (uint64_t)at < 1U << 30 ? size - (uint64_t)at : 1U << 30;
        ssize_t n = shares ? copy_file_range(from, &at, to, NULL, left, 0) : 0;
        if (n < 0 && errno == EINTR)
            continue;
        if (n > 0)
            continue;
        if (n < 0 && (errno == EDQUOT || errno == ENOSPC))
            return error_sys(err, "writing the file");
        shares = false;
        if (copy_plainly(from, &at, to, left, piece, err) < 0)
            return -1;
    }
    return 0;
}

static int add_part(int dir, const struct wanted *want, int to, char *piece, struct error *err)
{
    char name[UPLOAD_PART_NAME_SIZE];
    struct upload_part_info info;
    upload_part_name(want->number, name);
    if (upload_part_look(dir, name, &info) < 0)
        return error_set(err, ERROR_INVALID_ARGUMENT, "part %" PRIu64 " was not sent",
                         want->number);
    if (want->etag != NULL && strcmp(want->etag, info.etag) != 0)
        return error_set(err, ERROR_INVALID_ARGUMENT,
                         "part %" PRIu64 " has the etag %s, and not %.40s", want->number, info.etag,
                         want->etag);
    _cleanup_fd_ int from = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (from < 0)
        return error_sys(err, "part %" PRIu64, want->number);
    return copy_part(from, to, info.size, piece, err);
}

static int assemble(struct file_worker *worker, int dir, const struct recipe *recipe, int to,
                    struct error *err)
{
    if (worker->piece == NULL)
        worker->piece = malloc(WIRE_DATA_CHUNK);
    if (worker->piece == NULL)
        return error_sys(err, "completing an upload");
    if (recipe->count == 0)
        return error_set(err, ERROR_INVALID_ARGUMENT, "no part was sent yet");
    for (size_t i = 0; i < recipe->count; i++)
        if (add_part(dir, &recipe->parts[i], to, worker->piece, err) < 0)
            return -1;
    return 0;
}

/* The content first, then missing directories, then the name. */
static int make_file(struct file_worker *worker, int dir, const struct recipe *recipe,
                     const struct upload_about *about, int *ret_fd, struct error *err)
{
    struct path_place place = {.dir_fd = -1};
    struct stat old;
    bool exists = false;
    size_t len;
    if (new_file_place(about->path, &place, err) < 0)
        return -1;
    _cleanup_fd_ int dir_fd = place.dir_fd;
    if (dir_fd >= 0 && new_file_look(&place, about->path, &exists, &old, err) < 0)
        return -1;
    _cleanup_fd_ int near = dir_fd >= 0 ? -1 : path_open_nearest(place.dir, &len);
    _cleanup_fd_ int fd = new_file_unnamed(dir_fd >= 0 ? dir_fd : near);
    if (fd < 0)
        return error_sys(err, "%.200s", about->path);
    if (assemble(worker, dir, recipe, fd, err) < 0 ||
        new_file_attributes(fd, about->mode, exists ? &old : NULL, about->path, err) < 0)
        return -1;
    if (dir_fd < 0 && path_make_dirs(place.dir, NULL, &dir_fd, err) < 0)
        return -1;
    if (new_file_replace(fd, dir_fd, place.name, about->path, err) < 0)
        return -1;
    *ret_fd = steal_fd(&fd);
    return 0;
}

int upload_complete(struct file_worker *worker, uint32_t id, const void *msg, struct error *err)
{
    const struct upload_complete *complete = msg;
    _cleanup_(recipe_release) struct recipe recipe = {0};
    struct upload_meta meta;
    _cleanup_fd_ int dir = -1;
    _cleanup_fd_ int fd = -1;
    if (upload_open(worker->state_dir, complete->id, LOCK_EX, &dir, err) < 0 ||
        upload_read_meta(dir, complete->id, &meta, err) < 0 ||
        (complete->parts.len > 0 ? recipe_from_list(complete->parts, &recipe, err)
                                 : recipe_from_dir(dir, &recipe, err)) < 0 ||
        make_file(worker, dir, &recipe, &meta.about, &fd, err) < 0)
        return -1;
    upload_drop(worker->state_dir, complete->id, dir);
    return file_answer_fd(worker, id, meta.about.path, fd, err);
}
