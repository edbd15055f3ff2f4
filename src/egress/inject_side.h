/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* One side of a session of egress/inject.h: a socket, with TLS on it or without, and what was read
 * from it and not been looked at yet. */

#include "egress/tls.h"
#include "loop/loop.h"

enum { SIDE_BUFFER = 112 * 1024 }; /* holds the largest head, and what came with it */

struct side {
    struct loop *loop;
    int fd;          /* -1: there is none */
    struct tls *tls; /* NULL: in the clear */
    char *data;      /* SIDE_BUFFER bytes */
    size_t start, end;
    uint64_t *count; /* bytes written; NULL: nobody counts */
    uint64_t burst;  /* bytes written without a pause */
};

int side_open(struct side *side, struct loop *loop, int fd, struct error *err);
void side_close(struct side *side, bool close_fd); /* fine on a zeroed one with fd -1 */

static inline struct slice side_bytes(const struct side *side)
{
    return (struct slice){side->data + side->start, side->end - side->start};
}

static inline void side_took(struct side *side, size_t n)
{
    side->start += n;
}

/* Reads more behind what is there. 0: there is no more to come; 1: there is. */
int side_fill(struct side *side, int64_t timeout_ms, struct error *err);
int side_write(struct side *side, const void *data, size_t len, int64_t timeout_ms,
               struct error *err);
