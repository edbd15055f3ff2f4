/* SPDX-License-Identifier: Apache-2.0 */

/*
 * FILE_TREE_PUT: many files, all of them or none.
 *
 * First every content is received into a file without a name on the file system where it will
 * live: nothing is to be seen yet, and a full disk, a cut connection or a killed worker leave
 * nothing behind. Then what will change is written down (tree_journal.h), and done: directories,
 * new names, and for files that are replaced an exchange of names, which can be taken back. Whoever
 * is killed in this second, short phase is undone by the agent, at once, or when it starts again.
 *
 * The changes appear one after the other, within moments: a reader in between can see some of them.
 */

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "agent/file_attributes.h"
#include "agent/file_entry.h"
#include "agent/file_new.h"
#include "agent/tree_journal.h"
#include "base/cleanup.h"
#include "base/limits.h"

struct item {
    char *path;
    int fd; /* content; -1: a directory */
    ino_t inode;
    bool exists;
    char hidden[PATH_NAME_SIZE / 8];
    uint64_t mode;
};

struct missing {
    char *path;
    uint64_t mode;
};

struct tree {
    struct item *items;
    size_t count, cap;
    struct missing *dirs; /* to be made, outer ones first */
    size_t dir_count, dir_cap;
    struct buf scratch; /* the frame of the item at hand */
    struct path_owner owner;
    bool owned; /* all of it is to be the owner's */
};

static void tree_release(struct tree *tree)
{
    for (size_t i = 0; i < tree->count; i++) {
        cleanup_fd(&tree->items[i].fd);
        free(tree->items[i].path);
    }
    for (size_t i = 0; i < tree->dir_count; i++)
        free(tree->dirs[i].path);
    free(tree->items);
    free(tree->dirs);
    buf_release(&tree->scratch);
}

/* Room for one more; NULL and an error when there is none. */
static void *grow(void *list, size_t count, size_t *cap, size_t size, struct error *err)
{
    if (count < *cap)
        return list;
    size_t more = *cap == 0 ? 64 : 2 * *cap;
    void *bigger = realloc(list, more * size);
    if (bigger == NULL) {
        error_sys(err, "a tree of %zu files", count);
        return NULL;
    }
    *cap = more;
    return bigger;
}

/* --- receiving --- */

static struct item *add_item(struct tree *tree, const char *path, struct error *err)
{
    if (tree->count >= TREE_FILES_MAX) {
        error_set(err, ERROR_LIMIT_EXCEEDED, "more than %d files in one tree", TREE_FILES_MAX);
        return NULL;
    }
    struct item *items = grow(tree->items, tree->count, &tree->cap, sizeof(*items), err);
    if (items == NULL)
        return NULL;
    tree->items = items;
    struct item *item = &items[tree->count];
    *item = (struct item){.path = strdup(path), .fd = -1, .mode = FILE_MODE_DEFAULT};
    if (item->path == NULL) {
        error_sys(err, "%.200s", path);
        return NULL;
    }
    tree->count++;
    return item;
}

static int open_unnamed(int dir_fd, const char *path, struct error *err)
{
    int fd = new_file_unnamed(dir_fd);
    if (fd >= 0)
        return fd;
    if (errno == EMFILE || errno == ENFILE)
        return error_set(err, ERROR_LIMIT_EXCEEDED, "too many files for one tree: %s",
                         strerror(errno));
    if (errno == EOPNOTSUPP || errno == EISDIR)
        return error_set(err, ERROR_NOT_IMPLEMENTED,
                         "%.200s: this file system cannot take a tree at once; write its files "
                         "one by one",
                         path);
    return error_sys(err, "%.200s", path);
}

/* Finds out where a file will be, and opens its content there. */
static int stage_file(struct tree *tree, const struct file_tree_item *msg, struct stat *ret_old,
                      struct error *err)
{
    struct path_place place = {.dir_fd = -1};
    if (new_file_place(msg->path, &place, err) < 0)
        return -1;
    _cleanup_fd_ int dir_fd = place.dir_fd;
    bool exists = false;
    if (dir_fd >= 0 && new_file_look(&place, msg->path, &exists, ret_old, err) < 0)
        return -1;
    size_t len;
    if (dir_fd < 0 && (dir_fd = path_open_nearest(place.dir, &len)) < 0)
        return error_sys(err, "%.200s", msg->path);

    char real[PATH_BYTES_MAX + PATH_NAME_SIZE];
    snprintf(real, sizeof(real), "%s%s", place.dir, place.name);
    struct item *item = add_item(tree, real, err);
    if (item == NULL)
        return -1;
    item->exists = exists;
    item->mode = msg->mode;
    item->fd = open_unnamed(dir_fd, msg->path, err);
    struct stat st;
    if (item->fd < 0)
        return -1;
    if (fstat(item->fd, &st) < 0)
        return error_sys(err, "%.200s", msg->path);
    item->inode = st.st_ino;
    return 0;
}

static int stage_directory(struct tree *tree, const struct file_tree_item *msg, struct error *err)
{
    _cleanup_fd_ int fd = path_open(msg->path, O_PATH | O_DIRECTORY);
    if (fd < 0 && errno != ENOENT)
        return error_sys(err, "%.200s", msg->path);
    if (fd >= 0)
        return 0;
    struct item *item = add_item(tree, msg->path, err);
    if (item == NULL)
        return -1;
    item->mode = msg->mode;
    return 0;
}

/* One item, whose header has come; *header becomes that of the frame behind it. */
static int receive_item(struct file_worker *worker, struct tree *tree, struct frame_header *header,
                        struct error *err)
{
    struct file_tree_item msg;
    struct stat old = {0};
    buf_clear(&tree->scratch);
    char *to = buf_reserve(&tree->scratch, header->length);
    if (to == NULL)
        return error_sys(err, "a tree's item");
    if (file_receive(worker, to, header->length, err) < 0 ||
        wire_decode(&file_tree_item_schema, (struct slice){to, header->length}, &msg, err) < 0 ||
        path_check(msg.path, err) < 0 || path_check_mode(msg.path, msg.mode, err) < 0)
        return -1;
    if (msg.is_directory) {
        if (stage_directory(tree, &msg, err) < 0)
            return -1;
        if (file_receive_header(worker, header, err) < 0)
            return -1;
        worker->owed = header->type != FILE_END;
        return 0;
    }
    if (stage_file(tree, &msg, &old, err) < 0)
        return -1;
    const struct item *item = &tree->items[tree->count - 1];
    if (new_file_receive(worker, item->fd, msg.path, header, err) < 0)
        return -1;
    bool as_before = item->exists || tree->owned;
    if (!item->exists)
        old.st_mode = 0644;
    if (tree->owned) {
        old.st_uid = tree->owner.uid;
        old.st_gid = tree->owner.gid;
    }
    if (new_file_attributes(item->fd, msg.mode, as_before ? &old : NULL, msg.path, err) == 0)
        return 0;
    /* The next item has begun: its payload must not be taken for a frame. */
    struct error ignored;
    to = buf_reserve(&tree->scratch, header->length);
    if (to == NULL || file_receive(worker, to, header->length, &ignored) < 0)
        worker->lost = true;
    return -1;
}

static int receive_items(struct file_worker *worker, struct tree *tree, struct error *err)
{
    struct frame_header header;
    if (file_receive_header(worker, &header, err) < 0)
        return -1;
    worker->owed = header.type != FILE_END;
    while (header.type == FILE_TREE_ITEM)
        if (receive_item(worker, tree, &header, err) < 0)
            return -1;
    if (header.type == FILE_END && header.length == 0)
        return 0;
    worker->lost = true; /* its payload would be taken for the next frame */
    return error_set(err, ERROR_INVALID_ARGUMENT, "frame of type %u inside a tree", header.type);
}

/* --- planning --- */

static int add_missing(struct tree *tree, const char *path, size_t len, struct error *err)
{
    if (tree->dir_count >= 2 * TREE_FILES_MAX)
        return error_set(err, ERROR_LIMIT_EXCEEDED, "more than %d directories in one tree",
                         2 * TREE_FILES_MAX);
    struct missing *dirs = grow(tree->dirs, tree->dir_count, &tree->dir_cap, sizeof(*dirs), err);
    if (dirs == NULL)
        return -1;
    tree->dirs = dirs;
    char *copy = strndup(path, len);
    if (copy == NULL)
        return error_sys(err, "%.200s", path);
    dirs[tree->dir_count++] = (struct missing){copy, FILE_MODE_DEFAULT};
    return 0;
}

/* Whether the first len bytes of path are a directory on the way to (or are) `other`. */
static bool leads_to(const char *path, size_t len, const char *other)
{
    return other != NULL && strncmp(path, other, len) == 0 &&
           (other[len] == '/' || other[len] == '\0');
}

/* The directories on the way to path[0…len) that are not there. `last` is the one before: items
 * come sorted, so what is shared with it has been planned. */
static int plan_dirs(struct tree *tree, const char *path, size_t len, const char *last,
                     struct error *err)
{
    char dir[PATH_BYTES_MAX + PATH_NAME_SIZE];
    memcpy(dir, path, len);
    dir[len] = '\0';
    size_t at;
    _cleanup_fd_ int there = path_open_nearest(dir, &at);
    if (there < 0)
        return error_sys(err, "%.200s", dir);
    for (;;) {
        size_t start = at + strspn(dir + at, "/");
        if (dir[start] == '\0')
            return 0;
        at = start + strcspn(dir + start, "/");
        if (!leads_to(dir, at, last) && add_missing(tree, dir, at, err) < 0)
            return -1;
    }
}

static int plan(struct tree *tree, struct tree_journal *journal, struct error *err)
{
    char last[PATH_BYTES_MAX + PATH_NAME_SIZE] = "";
    for (size_t i = 0; i < tree->count; i++) {
        const struct item *item = &tree->items[i];
        size_t len = strlen(item->path);
        if (item->fd >= 0)
            len = (size_t)(strrchr(item->path, '/') - item->path);
        size_t before = tree->dir_count;
        if (plan_dirs(tree, item->path, len, last[0] != '\0' ? last : NULL, err) < 0)
            return -1;
        if (item->fd < 0 && tree->dir_count > before)
            tree->dirs[tree->dir_count - 1].mode = item->mode;
        memcpy(last, item->path, len);
        last[len] = '\0';
    }
    for (size_t i = 0; i < tree->dir_count; i++)
        tree_journal_mkdir(journal, tree->dirs[i].path);
    for (size_t i = 0; i < tree->count; i++) {
        struct item *item = &tree->items[i];
        char hidden[PATH_NAME_SIZE];
        if (item->fd < 0)
            continue;
        if (!item->exists) {
            tree_journal_create(journal, item->path, item->inode);
            continue;
        }
        if (new_file_hidden_name(hidden, err) < 0)
            return -1;
        snprintf(item->hidden, sizeof(item->hidden), "%.31s", hidden);
        tree_journal_swap(journal, item->path, item->hidden, item->inode);
    }
    return 0;
}

/* --- doing --- */

static int make_directory(const struct tree *tree, const struct missing *dir, struct error *err)
{
    struct path_place place;
    if (path_split(dir->path, &place, err) < 0)
        return -1;
    _cleanup_fd_ int fd = path_open(place.dir, O_PATH | O_DIRECTORY);
    if (fd < 0)
        return error_sys(err, "%.200s", dir->path);
    if (mkdirat(fd, place.name, 0755) < 0) {
        struct stat st;
        if (errno != EEXIST)
            return error_sys(err, "%.200s", dir->path);
        if (fstatat(fd, place.name, &st, 0) < 0 || !S_ISDIR(st.st_mode))
            return error_set(err, ERROR_NOT_A_DIRECTORY,
                             "%.200s: is a file, and files are to be put below it", dir->path);
        return 0;
    }
    if (tree->owned &&
        fchownat(fd, place.name, tree->owner.uid, tree->owner.gid, AT_SYMLINK_NOFOLLOW) < 0)
        return error_sys(err, "%.200s: owner", dir->path);
    if (dir->mode != FILE_MODE_DEFAULT && fchmodat(fd, place.name, (mode_t)dir->mode, 0) < 0)
        return error_sys(err, "%.200s: mode", dir->path);
    return 0;
}

static int put_file(const struct item *item, int dir_fd, struct error *err)
{
    const char *name = strrchr(item->path, '/') + 1;
    struct stat st;
    if (!item->exists) {
        if (new_file_link(item->fd, dir_fd, name) == 0)
            return 0;
        if (errno == EEXIST)
            return error_set(err, ERROR_CONFLICT, "%.200s: somebody else has just made it",
                             item->path);
        return error_sys(err, "%.200s", item->path);
    }
    if (new_file_link(item->fd, dir_fd, item->hidden) < 0)
        return error_sys(err, "%.200s", item->path);
    if (syscall(SYS_renameat2, dir_fd, item->hidden, dir_fd, name, RENAME_EXCHANGE) < 0)
        return error_sys(err, "%.200s", item->path);
    if (fstatat(dir_fd, item->hidden, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(st.st_mode))
        return error_set(err, ERROR_CONFLICT, "%.200s: is no longer a file", item->path);
    return 0;
}

static int put_files(const struct tree *tree, struct error *err)
{
    _cleanup_fd_ int dir_fd = -1;
    const char *dir = NULL;
    size_t dir_len = 0;
    for (size_t i = 0; i < tree->count; i++) {
        const struct item *item = &tree->items[i];
        if (item->fd < 0)
            continue;
        size_t len = (size_t)(strrchr(item->path, '/') - item->path) + 1;
        if (dir == NULL || len != dir_len || memcmp(dir, item->path, len) != 0) {
            char path[PATH_BYTES_MAX + PATH_NAME_SIZE];
            memcpy(path, item->path, len);
            path[len] = '\0';
            cleanup_fd(&dir_fd);
            dir_fd = path_open(path, O_PATH | O_DIRECTORY);
            if (dir_fd < 0)
                return error_sys(err, "%.200s", path);
            dir = item->path;
            dir_len = len;
        }
        if (put_file(item, dir_fd, err) < 0)
            return -1;
    }
    return 0;
}

static int commit(struct file_worker *worker, struct tree *tree, struct error *err)
{
    _cleanup_(tree_journal_release) struct tree_journal journal = TREE_JOURNAL_INIT;
    if (plan(tree, &journal, err) < 0)
        return -1;
    if (journal.steps.len == 0)
        return 0;
    if (tree_journal_begin(&journal, worker->state_dir, err) < 0)
        return -1;
    for (size_t i = 0; i < tree->dir_count; i++)
        if (make_directory(tree, &tree->dirs[i], err) < 0)
            goto undo;
    if (put_files(tree, err) < 0 || tree_journal_done(&journal, worker->state_dir, err) < 0)
        goto undo;
    return 0;
undo:
    tree_journal_undo(&journal, worker->state_dir);
    return -1;
}

int file_tree_put(struct file_worker *worker, uint32_t id, const void *msg, struct error *err)
{
    const struct file_tree_begin *begin = msg;
    _cleanup_(tree_release) struct tree tree = {.scratch = BUF_INIT(WIRE_PAYLOAD_MAX)};
    struct file_tree_item root = {.path = begin->path, .mode = FILE_MODE_DEFAULT};
    if (path_check(begin->path, err) < 0 ||
        (begin->user != NULL && file_owner(begin->user, &tree.owner, err) < 0))
        return -1;
    tree.owned = begin->user != NULL;
    tree_journals_recover(worker->state_dir);
    if (stage_directory(&tree, &root, err) < 0 || receive_items(worker, &tree, err) < 0 ||
        commit(worker, &tree, err) < 0)
        return -1;
    _cleanup_fd_ int fd = path_open(begin->path, O_PATH | O_DIRECTORY);
    if (fd < 0)
        return error_sys(err, "%.200s", begin->path);
    return file_answer_fd(worker, id, begin->path, fd, err);
}
