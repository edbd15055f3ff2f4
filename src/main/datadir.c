/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The data folder is root's; cellad, which faces the network, owns only its database in it and may
 * reach the sockets. So the folder itself can be searched by others but not listed, and each part
 * has the narrowest mode that works.
 */

#include "main/datadir.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "auth/auth.h"
#include "base/cleanup.h"
#include "base/layout.h"
#include "base/names.h"

enum {
    LOCK_TRIES = 100,
    LOCK_PAUSE_MS = 100,
    KEY_FILE_MAX = 256,
};

enum folder_owner { OWNER_ROOT, OWNER_GROUP, OWNER_USER };

static const struct {
    const char *name;
    mode_t mode;
    enum folder_owner owner;
} folders[] = {
    {LAYOUT_RUN, 0750, OWNER_GROUP},    {LAYOUT_AGENTS, 0750, OWNER_GROUP},
    {LAYOUT_RECORDS, 0700, OWNER_ROOT}, {LAYOUT_IMAGES, 0700, OWNER_ROOT},
    {LAYOUT_DB_DIR, 0700, OWNER_USER},  {LAYOUT_TLS, 0711, OWNER_ROOT},
    {LAYOUT_HISTORY, 0700, OWNER_USER}, {LAYOUT_AUDIT, 0700, OWNER_USER},
};

static int make_parents(const char *path, struct error *err)
{
    char part[PATH_MAX];
    snprintf(part, sizeof(part), "%s", path);
    for (char *slash = strchr(part + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        if (mkdir(part, 0755) < 0 && errno != EEXIST)
            return error_sys(err, "making %s", part);
        *slash = '/';
    }
    if (mkdir(part, 0711) < 0 && errno != EEXIST)
        return error_sys(err, "making %s", part);
    return 0;
}

/* cellad opens its database by its path, as somebody who is not root. */
static int check_reachable(const char *path, uid_t uid, gid_t gid, struct error *err)
{
    char part[PATH_MAX];
    snprintf(part, sizeof(part), "%s", path);
    for (char *slash = strrchr(part, '/'); slash != NULL && slash != part;
         slash = strrchr(part, '/')) {
        *slash = '\0';
        struct stat st;
        if (stat(part, &st) < 0)
            return error_sys(err, "looking at %s", part);
        bool ok = (st.st_mode & S_IXOTH) || (st.st_uid == uid && (st.st_mode & S_IXUSR)) ||
                  (st.st_gid == gid && (st.st_mode & S_IXGRP));
        if (!ok)
            return error_set(err, ERROR_PERMISSION_DENIED,
                             "the user that the server runs as cannot reach %s, because %s is "
                             "closed to others: choose another --data, or chmod o+x %s",
                             path, part, part);
    }
    return 0;
}

static int take_lock(struct datadir *dir, struct error *err)
{
    _cleanup_fd_ int fd =
        openat(dir->fd, LAYOUT_LOCK, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return error_sys(err, "opening %s/%s", dir->path, LAYOUT_LOCK);
    for (int i = 0; flock(fd, LOCK_EX | LOCK_NB) < 0; i++) {
        if (errno != EWOULDBLOCK)
            return error_sys(err, "locking %s", dir->path);
        if (i == LOCK_TRIES)
            return error_set(err, ERROR_CONFLICT, "another server uses %s", dir->path);
        nanosleep(&(struct timespec){.tv_nsec = LOCK_PAUSE_MS * 1000000L}, NULL);
    }
    dir->lock_fd = steal_fd(&fd);
    return 0;
}

/* A folder with something in .restore is not whole. One that has put everything into its place may
 * have been killed before it removed its folder, which is not locked then. */
static int check_restored(const struct datadir *dir, struct error *err)
{
    _cleanup_fd_ int fd =
        openat(dir->fd, LAYOUT_RESTORE, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return errno == ENOENT ? 0 : error_sys(err, "opening %s/%s", dir->path, LAYOUT_RESTORE);
    if (flock(fd, LOCK_EX | LOCK_NB) < 0)
        return error_set(err, ERROR_CONFLICT, "a restore to %s is under way", dir->path);
    if (unlinkat(dir->fd, LAYOUT_RESTORE, AT_REMOVEDIR) < 0)
        return error_set(
            err, ERROR_CONFLICT,
            "a restore to %s has not come to its end: have `cella restore` do it again", dir->path);
    return 0;
}

static int make_folders(const struct datadir *dir, uid_t uid, gid_t gid, struct error *err)
{
    for (size_t i = 0; i < ARRAY_LEN(folders); i++) {
        const char *name = folders[i].name;
        if (mkdirat(dir->fd, name, folders[i].mode) < 0 && errno != EEXIST)
            return error_sys(err, "making %s/%s", dir->path, name);
        uid_t owner = folders[i].owner == OWNER_USER ? uid : geteuid();
        gid_t group = folders[i].owner == OWNER_ROOT ? getegid() : gid;
        if (fchownat(dir->fd, name, owner, group, AT_SYMLINK_NOFOLLOW) < 0 ||
            fchmodat(dir->fd, name, folders[i].mode, 0) < 0)
            return error_sys(err, "setting the owner of %s/%s", dir->path, name);
    }
    return 0;
}

int datadir_write(const struct datadir *dir, const char *name, const char *text, mode_t mode,
                  struct error *err)
{
    char temporary[64];
    snprintf(temporary, sizeof(temporary), "%s.new", name);
    _cleanup_fd_ int fd =
        openat(dir->fd, temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, mode);
    if (fd < 0 || fchmod(fd, mode) < 0)
        return error_sys(err, "writing %s/%s", dir->path, name);
    size_t len = strlen(text);
    if (write(fd, text, len) != (ssize_t)len || fsync(fd) < 0 ||
        renameat(dir->fd, temporary, dir->fd, name) < 0) {
        error_sys(err, "writing %s/%s", dir->path, name);
        unlinkat(dir->fd, temporary, 0);
        return -1;
    }
    return 0;
}

int datadir_overwrite(const struct datadir *dir, const char *name, const char *text,
                      struct error *err)
{
    size_t len = strlen(text);
    _cleanup_fd_ int fd = openat(dir->fd, name, O_WRONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0 || pwrite(fd, text, len, 0) != (ssize_t)len || ftruncate(fd, (off_t)len) < 0)
        return error_sys(err, "writing %s/%s", dir->path, name);
    return 0;
}

int datadir_read(const struct datadir *dir, const char *name, struct buf *text, struct error *err)
{
    _cleanup_fd_ int fd = openat(dir->fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0 && errno != ENOENT)
        return error_sys(err, "reading %s/%s", dir->path, name);
    char piece[4096];
    ssize_t n = 0;
    while (fd >= 0 && !text->failed && (n = read(fd, piece, sizeof(piece))) > 0)
        buf_add(text, piece, (size_t)n);
    explicit_bzero(piece, sizeof(piece));
    return n < 0 ? error_sys(err, "reading %s/%s", dir->path, name) : buf_check(text, name, err);
}

/* Reads a one-line file; 0 with an empty text when there is none. */
static int read_line(const struct datadir *dir, const char *name, char *out, size_t size,
                     struct error *err)
{
    out[0] = '\0';
    _cleanup_fd_ int fd = openat(dir->fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0 && errno == ENOENT)
        return 0;
    ssize_t n = fd < 0 ? -1 : read(fd, out, size - 1);
    if (n < 0)
        return error_sys(err, "reading %s/%s", dir->path, name);
    out[n] = '\0';
    out[strcspn(out, " \t\r\n")] = '\0';
    return 0;
}

static int load_instance(struct datadir *dir, struct error *err)
{
    char text[INSTANCE_ID_LEN + 2];
    if (read_line(dir, LAYOUT_INSTANCE, text, sizeof(text), err) < 0)
        return -1;
    if (text[0] == '\0') {
        random_id(text, INSTANCE_ID_LEN);
        if (datadir_write(dir, LAYOUT_INSTANCE, text, 0644, err) < 0)
            return -1;
    }
    snprintf(dir->instance, sizeof(dir->instance), "%s", text);
    return 0;
}

static int load_key(struct datadir *dir, struct error *err)
{
    char key[KEY_FILE_MAX];
    if (read_line(dir, LAYOUT_API_KEY, key, sizeof(key), err) < 0)
        return -1;
    if (key[0] == '\0') {
        char line[AUTH_KEY_SIZE + 1];
        auth_make_key(key);
        snprintf(line, sizeof(line), "%s\n", key);
        if (datadir_write(dir, LAYOUT_API_KEY, line, 0600, err) < 0)
            return -1;
        explicit_bzero(line, sizeof(line));
    }
    auth_hash_key(key, dir->key_hash);
    explicit_bzero(key, sizeof(key));
    return 0;
}

/* 32 random bytes in hex. A file that holds something else is no key: made anew, it would make
 * every secret that is stored unreadable without a word. */
static int load_secret_key(struct datadir *dir, struct error *err)
{
    char text[KEY_FILE_MAX];
    unsigned char bytes[(sizeof(dir->secret_key) - 1) / 2];
    if (read_line(dir, LAYOUT_SECRET_KEY, text, sizeof(text), err) < 0)
        return -1;
    if (text[0] == '\0') {
        if (getrandom(bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes))
            return error_sys(err, "making %s/%s", dir->path, LAYOUT_SECRET_KEY);
        for (size_t i = 0; i < sizeof(bytes); i++)
            snprintf(text + 2 * i, 3, "%02x", bytes[i]);
        explicit_bzero(bytes, sizeof(bytes));
        if (datadir_write(dir, LAYOUT_SECRET_KEY, text, 0600, err) < 0)
            return -1;
    }
    if (strlen(text) != sizeof(dir->secret_key) - 1 ||
        strspn(text, "0123456789abcdef") != sizeof(dir->secret_key) - 1)
        return error_set(err, ERROR_CONFLICT,
                         "%s/%s is not a key of 64 hexadecimal digits: put the right one back, or "
                         "remove it and store the secrets again",
                         dir->path, LAYOUT_SECRET_KEY);
    memcpy(dir->secret_key, text, sizeof(dir->secret_key));
    explicit_bzero(text, sizeof(text));
    return 0;
}

int datadir_open(const char *path, uid_t uid, gid_t gid, struct datadir *ret_dir, struct error *err)
{
    struct datadir dir = {.lock_fd = -1};
    if (make_parents(path, err) < 0)
        return -1;
    if (realpath(path, dir.path) == NULL)
        return error_sys(err, "looking for %s", path);
    _cleanup_fd_ int fd = open(dir.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return error_sys(err, "opening %s", dir.path);
    dir.fd = fd;
    struct stat st;
    if (fstat(fd, &st) < 0 || (!(st.st_mode & S_IXOTH) && fchmod(fd, 0711) < 0))
        return error_sys(err, "setting the mode of %s", dir.path);
    if (check_reachable(dir.path, uid, gid, err) < 0 || check_restored(&dir, err) < 0 ||
        take_lock(&dir, err) < 0)
        return -1;
    if (make_folders(&dir, uid, gid, err) < 0 || load_instance(&dir, err) < 0 ||
        load_key(&dir, err) < 0 || load_secret_key(&dir, err) < 0) {
        close(dir.lock_fd);
        return -1;
    }
    steal_fd(&fd);
    *ret_dir = dir;
    return 0;
}
