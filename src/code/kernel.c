/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The interpreter of a context: started as a process of the sandbox's, reached over a socket of its
 * own. The connection stays, and stays in the loop's epoll (edge-triggered), so that a run costs no
 * system call but its reads and writes; nobody stands between the two ends.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "base/limits.h"
#include "code/frames.h"
#include "code/pipe.h"
#include "code/state.h"
#include "loop/net.h"
#include "sandbox/processes.h"

enum {
    READ_SIZE = 128 * 1024,
    IN_KEPT_MAX = 256 * 1024, /* of the buffer, between runs */
    CONNECT_MS = 10 * 1000,
    HELLO_MS = 30 * 1000,
    WRITE_MS = 60 * 1000,
    PAUSE_MAX_MS = 20,
    WORDS_SHOWN = 200, /* the last of an interpreter's */
};

/* --- the connection --- */

void kernel_close(struct context *c)
{
    pipe_close(c);
    if (c->link == NULL)
        return;
    watch_stop(&c->watch);
    sandbox_link_close(c->link);
    c->link = NULL;
    c->readable = c->hung_up = false;
    c->used = 0;
    buf_release(&c->in);
}

/* Of one that nobody works with there is only one thing to hear: that it is gone. */
static void event(struct watch *watch, uint32_t events)
{
    struct context *c = container_of(watch, struct context, watch);
    bool gone = (events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0;
    c->readable = true;
    c->hung_up = c->hung_up || gone;
    if (c->busy)
        co_cond_wake(&c->arrived);
    else if (gone)
        context_lost(c);
}

bool kernel_connected(const struct context *c)
{
    return c->link != NULL || pipe_is_open(c);
}

void kernel_begin(struct context *c)
{
    if (c->link != NULL)
        sandbox_link_begin(c->link);
}

/* What follows a process's output counts as use of the sandbox, and is not kept. */
void kernel_rest(struct context *c)
{
    if (c->link != NULL)
        sandbox_link_end(c->link);
    pipe_rest(c);
}

int kernel_send(struct context *c, const struct code_place *place, struct slice bytes,
                struct error *err)
{
    if (c->language->piped)
        return pipe_send(c, place, bytes, err);
    return net_write(c->code->loop, sandbox_link_fd(c->link), bytes.data, bytes.len, WRITE_MS, err);
}

static int lost(struct error *err)
{
    return error_set(err, ERROR_UNAVAILABLE, "the connection to the interpreter was lost");
}

/* 1: something came; 0: nothing was there. What comes after a read that was not filled is told by
 * another event, so nothing is read in vain; but an end is told once, with what came before it. */
static int receive(struct context *c, struct error *err)
{
    char *to = buf_reserve(&c->in, READ_SIZE);
    if (to == NULL)
        return error_set(err, ERROR_CODE_KERNEL_FAILED, "the interpreter sends too much");
    ssize_t n = recv(sandbox_link_fd(c->link), to, READ_SIZE, 0);
    if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
        return lost(err);
    c->readable = n == READ_SIZE || c->hung_up || (n < 0 && errno == EINTR);
    if (n < 0)
        return 0;
    buf_commit(&c->in, (size_t)n);
    return 1;
}

/* 1: something came; 0: time is over. */
static int read_more(struct context *c, int64_t timeout_ms, struct error *err)
{
    for (;;) {
        if (c->link == NULL)
            return lost(err);
        while (c->readable) {
            int got = receive(c, err);
            if (got != 0)
                return got;
        }
        struct error why;
        if (co_cond_wait(c->code->loop, &c->arrived, timeout_ms, &why) == 0)
            continue;
        if (why.code == ERROR_TIMEOUT)
            return 0;
        *err = why;
        return -1;
    }
}

int kernel_next(struct context *c, int64_t timeout_ms, struct code_frame *ret_frame,
                struct error *err)
{
    if (c->language->piped)
        return pipe_next(c, timeout_ms, ret_frame, err);
    for (;;) {
        size_t size;
        struct error why = {0};
        struct slice rest = {c->in.data + c->used, c->in.len - c->used};
        int got = code_frame_next(rest, ret_frame, &size, &why);
        if (got > 0) {
            c->used += size;
            return 1;
        }
        if (got == 0) {
            buf_consume(&c->in, c->used);
            c->used = 0;
            if (c->in.len == 0 && c->in.cap > IN_KEPT_MAX)
                buf_release(&c->in);
            got = read_more(c, timeout_ms, &why);
        }
        if (got <= 0) {
            if (got < 0)
                *err = why;
            return got;
        }
    }
}

/* Says how we come, and hears how things are. */
static int greet(struct context *c, char mode, struct error *err)
{
    struct code_frame frame;
    uint32_t numbers[3];
    if (kernel_send(c, NULL, (struct slice){&mode, 1}, err) < 0)
        return -1;
    int got = kernel_next(c, HELLO_MS, &frame, err);
    if (got == 0)
        return error_set(err, ERROR_TIMEOUT, "the interpreter does not answer");
    if (got < 0 || code_frame_numbers(&frame, numbers, err) < 0)
        return -1;
    if (frame.type != 'H' || numbers[0] != CODE_PROTOCOL)
        return error_set(err, ERROR_CODE_KERNEL_FAILED,
                         "the interpreter speaks another version: restart the context");
    c->under_way = numbers[1];
    if (c->last_number < numbers[1])
        c->last_number = numbers[1];
    if (c->last_number < numbers[2])
        c->last_number = numbers[2];
    return 0;
}

static int dial(struct context *c, const struct code_place *place, char mode, struct error *err)
{
    char name[PROCESS_NAME_SIZE];
    struct code *code = c->code;
    if (c->language->piped)
        return pipe_open(c, place, mode, err);
    context_process_name(c, name);
    if (sandbox_link_open(code->sandboxes, place->workspace, place->sandbox, name, CONNECT_MS,
                          &c->link, err) < 0)
        return -1;
    if (watch_start(code->loop, &c->watch, sandbox_link_fd(c->link), EPOLLIN | EPOLLRDHUP | EPOLLET,
                    event, err) < 0 ||
        greet(c, mode, err) < 0) {
        kernel_close(c);
        return -1;
    }
    return 0;
}

/* --- the process --- */

static int missing(const struct context *c, struct error *err)
{
    return error_set(err, ERROR_CODE_INTERPRETER_MISSING,
                     "the sandbox's image has no %s, which %s needs: install %s",
                     c->language->program, c->language->name, c->language->needs);
}

static int explain_start(const struct context *c, struct error *why, struct error *err)
{
    if (why->code == ERROR_FILE_NOT_FOUND && strstr(why->message, c->language->program) != NULL)
        return missing(c, err);
    *err = *why;
    return -1;
}

static struct agent_exec how_to_start(const struct language *language, const char *name,
                                      struct arena *arena)
{
    return (struct agent_exec){
        .argv = language->argv(arena, language, name),
        .name = name,
        .flags = EXEC_STDIN | (language->piped ? 0 : EXEC_STDIN_ONCE),
        .stdin_data = language->input(arena),
    };
}

int kernel_ahead(const char *word, struct arena *arena, struct ahead *ret_ahead, struct error *err)
{
    char name[PROCESS_NAME_SIZE];
    const struct language *language = language_find(word);
    if (language == NULL)
        return error_set(err, ERROR_CODE_LANGUAGE_UNKNOWN, "there is no \"%.40s\" here", word);
    default_process_name(language, name);
    *ret_ahead = (struct ahead){
        .exec = how_to_start(language, arena_strdup(arena, name), arena),
        .listens = !language->piped,
    };
    ret_ahead->exec.cwd = "/workspace";
    ret_ahead->exec.user = "root";
    return 0;
}

static int start_process(struct context *c, const struct code_place *place, struct error *err)
{
    char name[PROCESS_NAME_SIZE];
    struct arena *arena = arena_new();
    struct agent_process process;
    struct error why = {0};
    context_process_name(c, name);
    struct agent_exec exec = how_to_start(c->language, name, arena);
    exec.cwd = c->cwd;
    exec.user = c->user;
    exec.env = (struct slice){c->env, c->env_len};
    int rc = sandbox_exec(c->code->sandboxes, place->workspace, place->sandbox, place->actor, &exec,
                          EXEC_IS_OURS, arena, &process, &why);
    if (rc == 0) {
        c->started = true;
        c->pid = process.pid;
        c->started_ms = process.started_ms;
        c->last_number = c->under_way = 0;
        c->fresh = true;
        if (c->cwd == NULL)
            c->cwd = strdup(process.cwd);
    } else {
        rc = explain_start(c, &why, err);
    }
    arena_free(arena);
    return rc;
}

/* What still has its name is no kernel that could be reached. */
static int start(struct context *c, const struct code_place *place, struct error *err)
{
    struct error why = {0};
    int rc = start_process(c, place, &why);
    if (rc < 0 && why.code == ERROR_ALREADY_EXISTS && kernel_kill(c, place, &why) == 0)
        rc = start_process(c, place, &why);
    if (rc < 0)
        *err = why;
    return rc;
}

/* Whether its process runs; with what it has left as its last words, when it does not. */
static int ask_alive(struct context *c, const struct code_place *place, bool *ret_alive,
                     struct error *err)
{
    char name[PROCESS_NAME_SIZE];
    struct arena *arena = arena_new();
    struct agent_process process;
    struct error why = {0};
    context_process_name(c, name);
    int rc = sandbox_process_get(c->code->sandboxes, place->workspace, place->sandbox, name, arena,
                                 &process, &why);
    if (rc < 0 && why.code == ERROR_PROCESS_NOT_FOUND) {
        *ret_alive = false;
        rc = 0;
    } else if (rc < 0) {
        *err = why;
    } else {
        *ret_alive = process.state == PROCESS_RUNNING;
    }
    arena_free(arena);
    return rc;
}

/* It was found, and says that it is not what the kernel needs. */
static bool is_unfit(const struct language *language, const struct agent_process *process,
                     struct slice words)
{
    if (language->unfit == NULL)
        return process->exit_code == CANNOT_BE_RUN;
    for (const char *const *word = language->unfit; *word != NULL; word++)
        if (words.len > 0 && memmem(words.data, words.len, *word, strlen(*word)) != NULL)
            return true;
    return false;
}

/* With the exit status of a shell that was to start it, and what it has said. */
static int explain_end(const struct context *c, const struct agent_process *process,
                       struct slice words, struct error *err)
{
    const struct language *language = c->language;
    if (process->exit_code == NO_SUCH_COMMAND)
        return missing(c, err);
    size_t from = words.len > WORDS_SHOWN ? words.len - WORDS_SHOWN : 0;
    int len = (int)(words.len - from);
    const char *said = len > 0 ? words.data + from : "";
    while (len > 0 && said[len - 1] == '\n')
        len--;
    if (is_unfit(language, process, words))
        return error_set(err, ERROR_CODE_INTERPRETER_UNFIT,
                         "the %s of the sandbox's image can not be used (%.*s): %s needs %s",
                         language->program, len, said, language->name, language->needs);
    return error_set(err, ERROR_CODE_KERNEL_FAILED,
                     "the %s interpreter ended when it was started%s%.*s", language->name,
                     len > 0 ? ": " : "", len, said);
}

static int failed_to_start(struct context *c, const struct code_place *place, struct error *err)
{
    char name[PROCESS_NAME_SIZE];
    struct arena *arena = arena_new();
    struct process_log log = {0};
    struct agent_process process = {0};
    context_process_name(c, name);
    if (sandbox_process_get(c->code->sandboxes, place->workspace, place->sandbox, name, arena,
                            &process, NULL) == 0)
        sandbox_process_log(c->code->sandboxes, place->workspace, place->sandbox, name, LOG_BOTH,
                            arena, &log, NULL);
    explain_end(c, &process, log.data, err);
    arena_free(arena);
    return -1;
}

/* Until it listens. A fresh interpreter takes a moment, and on a busy machine a longer one. */
static int dial_patiently(struct context *c, const struct code_place *place, char mode,
                          struct error *err)
{
    struct loop *loop = c->code->loop;
    int64_t give_up = loop_now(loop) + CODE_START_MS, ask_at = loop_now(loop) + 100;
    for (int64_t pause = 2;; pause = pause < PAUSE_MAX_MS ? pause + 2 : pause) {
        struct error why = {0};
        bool alive = true;
        if (dial(c, place, mode, &why) == 0)
            return 0;
        if (why.code != ERROR_PORT_NOT_LISTENING || loop_now(loop) > give_up) {
            *err = why;
            return -1;
        }
        if (loop_now(loop) > ask_at) {
            ask_at = loop_now(loop) + 200;
            if (ask_alive(c, place, &alive, err) < 0)
                return -1;
        }
        if (!alive) {
            c->started = false;
            return failed_to_start(c, place, err);
        }
        if (co_sleep(loop, pause, err) < 0)
            return -1;
    }
}

int kernel_ready(struct context *c, const struct code_place *place, char mode, struct error *err)
{
    struct error why = {0};
    if (c->lacking && kernel_kill(c, place, err) < 0)
        return -1;
    c->lacking = false;
    if (!c->started)
        kernel_close(c);
    if (kernel_connected(c) && mode == 'A')
        return 0;
    kernel_close(c);
    if (c->started) {
        bool alive = true;
        if (dial(c, place, mode, &why) == 0)
            return 0;
        if (why.code != ERROR_PORT_NOT_LISTENING && why.code != ERROR_UNAVAILABLE) {
            *err = why;
            return -1;
        }
        if (ask_alive(c, place, &alive, err) < 0)
            return -1;
        if (alive && dial_patiently(c, place, mode, &why) == 0)
            return 0;
        if (alive && why.code != ERROR_PORT_NOT_LISTENING) {
            *err = why;
            return -1;
        }
        c->started = false;
    }
    if (start(c, place, err) < 0)
        return -1;
    return dial_patiently(c, place, mode, err);
}

int kernel_kill(struct context *c, const struct code_place *place, struct error *err)
{
    char name[PROCESS_NAME_SIZE];
    struct arena *arena = arena_new();
    struct agent_process process;
    struct error why = {0};
    context_process_name(c, name);
    uint64_t pid = c->pid;
    int rc = sandbox_process_stop(c->code->sandboxes, place->workspace, place->sandbox, name, 0,
                                  arena, &process, &why);
    if (rc < 0 && why.code != ERROR_PROCESS_NOT_FOUND)
        *err = why;
    else
        rc = 0;
    if (rc == 0 && c->pid == pid) /* and not another one, since */
        c->started = false;
    arena_free(arena);
    return rc;
}
