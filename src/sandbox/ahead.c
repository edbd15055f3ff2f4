/* SPDX-License-Identifier: Apache-2.0 */

/* Starting programs in a spare sandbox. It is nobody's sandbox yet, so this is done over a
 * connection to its agent that nobody else uses, and that is closed again. */

#include "sandbox/ahead.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/limits.h"
#include "loop/co.h"
#include "provider/channel.h"
#include "sandbox/state.h"

enum { ANSWER_MS = 30 * 1000, DIAL_MS = 10 * 1000, PAUSE_MS = 5, NO_SUCH_COMMAND = 127 };

/* One spare that is being prepared. */
struct preparing {
    struct sandboxes *s;
    const char *id;
    struct channel *agent;
    struct arena *arena;
};

void sandboxes_set_ahead(struct sandboxes *s, ahead_describe *describe)
{
    s->describe_ahead = describe;
}

static int describe(const struct sandboxes *s, const char *word, struct arena *arena,
                    struct ahead *ret_ahead, struct error *err)
{
    if (s->describe_ahead == NULL)
        return error_set(err, ERROR_UNAVAILABLE, "nothing can be started ahead here");
    return s->describe_ahead(word, arena, ret_ahead, err);
}

/* Whether it is up: 1, 0: not yet. */
static int look(struct preparing *p, const struct ahead *ahead, struct error *err)
{
    struct provider *provider = p->s->provider;
    const struct agent_ref ref = {.name = ahead->exec.name};
    struct agent_process process;
    struct error why = {0};
    int fd;
    if (ahead->listens) {
        if (provider->ops->dial_name(provider, p->id, ahead->exec.name, DIAL_MS, &fd, &why) == 0) {
            close(fd);
            return 1;
        }
        if (why.code != ERROR_PORT_NOT_LISTENING) {
            *err = why;
            return -1;
        }
    }
    if (channel_call(p->agent, &agent_get_schema, &ref, &agent_process_schema, p->arena, &process,
                     ANSWER_MS, err) < 0)
        return -1;
    if (process.state != PROCESS_RUNNING)
        return process.exit_code == NO_SUCH_COMMAND
                   ? error_set(err, ERROR_CODE_INTERPRETER_MISSING,
                               "%s: the image has no interpreter for it", ahead->exec.name)
                   : error_set(err, ERROR_CODE_KERNEL_FAILED, "%s ended when it was started",
                               ahead->exec.name);
    return !ahead->listens && process.stdout_total + process.stderr_total > 0;
}

static int start(struct preparing *p, const char *word, struct error *err)
{
    struct loop *loop = p->s->loop;
    struct agent_process process;
    struct ahead ahead = {0};
    struct error why = {0};
    if (describe(p->s, word, p->arena, &ahead, err) < 0)
        return -1;
    if (channel_call(p->agent, &agent_exec_schema, &ahead.exec, &agent_process_schema, p->arena,
                     &process, ANSWER_MS, &why) < 0) {
        if (why.code == ERROR_FILE_NOT_FOUND)
            return error_set(err, ERROR_CODE_INTERPRETER_MISSING,
                             "%s: the image has no interpreter for it", word);
        *err = why;
        return -1;
    }
    for (int64_t give_up = loop_now(loop) + CODE_START_MS;;) {
        int up = look(p, &ahead, err);
        if (up != 0)
            return up < 0 ? -1 : 0;
        if (loop_now(loop) > give_up)
            return error_set(err, ERROR_TIMEOUT, "%s does not come up", ahead.exec.name);
        if (co_sleep(loop, PAUSE_MS, err) < 0)
            return -1;
    }
}

static void agent_closed(void *ctx)
{
}

/* Calls with each word. */
static int each_word(const char *words, int (*call)(void *ctx, const char *word, struct error *err),
                     void *ctx, struct error *err)
{
    _cleanup_free_ char *copy = strdup(words);
    char *rest = copy, *word;
    if (copy == NULL)
        return error_sys(err, "allocating");
    while ((word = strsep(&rest, " ")) != NULL)
        if (word[0] != '\0' && call(ctx, word, err) < 0)
            return -1;
    return 0;
}

static int start_word(void *ctx, const char *word, struct error *err)
{
    return start(ctx, word, err);
}

int ahead_start(struct sandboxes *s, const char *id, const char *words, struct error *err)
{
    const struct channel_events events = {.closed = agent_closed, .cancel = &agent_cancel_schema};
    struct preparing p = {.s = s, .id = id};
    int fd;
    if (words[0] == '\0')
        return 0;
    if (s->provider->ops->connect(s->provider, id, &fd, err) < 0)
        return -1;
    p.agent = channel_new(s->loop, fd, &events, err);
    if (p.agent == NULL)
        return -1;
    p.arena = arena_new();
    int r = each_word(words, start_word, &p, err);
    channel_free(p.agent);
    arena_free(p.arena);
    return r;
}

static int check_word(void *ctx, const char *word, struct error *err)
{
    struct arena *arena = arena_new();
    struct ahead ahead;
    int r = describe(ctx, word, arena, &ahead, err);
    arena_free(arena);
    return r;
}

int ahead_check(struct sandboxes *s, const char *words, struct error *err)
{
    return each_word(words, check_word, s, err);
}
