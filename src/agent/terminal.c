/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The life of a session: starting (a child is on its way to exec), running, ended (the shell was
 * reaped, what is left of its tree is being ended), finished (nothing is left but the ring). As
 * with processes, every step is taken by an event of the loop, and memory is freed at the end of a
 * turn.
 */

#include "agent/terminal.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/agent.h"
#include "agent/exec.h"
#include "agent/pty.h"
#include "base/cleanup.h"

#define TERM_DEFAULT "TERM=xterm-256color"

enum {
    COLS_DEFAULT = 80,
    ROWS_DEFAULT = 24,
    TREE_RETRY_MS = 20,
};

/* --- the table --- */

struct terminal *terminal_find(struct agent *agent, const char *session, struct error *err)
{
    for (struct terminal *t = agent->terminals; t != NULL; t = t->next)
        if (!t->dropped && !t->failed && strcmp(t->session, session) == 0)
            return t;
    error_set(err, ERROR_TERMINAL_NOT_FOUND, "there is no terminal \"%.64s\"", session);
    return NULL;
}

static void terminal_free(struct agent *agent, struct terminal *terminal)
{
    while (terminal->attachments != NULL)
        terminal_detach(agent, terminal->attachments);
    while (terminal->waiters != NULL) {
        struct terminal_waiter *waiter = terminal->waiters;
        terminal->waiters = waiter->next;
        free(waiter);
    }
    watch_stop(agent, &terminal->status);
    watch_stop(agent, &terminal->pty);
    if (terminal->plan != NULL)
        launch_begun(agent, terminal->plan);
    tree_release(agent, &terminal->tree);
    output_release(&terminal->output);
    buf_release(&terminal->input);
    free(terminal->command);
    free(terminal->cwd);
    free(terminal->user);
    free(terminal);
}

void terminals_drop(struct agent *agent)
{
    if (!agent->terminals_changed)
        return;
    agent->terminals_changed = false;
    struct terminal **at = &agent->terminals;
    while (*at != NULL) {
        struct terminal *t = *at;
        if (!t->dropped) {
            at = &t->next;
            continue;
        }
        *at = t->next;
        terminal_free(agent, t);
    }
}

void terminals_release(struct agent *agent)
{
    while (agent->terminals != NULL) {
        struct terminal *t = agent->terminals;
        agent->terminals = t->next;
        if (!t->finished)
            tree_signal(&t->tree, SIGKILL);
        terminal_free(agent, t);
    }
}

static void drop(struct agent *agent, struct terminal *terminal)
{
    terminal->dropped = agent->terminals_changed = true;
}

void terminals_forget_connection(struct agent *agent, struct connection *connection)
{
    if (connection->attachment != NULL)
        terminal_detach(agent, connection->attachment);
    for (struct terminal *t = agent->terminals; t != NULL; t = t->next)
        for (struct terminal_waiter **at = &t->waiters; *at != NULL;) {
            struct terminal_waiter *waiter = *at;
            if (waiter->connection != connection) {
                at = &waiter->next;
                continue;
            }
            *at = waiter->next;
            free(waiter);
        }
}

void terminal_touch(struct terminal *terminal)
{
    bool waits = terminal->attachments == NULL && !terminal->ended;
    terminal->idle_at = waits ? agent_monotonic_ms() + terminal->idle_ms : 0;
}

/* --- answers --- */

void terminal_answer(struct agent *agent, const struct terminal *terminal,
                     struct connection *connection, uint32_t id, bool created, uint64_t taken)
{
    struct agent_terminal msg = {
        .session = terminal->session,
        .pid = (uint64_t)terminal->pid,
        .command = terminal->command,
        .cwd = terminal->cwd,
        .user = terminal->user,
        .cols = terminal->cols,
        .rows = terminal->rows,
        .started_ms = terminal->started_ms,
        .ended = terminal->finished,
        .created = created,
        .start = output_start(&terminal->output),
        .total = terminal->output.total,
        .taken = taken,
    };
    for (const struct attachment *a = terminal->attachments; a != NULL; a = a->next)
        msg.attached += !a->over;
    connection_answer(agent, connection, &agent_terminal_schema, id, &msg);
}

/* Answers those whose wait is over; `why` is what went wrong, or NULL. */
static void answer_waiters(struct agent *agent, struct terminal *terminal, const struct error *why)
{
    struct terminal_waiter **at = &terminal->waiters;
    while (*at != NULL) {
        struct terminal_waiter *waiter = *at;
        bool come = waiter->kind == TERMINAL_WAIT_OPEN ? !terminal->starting : terminal->finished;
        if (!come && why == NULL) {
            at = &waiter->next;
            continue;
        }
        if (why != NULL)
            connection_answer_error(agent, waiter->connection, waiter->id, why);
        else if (waiter->kind == TERMINAL_WAIT_OPEN)
            terminal_answer(agent, terminal, waiter->connection, waiter->id, waiter->created, 0);
        else
            connection_answer(agent, waiter->connection, &wire_ok_schema, waiter->id, NULL);
        *at = waiter->next;
        free(waiter);
    }
}

static int add_waiter(struct agent *agent, struct terminal *terminal, enum terminal_wait kind,
                      bool created, const struct request *request, struct error *err)
{
    struct terminal_waiter *waiter = malloc(sizeof(*waiter));
    if (waiter == NULL)
        return error_sys(err, "waiting for a terminal");
    *waiter = (struct terminal_waiter){terminal->waiters, request->connection, request->id, kind,
                                       created};
    terminal->waiters = waiter;
    answer_waiters(agent, terminal, NULL);
    return 0;
}

/* --- the end --- */

static void tree_changed(struct agent *agent, struct watch *watch, uint32_t events);

/* Nothing of the tree is left, so this is all the output there will ever be. */
static void finish(struct agent *agent, struct terminal *terminal)
{
    terminal_drain(agent, terminal);
    watch_stop(agent, &terminal->tree.changes);
    watch_stop(agent, &terminal->pty);
    buf_release(&terminal->input);
    terminal->input_sent = 0;
    output_trim(&terminal->output);
    terminal->finished = true;
    terminal->kill_at = terminal->retry_at = 0;
    terminal->forget_at = agent_monotonic_ms() + TERMINAL_ENDED_MS;
    terminal_feed(agent, terminal);
    answer_waiters(agent, terminal, NULL);
    if (terminal->failed || terminal->reason == TERMINAL_IDLE)
        drop(agent, terminal);
}

static void check_tree(struct agent *agent, struct terminal *terminal)
{
    if (!terminal->ended || terminal->finished)
        return;
    if (!tree_remove(&terminal->tree)) {
        tree_watch(agent, &terminal->tree, tree_changed);
        /* It may have become empty before the watch was there. */
        if (!tree_remove(&terminal->tree)) {
            if (terminal->tree.changes.fd < 0)
                terminal->retry_at = agent_monotonic_ms() + TREE_RETRY_MS;
            return;
        }
    }
    finish(agent, terminal);
}

static void tree_changed(struct agent *agent, struct watch *watch, uint32_t events)
{
    struct tree *tree = container_of(watch, struct tree, changes);
    tree_acknowledge(tree);
    check_tree(agent, container_of(tree, struct terminal, tree));
}

void terminals_check_trees(struct agent *agent)
{
    for (struct terminal *t = agent->terminals; t != NULL; t = t->next)
        if (t->tree.changes.fd < 0)
            check_tree(agent, t);
}

/* As when a line is cut: editors get the chance to save what they have. */
static void hang_up(struct terminal *terminal)
{
    if (terminal->kill_at != 0 || terminal->tree.killed)
        return;
    terminal->kill_at = agent_monotonic_ms() + TERMINAL_GRACE_MS;
    terminal->idle_at = 0;
    tree_signal(&terminal->tree, SIGHUP);
    tree_signal(&terminal->tree, SIGCONT); /* what is stopped could not end by itself */
}

void terminals_hang_up(struct agent *agent)
{
    for (struct terminal *t = agent->terminals; t != NULL; t = t->next)
        if (!t->ended) {
            t->reason = TERMINAL_CLOSED;
            hang_up(t);
        }
}

int terminal_close(struct agent *agent, struct terminal *terminal, const struct request *request,
                   struct error *err)
{
    if (!terminal->ended) {
        terminal->reason = TERMINAL_CLOSED;
        hang_up(terminal);
    }
    if (terminal->finished)
        drop(agent, terminal);
    return add_waiter(agent, terminal, TERMINAL_WAIT_GONE, false, request, err);
}

/* The child either reached exec (its end of the pipe closed) or tells why it could not. */
static void status_ready(struct agent *agent, struct watch *watch, uint32_t events)
{
    struct terminal *terminal = container_of(watch, struct terminal, status);
    struct exec_failure failure;
    struct error err;
    char text[256];
    ssize_t n = read(watch->fd, &failure, sizeof(failure));
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    watch_stop(agent, watch);
    terminal->starting = false;
    struct exec_plan *plan = steal_ptr(terminal->plan);
    bool told = n == (ssize_t)sizeof(failure);
    if (told && exec_explain(plan, failure, text, sizeof(text), &err) == 0) {
        text[strcspn(text, "\n")] = '\0';
        error_set(&err, ERROR_INVALID_ARGUMENT, "the terminal's shell: %s", text);
    }
    launch_begun(agent, plan);
    if (told) {
        terminal->failed = true;
        terminal_refuse_attached(agent, terminal, &err);
    }
    answer_waiters(agent, terminal, told ? &err : NULL);
}

bool terminals_reaped(struct agent *agent, pid_t pid, int status)
{
    struct terminal *terminal = agent->terminals;
    while (terminal != NULL && (terminal->pid != pid || terminal->ended))
        terminal = terminal->next;
    if (terminal == NULL)
        return false;
    if (terminal->status.fd >= 0)
        status_ready(agent, &terminal->status, 0);
    terminal->starting = false;
    terminal->ended = true;
    terminal->signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    terminal->exit_code = WIFSIGNALED(status) ? 128 + terminal->signal : WEXITSTATUS(status);
    answer_waiters(agent, terminal, NULL);
    check_tree(agent, terminal);
    if (!terminal->finished)
        hang_up(terminal);
    return true;
}

/* --- time --- */

static void tick(struct agent *agent, struct terminal *t, uint64_t now)
{
    if (t->idle_at != 0 && now >= t->idle_at) {
        t->reason = TERMINAL_IDLE;
        hang_up(t);
    }
    if (t->end_at != 0 && now >= t->end_at) {
        t->end_at = 0;
        if (!t->ended) {
            t->reason = TERMINAL_TIMED_OUT;
            hang_up(t);
        }
    }
    if (t->stall_at != 0 && now >= t->stall_at)
        terminal_stalled(agent, t);
    if (t->kill_at != 0 && now >= t->kill_at) {
        t->kill_at = 0;
        t->retry_at = now;
        t->tree.killed = true;
    }
    if (t->retry_at != 0 && now >= t->retry_at) {
        t->retry_at = 0;
        check_tree(agent, t);
        /* Without cgroup.kill, and with processes that are being forked, one is not always enough.
         */
        if (t->tree.killed && !t->finished) {
            tree_signal(&t->tree, SIGKILL);
            t->retry_at = now + TREE_RETRY_MS;
        }
    }
    if (t->forget_at != 0 && now >= t->forget_at)
        drop(agent, t);
    terminal_let_go(agent, t);
}

void terminals_tick(struct agent *agent)
{
    if (agent->terminals == NULL)
        return;
    uint64_t now = agent_monotonic_ms();
    for (struct terminal *t = agent->terminals; t != NULL; t = t->next)
        if (!t->dropped)
            tick(agent, t, now);
}

uint64_t terminals_deadline(const struct agent *agent)
{
    uint64_t deadline = UINT64_MAX;
    for (const struct terminal *t = agent->terminals; t != NULL; t = t->next) {
        const uint64_t at[] = {t->idle_at,  t->kill_at,   t->retry_at,
                               t->stall_at, t->forget_at, t->end_at};
        for (size_t i = 0; i < ARRAY_LEN(at); i++)
            if (at[i] != 0 && at[i] < deadline)
                deadline = at[i];
    }
    return deadline;
}

/* --- the beginning --- */

static int check_open(const struct agent_terminal_open *open, struct error *err)
{
    size_t len = strspn(open->session, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                       "0123456789._-");
    if (len == 0 || open->session[len] != '\0')
        return error_set(err, ERROR_INVALID_ARGUMENT,
                         "a session's id is made of letters, digits, '.', '_' and '-'");
    if (open->cols > TERMINAL_SIZE_MAX || open->rows > TERMINAL_SIZE_MAX)
        return error_set(err, ERROR_INVALID_ARGUMENT, "cols and rows: at most %d",
                         TERMINAL_SIZE_MAX);
    return 0;
}

/* The user's own shell, or the best there is. */
static const char *find_shell(const struct user *user)
{
    const char *const shells[] = {user->shell, "/bin/bash", "/bin/sh"};
    for (size_t i = 0; i < ARRAY_LEN(shells); i++)
        if (shells[i][0] == '/' && access(shells[i], X_OK) == 0)
            return shells[i];
    return "/bin/sh";
}

/* The AGENT_EXEC that it comes to, as one frame. */
static int make_exec(const struct agent_terminal_open *open, const struct user *user,
                     struct buf *frame, struct error *err)
{
    _cleanup_buf_ struct buf env = BUF_INIT(WIRE_PAYLOAD_MAX), argv = BUF_INIT(WIRE_PAYLOAD_MAX);
    struct agent_exec exec = {.cwd = open->cwd, .user = open->user};
    buf_add(&env, TERM_DEFAULT, sizeof(TERM_DEFAULT));
    buf_add(&env, open->env.data, open->env.len);
    const char *shell = open->shell != NULL ? open->shell : find_shell(user);
    if (open->command == NULL || open->shell != NULL)
        buf_add(&argv, shell, strlen(shell) + 1);
    else
        exec.command = open->command;
    if (open->command != NULL && open->shell != NULL) {
        buf_add(&argv, "-c", sizeof("-c"));
        buf_add(&argv, open->command, strlen(open->command) + 1);
    }
    exec.env = (struct slice){env.data, env.len};
    exec.argv = (struct slice){argv.data, argv.len};
    if (buf_check(&env, "env", err) < 0 || buf_check(&argv, "command", err) < 0)
        return -1;
    wire_encode(frame, &agent_exec_schema, 0, &exec);
    return buf_check(frame, "the request", err);
}

static struct terminal *terminal_new(const struct agent_terminal_open *open,
                                     const struct user *user, struct error *err)
{
    struct terminal *t = calloc(1, sizeof(*t));
    if (t == NULL) {
        error_sys(err, "a new terminal");
        return NULL;
    }
    memcpy(t->session, open->session, strlen(open->session) + 1);
    t->cols = open->cols == 0 ? COLS_DEFAULT : (unsigned)open->cols;
    t->rows = open->rows == 0 ? ROWS_DEFAULT : (unsigned)open->rows;
    t->idle_ms = open->idle_ms == 0 ? TERMINAL_IDLE_MS : open->idle_ms;
    if (t->idle_ms > TERMINAL_IDLE_MAX_MS)
        t->idle_ms = TERMINAL_IDLE_MAX_MS;
    if (open->timeout_ms != 0 && open->timeout_ms < UINT64_MAX / 2)
        t->end_at = agent_monotonic_ms() + open->timeout_ms;
    t->status.fd = t->pty.fd = -1;
    t->tree = (struct tree){.parent_fd = -1, .fd = -1, .events_fd = -1, .changes = {.fd = -1}};
    t->starting = t->awaited = true;
    output_init(&t->output, TERMINAL_RING);
    buf_init(&t->input, TERMINAL_INPUT_MAX * 2 + TERMINAL_CHUNK_MAX * 2);
    t->command = strdup(open->command != NULL ? open->command
                        : open->shell != NULL ? open->shell
                                              : find_shell(user));
    t->cwd = strdup(open->cwd == NULL ? "/" : open->cwd);
    t->user = strdup(user->name);
    if (t->command == NULL || t->cwd == NULL || t->user == NULL) {
        error_sys(err, "a new terminal");
        terminal_free(NULL, t);
        return NULL;
    }
    return t;
}

/* Takes the launch over. What cannot be watched (no memory) is closed: then it hangs up. */
static void adopt_launch(struct agent *agent, struct terminal *t, struct launch *launch,
                         struct pty *pty)
{
    t->pid = launch->pid;
    t->plan = launch->plan;
    t->tree = launch->tree;
    t->started_ms = agent_unix_ms();
    launch->tree.fd = launch->tree.events_fd = -1;
    if (watch_start(agent, &t->status, launch->status_fd, EPOLLIN, status_ready, NULL) == 0)
        steal_fd(&launch->status_fd);
    if (watch_start(agent, &t->pty, pty->master_fd, EPOLLIN, terminal_ready, NULL) == 0)
        steal_fd(&pty->master_fd);
    launch_release(agent, launch);
}

static int start(struct agent *agent, struct terminal *t, const struct agent_terminal_open *open,
                 const struct user *user, struct error *err)
{
    _cleanup_buf_ struct buf frame = BUF_INIT(WIRE_PAYLOAD_MAX);
    struct pty pty;
    struct launch launch;
    if (make_exec(open, user, &frame, err) < 0 ||
        pty_open(user->uid, t->cols, t->rows, &pty, err) < 0)
        return -1;
    struct slice payload = {frame.data + FRAME_HEADER_SIZE, frame.len - FRAME_HEADER_SIZE};
    int rc = launch_start_on(agent, payload, pty.tty_fd, &launch, err);
    if (rc == 0)
        adopt_launch(agent, t, &launch, &pty);
    cleanup_fd(&pty.tty_fd);
    cleanup_fd(&pty.master_fd);
    return rc;
}

/* Room for one more: sessions that are over make it, those that live do not. */
static int make_room(struct agent *agent, struct error *err)
{
    unsigned live = 0, over = 0;
    for (const struct terminal *t = agent->terminals; t != NULL; t = t->next) {
        live += !t->finished;
        over += t->finished && !t->dropped;
    }
    if (live >= TERMINALS_MAX)
        return error_set(err, ERROR_LIMIT_EXCEEDED, "%d terminals are open already", TERMINALS_MAX);
    for (struct terminal *t = agent->terminals; t != NULL && over >= TERMINALS_MAX; t = t->next)
        if (t->finished && !t->dropped) {
            drop(agent, t);
            over--;
        }
    return 0;
}

int terminal_open(struct agent *agent, const struct request *request,
                  const struct agent_terminal_open *open, struct error *err)
{
    struct user user;
    const char *who = open->user == NULL || *open->user == '\0' ? "root" : open->user;
    struct terminal *there = terminal_find(agent, open->session, NULL);
    if (there != NULL && !(there->finished && there->told)) {
        if ((open->flags & TERMINAL_OR_EXISTING) == 0)
            return error_set(err, ERROR_ALREADY_EXISTS, "there is a terminal \"%s\" already",
                             open->session);
        return add_waiter(agent, there, TERMINAL_WAIT_OPEN, false, request, err);
    }
    if (check_open(open, err) < 0 || make_room(agent, err) < 0 ||
        users_find_again("/etc", who, &agent->launch.memo, &user, err) < 0)
        return -1;
    struct terminal *t = terminal_new(open, &user, err);
    if (t == NULL)
        return -1;
    if (add_waiter(agent, t, TERMINAL_WAIT_OPEN, true, request, err) < 0 ||
        start(agent, t, open, &user, err) < 0) {
        terminal_free(agent, t);
        return -1;
    }
    if (there != NULL)
        drop(agent, there);
    struct terminal **at = &agent->terminals;
    while (*at != NULL)
        at = &(*at)->next;
    *at = t;
    terminal_touch(t);
    return 0;
}
