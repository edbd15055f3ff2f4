/* SPDX-License-Identifier: Apache-2.0 */

/* Depth first by an explicit stack; each directory is read twice, once for what is in it, once for
 * where to go on. */

#include "agent/walk.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/cleanup.h"

enum { LEVELS_MAX = 128, WALK_PATH_MAX = PATH_BYTES_MAX };

struct level {
    DIR *dir;
    dev_t dev;
    size_t path_len; /* of the directory itself */
};

struct walker {
    const struct walk_plan *plan;
    struct level levels[LEVELS_MAX];
    unsigned depth; /* levels that are open */
    char path[WALK_PATH_MAX];
    bool cut;
};

static void walker_release(struct walker *w)
{
    while (w->depth > 0)
        closedir(w->levels[--w->depth].dir);
}

static bool endless(int fd)
{
    static const unsigned long types[] = {PROC_SUPER_MAGIC, SYSFS_MAGIC, CGROUP_SUPER_MAGIC,
                                          CGROUP2_SUPER_MAGIC};
    struct statfs fs;
    if (fstatfs(fd, &fs) < 0)
        return true;
    for (size_t i = 0; i < ARRAY_LEN(types); i++)
        if ((unsigned long)fs.f_type == types[i])
            return true;
    return false;
}

/* Appends the name to the path of the level at hand; NULL when it is too long. */
static const char *path_of(struct walker *w, const char *name)
{
    size_t at = w->levels[w->depth - 1].path_len, len = strlen(name);
    if (at + len + 2 > sizeof(w->path))
        return NULL;
    if (at > 0)
        w->path[at++] = '/';
    memcpy(w->path + at, name, len + 1);
    return w->path;
}

static void note_beyond(struct walker *w)
{
    if (w->plan->beyond != NULL)
        w->plan->beyond(w->plan->ctx);
    else
        w->cut = true;
}

static const struct dirent *next_name(DIR *dir)
{
    const struct dirent *entry;
    do
        entry = readdir(dir);
    while (entry != NULL && (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0));
    return entry;
}

/* The first reading. */
static enum walk_next visit_names(struct walker *w, struct error *err)
{
    DIR *dir = w->levels[w->depth - 1].dir;
    const struct dirent *entry;
    while ((entry = next_name(dir)) != NULL) {
        struct walk_item item = {
            .dir_fd = dirfd(dir),
            .path = path_of(w, entry->d_name),
            .name = entry->d_name,
            .depth = w->depth,
        };
        if (item.path == NULL) {
            note_beyond(w);
            continue;
        }
        if (fstatat(item.dir_fd, item.name, &item.st, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT) < 0) {
            w->cut |= errno != ENOENT;
            continue;
        }
        enum walk_next next = w->plan->visit(w->plan->ctx, &item, err);
        if (next != WALK_ON)
            return next;
    }
    rewinddir(dir);
    return WALK_ON;
}

/* Makes the directory at fd (taken over) the level at hand, its path being in w->path. */
static enum walk_next go_into(struct walker *w, int fd, size_t path_len, struct error *err)
{
    struct stat st;
    DIR *dir = fstat(fd, &st) < 0 ? NULL : fdopendir(fd);
    if (dir == NULL) {
        error_sys(err, "reading a directory");
        close(fd);
        return WALK_FAIL;
    }
    w->levels[w->depth++] = (struct level){dir, st.st_dev, path_len};
    if (w->plan->opened != NULL)
        w->plan->opened(w->plan->ctx, fd);
    return visit_names(w, err);
}

static bool is_directory(int dir_fd, const struct dirent *entry)
{
    struct stat st;
    if (entry->d_type != DT_UNKNOWN)
        return entry->d_type == DT_DIR;
    return fstatat(dir_fd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode);
}

/* Opens a directory that is to be gone into; -1 when this one is not. */
static int open_below(struct walker *w, const struct level *level, const struct dirent *entry)
{
    const struct walk_plan *plan = w->plan;
    const char *path = path_of(w, entry->d_name);
    if (path == NULL || (plan->enters != NULL && !plan->enters(plan->ctx, path, entry->d_name)))
        return -1;
    if (w->depth >= plan->depth_max || w->depth >= LEVELS_MAX) {
        note_beyond(w);
        return -1;
    }
    struct stat st;
    _cleanup_fd_ int fd =
        openat(dirfd(level->dir), entry->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) < 0) {
        w->cut |= errno != ENOENT && errno != ENOTDIR;
        return -1;
    }
    if (st.st_dev != level->dev && endless(fd))
        return -1;
    return steal_fd(&fd);
}

/* The second reading: up to the next directory to go into, or back up at the end. */
static enum walk_next step(struct walker *w, struct error *err)
{
    struct level *level = &w->levels[w->depth - 1];
    const struct dirent *entry;
    while ((entry = next_name(level->dir)) != NULL) {
        if (!is_directory(dirfd(level->dir), entry))
            continue;
        int fd = open_below(w, level, entry);
        if (fd >= 0)
            return go_into(w, fd, strlen(w->path), err);
    }
    closedir(level->dir);
    w->depth--;
    return WALK_ON;
}

int walk(int fd, const struct walk_plan *plan, bool *ret_cut, struct error *err)
{
    struct walker *w = calloc(1, sizeof(*w));
    if (w == NULL) {
        close(fd);
        return error_sys(err, "walking a tree");
    }
    w->plan = plan;
    enum walk_next next = go_into(w, fd, 0, err);
    while (next == WALK_ON && w->depth > 0)
        next = step(w, err);
    *ret_cut = w->cut;
    walker_release(w);
    free(w);
    return next == WALK_FAIL ? -1 : 0;
}
