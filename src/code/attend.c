/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A run's events, from the kernel to whoever asked for it, up to its end: one of its own, one that
 * it is brought to when its time is over, or the death of its interpreter. However it ends, what
 * it has changed is in the sandbox's history before anybody hears of it.
 */

#include "code/running.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/limits.h"
#include "code/frames.h"
#include "loop/net.h"
#include "sandbox/processes.h"

enum {
    INTERRUPT_AGAIN_MS = 1000,
    LAST_BREATH_MS = 2000, /* from the end of its connection to that of an interpreter */
    EVENT_COST = 256,      /* of the smallest one, in bytes that could be moved instead */
};

static int tell(struct running *r, const struct code_event *event, struct error *err)
{
    if (r->deaf || r->listener(r->ctx, event, err) == 0)
        return 0;
    r->left = true;
    return -1;
}

static int tell_error(struct running *r, const char *name, const char *value, struct error *err)
{
    if (r->failed)
        return 0;
    r->failed = true;
    const struct code_event event = {.kind = CODE_ERROR,
                                     .name = slice_of(name),
                                     .value = slice_of(value),
                                     .traceback =
                                         slice_of(arena_printf(r->arena, "%s: %s", name, value))};
    return tell(r, &event, err);
}

/* The interpreter goes on, so no end of a process tells whether something was changed. What there
 * is to be committed is, before anybody hears of the end. */
static void settle(struct running *r)
{
    struct sandboxes *s = r->c->code->sandboxes;
    const char *workspace = r->place->workspace, *sandbox = r->place->sandbox;
    if (history_enabled(s, workspace, sandbox))
        history_run_end(s, workspace, sandbox, r->execution,
                        !history_seems_clean(s, workspace, sandbox));
}

static int tell_end(struct running *r, struct error *err)
{
    const struct code_event event = {.kind = CODE_END,
                                     .count = r->count,
                                     .status = r->failed && r->status == 0 ? 1 : r->status,
                                     .execution = r->execution};
    settle(r);
    return tell(r, &event, err);
}

/* --- interrupting --- */

static int interrupt(struct context *c, const struct code_place *place, struct error *err)
{
    char name[PROCESS_NAME_SIZE];
    context_process_name(c, name);
    return sandbox_process_signal(c->code->sandboxes, place->workspace, place->sandbox, name,
                                  SIGINT, err);
}

int code_context_interrupt(struct code *code, const struct code_place *place, const char *id,
                           struct error *err)
{
    _cleanup_context_ struct context *c = NULL;
    struct error why = {0};
    if (context_find(code, place, id, NULL, &c, err) < 0)
        return -1;
    if (!c->started || interrupt(c, place, &why) == 0 || why.code == ERROR_NOT_RUNNING ||
        why.code == ERROR_PROCESS_NOT_FOUND)
        return 0;
    *err = why;
    return -1;
}

/* --- the death of an interpreter --- */

/* And with which status, as far as it had one of its own. *ret_alive: it goes on, without us. */
static const char *how_it_died(struct running *r, bool *ret_alive)
{
    struct context *c = r->c;
    struct agent_process process;
    char name[PROCESS_NAME_SIZE];
    if (c->box == NULL || c->ending > 0)
        return "the context was restarted or deleted while this ran";
    context_process_name(c, name);
    struct error why = {0};
    if (sandbox_process_wait(c->code->sandboxes, r->place->workspace, r->place->sandbox, name,
                             LAST_BREATH_MS, r->arena, &process, &why) < 0) {
        *ret_alive = why.code == ERROR_WAIT_TIMEOUT;
        return *ret_alive ? "the interpreter has closed its connection, or become another program: "
                            "it was ended, and its variables are gone"
                          : "the interpreter is gone, and its variables with it";
    }
    r->status = (unsigned)process.exit_code;
    if (process.state == PROCESS_OUT_OF_MEMORY || process.state == PROCESS_MEMORY_LIMIT)
        return "the interpreter ran out of memory and was killed; its variables are gone";
    if (process.state == PROCESS_KILLED || process.state == PROCESS_STOPPED)
        return "the interpreter was stopped; its variables are gone";
    if (process.state == PROCESS_TIMED_OUT)
        return "the sandbox's limit of time for commands has ended the interpreter";
    if (process.signal != 0)
        return arena_printf(r->arena,
                            "the interpreter was killed by signal %d (%s)%s; its variables "
                            "are gone",
                            (int)process.signal, strsignal((int)process.signal),
                            process.signal == SIGKILL ? ", perhaps for want of memory" : "");
    return arena_printf(r->arena, "the interpreter exited with status %d; its variables are gone",
                        (int)process.exit_code);
}

static int tell_death(struct running *r, struct error *err)
{
    struct error ignored;
    bool alive = false;
    const char *how = how_it_died(r, &alive);
    kernel_close(r->c);
    if (alive)
        kernel_kill(r->c, r->place, &ignored);
    r->c->started = false;
    if (tell_error(r, "KernelDied", how, err) < 0)
        return -1;
    return tell_end(r, err);
}

/* It sent what no kernel of ours sends: it is not to be trusted with another run. */
static int tell_garbage(struct running *r, const struct error *why, struct error *err)
{
    struct error ignored;
    kernel_close(r->c);
    kernel_kill(r->c, r->place, &ignored);
    if (tell_error(
            r, "KernelDied",
            arena_printf(r->arena, "%s: it was ended, and its variables are gone", why->message),
            err) < 0)
        return -1;
    return tell_end(r, err);
}

/* --- time --- */

static int64_t until(const struct running *r)
{
    int64_t now = loop_now(r->c->code->loop), at = INT64_MAX;
    if (r->kill_at != 0)
        at = r->kill_at < r->again_at ? r->kill_at : r->again_at;
    else if (r->deadline != 0)
        at = r->deadline;
    int64_t left = at == INT64_MAX ? -1 : at > now ? at - now : 0;
    if (r->idle_ms > 0 && (left < 0 || left > r->idle_ms))
        left = r->idle_ms;
    return left;
}

/* Time does not pass for a sandbox that is paused: what is due in it is due later by as much, and
 * while it stands still nothing is. */
static bool stands_still(struct running *r)
{
    int64_t paused_ms = r->paused_ms;
    bool still = sandboxes_is_paused(r->c->code->sandboxes, r->place->workspace, r->place->sandbox,
                                     &paused_ms);
    int64_t *due[] = {&r->deadline, &r->kill_at, &r->again_at};
    int64_t then = loop_now(r->c->code->loop) + INTERRUPT_AGAIN_MS;
    for (size_t i = 0; i < ARRAY_LEN(due); i++) {
        if (*due[i] != 0)
            *due[i] += paused_ms - r->paused_ms;
        if (*due[i] != 0 && still && *due[i] < then)
            *due[i] = then; /* to look again */
    }
    r->paused_ms = paused_ms;
    return still;
}

void running_interrupt(struct running *r)
{
    struct error ignored;
    int64_t now = loop_now(r->c->code->loop);
    if (r->kill_at == 0)
        r->kill_at = now + CODE_INTERRUPT_MS;
    r->again_at = now + INTERRUPT_AGAIN_MS; /* one that came before the run had begun is lost */
    if (!stands_still(r))
        interrupt(r->c, r->place, &ignored);
}

static int time_is_over(struct running *r, struct error *err)
{
    int64_t now = loop_now(r->c->code->loop);
    stands_still(r);
    if (r->kill_at != 0 && now >= r->kill_at) {
        struct error ignored;
        kernel_kill(r->c, r->place, &ignored);
        kernel_close(r->c);
        const char *text = arena_printf(
            r->arena,
            "the run went on after %g s and after an interrupt: its interpreter was killed, and "
            "its variables are gone",
            (double)r->timeout_ms / 1000);
        if (tell_error(r, "TimeoutError", text, err) < 0 || tell_end(r, err) < 0)
            return -1;
        return 1;
    }
    if ((r->kill_at != 0 && now >= r->again_at) ||
        (r->kill_at == 0 && r->deadline != 0 && now >= r->deadline)) {
        running_interrupt(r);
        return 0;
    }
    const struct code_event event = {.kind = CODE_IDLE};
    return r->kill_at == 0 ? tell(r, &event, err) : 0;
}

/* --- events --- */

/* An interrupted run ends with whatever its language makes of that, perhaps with nothing; the
 * reason is ours to say. */
static int tell_timeout(struct running *r, struct error *err)
{
    return tell_error(r, "TimeoutError",
                      arena_printf(r->arena,
                                   "the run took longer than %g s and was interrupted; variables "
                                   "are kept",
                                   (double)r->timeout_ms / 1000),
                      err);
}

bool running_timed_out(const struct running *r)
{
    return r->kill_at != 0 && r->timeout_ms > 0;
}

static int tell_event(struct running *r, const struct code_event *event, struct error *err)
{
    if (event->kind != CODE_ERROR)
        return tell(r, event, err);
    if (running_timed_out(r))
        return tell_timeout(r, err);
    if (r->failed)
        return 0;
    r->failed = true;
    return tell(r, event, err);
}

/* 1: it was the run's end. */
static int take(struct running *r, const struct code_frame *frame, struct error *err)
{
    uint32_t numbers[3];
    struct code_event event;
    switch (frame->type) {
    case 'H': /* of the beginning of a log */
        return 0;
    case 'S':
        if (code_frame_numbers(frame, numbers, err) < 0)
            return -1;
        if (r->follow && !r->begun)
            r->number = numbers[0];
        r->begun = numbers[0] == r->number;
        return 0;
    case 'D':
        if (code_frame_numbers(frame, numbers, err) < 0)
            return -1;
        if (r->follow && r->number == 0)
            r->number = numbers[0];
        if (numbers[0] != r->number)
            return 0;
        r->count = numbers[1];
        r->status = numbers[2];
        return 1;
    default:
        if (code_frame_event(frame, r->arena, &event, err) < 0)
            return -1;
        /* A history whose beginning is gone begins with what is left; and what others than the run
         * have written before it is not lost. */
        if (!r->begun && !r->follow && !(r->c->language->piped && event.kind <= CODE_STDERR))
            return 0;
        return tell_event(r, &event, err);
    }
}

/* The next frame, or 0 when it is time for something. A kernel that never stops writing keeps
 * nobody else waiting, and does not run longer for it. */
static int next(struct running *r, struct code_frame *ret_frame, struct error *err)
{
    int64_t left = until(r);
    if (r->deaf && r->c->code->stopping) /* it may stand still for as long as it likes */
        return error_set(err, ERROR_CANCELLED, "the server is stopping");
    int got = left == 0 ? 0 : kernel_next(r->c, left, ret_frame, err);
    if (got > 0 &&
        net_turn(r->c->code->loop, &r->burst, EVENT_COST + ret_frame->payload.len, err) < 0)
        return -1;
    return got;
}

int running_attend(struct running *r, struct error *err)
{
    for (;;) {
        struct code_frame frame;
        struct error why = {0};
        arena_free(r->arena);
        r->arena = arena_new();
        int got = next(r, &frame, &why);
        if (got > 0)
            got = take(r, &frame, &why) + 1;
        else if (got == 0)
            got = time_is_over(r, &why) * 2;
        if (got == 2 && !kernel_connected(r->c))
            return 0; /* it was told with the reason */
        if (got == 2)
            return running_timed_out(r) && tell_timeout(r, err) < 0 ? -1 : tell_end(r, err);
        if (got > 0 || (got == 0 && why.code == ERROR_NONE))
            continue;
        if (!r->left && why.code == ERROR_CODE_KERNEL_FAILED)
            return tell_garbage(r, &why, err);
        if (!r->left && why.code == ERROR_UNAVAILABLE && kernel_connected(r->c))
            return tell_death(r, err);
        *err = why;
        return -1;
    }
}
