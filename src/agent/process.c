/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The life of a process: starting (a child is on its way to exec), running, ended (the leader was
 * reaped; its end has a state, and those who wait are told), gone (nothing of its tree is left,
 * and its output is complete). Every step is taken by an event of the loop.
 *
 * One that is to be started again when it fails goes on living in between: it has no leader then,
 * what is left of its tree is killed, and after a pause that grows from failure to failure the same
 * request is carried out once more.
 */

#include "agent/process.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/agent.h"
#include "agent/connection.h"
#include "agent/exec.h"
#include "agent/limits.h"
#include "agent/oom.h"
#include "base/cleanup.h"
#include "base/limits.h"

enum {
    PROCESSES_LIVE_MAX = 1024,
    LISTEN_DELAY_MS = 2,
    TREE_RETRY_MS = 20,  /* a dying tree that tells nothing (process groups) is looked at again */
    LIMIT_LOOK_MS = 100, /* between two looks at a limit that does not tell when it is hit */
    RESTART_FIRST_MS = 100, /* the pause before it is started again; doubles … */
    RESTART_MOST_MS = 10 * 1000,
    RESTART_CALM_MS = 10 * 1000, /* … unless it ran for so long */
};

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
        .pid = process->id,
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
        .name = process->name,
        .flags = process->flags & ~(uint64_t)(process->input.watch.fd < 0 ? EXEC_STDIN : 0),
        .restarts = process->restarts,
        .max_restarts = process->max_restarts,
        .clean = process->ended && history_watch_is_clean(&agent->history),
        .execution = process->execution[0] == '\0' ? NULL : process->execution,
    };
    connection_answer(agent, connection, &agent_process_schema, id, &msg);
}

static bool has_come_true(const struct process *process, enum waiter_kind kind)
{
    switch (kind) {
    case WAIT_START:
        return !process->starting;
    case WAIT_END:
    case WAIT_RESULT:
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
        process_answer(agent, process, waiter->connection, waiter->id, waiter->kind == WAIT_RESULT);
        *at = waiter->next;
        free(waiter);
    }
}

int process_add_waiter(struct agent *agent, struct process *process, enum waiter_kind kind,
                       struct connection *connection, uint32_t id, struct error *err)
{
    struct waiter *waiter = malloc(sizeof(*waiter));
    if (waiter == NULL)
        return error_sys(err, "waiting for process %s", process->name);
    *waiter = (struct waiter){process->waiters, connection, id, kind};
    process->waiters = waiter;
    answer_waiters(agent, process);
    return 0;
}

/* --- the beginning of its life in the loop --- */

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

/* True when nothing runs in its tree any more, which is gone then. */
static bool clear_tree(struct agent *agent, struct process *process)
{
    if (process->group != NULL) /* its counters go with the tree */
        limit_group_oom_killed(agent, process->group);
    return tree_remove(&process->tree);
}

/* Looks whether the tree is gone, and makes sure of being told if it is not. */
static void check_tree(struct agent *agent, struct process *process)
{
    if (!process->ended || process->tree_gone)
        return;
    if (!clear_tree(agent, process)) {
        tree_watch(agent, &process->tree, tree_changed);
        /* It may have become empty before the watch was there. */
        if (!clear_tree(agent, process)) {
            if (process->kill_sent || process->kill_at != 0)
                process->retry_at = agent_monotonic_ms() + TREE_RETRY_MS;
            return;
        }
    }
    if (!limit_group_remove(agent, process->group)) { /* the last one is still on its way out */
        process->retry_at = agent_monotonic_ms() + TREE_RETRY_MS;
        return;
    }
    process->tree_gone = true;
    agent->processes_changed = true;
    process->retry_at = process->kill_at = process->limit_at = process->look_at = 0;
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
    if (rc < 0 && process->restarts > 0) { /* it has been there before, so it stays */
        snprintf(text, sizeof(text), "%s\n", err.message);
        rc = 0;
    }
    if (rc == 0) {
        if (told)
            stream_add(agent, process, 1, text);
        answer_waiters(agent, process);
        followers_go_on(agent, process);
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
    if (process->end_state == PROCESS_STOPPED || process->end_state >= PROCESS_MEMORY_LIMIT)
        return process->end_state;
    /* … unless it would have been started again: then the kill is what ended it. */
    bool kept_down = process->again != NULL && process->exit_code != 0;
    if (process->signal != SIGKILL && !(kept_down && process->end_state != PROCESS_RUNNING))
        return PROCESS_EXITED;
    if (process->end_state != PROCESS_RUNNING)
        return process->end_state;
    bool by_oom = process->group != NULL && limit_group_oom_killed(agent, process->group);
    return by_oom || oom_happened(agent) ? PROCESS_OUT_OF_MEMORY : PROCESS_EXITED;
}

/* --- limits of its own --- */

static void process_kill(struct agent *agent, struct process *process, enum process_state as);

void process_hit_limit(struct agent *agent, struct process *process, enum process_state as)
{
    if (process->end_state == PROCESS_RUNNING)
        process_kill(agent, process, as);
}

static void look_at_group(struct agent *agent, void *owner)
{
    struct process *process = owner;
    enum process_state hit = limit_group_hit(agent, process->group);
    if (hit != PROCESS_RUNNING)
        process_hit_limit(agent, process, hit);
}

static void watch_group(struct agent *agent, struct process *process)
{
    bool look;
    limit_group_watch(agent, process->group, look_at_group, process, &look);
    process->look_at = look ? agent_monotonic_ms() + LIMIT_LOOK_MS : 0;
}

/* At the end of its leader, which may have come before anybody was told: a limit that was hit is
 * what its end is called, however it ended. */
static void look_at_limits(struct agent *agent, struct process *process)
{
    if (process->group != NULL)
        look_at_group(agent, process);
    if (streams_past_limit(process))
        process_hit_limit(agent, process, PROCESS_OUTPUT_LIMIT);
}

/* Those who wait for the end are answered from here on. */
static void process_end(struct agent *agent, struct process *process, enum process_state state)
{
    process->starting = false;
    process->ended = true;
    agent->processes_changed = true;
    process->ended_ms = agent_unix_ms();
    process->timeout_at = process->restart_at = 0;
    process->state = state;
    answer_waiters(agent, process);
    if (process->followers != NULL)
        followers_go_on(agent, process);
}

static bool wants_restart(const struct process *process)
{
    return process->again != NULL && process->end_state == PROCESS_RUNNING &&
           process->exit_code != 0 && process->restarts < process->max_restarts;
}

/* Clears the place for its next start. */
static void plan_restart(struct agent *agent, struct process *process)
{
    uint64_t now = agent_monotonic_ms(), pause = RESTART_FIRST_MS;
    if (now - process->born_at >= RESTART_CALM_MS)
        process->failures = 0;
    for (unsigned i = 0; i < process->failures && pause < RESTART_MOST_MS; i++)
        pause *= 2;
    process->failures++;
    process->pid = 0;
    process->starting = false;
    process->restart_at = now + (pause < RESTART_MOST_MS ? pause : RESTART_MOST_MS);
    tree_signal(&process->tree, SIGKILL);
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
    look_at_limits(agent, process);
    streams_drain(agent, process);
    if (process->input.given)
        input_close(agent, &process->input);
    process->signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    process->exit_code = WIFSIGNALED(status) ? 128 + process->signal : WEXITSTATUS(status);
    if (wants_restart(process))
        plan_restart(agent, process);
    else
        process_end(agent, process, name_end(agent, process));
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
    if (process->pid == 0 && !process->ended)
        process_end(agent, process, process->end_state);
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
    if (process->pid == 0 && !process->ended) /* nobody is there who could end by himself */
        process_kill(agent, process, PROCESS_STOPPED);
    tree_signal(&process->tree, SIGTERM);
    tree_signal(&process->tree, SIGCONT); /* what is stopped could not end by itself */
}

/* Kills and stops are not among them: those are the table's own business, or nobody's. */
int process_signal(struct process *process, uint64_t signal, struct error *err)
{
    static const int allowed[] = {SIGHUP,  SIGINT,  SIGQUIT, SIGTERM, SIGUSR1,
                                  SIGUSR2, SIGALRM, SIGCONT, SIGWINCH};
    for (size_t i = 0; i < ARRAY_LEN(allowed); i++) {
        if (signal != (uint64_t)allowed[i])
            continue;
        if (process->ended || process->pid <= 0 || process->starting)
            return error_set(err, ERROR_NOT_RUNNING, "the process does not run");
        if (kill(-process->pid, allowed[i]) < 0 && kill(process->pid, allowed[i]) < 0)
            return error_sys(err, "signalling the process");
        return 0;
    }
    return error_set(err, ERROR_INVALID_ARGUMENT, "signal %llu is not one that can be sent",
                     (unsigned long long)signal);
}

static bool is_zombie(pid_t pid)
{
    char path[32], text[128];
    snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    _cleanup_fd_ int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
    if (n <= 0)
        return false;
    text[n] = '\0';
    const char *name_end = strrchr(text, ')');
    return name_end != NULL && strncmp(name_end, ") Z", 3) == 0;
}

/* Killed, and not to be had all the same: whoever traces a process inside is told of its end first,
 * and may keep it to himself. Those who wait for the command are not his to keep. */
static void end_held(struct agent *agent, struct process *process)
{
    int status;
    pid_t pid = waitpid(process->pid, &status, WNOHANG);
    if (pid == 0 && is_zombie(process->pid)) {
        pid = process->pid;
        status = SIGKILL;
    }
    if (pid == process->pid)
        processes_reaped(agent, pid, status);
}

/* A kill is repeated as long as the tree is there: without cgroup.kill, and with processes that
 * are being forked, one is not always enough. */
static void retry(struct agent *agent, struct process *process)
{
    process->retry_at = 0;
    if (!process->ended && process->kill_sent && process->pid > 0)
        end_held(agent, process);
    check_tree(agent, process);
    if (!(process->ended && process->tree_gone) && process->kill_sent) {
        tree_signal(&process->tree, SIGKILL);
        process->retry_at = agent_monotonic_ms() + TREE_RETRY_MS;
    }
}

static void start_again(struct agent *agent, struct process *process);

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
        if (p->limit_at != 0 && now >= p->limit_at) {
            p->limit_at = 0;
            process_hit_limit(agent, p, PROCESS_TIMED_OUT);
        }
        if (p->look_at != 0 && now >= p->look_at) {
            p->look_at = p->kill_sent ? 0 : now + LIMIT_LOOK_MS;
            look_at_group(agent, p);
        }
        if (p->restart_at != 0 && now >= p->restart_at)
            start_again(agent, p);
    }
}

static uint64_t earlier(uint64_t deadline, uint64_t at)
{
    return at != 0 && at < deadline ? at : deadline;
}

uint64_t processes_deadline(const struct agent *agent)
{
    uint64_t deadline = UINT64_MAX;
    for (const struct process *p = agent->processes; p != NULL; p = p->next) {
        const uint64_t times[] = {p->timeout_at, p->kill_at,  p->retry_at, p->listen_at,
                                  p->restart_at, p->limit_at, p->look_at};
        for (size_t i = 0; i < ARRAY_LEN(times); i++)
            deadline = earlier(deadline, times[i]);
    }
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

static struct process *process_new(struct agent *agent, const struct agent_exec *exec,
                                   struct slice payload, struct error *err)
{
    size_t max = exec->log_max == 0 || exec->log_max > PROCESS_LOG_MAX ? PROCESS_LOG_MAX
                                                                       : (size_t)exec->log_max;
    bool again = (exec->flags & EXEC_RESTART) != 0 && exec->max_restarts > 0;
    struct process *process = calloc(1, sizeof(*process));
    if (process == NULL) {
        error_sys(err, "a new process");
        return NULL;
    }
    process->status.fd = -1;
    process->tree =
        (struct tree){.parent_fd = -1, .fd = -1, .events_fd = -1, .changes = {.fd = -1}};
    input_init(&process->input);
    for (unsigned i = 0; i < 2; i++) {
        process->streams[i].watch.fd = -1;
        process->streams[i].number = i;
        output_init(&process->streams[i].output, max);
    }
    process->command = exec->command != NULL ? strdup(exec->command) : join_words(exec->argv);
    process->cwd = strdup(exec->cwd == NULL ? "/" : exec->cwd);
    process->user = strdup(exec->user == NULL || *exec->user == '\0' ? "root" : exec->user);
    process->again = again ? malloc(payload.len) : NULL;
    process->command_len = process->command == NULL ? 0 : strlen(process->command);
    process->starting = true;
    process->flags = exec->flags;
    process->max_restarts = exec->max_restarts;
    process->output_max = exec->limits.output_bytes;
    if (process->command == NULL || process->cwd == NULL || process->user == NULL ||
        (again && process->again == NULL)) {
        error_sys(err, "a new process");
        process_free(agent, process);
        return NULL;
    }
    if (again)
        memcpy(process->again, payload.data, process->again_len = payload.len);
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
    if (process->flags & EXEC_FOLLOW)
        streams_widen(process);
    if (waits_for_end)
        process->listen_at = agent_monotonic_ms() + LISTEN_DELAY_MS;
    else
        listen_to(agent, process);
    process->pid = launch->pid;
    process->plan = launch->plan;
    process->tree = launch->tree;
    launch->tree.fd = launch->tree.events_fd = -1;
    process->group = steal_ptr(launch->group);
    if (process->group != NULL)
        watch_group(agent, process);
    if (launch->stdin_fd >= 0)
        input_open(agent, &process->input, steal_fd(&launch->stdin_fd));
    launch_release(agent, launch);
}

/* What it is to read first. */
static void feed(struct agent *agent, struct process *process, const struct agent_exec *exec)
{
    if (!process->input.given)
        return;
    if (exec->stdin_data.len > 0)
        input_write(agent, &process->input, NULL, 0, exec->stdin_data, NULL);
    if (exec->flags & EXEC_STDIN_ONCE)
        input_end(agent, &process->input, NULL);
}

static void start_again(struct agent *agent, struct process *process)
{
    struct slice payload = {process->again, process->again_len};
    struct agent_exec exec;
    struct launch launch;
    struct error err;
    if (!clear_tree(agent, process) || !limit_group_remove(agent, process->group)) {
        tree_signal(&process->tree, SIGKILL);
        process->restart_at = agent_monotonic_ms() + TREE_RETRY_MS;
        return;
    }
    limit_group_free(agent, steal_ptr(process->group));
    process->look_at = 0;
    streams_drain(agent, process);
    if (followers_hold(process)) { /* nothing gets lost between two starts either */
        process->restart_at = agent_monotonic_ms() + TREE_RETRY_MS;
        return;
    }
    tree_release(agent, &process->tree);
    streams_close(agent, process);
    process->restart_at = 0;
    process->restarts++;
    if (wire_decode(&agent_exec_schema, payload, &exec, &err) < 0 ||
        launch_start(agent, payload, &launch, &err) < 0) {
        stream_add(agent, process, 1, err.message);
        if (wants_restart(process))
            plan_restart(agent, process);
        else
            process_end(agent, process, PROCESS_EXITED);
        return;
    }
    process->starting = true;
    process->born_at = agent_monotonic_ms();
    adopt_launch(agent, process, &launch, false);
    feed(agent, process, &exec);
}

static int launch_first(struct agent *agent, struct process *process, struct connection *connection,
                        uint32_t id, const struct agent_exec *exec, struct slice payload,
                        struct error *err)
{
    enum waiter_kind kind = exec->flags & EXEC_WAIT ? WAIT_RESULT : WAIT_START;
    struct launch launch;
    if (exec->execution != NULL)
        snprintf(process->execution, sizeof(process->execution), "%s", exec->execution);
    process->name = process_make_name(agent, exec->name, err);
    if (process->name == NULL ||
        (exec->flags & EXEC_FOLLOW &&
         follow(agent, process, connection, id, 0, FOLLOW_HOLD, err) < 0) ||
        process_add_waiter(agent, process, kind, connection, id, err) < 0 ||
        launch_start(agent, payload, &launch, err) < 0) {
        if (process->followers != NULL)
            follower_free(agent, process->followers);
        process_free(agent, process);
        return -1;
    }
    process->id = process_make_id(agent, launch.pid);
    adopt_launch(agent, process, &launch, kind == WAIT_RESULT);
    feed(agent, process, exec);
    return 0;
}

static uint64_t after(uint64_t ms)
{
    return agent_monotonic_ms() + (ms < UINT32_MAX ? ms : UINT32_MAX);
}

int process_exec(struct agent *agent, struct connection *connection, uint32_t id,
                 const struct agent_exec *exec, struct slice payload, struct error *err)
{
    if (processes_count_live(agent) >= PROCESSES_LIVE_MAX)
        return error_set(err, ERROR_LIMIT_EXCEEDED, "%d processes run already", PROCESSES_LIVE_MAX);
    struct process *process = process_new(agent, exec, payload, err);
    if (process == NULL || launch_first(agent, process, connection, id, exec, payload, err) < 0)
        return -1;
    process->started_ms = agent_unix_ms();
    if (exec->timeout_ms != 0)
        process->timeout_at = after(exec->timeout_ms);
    if (exec->limits.time_ms != 0)
        process->limit_at = after(exec->limits.time_ms);
    if (process->again != NULL)
        process->born_at = agent_monotonic_ms();
    process->sequence = ++agent->last_sequence;
    *agent->processes_tail = process;
    agent->processes_tail = &process->next;
    return 0;
}
