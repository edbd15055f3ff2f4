/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Folders of a test's own: made below /tmp, written to by path, gone with it. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "main/tree.h"

struct folder {
    char path[64];
    int fd;
};

static inline int folder_setup(void **state)
{
    struct folder *f = calloc(1, sizeof(*f));
    snprintf(f->path, sizeof(f->path), "/tmp/cella-test-main-XXXXXX");
    assert_non_null(mkdtemp(f->path));
    f->fd = open(f->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true(f->fd >= 0);
    *state = f;
    return 0;
}

static inline int folder_teardown(void **state)
{
    struct folder *f = *state;
    struct error err;
    int rc = tree_remove(AT_FDCWD, f->path, &err);
    close(f->fd);
    free(f);
    return rc;
}

static inline void put(const struct folder *f, const char *path, const char *text)
{
    _cleanup_fd_ int fd = openat(f->fd, path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0640);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
}

static inline int sub_folder(const struct folder *f, const char *path)
{
    assert_true(mkdirat(f->fd, path, 0750) == 0);
    int fd = openat(f->fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true(fd >= 0);
    return fd;
}

static inline bool is_there(const struct folder *f, const char *path)
{
    return faccessat(f->fd, path, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}
