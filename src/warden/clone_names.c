/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The layer has been used: any name in it may be a link to wherever its sandbox liked. So the way
 * to etc is walked without following any, what is read is a regular file, and what is written is a
 * new file that takes the name's place.
 */

#include "warden/clone_names.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"

enum { HOSTS_MAX = 64 * 1024 };

static int open_beneath(int dirfd, const char *path, int flags)
{
    struct open_how how = {.flags = (uint64_t)(flags | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK),
                           .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV};
    return (int)syscall(SYS_openat2, dirfd, path, &how, sizeof(how));
}

/* The whole of a small regular file, NUL-terminated; false when it is something else. */
static bool read_text(int etc, const char *name, char *out, size_t size)
{
    struct stat st;
    _cleanup_fd_ int fd = open_beneath(etc, name, O_RDONLY);
    if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || (size_t)st.st_size >= size)
        return false;
    ssize_t n = pread(fd, out, size - 1, 0);
    if (n < 0 || memchr(out, '\0', (size_t)n) != NULL)
        return false;
    out[n] = '\0';
    return true;
}

/* Under a name that is taken away from whatever had it: a pipe of that name would not open. */
static void replace_text(int etc, const char *name, const char *text)
{
    static const char temp[] = ".cella-clone";
    if (unlinkat(etc, temp, 0) < 0)
        unlinkat(etc, temp, AT_REMOVEDIR);
    _cleanup_fd_ int fd =
        openat(etc, temp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644);
    if (fd < 0)
        return;
    size_t len = strlen(text);
    if (write(fd, text, len) != (ssize_t)len || renameat(etc, temp, etc, name) < 0)
        unlinkat(etc, temp, 0);
}

static void rename_hosts(int etc, const char *before, const char *hostname)
{
    char line[128];
    _cleanup_free_ char *text = malloc(HOSTS_MAX);
    if (text == NULL || !read_text(etc, "hosts", text, HOSTS_MAX))
        return;
    snprintf(line, sizeof(line), "\n127.0.1.1 %s\n", before);
    char *at = strstr(text, line);
    if (at == NULL)
        return;
    _cleanup_buf_ struct buf out = BUF_INIT(2 * HOSTS_MAX);
    buf_add(&out, text, (size_t)(at - text));
    buf_addf(&out, "\n127.0.1.1 %s\n", hostname);
    buf_adds(&out, at + strlen(line));
    if (!out.failed)
        replace_text(etc, "hosts", out.data);
}

void clone_rename(int layer, const char *hostname)
{
    char before[80], text[80];
    _cleanup_fd_ int etc = open_beneath(layer, "root/upper/etc", O_RDONLY | O_DIRECTORY);
    if (etc < 0 || !read_text(etc, "hostname", before, sizeof(before)))
        return;
    before[strcspn(before, "\n")] = '\0';
    rename_hosts(etc, before, hostname);
    snprintf(text, sizeof(text), "%s\n", hostname);
    replace_text(etc, "hostname", text);
}
