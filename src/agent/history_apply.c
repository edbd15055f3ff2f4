/* SPDX-License-Identifier: Apache-2.0 */

/*
 * HISTORY_APPLY: the way back. Items are done one by one, in the order in which they come; what
 * cannot be done is counted and does not hold up the others, since half of the way back with a word
 * about the rest is worth more than none of it.
 */

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "agent/file_new.h"
#include "agent/file_worker.h"
#include "agent/history_path.h"
#include "agent/history_seen.h"
#include "base/cleanup.h"
#include "base/limits.h"

enum { ID_LAST = 0xfffffffe };

struct applying {
    struct file_worker *worker;
    const struct history_apply *request;
    struct buf frame; /* the item at hand */
    struct history_applied applied;
    char failure[ERROR_MESSAGE_MAX];
    struct buf left; /* history_applied's */
    struct history_seen seen;
};

/* --- places --- */

static int open_place(const struct history_item *item, const char **ret_name, struct error *err)
{
    int fd = history_open_parent(item->path, true, ret_name);
    return fd < 0 ? error_sys(err, "%.200s", item->path) : fd;
}

/* What history does not know of is not in it either: nothing would bring it back. */
static int check_new(int dir_fd, const char *name, const struct history_item *item,
                     struct error *err)
{
    struct stat st;
    if (item->only_new == 0 || fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
        (item->op == HISTORY_DIRECTORY && S_ISDIR(st.st_mode)))
        return 0;
    return error_set(err, ERROR_ALREADY_EXISTS,
                     "%.200s: left alone, since history does not keep what is there now",
                     item->path);
}

/* Where history saw nothing. */
static int move_new(int dir_fd, const char *hidden, const char *name,
                    const struct history_item *item, struct error *err)
{
    if (check_new(dir_fd, name, item, err) < 0)
        return -1;
    int rc = (int)syscall(SYS_renameat2, dir_fd, hidden, dir_fd, name, RENAME_NOREPLACE);
    /* Not every file system can; then it is enough that nothing was there a moment ago. */
    if (rc < 0 && errno == EINVAL)
        rc = renameat(dir_fd, hidden, dir_fd, name);
    return rc < 0 ? error_sys(err, "%.200s", item->path) : 0;
}

/* Only a directory is in the way of a rename, and an empty one can go. Nothing but that comes
 * between the comparison and the rename. */
static int move_into_place(struct applying *a, int dir_fd, const char *hidden, const char *name,
                           const struct history_item *item, struct error *err)
{
    struct seen_place place;
    if (item->only_new != 0)
        return move_new(dir_fd, hidden, name, item, err);
    if (history_seen_check(&a->seen, dir_fd, name, item, &place, err) < 0)
        return -1;
    int rc = 0;
    if ((place.is_directory || item->was_inode == 0) && unlinkat(dir_fd, name, AT_REMOVEDIR) < 0 &&
        errno != ENOENT && errno != ENOTDIR)
        rc = error_sys(err, "%.200s", item->path);
    if (rc == 0 && renameat(dir_fd, hidden, dir_fd, name) < 0)
        rc = error_sys(err, "%.200s", item->path);
    history_seen_done(&a->seen, item, &place);
    return rc;
}

/* --- content --- */

static int take_piece(struct file_worker *worker, uint64_t left, size_t *ret_len, struct error *err)
{
    struct frame_header header;
    if (file_receive_header(worker, &header, err) < 0)
        return -1;
    if (header.type != FILE_DATA || header.length > WIRE_DATA_CHUNK || header.length > left ||
        header.length == 0) {
        worker->lost = true;
        return error_set(err, ERROR_INVALID_ARGUMENT, "frame of type %u inside a file",
                         header.type);
    }
    *ret_len = header.length;
    return file_receive(worker, worker->piece, header.length, err);
}

/* All of the item's bytes are taken, also when there is nowhere to put them (fd -1). Returns -1
 * with worker->lost when the connection is at fault, and without when the file is. */
static int take_content(struct file_worker *worker, const struct history_item *item, int fd,
                        struct error *err)
{
    int rc = 0;
    for (uint64_t left = item->size; left > 0;) {
        size_t len = 0;
        if (take_piece(worker, left, &len, err) < 0)
            return -1;
        left -= len;
        if (fd >= 0 && rc == 0)
            rc = write_whole(fd, worker->piece, len, item->path, err);
    }
    return rc;
}

struct content {
    int fd;
    int dir_fd;
    char hidden[PATH_NAME_SIZE]; /* its name while it has one; "": none */
};

static void content_release(struct content *content)
{
    if (content->hidden[0] != '\0')
        unlinkat(content->dir_fd, content->hidden, 0);
    cleanup_fd(&content->fd);
}

/* Without a name, or with a hidden one where the file system has no others. */
static int content_open(struct content *content, const char *path, struct error *err)
{
    content->fd = new_file_unnamed(content->dir_fd);
    if (content->fd >= 0)
        return 0;
    if (errno != EOPNOTSUPP && errno != EISDIR && errno != ENOENT)
        return error_sys(err, "%.200s", path);
    char name[PATH_NAME_SIZE];
    if (new_file_hidden_name(name, err) < 0)
        return -1;
    content->fd =
        openat(content->dir_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (content->fd < 0)
        return error_sys(err, "%.200s", path);
    memcpy(content->hidden, name, sizeof(name));
    return 0;
}

/* A rename needs a name to start from. */
static int content_hide(struct content *content, const char *path, struct error *err)
{
    char name[PATH_NAME_SIZE];
    if (content->hidden[0] != '\0')
        return 0;
    if (new_file_hidden_name(name, err) < 0)
        return -1;
    if (new_file_link(content->fd, content->dir_fd, name) < 0)
        return error_sys(err, "%.200s", path);
    memcpy(content->hidden, name, sizeof(name));
    return 0;
}

static int content_name(struct applying *a, struct content *content, const char *name,
                        const struct history_item *item, struct error *err)
{
    if (content->hidden[0] == '\0' && item->only_new != 0) {
        if (check_new(content->dir_fd, name, item, err) < 0)
            return -1;
        return new_file_link(content->fd, content->dir_fd, name) < 0
                   ? error_sys(err, "%.200s", item->path)
                   : 0;
    }
    if (content_hide(content, item->path, err) < 0 ||
        move_into_place(a, content->dir_fd, content->hidden, name, item, err) < 0)
        return -1;
    content->hidden[0] = '\0';
    return 0;
}

/* The owner first: changing it takes setuid bits away. */
static int set_attributes(int fd, const struct history_item *item, struct error *err)
{
    if (fchown(fd, (uid_t)item->uid, (gid_t)item->gid) < 0 || fchmod(fd, (mode_t)item->mode) < 0)
        return error_sys(err, "%.200s", item->path);
    return 0;
}

static int make_file(struct applying *a, const struct history_item *item, struct error *err)
{
    const char *name;
    _cleanup_fd_ int dir_fd = open_place(item, &name, err);
    _cleanup_(content_release) struct content content = {.fd = -1, .dir_fd = dir_fd};
    if (dir_fd < 0 || content_open(&content, item->path, err) < 0) {
        struct error other;
        take_content(a->worker, item, -1, &other);
        return -1;
    }
    if (take_content(a->worker, item, content.fd, err) < 0 ||
        set_attributes(content.fd, item, err) < 0)
        return -1;
    return content_name(a, &content, name, item, err);
}

/* --- the others --- */

/* What has the place of a directory, and is none. */
static int remove_file(struct applying *a, int dir_fd, const char *name,
                       const struct history_item *item, struct error *err)
{
    struct seen_place place;
    struct stat st;
    if (item->only_new != 0 || fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
        S_ISDIR(st.st_mode))
        return 0;
    if (history_seen_check(&a->seen, dir_fd, name, item, &place, err) < 0)
        return -1;
    unlinkat(dir_fd, name, 0);
    history_seen_done(&a->seen, item, &place);
    return 0;
}

static int make_directory(struct applying *a, const struct history_item *item, struct error *err)
{
    const char *name;
    _cleanup_fd_ int dir_fd = open_place(item, &name, err), fd = -1;
    if (dir_fd < 0 || check_new(dir_fd, name, item, err) < 0 ||
        remove_file(a, dir_fd, name, item, err) < 0)
        return -1;
    if (mkdirat(dir_fd, name, 0700) < 0 && errno != EEXIST)
        return error_sys(err, "%.200s", item->path);
    fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return error_sys(err, "%.200s", item->path);
    return set_attributes(fd, item, err);
}

static int make_symlink(struct applying *a, const struct history_item *item, struct error *err)
{
    const char *name;
    char hidden[PATH_NAME_SIZE];
    if (item->target == NULL || item->target[0] == '\0')
        return error_set(err, ERROR_INVALID_ARGUMENT, "%.200s: a link without a target",
                         item->path);
    _cleanup_fd_ int dir_fd = open_place(item, &name, err);
    if (dir_fd < 0 || new_file_hidden_name(hidden, err) < 0)
        return -1;
    if (symlinkat(item->target, dir_fd, hidden) < 0)
        return error_sys(err, "%.200s", item->path);
    int rc = fchownat(dir_fd, hidden, (uid_t)item->uid, (gid_t)item->gid, AT_SYMLINK_NOFOLLOW) < 0
                 ? error_sys(err, "%.200s", item->path)
                 : move_into_place(a, dir_fd, hidden, name, item, err);
    if (rc < 0)
        unlinkat(dir_fd, hidden, 0);
    return rc;
}

/* A path that leads through a link, or through a file, is not there. */
static bool is_not_there(int why)
{
    return why == ENOENT || why == ENOTDIR || why == ELOOP;
}

/* A directory is EISDIR here, by POSIX EPERM. What is left in it is ignored, or somebody's of this
 * moment. */
static int unlink_any(int dir_fd, const char *name, bool is_directory)
{
    if (!is_directory && (unlinkat(dir_fd, name, 0) == 0 || errno == ENOENT))
        return 0;
    if (!is_directory && errno != EISDIR && errno != EPERM)
        return -1;
    return unlinkat(dir_fd, name, AT_REMOVEDIR) == 0 || errno == ENOENT || errno == ENOTEMPTY ||
                   errno == EEXIST
               ? 0
               : -1;
}

static int remove_one(struct applying *a, const struct history_item *item, struct error *err)
{
    const char *name;
    struct seen_place place;
    _cleanup_fd_ int dir_fd = history_open_parent(item->path, false, &name);
    if (dir_fd < 0)
        return is_not_there(errno) ? 0 : error_sys(err, "%.200s", item->path);
    if (history_seen_check(&a->seen, dir_fd, name, item, &place, err) < 0)
        return -1;
    int rc = unlink_any(dir_fd, name, place.is_directory);
    if (rc < 0)
        error_sys(err, "%.200s", item->path);
    history_seen_done(&a->seen, item, &place);
    return rc;
}

/* Of a directory alone: whatever else has the path by now need not be what history saw there, and
 * would get the mode, perhaps with setuid, that was meant for other content. */
static int change_attributes(struct applying *a, const struct history_item *item, struct error *err)
{
    _cleanup_fd_ int fd = history_open(item->path, O_RDONLY | O_DIRECTORY);
    if (fd < 0)
        return error_sys(err, "%.200s", item->path);
    return set_attributes(fd, item, err);
}

typedef int apply_item(struct applying *a, const struct history_item *item, struct error *err);

static apply_item *const ops[] = {
    [HISTORY_REMOVE] = remove_one,
    [HISTORY_FILE] = make_file,
    [HISTORY_DIRECTORY] = make_directory,
    [HISTORY_SYMLINK] = make_symlink,
    [HISTORY_ATTRIBUTES] = change_attributes,
};

/* --- the stream of items --- */

/* An item that makes no sense ends everything: nobody knows what would follow it. */
static int take_item(struct applying *a, const struct frame_header *header,
                     struct history_item *ret_item, struct error *err)
{
    buf_clear(&a->frame);
    char *to = buf_reserve(&a->frame, header->length);
    if (to == NULL || file_receive(a->worker, to, header->length, err) < 0)
        return to == NULL ? buf_check(&a->frame, "an item", err) : -1;
    if (wire_decode(&history_item_schema, (struct slice){to, header->length}, ret_item, err) < 0)
        return -1;
    if (ret_item->op >= ARRAY_LEN(ops) || ret_item->mode > 07777 || ret_item->uid > ID_LAST ||
        ret_item->gid > ID_LAST)
        return error_set(err, ERROR_INVALID_ARGUMENT, "%.200s: nothing that can be made",
                         ret_item->path);
    return history_check_path(a->request->roots, ret_item->path, err);
}

/* Most say the path first, which stands beside them. */
static const char *reason_of(const char *message, const char *path)
{
    size_t len = strnlen(path, 200);
    bool named = strncmp(message, path, len) == 0 && strncmp(message + len, ": ", 2) == 0;
    return named ? message + len + 2 : message;
}

static void note_failure(struct applying *a, const struct history_item *item,
                         const struct error *failure)
{
    const char *reason = reason_of(failure->message, item->path);
    size_t path = strlen(item->path) + 1, why = strlen(reason) + 1;
    if (a->applied.failed++ == 0)
        memcpy(a->failure, failure->message, sizeof(a->failure));
    if (a->applied.failed > HISTORY_LEFT_SHOWN || a->left.len + path + why > HISTORY_LEFT_BYTES_MAX)
        return;
    buf_add(&a->left, item->path, path);
    buf_add(&a->left, reason, why);
}

static int apply(struct applying *a, const struct frame_header *header, struct error *err)
{
    struct history_item item;
    struct error failure;
    if (take_item(a, header, &item, err) < 0)
        return -1;
    if (ops[item.op](a, &item, &failure) == 0) {
        a->applied.done++;
        return 0;
    }
    if (a->worker->lost) {
        *err = failure;
        return -1;
    }
    note_failure(a, &item, &failure);
    return 0;
}

static int apply_all(struct applying *a, struct error *err)
{
    for (;;) {
        struct frame_header header;
        if (file_receive_header(a->worker, &header, err) < 0)
            return -1;
        if (header.type == FILE_END && header.length == 0) {
            a->worker->owed = false;
            return 0;
        }
        if (header.type != HISTORY_ITEM) {
            a->worker->lost = true;
            return error_set(err, ERROR_INVALID_ARGUMENT, "frame of type %u among items",
                             header.type);
        }
        if (apply(a, &header, err) < 0)
            return -1;
    }
}

int history_apply(struct file_worker *worker, uint32_t id, const void *msg, struct error *err)
{
    struct applying a = {.worker = worker, .request = msg};
    if (history_check_roots(a.request->roots, err) < 0)
        return -1;
    if (worker->piece == NULL)
        worker->piece = malloc(WIRE_DATA_CHUNK);
    if (worker->piece == NULL)
        return error_sys(err, "restoring files");
    buf_init(&a.frame, WIRE_PAYLOAD_MAX);
    buf_init(&a.left, HISTORY_LEFT_BYTES_MAX);
    int rc = apply_all(&a, err);
    buf_release(&a.frame);
    history_seen_release(&a.seen);
    a.applied.failure = a.applied.failed == 0 ? NULL : a.failure;
    if (!a.left.failed)
        a.applied.left = (struct slice){a.left.data, a.left.len};
    if (rc == 0)
        rc = file_answer(worker, &history_applied_schema, id, &a.applied, err);
    buf_release(&a.left);
    return rc;
}
