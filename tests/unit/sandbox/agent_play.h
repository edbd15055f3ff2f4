/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A sandbox whose agent is a script: whatever it is asked, it says what the test has written, and
 * goes. After cmocka.h. Begin with AGENT_PLAY(bytes of script at most); agent_play_run() releases
 * it.
 */

#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "loop/co.h"
#include "loop/net.h"
#include "sandbox/state.h"

enum { PLAYED_FDS_MAX = 4 };

struct agent_play {
    struct provider provider;
    struct sandboxes sandboxes;
    struct buf script;
    size_t piece;             /* so many bytes at a time; 0: all at once */
    int fds[PLAYED_FDS_MAX];  /* that come with the first of them … */
    size_t fd_count;          /* … so many */
    int agent_fd;             /* -1: nobody has connected yet */
    void (*asker)(void *arg); /* the caller's, on a coroutine; then all ends */
    void *arg;
};

#define AGENT_PLAY(max)                                                                            \
    {                                                                                              \
        .script = BUF_INIT(max), .agent_fd = -1                                                    \
    }

static inline int agent_play_connect(struct provider *p, const char *id, int *ret_fd,
                                     struct error *err)
{
    struct agent_play *play = container_of(p, struct agent_play, provider);
    int fds[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds), 0);
    play->agent_fd = fds[1];
    *ret_fd = fds[0];
    return 0;
}

/* Its first byte, with descriptors. */
static inline size_t agent_play_hand_over(struct agent_play *play)
{
    union {
        char bytes[CMSG_SPACE(sizeof(play->fds))];
        struct cmsghdr head;
    } control = {.head = {.cmsg_level = SOL_SOCKET,
                          .cmsg_type = SCM_RIGHTS,
                          .cmsg_len = CMSG_LEN(play->fd_count * sizeof(int))}};
    struct iovec iov = {.iov_base = play->script.data, .iov_len = 1};
    const struct msghdr message = {.msg_iov = &iov,
                                   .msg_iovlen = 1,
                                   .msg_control = control.bytes,
                                   .msg_controllen = CMSG_SPACE(play->fd_count * sizeof(int))};
    if (play->fd_count == 0)
        return 0;
    memcpy(CMSG_DATA(&control.head), play->fds, play->fd_count * sizeof(int));
    assert_int_equal(sendmsg(play->agent_fd, &message, 0), 1);
    return 1;
}

static inline void agent_play_agent(void *arg)
{
    struct agent_play *play = arg;
    struct loop *loop = play->sandboxes.loop;
    char request[4096];
    struct error err;
    while (play->agent_fd < 0)
        if (co_sleep(loop, 1, &err) < 0)
            return;
    if (net_read(loop, play->agent_fd, request, sizeof(request), 5000, &err) <= 0)
        return;
    size_t len = 0;
    for (size_t at = agent_play_hand_over(play); at < play->script.len; at += len) {
        size_t left = play->script.len - at;
        len = play->piece == 0 || left < play->piece ? left : play->piece;
        if (net_write(loop, play->agent_fd, play->script.data + at, len, 5000, &err) < 0)
            break;
        co_sleep(loop, 0, &err);
    }
    shutdown(play->agent_fd, SHUT_RDWR);
}

static inline void agent_play_asker(void *arg)
{
    struct agent_play *play = arg;
    play->asker(play->arg);
    loop_stop(play->sandboxes.loop);
}

/* asker(arg) has a sandbox "box" of the workspace "default" in play->sandboxes. */
static inline void agent_play_run(struct agent_play *play, void (*asker)(void *arg), void *arg)
{
    static const struct provider_ops ops = {.name = "play", .connect = agent_play_connect};
    static const struct store_sandbox row = {.id = "id",
                                             .workspace = "default",
                                             .name = "box",
                                             .status = "running",
                                             .image = "host",
                                             .cpu = "1",
                                             .memory = "1Gi",
                                             .disk = "1Gi"};
    struct error err = {0};
    struct sandboxes *s = &play->sandboxes;
    play->provider.ops = &ops;
    play->asker = asker;
    play->arg = arg;
    s->loop = loop_new(&err);
    s->provider = &play->provider;
    struct sandbox *sb = sandbox_new(s, &row, &err);
    if (sb == NULL)
        fail_msg("%s", err.message);
    sb->agent_checked = true; /* it is not asked for its version */
    assert_int_equal(sandbox_insert(sb, &err), 0);
    assert_int_equal(co_spawn(s->loop, agent_play_agent, play, NULL, &err), 0);
    assert_int_equal(co_spawn(s->loop, agent_play_asker, play, NULL, &err), 0);
    assert_int_equal(loop_run(s->loop, &err), 0);
    if (play->agent_fd >= 0)
        close(play->agent_fd);
    sandbox_remove(sb);
    sandbox_drop(sb);
    loop_free(s->loop);
    buf_release(&play->script);
}
