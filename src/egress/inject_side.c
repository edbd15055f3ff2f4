/* SPDX-License-Identifier: Apache-2.0 */

/* Reading and writing either way, so that who serves requests need not care. */

#include "egress/inject_side.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "loop/net.h"

int side_open(struct side *side, struct loop *loop, int fd, struct error *err)
{
    side->data = malloc(SIDE_BUFFER);
    if (side->data == NULL)
        return error_sys(err, "a buffer for a connection");
    side->loop = loop;
    side->fd = fd;
    side->start = side->end = 0;
    return 0;
}

void side_close(struct side *side, bool close_fd)
{
    tls_free(side->tls);
    side->tls = NULL;
    if (side->data != NULL)
        explicit_bzero(side->data, side->end);
    free(side->data);
    side->data = NULL;
    side->start = side->end = 0;
    if (close_fd && side->fd >= 0)
        close(side->fd);
    side->fd = -1;
}

int side_fill(struct side *side, int64_t timeout_ms, struct error *err)
{
    if (side->start > 0) {
        memmove(side->data, side->data + side->start, side->end - side->start);
        side->end -= side->start;
        side->start = 0;
    }
    size_t room = SIDE_BUFFER - side->end;
    if (room == 0)
        return error_set(err, ERROR_HEADERS_TOO_LARGE, "the header is too large");
    ssize_t n = side->tls != NULL
                    ? tls_read(side->tls, side->data + side->end, room, timeout_ms, err)
                    : net_read(side->loop, side->fd, side->data + side->end, room, timeout_ms, err);
    if (n < 0)
        return -1;
    side->end += (size_t)n;
    return n > 0;
}

int side_write(struct side *side, const void *data, size_t len, int64_t timeout_ms,
               struct error *err)
{
    if (len == 0)
        return 0;
    if (side->count != NULL)
        *side->count += len;
    int r = side->tls != NULL ? tls_write(side->tls, data, len, timeout_ms, err)
                              : net_write(side->loop, side->fd, data, len, timeout_ms, err);
    return r < 0 ? -1 : net_turn(side->loop, &side->burst, len, err);
}
