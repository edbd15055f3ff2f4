/* SPDX-License-Identifier: Apache-2.0 */

/*
 * `cella restore`: a data folder from a backup, all or nothing. It is unpacked and held to its
 * manifest beside the place where it is to be, and put there by one rename: whoever is killed
 * before leaves a folder with a dot that the next one removes, and no data folder.
 *
 * Nothing can be renamed to a mount point (a volume of a container, a disk of its own), and beside
 * it is another file system. There the same is done in a folder inside, and what that has is moved
 * out of it one by one, the database last: for as long as there is something in it, no server
 * starts, and the next restore begins anew.
 */

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <libgen.h>
#include <limits.h>
#include <pwd.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/layout.h"
#include "cli/cli.h"
#include "main/archive.h"
#include "main/manifest.h"
#include "main/tree.h"
#include "store/store.h"

#define LOST_AND_FOUND "lost+found" /* in every new file system of the ext family */

struct restore {
    int place_fd;                    /* what the partial one is made in */
    bool mounted;                    /* that is the data folder itself, and else the one above */
    char name[NAME_MAX + 1];         /* of the data folder */
    char partial[NAME_MAX + 16];     /* of the partial one */
    char partial_path[PATH_MAX + 8]; /* with the folder that it is in */
    int fd;                          /* the partial one; locked */
    uid_t uid;                       /* whom cellad's files are for */
    gid_t gid;
};

/* --- the place --- */

static int each_entry(int folder_fd, int (*fn)(void *ctx, const char *name, struct error *err),
                      void *ctx, struct error *err)
{
    _cleanup_fd_ int fd = openat(folder_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    _cleanup_dir_ DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    if (dir == NULL)
        return error_sys(err, "reading a folder");
    steal_fd(&fd);
    const struct dirent *entry;
    while (errno = 0, (entry = readdir(dir)) != NULL) {
        const char *name = entry->d_name;
        if (strcmp(name, ".") != 0 && strcmp(name, "..") != 0 && fn(ctx, name, err) < 0)
            return -1;
    }
    return errno != 0 ? error_sys(err, "reading a folder") : 0;
}

static int is_something(void *ctx, const char *name, struct error *err)
{
    const struct restore *r = ctx;
    if (r->mounted && strcmp(name, LOST_AND_FOUND) == 0)
        return 0;
    return error_set(err, ERROR_ALREADY_EXISTS, "there is %s", name);
}

/* An empty folder may be there, as a package makes it: rename() replaces that, and no other. In a
 * mount point there may also be what a restore that was killed has left, all of which is its own.
 */
static bool is_free(struct restore *r, int folder_fd)
{
    struct error ignored;
    if (r->mounted && faccessat(folder_fd, LAYOUT_RESTORE, F_OK, AT_SYMLINK_NOFOLLOW) == 0 &&
        faccessat(folder_fd, LAYOUT_DB_DIR, F_OK, AT_SYMLINK_NOFOLLOW) < 0)
        return true;
    return each_entry(folder_fd, is_something, r, &ignored) == 0;
}

static bool is_mount_point(int folder_fd)
{
    struct statx st;
    return statx(folder_fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS, &st) == 0 &&
           (st.stx_attributes & STATX_ATTR_MOUNT_ROOT) != 0;
}

static int find_place(struct restore *r, const char *data, struct error *err)
{
    char parent[PATH_MAX], name[PATH_MAX];
    snprintf(parent, sizeof(parent), "%s", data);
    snprintf(name, sizeof(name), "%s", data);
    const char *folder = dirname(parent);
    if (snprintf(r->name, sizeof(r->name), "%s", basename(name)) >= (int)sizeof(r->name) ||
        strcmp(r->name, "/") == 0 || r->name[0] == '.')
        return error_set(err, ERROR_INVALID_ARGUMENT, "%s cannot be a data folder", data);
    r->place_fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (r->place_fd < 0)
        return error_sys(err, "opening %s", folder);
    _cleanup_fd_ int there =
        openat(r->place_fd, r->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    bool none = there < 0 && errno == ENOENT;
    r->mounted = there >= 0 && is_mount_point(there);
    if (!none && (there < 0 || !is_free(r, there)))
        return error_set(
            err, ERROR_ALREADY_EXISTS,
            "%s is there already, and not empty: choose another --data, or move it away", data);
    if (r->mounted) {
        close(r->place_fd);
        r->place_fd = steal_fd(&there);
        snprintf(r->partial, sizeof(r->partial), "%s", LAYOUT_RESTORE);
        snprintf(r->partial_path, sizeof(r->partial_path), "%s/%s", data, r->partial);
    } else {
        snprintf(r->partial, sizeof(r->partial), ".%s.restore", r->name);
        snprintf(r->partial_path, sizeof(r->partial_path), "%s/%s", folder, r->partial);
    }
    return 0;
}

/* --- the partial folder --- */

static int remove_entry(void *ctx, const char *name, struct error *err)
{
    const struct restore *r = ctx;
    if (strcmp(name, r->partial) == 0 || strcmp(name, LOST_AND_FOUND) == 0 ||
        unlinkat(r->place_fd, name, 0) == 0)
        return 0;
    return errno == EISDIR ? tree_remove(r->place_fd, name, err)
                           : error_sys(err, "removing %s", name);
}

/* What was moved out of it as well, and that first: without the partial one the rest would be
 * somebody else's, and not ours to remove. */
static int remove_partial(struct restore *r, struct error *err)
{
    if (r->mounted && faccessat(r->place_fd, r->partial, F_OK, AT_SYMLINK_NOFOLLOW) == 0 &&
        each_entry(r->place_fd, remove_entry, r, err) < 0)
        return -1;
    return tree_remove(r->place_fd, r->partial, err);
}

static int make_partial(struct restore *r, struct error *err)
{
    _cleanup_fd_ int old =
        openat(r->place_fd, r->partial, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (old >= 0 && flock(old, LOCK_EX | LOCK_NB) < 0)
        return error_set(err, ERROR_CONFLICT, "another restore is at work in %s", r->partial_path);
    /* A new tmpfs is anybody's to write to. */
    if (r->mounted && (fchown(r->place_fd, 0, 0) < 0 || fchmod(r->place_fd, 0711) < 0))
        return error_sys(err, "setting the owner of %s", r->name);
    if (remove_partial(r, err) < 0)
        return -1;
    if (mkdirat(r->place_fd, r->partial, 0700) < 0)
        return error_sys(err, "making %s", r->partial_path);
    r->fd = openat(r->place_fd, r->partial, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (r->fd < 0 || flock(r->fd, LOCK_EX | LOCK_NB) < 0)
        return error_sys(err, "opening %s", r->partial_path);
    return 0;
}

/* --- what is in it --- */

static int unpack(struct restore *r, const char *file, struct error *err)
{
    bool from_input = strcmp(file, "-") == 0;
    _cleanup_fd_ int in =
        from_input ? fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0) : open(file, O_RDONLY | O_CLOEXEC);
    if (in < 0)
        return error_sys(err, "opening %s", file);
    const char *const argv[] = {"tar",
                                "--extract",
                                "--file=-",
                                "--numeric-owner",
                                "--same-owner",
                                "--preserve-permissions",
                                "--acls",
                                "--xattrs",
                                "--xattrs-include=*",
                                "-C",
                                r->partial_path,
                                NULL};
    return archive_run(argv, in, -1, "this is no whole backup", err);
}

/* The files of sandboxes are not in a backup. One that ran would begin with its image's files, so
 * it is not started by its restart policy, but only by somebody who knows that. */
static int stop_sandboxes(const struct restore *r, struct error *err)
{
    char path[sizeof(r->partial_path) + sizeof(LAYOUT_DB) + 1];
    struct store *store;
    snprintf(path, sizeof(path), "%s/%s", r->partial_path, LAYOUT_DB);
    if (store_open(NULL, path, false, &store, err) < 0)
        return -1;
    int result = store_stop_sandboxes(store, err);
    store_close(store);
    return result;
}

/* --- whose it is on this machine --- */

static int own(void *ctx, enum tree_moment moment, int dir_fd, const char *name, const char *path,
               const struct stat *st, struct error *err)
{
    const struct restore *r = ctx;
    if (moment == TREE_LEAVE)
        return 0;
    if (fchownat(dir_fd, name, r->uid, r->gid, AT_SYMLINK_NOFOLLOW) < 0)
        return error_sys(err, "setting the owner of %s", path);
    return 0;
}

static int settle(struct restore *r, struct error *err)
{
    static const char *const cellads[] = {LAYOUT_DB_DIR, LAYOUT_HISTORY, LAYOUT_AUDIT};
    for (size_t i = 0; i < ARRAY_LEN(cellads); i++) {
        _cleanup_fd_ int fd =
            openat(r->fd, cellads[i], O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (fd < 0 && errno == ENOENT)
            continue;
        if (fd < 0 || fchown(fd, r->uid, r->gid) < 0)
            return error_sys(err, "setting the owner of %s", cellads[i]);
        if (tree_walk(fd, cellads[i], own, r, err) < 0)
            return -1;
    }
    if (unlinkat(r->fd, MANIFEST_NAME, 0) < 0 || fchmod(r->fd, 0711) < 0 || syncfs(r->fd) < 0)
        return error_sys(err, "finishing %s", r->partial_path);
    return 0;
}

static int find_user(struct restore *r, const char *user, struct error *err)
{
    errno = 0;
    const struct passwd *pw = getpwnam(user);
    if (pw == NULL)
        return error_set(err, ERROR_INVALID_ARGUMENT,
                         "there is no user \"%s\", whom the database is to belong to: make one "
                         "(systemd-sysusers, or scripts/make-user), or choose another --user",
                         user);
    r->uid = pw->pw_uid;
    r->gid = pw->pw_gid;
    return 0;
}

/* --- into its place --- */

static int move_out(void *ctx, const char *name, struct error *err)
{
    const struct restore *r = ctx;
    if (strcmp(name, LAYOUT_DB_DIR) == 0 || renameat(r->fd, name, r->place_fd, name) == 0)
        return 0;
    return error_sys(err, "moving %s", name);
}

/* Into a mount point: from the database on it is a data folder. */
static int move_all(struct restore *r, struct error *err)
{
    if (each_entry(r->fd, move_out, r, err) < 0)
        return -1;
    if (fsync(r->place_fd) < 0 || renameat(r->fd, LAYOUT_DB_DIR, r->place_fd, LAYOUT_DB_DIR) < 0)
        return error_sys(err, "moving %s", LAYOUT_DB_DIR);
    if (unlinkat(r->place_fd, r->partial, AT_REMOVEDIR) < 0 || fsync(r->place_fd) < 0)
        return error_sys(err, "removing %s", r->partial_path);
    return 0;
}

static int put_in_place(struct restore *r, struct error *err)
{
    if (r->mounted)
        return move_all(r, err);
    if (renameat(r->place_fd, r->partial, r->place_fd, r->name) < 0 || fsync(r->place_fd) < 0)
        return error_sys(err, "renaming %s", r->partial_path);
    return 0;
}

static int restore_all(struct restore *r, const char *file, const char *data, struct error *err)
{
    uint64_t files;
    if (unpack(r, file, err) < 0 || manifest_verify(r->fd, &files, err) < 0 ||
        stop_sandboxes(r, err) < 0 || settle(r, err) < 0)
        return -1;
    if (put_in_place(r, err) < 0)
        return error_prefix(err, "putting %s in its place", data);
    fprintf(stderr, "restored %s: %" PRIu64 " files, all as the manifest says\n", data, files);
    return 0;
}

int server_restore(const char *file, const char *data, const char *user, struct error *err)
{
    struct restore r = {.place_fd = -1, .fd = -1};
    struct error ignored;
    if (geteuid() != 0)
        return error_set(err, ERROR_PERMISSION_DENIED,
                         "a data folder is root's: only root can make one");
    int result = -1;
    if (find_user(&r, user, err) == 0 && find_place(&r, data, err) == 0 &&
        make_partial(&r, err) == 0) {
        result = restore_all(&r, file, data, err);
        if (result < 0)
            remove_partial(&r, &ignored);
    }
    if (r.fd >= 0)
        close(r.fd);
    if (r.place_fd >= 0)
        close(r.place_fd);
    return result;
}
