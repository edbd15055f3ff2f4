/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The loop. Each turn: what the kernel reports, then time-outs, then the end of the turn, which is
 * the only place where connections and records are freed (a handler may hold any of them until
 * then). Work per event is bounded (one read of a pipe, one of a connection), so a flood on
 * one side does not keep the others waiting.
 */

#include "agent/agent.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "agent/connection.h"
#include "agent/files.h"
#include "agent/process.h"
#include "agent/terminal.h"
#include "base/cleanup.h"

enum {
    EVENTS_PER_TURN = 16,
};

static uint64_t clock_ms(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

uint64_t agent_monotonic_ms(void)
{
    return clock_ms(CLOCK_MONOTONIC);
}

uint64_t agent_unix_ms(void)
{
    return clock_ms(CLOCK_REALTIME);
}

/* --- watches --- */

int watch_start(struct agent *agent, struct watch *watch, int fd, uint32_t events,
                watch_ready *ready, struct error *err)
{
    struct epoll_event event = {.events = events, .data.ptr = watch};
    if (epoll_ctl(agent->epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0)
        return error_sys(err, "watching a file descriptor");
    *watch = (struct watch){.fd = fd, .events = events, .ready = ready};
    return 0;
}

void watch_change(struct agent *agent, struct watch *watch, uint32_t events)
{
    if (watch->fd < 0 || watch->events == events)
        return;
    struct epoll_event event = {.events = events, .data.ptr = watch};
    if (epoll_ctl(agent->epoll_fd, EPOLL_CTL_MOD, watch->fd, &event) == 0)
        watch->events = events;
}

void watch_pause(struct agent *agent, struct watch *watch)
{
    if (watch->fd < 0 || watch->paused)
        return;
    epoll_ctl(agent->epoll_fd, EPOLL_CTL_DEL, watch->fd, NULL);
    watch->paused = true;
}

void watch_resume(struct agent *agent, struct watch *watch)
{
    if (watch->fd < 0 || !watch->paused)
        return;
    struct epoll_event event = {.events = watch->events, .data.ptr = watch};
    if (epoll_ctl(agent->epoll_fd, EPOLL_CTL_ADD, watch->fd, &event) == 0)
        watch->paused = false;
    else /* no memory: what cannot be watched has ended */
        watch_stop(agent, watch);
}

void watch_stop(struct agent *agent, struct watch *watch)
{
    if (watch->fd < 0)
        return;
    /* Closing is not enough: a child that was forked a moment ago may still hold the file. */
    epoll_ctl(agent->epoll_fd, EPOLL_CTL_DEL, watch->fd, NULL);
    close(watch->fd);
    watch->fd = -1;
}

/* --- children --- */

/* Everything that ended: commands, file workers, and orphans, which are nobody's. */
static void reap(struct agent *agent)
{
    int status;
    for (;;) {
        pid_t pid = waitpid(-1, &status, WNOHANG);
        if (pid < 0 && errno == EINTR)
            continue;
        if (pid <= 0)
            break;
        if (!processes_reaped(agent, pid, status) && !terminals_reaped(agent, pid, status))
            files_worker_reaped(agent, pid, status);
    }
}

static void signals_ready(struct agent *agent, struct watch *watch, uint32_t events)
{
    struct signalfd_siginfo info;
    while (read(watch->fd, &info, sizeof(info)) == sizeof(info)) {
        if (info.ssi_signo == SIGTERM && agent->config.ends_on_sigterm)
            agent->ended = true;
    }
    reap(agent);
    processes_check_trees(agent);
    terminals_check_trees(agent);
}

/* --- the loop --- */

static int next_timeout(const struct agent *agent, uint64_t now)
{
    uint64_t deadline = processes_deadline(agent), terminals = terminals_deadline(agent);
    if (terminals < deadline)
        deadline = terminals;
    if (agent->accept_at != 0 && agent->accept_at < deadline)
        deadline = agent->accept_at;
    if (files_deadline(agent) < deadline)
        deadline = files_deadline(agent);
    if (deadline == UINT64_MAX)
        return -1;
    if (deadline <= now)
        return 0;
    return deadline - now < 1000 * 1000 ? (int)(deadline - now) : 1000 * 1000;
}

static void turn(struct agent *agent)
{
    struct epoll_event events[EVENTS_PER_TURN];
    int timeout = next_timeout(agent, agent_monotonic_ms());
    int count = epoll_wait(agent->epoll_fd, events, EVENTS_PER_TURN, timeout);
    /* Ends first: whoever waits for a command is answered before its pipes are put away. */
    for (int i = 0; i < count; i++)
        if (events[i].data.ptr == &agent->signals)
            signals_ready(agent, &agent->signals, events[i].events);
    for (int i = 0; i < count; i++) {
        struct watch *watch = events[i].data.ptr;
        if (watch->fd >= 0 && !watch->paused && watch != &agent->signals)
            watch->ready(agent, watch, events[i].events);
    }
    processes_tick(agent, agent_monotonic_ms());
    terminals_tick(agent);
    files_tick(agent, agent_monotonic_ms());
    processes_drop(agent);
    connections_sweep(agent);
    terminals_drop(agent);
}

static int watch_signals(struct agent *agent, struct error *err)
{
    /* Pid 1 is immune to what it does not handle, and nothing else here wants to be interrupted:
     * everything is blocked, SIGCHLD is read. Commands start with an empty mask again. */
    sigset_t all, read;
    sigfillset(&all);
    sigemptyset(&read);
    sigaddset(&read, SIGCHLD);
    if (agent->config.ends_on_sigterm)
        sigaddset(&read, SIGTERM);
    if (sigprocmask(SIG_SETMASK, &all, NULL) < 0)
        return error_sys(err, "blocking signals");
    /* By the system call: libc's sigaction() refuses signals of its own, which may well be ignored
     * here (glibc's posix_spawn(), and so make, leaves two like that to its children). All zeros is
     * the default disposition. */
    static const unsigned char by_default[64];
    for (int signal = 1; signal < NSIG; signal++)
        (void)syscall(SYS_rt_sigaction, signal, by_default, NULL, NSIG / 8);

    _cleanup_fd_ int fd = signalfd(-1, &read, SFD_CLOEXEC | SFD_NONBLOCK);
    if (fd < 0)
        return error_sys(err, "signalfd");
    if (watch_start(agent, &agent->signals, fd, EPOLLIN, signals_ready, err) < 0)
        return -1;
    steal_fd(&fd);
    return 0;
}

/* Each running command takes three fds. Commands themselves get the limit back as it was. */
static void raise_nofile(struct agent *agent)
{
    if (getrlimit(RLIMIT_NOFILE, &agent->nofile) < 0)
        return;
    struct rlimit most = {agent->nofile.rlim_max, agent->nofile.rlim_max};
    setrlimit(RLIMIT_NOFILE, &most);
}

int agent_run(const struct agent_config *config, struct error *err)
{
    struct agent agent = {
        .config = *config,
        .started_ms = agent_unix_ms(),
        .listener = {.fd = -1},
        .signals = {.fd = -1},
        .history = HISTORY_WATCH_NONE,
    };
    agent.processes_tail = &agent.processes;
    agent.epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (agent.epoll_fd < 0)
        return error_sys(err, "epoll_create1");
    raise_nofile(&agent);
    files_start(&agent);
    launch_init(&agent);
    limit_folders_init(&agent.limit_folders);
    fcntl(config->listen_fd, F_SETFL, O_NONBLOCK);
    /* Orphans come to pid 1; elsewhere (a container with another init) they have to be asked for.
     */
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    if (watch_signals(&agent, err) < 0 || watch_start(&agent, &agent.listener, config->listen_fd,
                                                      EPOLLIN, connections_accept, err) < 0)
        return -1;
    while (!agent.ended)
        turn(&agent);

    connections_release(&agent);
    processes_release(&agent);
    terminals_release(&agent);
    files_end_workers(&agent);
    launch_end(&agent);
    limit_folders_release(&agent.limit_folders);
    history_watch_release(&agent.history);
    watch_stop(&agent, &agent.listener);
    watch_stop(&agent, &agent.signals);
    close(agent.epoll_fd);
    return 0;
}
