/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A layer of whiteouts over the machine's /usr. Root in a sandbox is the owner of what root owns
 * there (the lower layer is idmapped), so what the machine does not show to everybody must not be
 * in the sandbox's view at all.
 */

#include "warden/image.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/cleanup.h"

enum { DEPTH_MAX = 64 };

struct walk {
    int usr, mask;
    char path[PATH_MAX]; /* below /usr, without a slash in front */
    size_t len;
    dev_t dev;
    struct error *err;
};

/* Parents in the mask layer cover those below: they need the same owner and mode. One that is gone
 * by now (packages come and go) has nothing to hide: returns 0 then, otherwise 1. */
static int make_parents(struct walk *walk)
{
    for (char *slash = strchr(walk->path, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        struct stat st;
        *slash = '\0';
        int r = mkdirat(walk->mask, walk->path, 0700);
        bool made = r == 0;
        if (r < 0 && errno == EEXIST)
            r = 0;
        if (r == 0 && made)
            r = fstatat(walk->usr, walk->path, &st, AT_SYMLINK_NOFOLLOW);
        if (r == 0 && made)
            r = fchownat(walk->mask, walk->path, st.st_uid, st.st_gid, AT_SYMLINK_NOFOLLOW);
        if (r == 0 && made)
            r = fchmodat(walk->mask, walk->path, st.st_mode & 07777, 0);
        bool gone =
            r < 0 && made && errno == ENOENT && unlinkat(walk->mask, walk->path, AT_REMOVEDIR) == 0;
        *slash = '/';
        if (gone)
            return 0;
        if (r < 0)
            return error_sys(walk->err, "masking /usr/%s", walk->path);
    }
    return 1;
}

static int hide(struct walk *walk)
{
    int r = make_parents(walk);
    if (r <= 0)
        return r;
    if (mknodat(walk->mask, walk->path, S_IFCHR, makedev(0, 0)) < 0)
        return error_sys(walk->err, "masking /usr/%s", walk->path);
    return 0;
}

static int walk_directory(struct walk *walk, int fd, int depth);

static int walk_entry(struct walk *walk, int dirfd, const struct dirent *entry, int depth)
{
    struct stat st;
    if (entry->d_type == DT_LNK)
        return 0;
    if (fstatat(dirfd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return errno == ENOENT ? 0 : error_sys(walk->err, "looking at /usr/%s", walk->path);
    if (S_ISLNK(st.st_mode))
        return 0;
    if (!S_ISDIR(st.st_mode))
        return (st.st_mode & S_IROTH) ? 0 : hide(walk);
    if ((st.st_mode & (S_IROTH | S_IXOTH)) != (S_IROTH | S_IXOTH) || depth >= DEPTH_MAX)
        return hide(walk);
    if (st.st_dev != walk->dev) /* a mount: the clone of /usr does not hold it */
        return 0;
    int fd = openat(dirfd, entry->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return errno == ENOENT ? 0 : error_sys(walk->err, "reading /usr/%s", walk->path);
    return walk_directory(walk, fd, depth + 1);
}

/* Takes fd over. */
static int walk_directory(struct walk *walk, int fd, int depth)
{
    _cleanup_dir_ DIR *dir = fdopendir(fd);
    if (dir == NULL) {
        close(fd);
        return error_sys(walk->err, "reading /usr/%s", walk->path);
    }
    size_t len = walk->len;
    const struct dirent *entry;
    while ((entry = readdir(dir)) != NULL) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        int n = snprintf(walk->path + len, sizeof(walk->path) - len, "%s%s", len > 0 ? "/" : "",
                         entry->d_name);
        if (n < 0 || (size_t)n >= sizeof(walk->path) - len)
            return error_set(walk->err, ERROR_INVALID_PATH, "a path in /usr is too long");
        walk->len = len + (size_t)n;
        if (walk_entry(walk, fd, entry, depth) < 0)
            return -1;
    }
    walk->len = len;
    walk->path[len] = '\0';
    return 0;
}

int image_mask_make(int usr_fd, int mask_fd, struct error *err)
{
    struct stat st;
    if (fstat(usr_fd, &st) < 0)
        return error_sys(err, "looking at /usr");
    if (fchown(mask_fd, st.st_uid, st.st_gid) < 0 || fchmod(mask_fd, st.st_mode & 07777) < 0)
        return error_sys(err, "making the mask of /usr");
    struct walk walk = {.usr = usr_fd, .mask = mask_fd, .dev = st.st_dev, .err = err};
    int fd = openat(usr_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return error_sys(err, "reading /usr");
    return walk_directory(&walk, fd, 0);
}
