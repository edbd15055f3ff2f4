/* SPDX-License-Identifier: Apache-2.0 */

/*
 * HISTORY_WATCH: cellad gets a descriptor of the queue that tells whether something has changed, so
 * that it need not ask. It is the sandbox's own queue about its own files: nothing is given away.
 */

#include <string.h>
#include <sys/socket.h>

#include "agent/file_worker.h"
#include "base/cleanup.h"

int history_share_watch(struct file_worker *worker, uint32_t id, const void *msg, struct error *err)
{
    _cleanup_buf_ struct buf frame = BUF_INIT(FRAME_HEADER_SIZE);
    union {
        char bytes[CMSG_SPACE(sizeof(int))];
        struct cmsghdr head;
    } control = {.head = {.cmsg_level = SOL_SOCKET,
                          .cmsg_type = SCM_RIGHTS,
                          .cmsg_len = CMSG_LEN(sizeof(int))}};
    if (worker->history->fd < 0)
        return error_set(err, ERROR_UNAVAILABLE, "no files are watched");
    wire_encode(&frame, &wire_ok_schema, id, NULL);
    if (buf_check(&frame, "an answer", err) < 0)
        return -1;
    memcpy(CMSG_DATA(&control.head), &worker->history->fd, sizeof(int));
    struct iovec iov = {.iov_base = frame.data, .iov_len = frame.len};
    const struct msghdr message = {.msg_iov = &iov,
                                   .msg_iovlen = 1,
                                   .msg_control = control.bytes,
                                   .msg_controllen = CMSG_LEN(sizeof(int))};
    if (sendmsg(worker->fd, &message, MSG_NOSIGNAL) == (ssize_t)frame.len)
        return 0;
    worker->lost = true;
    return error_sys(err, "sharing the watch on files");
}
