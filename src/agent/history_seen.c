/* SPDX-License-Identifier: Apache-2.0 */

/* A table by inode, since a tree may be all links. */

#include "agent/history_seen.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"

enum { FIRST_CAP = 64 };

void history_seen_release(struct history_seen *seen)
{
    free(seen->links);
    *seen = (struct history_seen){0};
}

static uint64_t change_ns(const struct stat *st)
{
    return (uint64_t)st->st_ctim.tv_sec * 1000000000 + (uint64_t)st->st_ctim.tv_nsec;
}

/* Where it is, or would be. */
static struct seen_link *find(const struct history_seen *seen, const struct stat *st)
{
    size_t at = (size_t)((uint64_t)st->st_ino * 0x9e3779b97f4a7c15 >> 32) & (seen->cap - 1);
    while (seen->links[at].inode != 0 &&
           (seen->links[at].inode != st->st_ino || seen->links[at].dev != st->st_dev))
        at = (at + 1) & (seen->cap - 1);
    return &seen->links[at];
}

static bool grow(struct history_seen *seen)
{
    struct history_seen more = {.cap = seen->cap == 0 ? FIRST_CAP : 2 * seen->cap};
    more.links = calloc(more.cap, sizeof(*more.links));
    if (more.links == NULL)
        return false;
    for (size_t i = 0; i < seen->cap; i++) {
        const struct seen_link *link = &seen->links[i];
        const struct stat st = {.st_ino = (ino_t)link->inode, .st_dev = (dev_t)link->dev};
        if (link->inode != 0)
            *find(&more, &st) = *link;
    }
    more.count = seen->count;
    history_seen_release(seen);
    *seen = more;
    return true;
}

/* What is not remembered for want of memory is left alone later. */
static void remember(struct history_seen *seen, const struct stat *st, uint64_t was_ns)
{
    if (2 * seen->count >= seen->cap && !grow(seen))
        return;
    struct seen_link *link = find(seen, st);
    seen->count += link->inode == 0;
    *link = (struct seen_link){st->st_dev, st->st_ino, was_ns, change_ns(st)};
}

static bool is_same(const struct history_seen *seen, const struct stat *st,
                    const struct history_item *item)
{
    if (st->st_ino != item->was_inode || S_ISDIR(st->st_mode) != (item->was_ctime_ns == 0))
        return false;
    if (S_ISDIR(st->st_mode) || change_ns(st) == item->was_ctime_ns)
        return true;
    const struct seen_link *link = seen->cap == 0 ? NULL : find(seen, st);
    return link != NULL && link->inode != 0 && link->was_ns == item->was_ctime_ns &&
           link->is_ns == change_ns(st);
}

int history_seen_check(const struct history_seen *seen, int dir_fd, const char *name,
                       const struct history_item *item, struct seen_place *ret_place,
                       struct error *err)
{
    struct stat st;
    *ret_place = (struct seen_place){.fd = -1};
    if (item->was_inode == 0)
        return 0;
    if (fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return errno == ENOENT ? 0 : error_sys(err, "%.200s", item->path);
    if (!is_same(seen, &st, item))
        return error_set(err, ERROR_CONFLICT, "%.200s: left alone, since it was changed meanwhile",
                         item->path);
    ret_place->is_directory = S_ISDIR(st.st_mode);
    if (!S_ISDIR(st.st_mode) && st.st_nlink > 1)
        ret_place->fd = openat(dir_fd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    return 0;
}

void history_seen_done(struct history_seen *seen, const struct history_item *item,
                       struct seen_place *place)
{
    struct stat st;
    if (place->fd >= 0 && fstat(place->fd, &st) == 0 && st.st_ino == item->was_inode)
        remember(seen, &st, item->was_ctime_ns);
    cleanup_fd(&place->fd);
    place->fd = -1;
}
