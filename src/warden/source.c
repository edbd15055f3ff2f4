/* SPDX-License-Identifier: Apache-2.0 */

/* epoll, with one small struct per fd, embedded in what the fd belongs to. */

#include "warden/source.h"

#include <stddef.h>
#include <sys/epoll.h>
#include <unistd.h>

int source_watch(int epoll_fd, struct source *source, int fd, uint32_t events,
                 void (*ready)(struct source *source, uint32_t events), struct error *err)
{
    struct epoll_event event = {.events = events, .data.ptr = source};
    *source = (struct source){.fd = fd, .epoll_fd = epoll_fd, .ready = ready};
    if (epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0) {
        error_sys(err, "watching an fd");
        close(fd);
        source->fd = -1;
        return -1;
    }
    return 0;
}

int source_change(struct source *source, uint32_t events, struct error *err)
{
    struct epoll_event event = {.events = events, .data.ptr = source};
    if (epoll_ctl(source->epoll_fd, EPOLL_CTL_MOD, source->fd, &event) < 0)
        return error_sys(err, "watching an fd");
    return 0;
}

/* close() alone would leave the fd in epoll while a child on its way to exec still holds it, and
 * the loop would be woken with a pointer to freed memory. */
void source_close(struct source *source)
{
    if (source->fd < 0)
        return;
    epoll_ctl(source->epoll_fd, EPOLL_CTL_DEL, source->fd, NULL);
    close(source->fd);
    source->fd = -1;
}
