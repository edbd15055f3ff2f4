/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Cleanup by scope, and handing over ownership.
 *
 *     _cleanup_fd_ int fd = open(…);        closed when the scope ends
 *     _cleanup_free_ char *name = strdup(…);
 *     *ret_fd = steal_fd(&fd);              the scope no longer owns it
 */

#include <dirent.h>
#include <stdlib.h>
#include <unistd.h>

static inline void cleanup_fd(int *fd)
{
    if (*fd >= 0)
        close(*fd);
}

static inline void cleanup_free(void *p)
{
    free(*(void **)p);
}

static inline void cleanup_dir(DIR **dir)
{
    if (*dir != NULL)
        closedir(*dir);
}

#define _cleanup_(fn)  __attribute__((cleanup(fn)))
#define _cleanup_fd_   _cleanup_(cleanup_fd)
#define _cleanup_free_ _cleanup_(cleanup_free)
#define _cleanup_dir_  _cleanup_(cleanup_dir)
#define _cleanup_buf_  _cleanup_(buf_release)

static inline int steal_fd(int *fd)
{
    int was = *fd;
    *fd = -1;
    return was;
}

#define steal_ptr(p)                                                                               \
    ({                                                                                             \
        __typeof__(p) *_p = &(p);                                                                  \
        __typeof__(p) _was = *_p;                                                                  \
        *_p = NULL;                                                                                \
        _was;                                                                                      \
    })

#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))

#define container_of(ptr, type, member) ((type *)((char *)(ptr)-offsetof(type, member)))
