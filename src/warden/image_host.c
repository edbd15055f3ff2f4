/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The `host` image needs no download: the machine's /usr below, a fresh root above. Walking /usr
 * for what must be hidden takes half a second on a big machine, so the result is kept under the
 * name of a stamp of everything that it was made from: the image in the data folder, and the list
 * of hidden paths for every other server of the machine (image_cache.c).
 */

#include "warden/image.h"

#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "warden/files.h"

/* Part of the stamp: raise it when what is made from the same machine changes. */
enum { GENERATION_FORMAT = 1, GENERATION_NAME_SIZE = 32 };

/* ---- stamp ---- */

static void hash_bytes(uint64_t *hash, const void *data, size_t len)
{
    const unsigned char *bytes = data;
    for (size_t i = 0; i < len; i++)
        *hash = (*hash ^ bytes[i]) * UINT64_C(1099511628211); /* FNV-1a */
}

static void hash_entry(uint64_t *hash, int dirfd, const char *name, int flags)
{
    struct stat st = {0};
    if (fstatat(dirfd, name, &st, flags) < 0)
        return;
    const int64_t times[] = {st.st_mtim.tv_sec, st.st_mtim.tv_nsec, st.st_ctim.tv_sec,
                             st.st_ctim.tv_nsec};
    hash_bytes(hash, name, strlen(name));
    hash_bytes(hash, times, sizeof(times));
}

/* Entries come in any order, so their hashes are summed. */
static int add_directory(int dirfd, const char *name, void *arg)
{
    uint64_t *sum = arg, hash = 0;
    struct stat st;
    if (fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode)) {
        hash_entry(&hash, dirfd, name, AT_SYMLINK_NOFOLLOW);
        *sum += hash;
    }
    return 0;
}

static int add_config(int dirfd, const char *name, void *arg)
{
    uint64_t *sum = arg, hash = 0;
    for (size_t i = 0; image_skel_patterns[i] != NULL; i++)
        if (fnmatch(image_skel_patterns[i], name, 0) == 0) {
            hash_entry(&hash, dirfd, name, AT_SYMLINK_NOFOLLOW);
            *sum += hash;
            break;
        }
    return 0;
}

static int make_stamp(uint64_t *ret_stamp, struct error *err)
{
    uint64_t stamp = GENERATION_FORMAT;
    static const char *const watched[] = {"/var/lib/dpkg/status", "/usr", "/usr/local"};
    for (size_t i = 0; i < ARRAY_LEN(watched); i++)
        hash_entry(&stamp, AT_FDCWD, watched[i], 0);
    uint64_t sum = 0;
    if (dir_each(AT_FDCWD, "/usr", add_directory, &sum, err) < 0 ||
        dir_each(AT_FDCWD, "/usr/local", add_directory, &sum, err) < 0 ||
        dir_each(AT_FDCWD, "/etc", add_config, &sum, err) < 0)
        return -1;
    hash_bytes(&stamp, &sum, sizeof(sum));
    *ret_stamp = stamp;
    return 0;
}

/* ---- generations ---- */

static int make_part(int generation, const char *name, int *ret_fd, struct error *err)
{
    if (dir_make_at(generation, name, 0755, err) < 0)
        return -1;
    return dir_open_at(generation, name, ret_fd, err);
}

static int make_mask(int usr, int mask, uint64_t stamp, struct error *err)
{
    _cleanup_buf_ struct buf hidden = BUF_INIT(IMAGE_HIDDEN_MAX);
    if (!image_cache_load(IMAGE_CACHE_DIR, stamp, &hidden)) {
        if (image_mask_find(usr, &hidden, err) < 0)
            return -1;
        image_cache_save(IMAGE_CACHE_DIR, stamp, &hidden);
    }
    return image_mask_make(usr, mask, &hidden, err);
}

static int fill_generation(int store, const char *temp, uint64_t stamp, struct error *err)
{
    _cleanup_fd_ int generation = -1, root = -1, mask = -1, usr = -1;
    if (tree_remove_at(store, temp, err) < 0 || dir_make_at(store, temp, 0700, err) < 0 ||
        dir_open_at(store, temp, &generation, err) < 0 ||
        make_part(generation, "root", &root, err) < 0 ||
        make_part(generation, "mask", &mask, err) < 0 ||
        dir_open_at(AT_FDCWD, "/usr", &usr, err) < 0)
        return -1;
    if (image_skel_make(root, err) < 0)
        return -1;
    return make_mask(usr, mask, stamp, err);
}

static int make_generation(int store, const char *name, uint64_t stamp, struct error *err)
{
    char temp[GENERATION_NAME_SIZE + 8];
    struct stat st;
    if (fstatat(store, name, &st, AT_SYMLINK_NOFOLLOW) == 0)
        return 0;
    snprintf(temp, sizeof(temp), "%s.new", name);
    mode_t mask = umask(0); /* the tables say which modes are meant */
    int r = fill_generation(store, temp, stamp, err);
    umask(mask);
    if (r < 0) {
        tree_remove_at(store, temp, NULL);
        return -1;
    }
    if (renameat(store, temp, store, name) < 0)
        return error_sys(err, "renaming %s", temp);
    log_info("made the image host (%s)", name);
    return 0;
}

static int remove_if_other(int dirfd, const char *name, void *arg)
{
    struct error err;
    if (strcmp(name, arg) != 0 && tree_remove_at(dirfd, name, &err) < 0)
        log_warn("old image host/%s: %s", name, err.message);
    return 0;
}

static int open_part(int dirfd, const char *path, int *ret_fd, struct error *err)
{
    int fd = openat(dirfd, path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return error_sys(err, "opening %s", path);
    *ret_fd = fd;
    return 0;
}

int image_host_open(struct image *image, int store_fd, bool sole, struct error *err)
{
    char name[GENERATION_NAME_SIZE];
    uint64_t stamp;
    _cleanup_fd_ int host = -1, generation = -1;
    *image = (struct image){-1, -1, -1};
    if (make_stamp(&stamp, err) < 0 || dir_make_at(store_fd, IMAGE_HOST, 0700, err) < 0 ||
        dir_open_at(store_fd, IMAGE_HOST, &host, err) < 0)
        return error_prefix(err, "image host");
    snprintf(name, sizeof(name), "%016" PRIx64, stamp);
    if (make_generation(host, name, stamp, err) < 0 ||
        dir_open_at(host, name, &generation, err) < 0)
        return error_prefix(err, "image host");
    if (sole)
        dir_each(host, ".", remove_if_other, name, NULL);
    if (open_part(generation, "root", &image->root, err) < 0 ||
        open_part(generation, "mask", &image->mask, err) < 0 ||
        open_part(AT_FDCWD, "/usr", &image->usr, err) < 0)
        return error_prefix(err, "image host");
    return 0;
}

void image_close(struct image *image)
{
    cleanup_fd(&image->root);
    cleanup_fd(&image->usr);
    cleanup_fd(&image->mask);
    *image = (struct image){-1, -1, -1};
}
