/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A layer of whiteouts over the machine's /usr. Root in a sandbox is the owner of what root owns
 * there (the lower layer is idmapped), so what the machine does not show to everybody must not be
 * in the sandbox's view at all.
 *
 * Finding those paths walks all of /usr, which takes half a second on a big machine; masking them
 * takes next to nothing. So they are two steps with a list between them, which image_cache.c keeps.
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
    struct buf *hidden;
    char path[PATH_MAX]; /* below /usr, without a slash in front */
    size_t len;
    dev_t dev;
    struct error *err;
};

/* ---- finding what to hide ---- */

static int hide(struct walk *walk)
{
    buf_add(walk->hidden, walk->path, strlen(walk->path) + 1);
    return buf_check(walk->hidden, "the list of what to hide in /usr", walk->err);
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

int image_mask_find(int usr_fd, struct buf *hidden, struct error *err)
{
    struct stat st;
    if (fstat(usr_fd, &st) < 0)
        return error_sys(err, "looking at /usr");
    struct walk walk = {.hidden = hidden, .dev = st.st_dev, .err = err};
    int fd = openat(usr_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return error_sys(err, "reading /usr");
    return walk_directory(&walk, fd, 0);
}

/* ---- hiding it ---- */

/* Parents in the mask layer cover those below: they need the same owner and mode. Returns 1, or 0
 * when a parent is gone by now (packages come and go) and there is nothing to hide. */
static int make_parents(int usr_fd, int mask_fd, char *path, struct error *err)
{
    for (char *slash = strchr(path, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        struct stat st;
        *slash = '\0';
        int r = mkdirat(mask_fd, path, 0700);
        bool made = r == 0;
        if (r < 0 && errno == EEXIST)
            r = 0;
        if (r == 0 && made)
            r = fstatat(usr_fd, path, &st, AT_SYMLINK_NOFOLLOW);
        if (r == 0 && made)
            r = fchownat(mask_fd, path, st.st_uid, st.st_gid, AT_SYMLINK_NOFOLLOW);
        if (r == 0 && made)
            r = fchmodat(mask_fd, path, st.st_mode & 07777, 0);
        bool gone = r < 0 && made && errno == ENOENT && unlinkat(mask_fd, path, AT_REMOVEDIR) == 0;
        *slash = '/';
        if (gone)
            return 0;
        if (r < 0)
            return error_sys(err, "masking /usr/%s", path);
    }
    return 1;
}

int image_mask_make(int usr_fd, int mask_fd, const struct buf *hidden, struct error *err)
{
    struct stat st;
    char path[PATH_MAX];
    if (fstat(usr_fd, &st) < 0)
        return error_sys(err, "looking at /usr");
    if (fchown(mask_fd, st.st_uid, st.st_gid) < 0 || fchmod(mask_fd, st.st_mode & 07777) < 0)
        return error_sys(err, "making the mask of /usr");
    const char *end = hidden->data + hidden->len;
    for (const char *at = hidden->data; at < end; at += strlen(at) + 1) {
        snprintf(path, sizeof(path), "%s", at);
        int r = make_parents(usr_fd, mask_fd, path, err);
        if (r < 0)
            return -1;
        if (r > 0 && mknodat(mask_fd, path, S_IFCHR, makedev(0, 0)) < 0)
            return error_sys(err, "masking /usr/%s", path);
    }
    return 0;
}
