/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Handing over what an agent limits commands with. The provider makes it when it is asked for the
 * first time, and the agent keeps it for as long as it lives; whether it has it already is
 * remembered here for this very agent. Forgetting (cellad was restarted) costs one more question.
 */

#include "sandbox/command_limits.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "loop/co.h"
#include "loop/net.h"

enum { ANSWER_MS = 30 * 1000, REQUEST_ID = 1, PAYLOAD_MAX = 4096 };

int command_limits_check(const struct sandbox *sb, const struct command_limits *limits,
                         struct error *err)
{
    struct plan plan;
    if (limits->memory_bytes == 0 && limits->processes == 0)
        return 0;
    spec_plan(sb->id, sb->name, sb->image, &sb->limits, &plan);
    if (limits->memory_bytes > plan.memory_bytes)
        return error_set(err, ERROR_INVALID_ARGUMENT,
                         "limits.memory: %" PRIu64
                         " bytes are more than the sandbox's own %" PRIu64,
                         limits->memory_bytes, plan.memory_bytes);
    if (limits->processes > plan.pids_max)
        return error_set(err, ERROR_INVALID_ARGUMENT,
                         "limits.processes: %" PRIu64 " are more than the sandbox's own %" PRIu64,
                         limits->processes, plan.pids_max);
    return 0;
}

static int read_ok(struct loop *loop, int fd, struct error *err)
{
    unsigned char head[FRAME_HEADER_SIZE];
    char payload[PAYLOAD_MAX];
    struct frame_header header;
    if (net_read_whole(loop, fd, head, sizeof(head), ANSWER_MS, err) < 0 ||
        frame_header_decode(head, &header, err) < 0)
        return -1;
    if (header.length > sizeof(payload) || header.id != REQUEST_ID)
        return error_set(err, ERROR_UNAVAILABLE, "unexpected answer from the sandbox");
    if (net_read_whole(loop, fd, payload, header.length, ANSWER_MS, err) < 0)
        return -1;
    if (header.type == WIRE_ERROR)
        return wire_take_error((struct slice){payload, header.length}, err);
    return header.type == WIRE_OK
               ? 0
               : error_set(err, ERROR_UNAVAILABLE, "unexpected answer from the sandbox");
}

/* One byte with the descriptors: the socket is empty, so it goes out at once. */
static int send_fds(int fd, const int fds[LIMIT_FDS], struct error *err)
{
    union {
        char bytes[CMSG_SPACE(sizeof(int) * LIMIT_FDS)];
        struct cmsghdr align;
    } control = {0};
    char byte = 0;
    struct iovec iov = {.iov_base = &byte, .iov_len = 1};
    struct msghdr message = {.msg_iov = &iov,
                             .msg_iovlen = 1,
                             .msg_control = control.bytes,
                             .msg_controllen = sizeof(control.bytes)};
    struct cmsghdr *rights = CMSG_FIRSTHDR(&message);
    *rights = (struct cmsghdr){.cmsg_level = SOL_SOCKET,
                               .cmsg_type = SCM_RIGHTS,
                               .cmsg_len = CMSG_LEN(sizeof(int) * LIMIT_FDS)};
    memcpy(CMSG_DATA(rights), fds, sizeof(int) * LIMIT_FDS);
    if (sendmsg(fd, &message, MSG_NOSIGNAL) != 1)
        return error_sys_as(err, ERROR_UNAVAILABLE, "handing limits over to the sandbox");
    return 0;
}

static int hand_over(struct sandboxes *s, struct sandbox *sb, const int fds[LIMIT_FDS],
                     struct error *err)
{
    _cleanup_buf_ struct buf request = BUF_INIT(FRAME_HEADER_SIZE);
    _cleanup_fd_ int fd = -1;
    wire_encode(&request, &agent_limits_schema, REQUEST_ID, NULL);
    if (sandbox_agent_connect(sb, &fd, err) < 0 ||
        net_write(s->loop, fd, request.data, request.len, ANSWER_MS, err) < 0 ||
        read_ok(s->loop, fd, err) < 0 || send_fds(fd, fds, err) < 0)
        return -1;
    return read_ok(s->loop, fd, err);
}

static int delegate(struct sandboxes *s, struct sandbox *sb, struct error *err)
{
    int fds[LIMIT_FDS];
    unsigned agent = sb->agents;
    if (s->provider->ops->delegate(s->provider, sb->id, fds, err) < 0)
        return -1;
    int rc = fds[0] < 0 ? 0 : hand_over(s, sb, fds, err);
    for (size_t i = 0; i < LIMIT_FDS; i++)
        cleanup_fd(&fds[i]);
    if (rc == 0)
        sb->limited_agent = agent + 1;
    return rc;
}

int command_limits_prepare(struct sandboxes *s, const char *workspace, const char *name,
                           const struct command_limits *limits, struct error *err)
{
    _cleanup_sandbox_ struct sandbox *sb = NULL;
    if (limits->memory_bytes == 0 && limits->processes == 0)
        return 0;
    if (sandbox_running(s, workspace, name, &sb, err) < 0 ||
        command_limits_check(sb, limits, err) < 0)
        return -1;
    while (sb->limiting)
        if (co_cond_wait(s->loop, &sb->agent_ready, ANSWER_MS, err) < 0)
            return -1;
    if (sb->limited_agent == sb->agents + 1)
        return 0;
    if (s->provider->ops->delegate == NULL)
        return error_set(err, ERROR_NOT_IMPLEMENTED,
                         "commands of this sandbox cannot have limits of memory and processes");
    sb->limiting = true;
    int rc = delegate(s, sb, err);
    sb->limiting = false;
    co_cond_wake_all(&sb->agent_ready);
    return rc;
}
