/* SPDX-License-Identifier: Apache-2.0 */

/* It ends when its channel does: with the warden, in whatever way that ended. */

#include "warden/undertaker.h"

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"

enum { KEPT_FD = 3, BATCH_MAX = 16, QUIET_MS = 30 };

union control {
    struct cmsghdr header;
    char space[CMSG_SPACE(sizeof(int))];
};

struct batch {
    int fds[BATCH_MAX];
    size_t count;
};

static void batch_close(struct batch *batch)
{
    for (size_t i = 0; i < batch->count; i++)
        close(batch->fds[i]);
    batch->count = 0;
}

/* False at the end of the channel. */
static bool batch_receive(struct batch *batch)
{
    char byte;
    union control control;
    struct iovec iov = {.iov_base = &byte, .iov_len = 1};
    struct msghdr message = {.msg_iov = &iov,
                             .msg_iovlen = 1,
                             .msg_control = &control,
                             .msg_controllen = sizeof(control)};
    ssize_t n = recvmsg(KEPT_FD, &message, MSG_CMSG_CLOEXEC);
    if (n < 0 && errno == EINTR)
        return true;
    if (n <= 0)
        return false;
    const struct cmsghdr *cmsg = CMSG_FIRSTHDR(&message);
    if (cmsg != NULL && cmsg->cmsg_type == SCM_RIGHTS)
        memcpy(&batch->fds[batch->count++], CMSG_DATA(cmsg), sizeof(int));
    return true;
}

/* Waits for a quiet moment, or until many have come together: the write-back of the first then
 * serves them all, and whoever starts a sandbox right after a stop does not meet it. */
static _Noreturn void serve(int channel)
{
    /* Nothing else of the warden's: it would hold what the warden closes. */
    if (dup2(channel, KEPT_FD) < 0 || syscall(SYS_close_range, KEPT_FD + 1, ~0u, 0) < 0)
        _exit(1);
    prctl(PR_SET_NAME, "cella-undertaker");
    struct batch batch = {.count = 0};
    for (;;) {
        struct pollfd poll_fd = {.fd = KEPT_FD, .events = POLLIN};
        int n = poll(&poll_fd, 1, batch.count > 0 ? QUIET_MS : -1);
        if (n > 0 && !batch_receive(&batch))
            _exit(0);
        if (n == 0 || batch.count == BATCH_MAX)
            batch_close(&batch);
    }
}

int undertaker_start(struct undertaker *undertaker, struct error *err)
{
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
        return error_sys(err, "making a channel");
    pid_t pid = fork();
    if (pid == 0)
        serve(ends[1]);
    close(ends[1]);
    if (pid < 0) {
        error_sys(err, "starting the undertaker");
        close(ends[0]);
        return -1;
    }
    *undertaker = (struct undertaker){.pid = pid, .channel = ends[0]};
    return 0;
}

void undertaker_stop(struct undertaker *undertaker)
{
    cleanup_fd(&undertaker->channel);
    undertaker->channel = -1;
    while (undertaker->pid > 0 && waitpid(undertaker->pid, NULL, 0) < 0 && errno == EINTR)
        ;
    undertaker->pid = 0;
}

static int send_fd(int channel, int fd)
{
    union control control = {0};
    char byte = 0;
    struct iovec iov = {.iov_base = &byte, .iov_len = 1};
    struct msghdr message = {.msg_iov = &iov,
                             .msg_iovlen = 1,
                             .msg_control = &control,
                             .msg_controllen = sizeof(control)};
    struct cmsghdr *cmsg = CMSG_FIRSTHDR(&message);
    cmsg->cmsg_level = SOL_SOCKET;
    cmsg->cmsg_type = SCM_RIGHTS;
    cmsg->cmsg_len = CMSG_LEN(sizeof(fd));
    memcpy(CMSG_DATA(cmsg), &fd, sizeof(fd));
    return sendmsg(channel, &message, MSG_NOSIGNAL | MSG_DONTWAIT) == 1 ? 0 : -1;
}

void undertaker_close(struct undertaker *undertaker, int fd)
{
    if (undertaker->channel >= 0)
        (void)send_fd(undertaker->channel, fd);
    close(fd); /* ours; the last reference is in the message, if it went out */
}
