/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The life of a process: starting (a child is on its way to exec), running, ended (the leader was
 * reaped; its end has a state, and those who wait are told), gone (nothing of its tree is left,
 * and its output is complete). Every step is taken by an event of the loop.
 */

#include "agent/process.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/agent.h"
#include "agent/connection.h"
#include "agent/exec.h"
#include "agent/oom.h"
#include "base/cleanup.h"
#include "base/limits.h"

enum {
    PROCESSES_LIVE_MAX = 1024,
    LISTEN_DELAY_MS = 2,
    TREE_RETRY_MS = 20, /* a dying tree that tells nothing (process groups) is looked at again */
};

/* --- the table --- */

struct process *process_find(struct agent *agent, uint64_t pid, struct error *err)
{
    for (struct process *p = agent->processes; p != NULL; p = p->next)
        if ((uint64_t)p->pid == pid && !p->failed)
            return p;
    error_set(err, ERROR_PROCESS_NOT_FOUND, "there is no process %llu", (unsigned long long)pid);
    return NULL;
}

struct process *process_after(struct agent *agent, uint64_t sequence)
{
    for (struct process *p = agent->processes; p != NULL; p = p->next)
        if (p->sequence > sequence && !p->failed)
            return p;
    return NULL;
}

static bool streams_open(const struct process *process)
{
    return process->streams[0].watch.fd >= 0 || process->streams[1].watch.fd >= 0;
}

static bool is_over(const struct process *process)
{
    return process->ended && process->tree_gone && !streams_open(process);
}

static void process_free(struct agent *agent, struct process *process)
{
    while (process->waiters != NULL) {
        struct waiter *waiter = process->waiters;
        process->waiters = waiter->next;
        free(waiter);
    }
    watch_stop(agent, &process->status);
    if (process->plan != NULL)
        launch_begun(agent, process->plan);
    for (int i = 0; i < 2; i++) {
        watch_stop(agent, &process->streams[i].watch);
        output_release(&process->streams[i].output);
    }
    tree_release(agent, &process->tree);
    free(process->command);
    free(process->cwd);
    free(process->user);
    free(process);
}

static size_t process_bytes(const struct process *process)
{
    return sizeof(*process) + process->streams[0].output.cap + process->streams[1].output.cap +
           process->command_len;
}

void processes_drop(struct agent *agent)
{
    if (!agent->processes_changed)
        return;
    agent->processes_changed = false;
    size_t bytes = 0, count = 0;
    for (struct process *p = agent->processes; p != NULL; p = p->next)
        if (is_over(p)) {
            count++;
            bytes += process_bytes(p);
        }
    struct process **at = &agent->processes;
    while (*at != NULL) {
        struct process *p = *at;
        bool over = is_over(p);
        bool too_many = count > PROCESSES_KEPT_MAX || bytes > LOG_BYTES_KEPT_MAX;
        if (!(over && (p->failed || too_many))) {
            at = &p->next;
            continue;
        }
        count--;
        bytes -= process_bytes(p);
        *at = p->next;
        process_free(agent, p);
    }
    agent->processes_tail = at;
}

void processes_release(struct agent *agent)
{
    while (agent->processes != NULL) {
        struct process *p = agent->processes;
        agent->processes = p->next;
        tree_signal(&p->tree, SIGKILL);
        process_free(agent, p);
    }
    agent->processes_tail = &agent->processes;
}

/* --- answers --- */

void process_answer(struct agent *agent, struct process *process, struct connection *connection,
                    uint32_t id, bool with_output)
{
    _cleanup_buf_ struct buf out = BUF_INIT(PROCESS_INLINE_MAX);
    _cleanup_buf_ struct buf err = BUF_INIT(PROCESS_INLINE_MAX);
    struct buf *data[2] = {&out, &err};
    for (int i = 0; with_output && i < 2; i++) {
        const struct output *output = &process->streams[i].output;
        uint64_t newest =
            output->total < PROCESS_INLINE_MAX ? 0 : output->total - PROCESS_INLINE_MAX;
        output_read(output, newest, PROCESS_INLINE_MAX, data[i]);
    }
    struct agent_process msg = {
        .pid = (uint64_t)process->pid,
        .state = process->state,
        .exit_code = (uint64_t)process->exit_code,
        .signal = (uint64_t)process->signal,
        .started_ms = process->started_ms,
        .ended_ms = process->ended_ms,
        .command = process->command,
        .cwd = process->cwd,
        .user = process->user,
        .stdout_total = process->streams[0].output.total,
        .stderr_total = process->streams[1].output.total,
        .stdout_data = {out.data, out.len},
        .stderr_data = {err.data, err.len},
    };
    connection_answer(agent, connection, &agent_process_schema, id, &msg);
}

static bool has_come_true(const struct process *process, enum waiter_kind kind)
{
    switch (kind) {
    case WAIT_START:
        return !process->starting;
    case WAIT_END:
        return process->ended;
    case WAIT_GONE:
        return process->ended && process->tree_gone;
    }
    return true;
}

static void answer_waiters(struct agent *agent, struct process *process)
{
    struct waiter **at = &process->waiters;
    while (*at != NULL) {
        struct waiter *waiter = *at;
        if (!has_come_true(process, waiter->kind)) {
            at = &waiter->next;
            continue;
        }
        process_answer(agent, process, waiter->connection, waiter->id, waiter->kind == WAIT_END);
        *at = waiter->next;
        free(waiter);
    }
}

int process_add_waiter(struct agent *agent, struct process *process, enum waiter_kind kind,
                       struct connection *connection, uint32_t id, struct error *err)
{
    struct waiter *waiter = malloc(sizeof(*waiter));
    if (waiter == NULL)
        return error_sys(err, "waiting for process %d", (int)process->pid);
    *waiter = (struct waiter){process->waiters, connection, id, kind};
    process->waiters = waiter;
    answer_waiters(agent, process);
    return 0;
}

void processes_forget_connection(struct agent *agent, const struct connection *connection)
{
    for (struct process *p = agent->processes; p != NULL; p = p->next)
        for (struct waiter **at = &p->waiters; *at != NULL;) {
            struct waiter *waiter = *at;
            if (waiter->connection != connection) {
                at = &waiter->next;
                continue;
            }
            *at = waiter->next;
            free(waiter);
        }
}

/* --- output --- */

static void stream_end(struct agent *agent, struct stream *stream)
{
    watch_stop(agent, &stream->watch);
    output_trim(&stream->output);
    agent->processes_changed = true;
}

/* One read of at most `max` bytes. Returns what came, 0 at the end of what is there. */
static size_t stream_read(struct agent *agent, struct stream *stream, size_t max)
{
    if (stream->watch.fd < 0)
        return 0;
    char lost[512];
    struct iovec iov[2];
    int pieces = output_space(&stream->output, iov);
    if (pieces == 0) {
        iov[0] = (struct iovec){lost, sizeof(lost)};
        pieces = -1;
    }
    if (iov[0].iov_len >= max) {
        iov[0].iov_len = max;
        pieces = pieces < 0 ? -1 : 1;
    } else if (pieces == 2 && iov[1].iov_len > max - iov[0].iov_len) {
        iov[1].iov_len = max - iov[0].iov_len;
    }
    ssize_t n = readv(stream->watch.fd, iov, pieces < 0 ? 1 : pieces);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    if (n <= 0) {
        stream_end(agent, stream);
        return 0;
    }
    if (pieces < 0)
        output_skip(&stream->output, (size_t)n);
    else
        output_commit(&stream->output, (size_t)n);
    return (size_t)n;
}

static void stream_ready(struct agent *agent, struct watch *watch, uint32_t events)
{
    struct stream *stream = container_of(watch, struct stream, watch);
    if (events & EPOLLIN)
        stream_read(agent, stream, SIZE_MAX);
    else /* the last writer has closed it, and nothing is left in it */
        stream_end(agent, stream);
}

/*
 * At the end of a process: takes what its leader has written. That is no more than what is in
 * the pipe now, so a background process that goes on writing cannot keep us here. The end of the
 * stream is an event of its own, which can wait until the answer is out.
 */
static void stream_drain(struct agent *agent, struct stream *stream)
{
    int there = 0;
    if (stream->watch.fd < 0 || ioctl(stream->watch.fd, FIONREAD, &there) < 0)
        return;
    for (size_t left = (size_t)there; left > 0;) {
        size_t n = stream_read(agent, stream, left);
        if (n == 0)
            return;
        left -= n;
    }
}

void process_catch_up(struct agent *agent, struct process *process)
{
    for (int i = 0; i < 2; i++) {
        struct stream *stream = &process->streams[i];
        stream_drain(agent, stream);
        if (process->ended)
            stream_read(agent, stream, SIZE_MAX);
    }
}

/*
 * Puts a process's descriptors into the loop. Who waits for the end of a command is served best
 * when the agent is not woken by its beginning, its output and the closing of its pipes, each of
 * which would interrupt it on a busy machine: so for the first moments of such a command only its
 * end counts. What cannot be watched (no memory) is closed: the record stays whole, and the child
 * is reaped as any other.
 */
static void listen_to(struct agent *agent, struct process *process)
{
    struct watch *watches[] = {&process->status, &process->streams[0].watch,
                               &process->streams[1].watch};
    process->listen_at = 0;
    for (size_t i = 0; i < ARRAY_LEN(watches); i++) {
        struct watch *watch = watches[i];
        if (watch->fd >= 0 && watch_start(agent, watch, watch->fd, EPOLLIN, watch->ready, NULL) < 0)
            watch_stop(agent, watch);
    }
}

/* --- the end --- */

static void tree_changed(struct agent *agent, struct watch *watch, uint32_t events);

/* Looks whether the tree is gone, and makes sure of being told if it is not. */
static void check_tree(struct agent *agent, struct process *process)
{
    if (!process->ended || process->tree_gone)
        return;
    if (!tree_remove(&process->tree)) {
        tree_watch(agent, &process->tree, tree_changed);
        /* It may have become empty before the watch was there. */
        if (!tree_remove(&process->tree)) {
            if (process->kill_sent || process->kill_at != 0)
                process->retry_at = agent_monotonic_ms() + TREE_RETRY_MS;
            return;
        }
    }
    process->tree_gone = true;
    agent->processes_changed = true;
    process->retry_at = process->kill_at = 0;
    watch_stop(agent, &process->tree.changes);
    answer_waiters(agent, process);
}

static void tree_changed(struct agent *agent, struct watch *watch, uint32_t events)
{
    struct tree *tree = container_of(watch, struct tree, changes);
    tree_acknowledge(tree);
    check_tree(agent, container_of(tree, struct process, tree));
}

void processes_check_trees(struct agent *agent)
{
    for (struct process *p = agent->processes; p != NULL; p = p->next)
        if (p->tree.changes.fd < 0)
            check_tree(agent, p);
}

/* The child either reached exec (its end of the socket closed) or tells why it could not. */
static void status_ready(struct agent *agent, struct watch *watch, uint32_t events)
{
    struct process *process = container_of(watch, struct process, status);
    struct exec_failure failure;
    struct error err;
    char text[256];
    ssize_t n = read(watch->fd, &failure, sizeof(failure));
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    watch_stop(agent, watch);
    process->starting = false;
    struct exec_plan *plan = steal_ptr(process->plan);
    bool told = n == (ssize_t)sizeof(failure);
    int rc = told ? exec_explain(plan, failure, text, sizeof(text), &err) : 0;
    launch_begun(agent, plan);
    if (rc == 0) {
        if (told)
            output_add(&process->streams[1].output, text, strlen(text));
        answer_waiters(agent, process);
        return;
    }
    process->failed = true;
    while (process->waiters != NULL) {
        struct waiter *waiter = process->waiters;
        process->waiters = waiter->next;
        connection_answer_error(agent, waiter->connection, waiter->id, &err);
        free(waiter);
    }
}

/* What the end is called. A kill that came too late, after the leader ended by itself, does not
 * count; a SIGTERM may be answered by any way of ending. */
static enum process_state name_end(struct agent *agent, const struct process *process)
{
    if (process->end_state == PROCESS_STOPPED)
        return PROCESS_STOPPED;
    if (process->signal != SIGKILL)
        return PROCESS_EXITED;
    if (process->end_state != PROCESS_RUNNING)
        return process->end_state;
    return oom_happened(agent) ? PROCESS_OUT_OF_MEMORY : PROCESS_EXITED;
}

bool processes_reaped(struct agent *agent, pid_t pid, int status)
{
    struct process *process = agent->processes;
    while (process != NULL && (process->pid != pid || process->ended))
        process = process->next;
    if (process == NULL)
        return false;

    if (process->status.fd >= 0)
        status_ready(agent, &process->status, 0);
    for (int i = 0; i < 2; i++)
        stream_drain(agent, &process->streams[i]);
    /* From here on those who wait for the end may be answered. */
    process->starting = false;
    process->ended = true;
    agent->processes_changed = true;
    process->ended_ms = agent_unix_ms();
    process->timeout_at = 0;
    process->signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    process->exit_code = WIFSIGNALED(status) ? 128 + process->signal : WEXITSTATUS(status);
    process->state = name_end(agent, process);
    answer_waiters(agent, process);
    if (process->listen_at != 0)
        listen_to(agent, process);
    return true;
}

/* --- stopping --- */

static void process_kill(struct agent *agent, struct process *process, enum process_state as)
{
    if (process->end_state != PROCESS_STOPPED)
        process->end_state = as;
    process->kill_sent = true;
    process->kill_at = process->timeout_at = 0;
    tree_signal(&process->tree, SIGKILL);
    process->retry_at = agent_monotonic_ms() + TREE_RETRY_MS;
}

void process_stop(struct agent *agent, struct process *process, uint64_t grace_ms)
{
    check_tree(agent, process);
    if (process->ended && process->tree_gone)
        return;
    if (grace_ms == 0) {
        if (process->end_state == PROCESS_STOPPED)
            process->end_state = PROCESS_RUNNING; /* whoever was patient before is not any more */
        process_kill(agent, process, PROCESS_KILLED);
        return;
    }
    if (process->kill_sent)
        return;
    uint64_t kill_at = agent_monotonic_ms() + (grace_ms < UINT32_MAX ? grace_ms : UINT32_MAX);
    if (process->kill_at == 0 || kill_at < process->kill_at)
        process->kill_at = kill_at;
    process->end_state = PROCESS_STOPPED;
    tree_signal(&process->tree, SIGTERM);
    tree_signal(&process->tree, SIGCONT); /* what is stopped could not end by itself */
}

/* A kill is repeated as long as the tree is there: without cgroup.kill, and with processes that
 * are being forked, one is not always enough. */
static void retry(struct agent *agent, struct process *process)
{
    process->retry_at = 0;
    check_tree(agent, process);
    if (!(process->ended && process->tree_gone) && process->kill_sent) {
        tree_signal(&process->tree, SIGKILL);
        process->retry_at = agent_monotonic_ms() + TREE_RETRY_MS;
    }
}

void processes_tick(struct agent *agent, uint64_t now)
{
    for (struct process *p = agent->processes; p != NULL; p = p->next) {
        if (p->listen_at != 0 && now >= p->listen_at)
            listen_to(agent, p);
        if (p->timeout_at != 0 && now >= p->timeout_at)
            process_kill(agent, p, PROCESS_TIMED_OUT);
        if (p->kill_at != 0 && now >= p->kill_at)
            process_kill(agent, p, PROCESS_STOPPED);
        if (p->retry_at != 0 && now >= p->retry_at)
            retry(agent, p);
    }
}

static uint64_t earlier(uint64_t deadline, uint64_t at)
{
    return at != 0 && at < deadline ? at : deadline;
}

uint64_t processes_deadline(const struct agent *agent)
{
    uint64_t deadline = UINT64_MAX;
    for (const struct process *p = agent->processes; p != NULL; p = p->next)
        deadline =
            earlier(earlier(earlier(earlier(deadline, p->timeout_at), p->kill_at), p->retry_at),
                    p->listen_at);
    return deadline;
}

/* --- the beginning --- */

static char *join_words(struct slice argv)
{
    char *text = malloc(argv.len);
    if (text == NULL)
        return NULL;
    memcpy(text, argv.data, argv.len);
    for (size_t i = 0; i + 1 < argv.len; i++)
        if (text[i] == '\0')
            text[i] = ' ';
    return text;
}

static struct process *process_new(const struct agent_exec *exec, struct error *err)
{
    size_t max = exec->log_max == 0 || exec->log_max > PROCESS_LOG_MAX ? PROCESS_LOG_MAX
                                                                       : (size_t)exec->log_max;
    struct process *process = calloc(1, sizeof(*process));
    if (process == NULL) {
        error_sys(err, "a new process");
        return NULL;
    }
    process->status.fd = -1;
    process->tree =
        (struct tree){.parent_fd = -1, .fd = -1, .events_fd = -1, .changes = {.fd = -1}};
    for (int i = 0; i < 2; i++) {
        process->streams[i].watch.fd = -1;
        output_init(&process->streams[i].output, max);
    }
    process->command = exec->command != NULL ? strdup(exec->command) : join_words(exec->argv);
    process->cwd = strdup(exec->cwd == NULL ? "/" : exec->cwd);
    process->user = strdup(exec->user == NULL || *exec->user == '\0' ? "root" : exec->user);
    process->command_len = process->command == NULL ? 0 : strlen(process->command);
    process->starting = true;
    if (process->command == NULL || process->cwd == NULL || process->user == NULL) {
        error_sys(err, "a new process");
        process_free(NULL, process);
        return NULL;
    }
    return process;
}

/* Takes the launch over. */
static void adopt_launch(struct agent *agent, struct process *process, struct launch *launch,
                         bool waits_for_end)
{
    process->status = (struct watch){.fd = steal_fd(&launch->status_fd), .ready = status_ready};
    process->streams[0].watch =
        (struct watch){.fd = steal_fd(&launch->stdout_fd), .ready = stream_ready};
    process->streams[1].watch =
        (struct watch){.fd = steal_fd(&launch->stderr_fd), .ready = stream_ready};
    if (waits_for_end)
        process->listen_at = agent_monotonic_ms() + LISTEN_DELAY_MS;
    else
        listen_to(agent, process);
    process->pid = launch->pid;
    process->plan = launch->plan;
    process->tree = launch->tree;
    launch->tree.fd = launch->tree.events_fd = -1;
    launch_release(agent, launch);
}

/* A pid that comes round again belongs to the new process: the old record could not be asked
 * for any more. */
static void forget_pid(struct agent *agent, pid_t pid)
{
    for (struct process *p = agent->processes; p != NULL; p = p->next)
        if (p->pid == pid && p->ended)
            p->failed = agent->processes_changed = true;
}

static unsigned count_live(const struct agent *agent)
{
    unsigned count = 0;
    for (const struct process *p = agent->processes; p != NULL; p = p->next)
        count += !is_over(p);
    return count;
}

int process_exec(struct agent *agent, struct connection *connection, uint32_t id,
                 const struct agent_exec *exec, struct slice payload, struct error *err)
{
    if (count_live(agent) >= PROCESSES_LIVE_MAX)
        return error_set(err, ERROR_LIMIT_EXCEEDED, "%d processes run already", PROCESSES_LIVE_MAX);
    struct process *process = process_new(exec, err);
    if (process == NULL)
        return -1;
    struct launch launch;
    if (process_add_waiter(agent, process, exec->flags & EXEC_WAIT ? WAIT_END : WAIT_START,
                           connection, id, err) < 0 ||
        launch_start(agent, payload, &launch, err) < 0) {
        process_free(agent, process);
        return -1;
    }
    forget_pid(agent, launch.pid);
    adopt_launch(agent, process, &launch, (exec->flags & EXEC_WAIT) != 0);
    process->started_ms = agent_unix_ms();
    if (exec->timeout_ms != 0)
        process->timeout_at =
            agent_monotonic_ms() + (exec->timeout_ms < UINT32_MAX ? exec->timeout_ms : UINT32_MAX);
    process->sequence = ++agent->last_sequence;
    *agent->processes_tail = process;
    agent->processes_tail = &process->next;
    return 0;
}
