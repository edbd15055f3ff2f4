/* SPDX-License-Identifier: Apache-2.0 */

/*
 * FILE_WATCH: what happens to files, as it happens.
 *
 * A directory that appears is watched first and looked into afterwards, and what is found there is
 * told as made: so nothing that happens in between is missed, though it may be told twice. When the
 * kernel's queue overflows, or the reader is slower than the changes, that is told instead
 * (OP_OVERFLOW), and watching starts afresh.
 *
 * Files that the agent itself writes appear by exchanging names; the hidden ones are its own
 * business, and what is seen of it is a write.
 */

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/globs.h"
#include "agent/file_new.h"
#include "agent/file_path.h"
#include "agent/file_worker.h"
#include "agent/watch_tree.h"
#include "base/cleanup.h"
#include "base/limits.h"
#include "wire/birth.h"

struct watcher {
    struct file_worker *worker;
    uint32_t id;
    char root[PATH_BYTES_MAX];
    const char *only; /* a file of the root that alone is of interest; NULL: all */
    bool recursive;
    struct slice ignore;
    struct watch_tree tree;
    struct buf out;
    bool lost;  /* events were dropped since the reader was told last */
    bool ended; /* the root is gone */
    uint64_t last_op;
    int last_wd;
    char last_name[PATH_NAME_SIZE];
    /* A name that went: where it went to is told by the next event, if at all. */
    struct {
        bool set;
        uint32_t cookie;
        int wd;
        bool hidden;
        char name[PATH_NAME_SIZE];
    } from;
};

/* --- telling --- */

static void queue(struct watcher *w, const struct file_event *event)
{
    if (w->out.len >= WATCH_QUEUE_MAX) {
        w->lost = true;
        return;
    }
    wire_encode(&w->out, &file_event_schema, w->id, event);
}

static void tell_overflow(struct watcher *w, const char *text)
{
    queue(w, &(struct file_event){.op = OP_OVERFLOW, .dir = w->root, .text = text});
    w->last_op = OP_OVERFLOW;
}

/* The absolute path of a directory of the tree. */
static bool path_of(const struct watcher *w, const struct watch_dir *dir, char out[PATH_BYTES_MAX])
{
    char below[PATH_BYTES_MAX];
    if (!watch_dir_path(dir, "", below))
        return false;
    if (below[0] == '\0')
        return snprintf(out, PATH_BYTES_MAX, "%s", w->root) < PATH_BYTES_MAX;
    return snprintf(out, PATH_BYTES_MAX, "%s%s%s", w->root, strcmp(w->root, "/") == 0 ? "" : "/",
                    below) < PATH_BYTES_MAX;
}

static void tell(struct watcher *w, const struct watch_dir *dir, uint64_t op, const char *name)
{
    char path[PATH_BYTES_MAX];
    /* One write after the other to the same file, and nobody has read of the first yet. */
    if (op == OP_WRITE && w->last_op == OP_WRITE && w->last_wd == dir->wd && w->out.len > 0 &&
        strcmp(w->last_name, name) == 0)
        return;
    if (!path_of(w, dir, path))
        return;
    queue(w, &(struct file_event){.op = op, .dir = path, .name = name[0] == '\0' ? NULL : name});
    w->last_op = op;
    w->last_wd = dir->wd;
    snprintf(w->last_name, sizeof(w->last_name), "%s", name);
}

/* --- what is of interest --- */

/* Wherever it is (state_dir.h), it is nobody's business. */
static bool is_state_dir(const struct watcher *w, const struct watch_dir *dir, const char *name)
{
    char path[PATH_BYTES_MAX];
    if (strcmp(name, &AGENT_STATE_DIR[1]) != 0 || !path_of(w, dir, path))
        return false;
    return strcmp(path, "/") == 0 || strcmp(path, "/tmp") == 0;
}

static bool is_ignored(const struct watcher *w, const struct watch_dir *dir, const char *name)
{
    char path[PATH_BYTES_MAX];
    if (w->only != NULL && strcmp(w->only, name) != 0)
        return true;
    if (new_file_is_hidden(name))
        return true;
    if (is_state_dir(w, dir, name))
        return true;
    return w->ignore.len > 0 && watch_dir_path(dir, name, path) &&
           globs_match(w->ignore, path, name);
}

/* Files without a name (O_TMPFILE) are told of as "#" and a number, which is in no directory. */
static bool is_nameless(const struct watcher *w, const struct watch_dir *dir, const char *name)
{
    char path[PATH_BYTES_MAX], whole[PATH_BYTES_MAX + PATH_NAME_SIZE];
    if (name[0] != '#' || name[1] == '\0' || strspn(name + 1, "0123456789") != strlen(name + 1) ||
        !path_of(w, dir, path))
        return false;
    snprintf(whole, sizeof(whole), "%s/%s", path, name);
    _cleanup_fd_ int fd = path_open(whole, O_PATH | O_NOFOLLOW);
    return fd < 0;
}

/* --- looking into directories --- */

static void add_below(struct watcher *w, struct watch_dir *dir, const char *name)
{
    if (!w->recursive || is_ignored(w, dir, name))
        return;
    if (watch_tree_add(&w->tree, dir, name) == NULL)
        tell_overflow(w, "there are too many directories: some are not watched");
}

static bool is_directory(int dir_fd, const struct dirent *entry)
{
    struct stat st;
    if (entry->d_type != DT_UNKNOWN)
        return entry->d_type == DT_DIR;
    return fstatat(dir_fd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode);
}

/* Watches a directory and goes through what is in it. */
static int look_into(struct watcher *w, struct watch_dir *dir, bool report)
{
    char path[PATH_BYTES_MAX];
    if (!path_of(w, dir, path))
        return 0;
    /* The root may be named through a link, nothing below it. */
    int fd = path_open(path, O_RDONLY | O_DIRECTORY | (dir->parent == NULL ? 0 : O_NOFOLLOW));
    if (fd < 0)
        return -1;
    if (watch_tree_watch(&w->tree, dir, fd) < 0) {
        if (errno == ENOSPC)
            tell_overflow(w, "the sandbox has no inotify watches left: some are not watched");
        close(fd);
        return -1;
    }
    if (!w->recursive && !report) {
        close(fd);
        return 0;
    }
    /* Opened again: btrfs lists what was there at the opening, and the watch stands only now. */
    int listed = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    close(fd);
    fd = listed;
    _cleanup_dir_ DIR *names = fd < 0 ? NULL : fdopendir(fd);
    if (names == NULL) {
        cleanup_fd(&fd);
        return -1;
    }
    const struct dirent *entry;
    while ((entry = readdir(names)) != NULL) {
        const char *name = entry->d_name;
        if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0 || is_ignored(w, dir, name))
            continue;
        if (report)
            tell(w, dir, OP_CREATE, name);
        if (is_directory(fd, entry))
            add_below(w, dir, name);
    }
    return 0;
}

static void look_into_new(struct watcher *w, bool report)
{
    struct watch_dir *dir;
    while ((dir = watch_tree_next(&w->tree)) != NULL) {
        if (look_into(w, dir, report) == 0)
            continue;
        if (dir->parent == NULL)
            w->ended = true;
        else
            watch_tree_forget(&w->tree, dir); /* gone again */
    }
}

/* After an overflow nobody knows what is watched and what is not. */
static void start_afresh(struct watcher *w)
{
    struct error err;
    watch_tree_release(&w->tree);
    w->from.set = false;
    if (watch_tree_init(&w->tree, &err) < 0) {
        w->tree.fd = -1;
        w->ended = true;
        return;
    }
    look_into_new(w, false);
}

/* --- events --- */

static void flush_from(struct watcher *w)
{
    if (!w->from.set)
        return;
    w->from.set = false;
    const struct watch_dir *dir = watch_tree_find(&w->tree, w->from.wd);
    if (dir != NULL && !w->from.hidden)
        tell(w, dir, OP_RENAME, w->from.name);
}

static void moved_to(struct watcher *w, struct watch_dir *dir, const struct inotify_event *event)
{
    bool pair = w->from.set && w->from.cookie == event->cookie;
    bool from_hidden = pair && w->from.hidden;
    if (pair && new_file_is_hidden(event->name)) { /* replaced by the agent: the new one is told */
        w->from.set = false;
        return;
    }
    flush_from(w);
    if (is_ignored(w, dir, event->name))
        return;
    tell(w, dir, from_hidden ? OP_WRITE : OP_CREATE, event->name);
    if (event->mask & IN_ISDIR)
        add_below(w, dir, event->name);
}

static void moved_from(struct watcher *w, struct watch_dir *dir, const struct inotify_event *event)
{
    struct watch_dir *child = watch_dir_child(dir, event->name);
    if (child != NULL)
        watch_tree_forget(&w->tree, child);
    w->from.set = new_file_is_hidden(event->name) || !is_ignored(w, dir, event->name);
    w->from.cookie = event->cookie;
    w->from.wd = event->wd;
    w->from.hidden = new_file_is_hidden(event->name);
    snprintf(w->from.name, sizeof(w->from.name), "%s", event->name);
}

static void named_event(struct watcher *w, struct watch_dir *dir, const struct inotify_event *event)
{
    if (event->mask & IN_MOVED_TO) {
        moved_to(w, dir, event);
        return;
    }
    flush_from(w);
    if (event->mask & IN_MOVED_FROM) {
        moved_from(w, dir, event);
        return;
    }
    if (is_ignored(w, dir, event->name))
        return;
    if (event->mask & IN_CREATE) {
        tell(w, dir, OP_CREATE, event->name);
        if (event->mask & IN_ISDIR)
            add_below(w, dir, event->name);
    } else if (event->mask & IN_DELETE) {
        struct watch_dir *child = watch_dir_child(dir, event->name);
        if (child != NULL)
            watch_tree_forget(&w->tree, child);
        tell(w, dir, OP_REMOVE, event->name);
    } else if (!is_nameless(w, dir, event->name)) {
        tell(w, dir, event->mask & IN_MODIFY ? OP_WRITE : OP_CHMOD, event->name);
    }
}

/* About a watched directory itself. All but the root are told by the directory they are in. */
static void self_event(struct watcher *w, struct watch_dir *dir, const struct inotify_event *event)
{
    if (dir->parent != NULL) {
        if (event->mask & (IN_IGNORED | IN_UNMOUNT))
            watch_tree_forget(&w->tree, dir);
        return;
    }
    if (event->mask & IN_ATTRIB && w->only == NULL)
        tell(w, dir, OP_CHMOD, "");
    if (event->mask & (IN_DELETE_SELF | IN_UNMOUNT | IN_IGNORED | IN_MOVE_SELF)) {
        tell(w, dir, event->mask & IN_MOVE_SELF ? OP_RENAME : OP_REMOVE, "");
        w->ended = true;
    }
}

static void handle(struct watcher *w, const struct inotify_event *event)
{
    if (event->mask & IN_Q_OVERFLOW) {
        tell_overflow(w, "more happened than could be told: look again");
        start_afresh(w);
        return;
    }
    struct watch_dir *dir = watch_tree_find(&w->tree, event->wd);
    if (dir == NULL || w->ended)
        return;
    if (event->len > 0)
        named_event(w, dir, event);
    else
        self_event(w, dir, event);
    look_into_new(w, true);
}

static void read_events(struct watcher *w, char *events, size_t size)
{
    ssize_t len;
    int fd = w->tree.fd;
    while (!w->ended && w->tree.fd == fd && (len = read(fd, events, size)) > 0) {
        for (ssize_t at = 0; at < len && w->tree.fd == fd;) {
            const struct inotify_event *event = (const void *)(events + at);
            at += (ssize_t)(sizeof(*event) + event->len);
            bool overflow = event->mask & IN_Q_OVERFLOW;
            handle(w, event);
            if (overflow)
                return; /* the rest is of watches that are no more */
        }
    }
    flush_from(w);
}

/* --- the connection --- */

/* false: nobody listens any more. */
static bool send_some(struct watcher *w)
{
    while (w->out.len > 0) {
        ssize_t n = send(w->worker->fd, w->out.data, w->out.len, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return errno == EAGAIN;
        buf_consume(&w->out, (size_t)n);
        w->last_op = OP_OVERFLOW; /* part of it is on its way */
    }
    if (w->lost) {
        w->lost = false;
        tell_overflow(w, "more happened than was read: look again");
    }
    return true;
}

static void run(struct watcher *w)
{
    enum { EVENTS_SIZE = 64 * 1024 };
    _cleanup_free_ char *events = malloc(EVENTS_SIZE);
    if (events == NULL)
        return;
    do {
        struct pollfd fds[] = {
            {.fd = w->tree.fd, .events = POLLIN},
            {.fd = w->worker->fd,
             .events = (short)(POLLIN | POLLRDHUP | (w->out.len > 0 ? POLLOUT : 0))},
        };
        if (poll(fds, ARRAY_LEN(fds), -1) < 0 && errno != EINTR)
            return;
        if (fds[1].revents & (POLLIN | POLLRDHUP | POLLHUP | POLLERR))
            return; /* hung up; there is nothing else to say */
        if (fds[0].revents & POLLIN)
            read_events(w, events, EVENTS_SIZE);
    } while (send_some(w) && (!w->ended || w->out.len > 0));
}

/* A file is watched by its directory: editors put another file in its place. */
static int find_root(struct watcher *w, const char *path, struct error *err)
{
    struct stat st;
    _cleanup_fd_ int fd = path_open(path, O_PATH);
    if (fd < 0 || fstat(fd, &st) < 0)
        return error_sys(err, "%.200s", path);
    size_t len = strlen(path);
    memcpy(w->root, path, len + 1);
    if (S_ISDIR(st.st_mode))
        return 0;
    char *slash = strrchr(w->root, '/');
    w->only = path + (slash - w->root) + 1;
    slash[slash == w->root] = '\0';
    w->recursive = false;
    return 0;
}

int file_watch(struct file_worker *worker, uint32_t id, const void *msg, struct error *err)
{
    const struct file_watch *watch = msg;
    if (path_check(watch->path, err) < 0)
        return -1;
    struct watcher *w = calloc(1, sizeof(*w));
    if (w == NULL)
        return error_sys(err, "%.200s", watch->path);
    w->worker = worker;
    w->id = id;
    w->recursive = watch->recursive != 0;
    w->ignore = watch->ignore;
    w->last_op = OP_OVERFLOW;
    buf_init(&w->out, 2 * WATCH_QUEUE_MAX);
    int rc = find_root(w, watch->path, err);
    if (rc == 0)
        rc = watch_tree_init(&w->tree, err);
    if (rc == 0) {
        struct watch_dir *root = watch_tree_next(&w->tree);
        if (look_into(w, root, false) < 0)
            rc = error_sys(err, "%.200s", watch->path);
        else
            look_into_new(w, false);
        if (rc == 0 && file_answer(worker, &wire_ok_schema, id, NULL, err) == 0 &&
            file_flush(worker, err) == 0)
            run(w);
        if (rc == 0)
            worker->lost = true; /* the connection was for this alone */
        if (w->tree.fd >= 0)
            watch_tree_release(&w->tree);
    }
    buf_release(&w->out);
    free(w);
    if (rc == 0)
        error_set(err, ERROR_CANCELLED, "the watch has ended");
    return -1;
}
