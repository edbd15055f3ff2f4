/* SPDX-License-Identifier: Apache-2.0 */

/*
 * FILE_LIST: what is in a directory. With FILE_SORTED the names are put in order here, in the
 * sandbox's own memory, so that cellad can pass entries on as they come: it holds none of them.
 */

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/file_entry.h"
#include "agent/file_path.h"
#include "agent/file_worker.h"
#include "base/cleanup.h"
#include "base/limits.h"

struct listed {
    char *name;
    bool directory;
};

struct listing {
    struct listed *items;
    size_t count, cap;
};

static void listing_release(struct listing *listing)
{
    for (size_t i = 0; i < listing->count; i++)
        free(listing->items[i].name);
    free(listing->items);
}

static int add_name(struct listing *listing, const char *name, bool directory, struct error *err)
{
    if (listing->count == listing->cap) {
        size_t cap = listing->cap == 0 ? 64 : 2 * listing->cap;
        struct listed *items = realloc(listing->items, cap * sizeof(*items));
        if (items == NULL)
            return error_sys(err, "listing a directory");
        listing->items = items;
        listing->cap = cap;
    }
    char *copy = strdup(name);
    if (copy == NULL)
        return error_sys(err, "listing a directory");
    listing->items[listing->count++] = (struct listed){copy, directory};
    return 0;
}

/* Some file systems do not say in a directory what the entries are. */
static bool is_directory(int dir_fd, const struct dirent *entry)
{
    struct stat st;
    if (entry->d_type != DT_UNKNOWN)
        return entry->d_type == DT_DIR;
    return fstatat(dir_fd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT) == 0 &&
           S_ISDIR(st.st_mode);
}

static int read_names(DIR *dir, const char *path, struct listing *listing, struct error *err)
{
    for (;;) {
        errno = 0;
        const struct dirent *entry = readdir(dir);
        if (entry == NULL && errno != 0)
            return error_sys(err, "%.200s", path);
        if (entry == NULL)
            return 0;
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        if (listing->count == DIR_ENTRIES_MAX)
            return error_set(err, ERROR_LIMIT_EXCEEDED, "%.200s: more than %d entries", path,
                             DIR_ENTRIES_MAX);
        if (add_name(listing, entry->d_name, is_directory(dirfd(dir), entry), err) < 0)
            return -1;
    }
}

/* What is no directory first, each kind by name. */
static int in_order(const void *a, const void *b)
{
    const struct listed *x = a, *y = b;
    return x->directory != y->directory ? (int)x->directory - (int)y->directory
                                        : strcmp(x->name, y->name);
}

/* A name may be gone by now, or a file may have become a directory: then what was listed is not
 * there any more. */
static int answer_name(struct file_worker *worker, uint32_t id, int dir_fd,
                       const struct listed *item, const struct file_ref *ref,
                       struct entry_names *names, struct error *err)
{
    struct stat st;
    if (fstatat(dir_fd, item->name, &st, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT) < 0)
        return errno == ENOENT ? 0 : error_sys(err, "%.200s", item->name);
    if (S_ISDIR(st.st_mode) != item->directory)
        return 0;
    return file_answer_whole(worker, id, item->name, dir_fd, item->name, &st, ref->attributes,
                             names, err);
}

static int list(struct file_worker *worker, uint32_t id, DIR *dir, const struct file_ref *ref,
                struct listing *listing, struct error *err)
{
    struct entry_names names = ENTRY_NAMES_INIT;
    struct stat st;
    bool sorted = (ref->flags & FILE_SORTED) != 0;
    if (fstat(dirfd(dir), &st) < 0)
        return error_sys(err, "%.200s", ref->path);
    if (read_names(dir, ref->path, listing, err) < 0)
        return -1;
    if (listing->count > 0)
        qsort(listing->items, listing->count, sizeof(*listing->items), in_order);
    if (file_answer_directory(worker, id, ref->path, &st, sorted, &names, err) < 0)
        return -1;
    for (size_t i = 0; i < listing->count; i++)
        if (answer_name(worker, id, dirfd(dir), &listing->items[i], ref, &names, err) < 0)
            return -1;
    return file_answer(worker, &wire_ok_schema, id, NULL, err);
}

int file_list(struct file_worker *worker, uint32_t id, const void *msg, struct error *err)
{
    const struct file_ref *ref = msg;
    if (path_check(ref->path, err) < 0)
        return -1;
    _cleanup_fd_ int fd = path_open(ref->path, O_RDONLY | O_DIRECTORY);
    if (fd < 0)
        return error_sys(err, "%.200s", ref->path);
    _cleanup_dir_ DIR *dir = fdopendir(fd);
    if (dir == NULL)
        return error_sys(err, "%.200s", ref->path);
    steal_fd(&fd);
    struct listing listing = {0};
    int rc = list(worker, id, dir, ref, &listing, err);
    listing_release(&listing);
    return rc;
}
