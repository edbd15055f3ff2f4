/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Keeps the list of what the `host` image hides in /usr, so that a new data folder need not walk
 * /usr again. There is one file for the machine: a stamp, a checksum, and the paths. A file that is
 * damaged, of another stamp, or not root's alone counts as absent, because a path that is missing
 * from the list would be shown to sandboxes.
 */

#include "warden/image.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"

#define CACHE_FILE "host-image-hidden"

struct cache_header {
    uint64_t stamp;
    uint64_t len;
    uint64_t checksum;
};

static uint64_t checksum(const struct buf *list)
{
    uint64_t hash = UINT64_C(14695981039346656037);
    for (size_t i = 0; i < list->len; i++)
        hash = (hash ^ (unsigned char)list->data[i]) * UINT64_C(1099511628211); /* FNV-1a */
    return hash;
}

static int open_folder(const char *folder)
{
    struct stat st;
    _cleanup_fd_ int fd = open(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) < 0 || st.st_uid != geteuid() || (st.st_mode & 022) != 0)
        return -1;
    return steal_fd(&fd);
}

static bool read_list(int fd, const struct cache_header *header, struct buf *list)
{
    char *to = header->len > list->max ? NULL : buf_reserve(list, header->len);
    ssize_t n = to == NULL ? -1 : read(fd, to, header->len);
    if (n < 0 || (uint64_t)n != header->len)
        return false;
    buf_commit(list, header->len);
    return checksum(list) == header->checksum && (list->len == 0 || to[list->len - 1] == '\0');
}

bool image_cache_load(const char *folder, uint64_t stamp, struct buf *hidden)
{
    struct cache_header header;
    _cleanup_fd_ int dir = open_folder(folder);
    _cleanup_fd_ int fd = dir < 0 ? -1 : openat(dir, CACHE_FILE, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 || read(fd, &header, sizeof(header)) != (ssize_t)sizeof(header) ||
        header.stamp != stamp)
        return false;
    if (read_list(fd, &header, hidden))
        return true;
    buf_clear(hidden);
    return false;
}

static int write_list(int fd, const struct cache_header *header, const struct buf *list)
{
    if (write(fd, header, sizeof(*header)) != (ssize_t)sizeof(*header) ||
        write(fd, list->data, list->len) != (ssize_t)list->len)
        return -1;
    return 0;
}

void image_cache_save(const char *folder, uint64_t stamp, const struct buf *hidden)
{
    char temp[64];
    const struct cache_header header = {stamp, hidden->len, checksum(hidden)};
    if (mkdir(folder, 0755) < 0 && errno != EEXIST)
        return;
    _cleanup_fd_ int dir = open_folder(folder);
    snprintf(temp, sizeof(temp), CACHE_FILE ".%d", getpid());
    _cleanup_fd_ int fd =
        dir < 0 ? -1
                : openat(dir, temp, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return;
    if (write_list(fd, &header, hidden) < 0 || renameat(dir, temp, dir, CACHE_FILE) < 0) {
        log_warn("%s/" CACHE_FILE ": %s", folder, strerror(errno));
        unlinkat(dir, temp, 0);
    }
}
