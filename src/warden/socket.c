/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Sockets in a sandbox's network. A socket belongs to the network namespace that it was made in for
 * as long as it lives, whoever holds it: the one handed out here reaches the sandbox's loopback and
 * nothing of the host's or of another sandbox's, and nobody inside shares it. So a stream into a
 * sandbox needs no process in between.
 */

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "warden/sandbox.h"

int sandbox_socket(const struct sandbox *sandbox, int family, int *ret_fd, struct error *err)
{
    if (sandbox->state != SANDBOX_RUNNING || sandbox->pid == 0)
        return error_set(err, ERROR_NOT_RUNNING, "the sandbox does not run");
    _cleanup_fd_ int home = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
    if (home < 0)
        return error_sys(err, "opening the warden's network namespace");
    /* By the pidfd, which names the sandbox's pid 1 and never another process. */
    if (setns(sandbox->pidfd.fd, CLONE_NEWNET) < 0)
        return error_sys_as(err, errno == ESRCH ? ERROR_NOT_RUNNING : ERROR_INTERNAL,
                            "entering the sandbox's network");
    int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    int why = errno;
    if (setns(home, CLONE_NEWNET) < 0) {
        /* Whatever it did next would happen in the wrong place. The next warden adopts everything.
         */
        log_error("the way back from a sandbox's network is gone: %m");
        abort();
    }
    errno = why;
    if (fd < 0)
        return error_sys(err, "a socket in the sandbox's network");
    *ret_fd = fd;
    return 0;
}
