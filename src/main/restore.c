/* SPDX-License-Identifier: Apache-2.0 */

/*
 * `cella restore`: a data folder from a backup, all or nothing. It is unpacked and held to its
 * manifest beside the place where it is to be, and put there by one rename: whoever is killed
 * before leaves a folder with a dot that the next one removes, and no data folder.
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

struct restore {
    int parent_fd;
    char name[NAME_MAX + 1];         /* of the data folder */
    char partial[NAME_MAX + 16];     /* of the one beside it */
    char partial_path[PATH_MAX + 8]; /* with the folder that both are in */
    int fd;                          /* the one beside it; locked */
    uid_t uid;                       /* whom cellad's files are for */
    gid_t gid;
};

/* An empty folder may be there, as a package makes it: rename() replaces that, and no other. */
static bool is_free(const struct restore *r)
{
    _cleanup_fd_ int fd =
        openat(r->parent_fd, r->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return errno == ENOENT;
    _cleanup_dir_ DIR *dir = fdopendir(fd);
    if (dir == NULL)
        return false;
    steal_fd(&fd);
    const struct dirent *entry;
    while ((entry = readdir(dir)) != NULL)
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            return false;
    return true;
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
    r->parent_fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (r->parent_fd < 0)
        return error_sys(err, "opening %s", folder);
    if (!is_free(r))
        return error_set(
            err, ERROR_ALREADY_EXISTS,
            "%s is there already, and not empty: choose another --data, or move it away", data);
    snprintf(r->partial, sizeof(r->partial), ".%s.restore", r->name);
    snprintf(r->partial_path, sizeof(r->partial_path), "%s/%s", folder, r->partial);
    return 0;
}

static int make_partial(struct restore *r, struct error *err)
{
    _cleanup_fd_ int old =
        openat(r->parent_fd, r->partial, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (old >= 0 && flock(old, LOCK_EX | LOCK_NB) < 0)
        return error_set(err, ERROR_CONFLICT, "another restore is at work in %s", r->partial_path);
    if (tree_remove(r->parent_fd, r->partial, err) < 0)
        return -1;
    if (mkdirat(r->parent_fd, r->partial, 0700) < 0)
        return error_sys(err, "making %s", r->partial_path);
    r->fd = openat(r->parent_fd, r->partial, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (r->fd < 0 || flock(r->fd, LOCK_EX | LOCK_NB) < 0)
        return error_sys(err, "opening %s", r->partial_path);
    return 0;
}

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

static int restore_all(struct restore *r, const char *file, const char *data, struct error *err)
{
    uint64_t files;
    if (unpack(r, file, err) < 0 || manifest_verify(r->fd, &files, err) < 0 || settle(r, err) < 0)
        return -1;
    if (renameat(r->parent_fd, r->partial, r->parent_fd, r->name) < 0 || fsync(r->parent_fd) < 0)
        return error_sys(err, "putting %s in its place", data);
    fprintf(stderr, "restored %s: %" PRIu64 " files, all as the manifest says\n", data, files);
    return 0;
}

int server_restore(const char *file, const char *data, const char *user, struct error *err)
{
    struct restore r = {.parent_fd = -1, .fd = -1};
    struct error ignored;
    if (geteuid() != 0)
        return error_set(err, ERROR_PERMISSION_DENIED,
                         "a data folder is root's: only root can make one");
    int result = -1;
    if (find_user(&r, user, err) == 0 && find_place(&r, data, err) == 0 &&
        make_partial(&r, err) == 0) {
        result = restore_all(&r, file, data, err);
        if (result < 0)
            tree_remove(r.parent_fd, r.partial, &ignored);
    }
    if (r.fd >= 0)
        close(r.fd);
    if (r.parent_fd >= 0)
        close(r.parent_fd);
    return result;
}
