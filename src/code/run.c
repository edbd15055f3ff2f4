/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A run: sent to the kernel, and told event by event (attend.c) to whoever asked for it. However it
 * ends, the context is in a known state afterwards: a run whose listener has gone is interrupted
 * and read to its end by a coroutine of its own, one that does not heed an interrupt loses its
 * interpreter.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/limits.h"
#include "code/running.h"
#include "observe/meters.h"
#include "sandbox/observed.h"
#include "sandbox/witness.h"

/* --- runs that nobody listens to any more --- */

struct drain {
    struct running r;
    struct code_place place;
};

static void drain(void *arg)
{
    struct drain *d = arg;
    struct context *c = d->r.c;
    struct code *code = c->code;
    struct error err = {0};
    d->r.arena = arena_new();
    running_interrupt(&d->r);
    if (running_attend(&d->r, &err) < 0)
        kernel_close(c); /* whoever comes next connects anew, and waits for its end */
    arena_free(d->r.arena);
    kernel_rest(c);
    context_unlock(c);
    context_drop(c);
    free((char *)d->place.workspace);
    free((char *)d->place.sandbox);
    free((char *)d->place.actor);
    free(d);
    code->drains--;
    co_cond_wake_all(&code->drained);
}

/* Takes the lock over. */
static void abandon(struct running *r)
{
    struct code *code = r->c->code;
    struct drain *d = calloc(1, sizeof(*d));
    if (d == NULL)
        abort();
    d->place = (struct code_place){.workspace = strdup(r->place->workspace),
                                   .sandbox = strdup(r->place->sandbox),
                                   .actor = strdup(r->place->actor == NULL ? "" : r->place->actor)};
    d->r = *r;
    d->r.place = &d->place;
    d->r.deaf = true;
    d->r.idle_ms = 0;
    d->r.arena = NULL;
    context_hold(r->c);
    code->drains++;
    if (co_spawn(code->loop, drain, d, NULL, NULL) < 0)
        abort();
}

/* --- */

static void count_run(const struct running *r, int rc, uint64_t begun, const struct error *why)
{
    struct meters *meters = loop_meters(r->c->code->loop);
    bool late = running_timed_out(r);
    if (rc < 0) {
        execution_failed(r->c->code->loop, why);
        return;
    }
    if (late)
        meter_count(meters, METER_TIMEOUT_EXECUTION);
    meter_count(meters, late        ? METER_COMMAND_TIMED_OUT
                        : r->failed ? METER_COMMAND_FAILED
                                    : METER_COMMAND_OK);
    meter_took(meters, METER_EXECUTE_CODE, begun);
}

/* Of a context that is locked; lets go of it. */
static int carry_out(struct running *r, struct error *err)
{
    struct context *c = r->c;
    uint64_t begun = meter_now();
    kernel_begin(c);
    r->arena = arena_new();
    int rc = running_attend(r, err);
    if (!r->follow)
        count_run(r, rc, begun, err);
    arena_free(r->arena);
    if (rc < 0 && kernel_connected(c) && !c->code->stopping) {
        abandon(r);
        return rc;
    }
    kernel_rest(c);
    if (rc < 0)
        kernel_close(c);
    context_unlock(c);
    return rc;
}

static int send_run(struct context *c, const struct code_place *place, const struct code_run *run,
                    uint32_t *ret_number, struct error *err)
{
    _cleanup_buf_ struct buf out = BUF_INIT(1024 + 32 * run->env.len + 4 * run->code.len);
    if (++c->last_number == 0)
        ++c->last_number;
    *ret_number = c->last_number;
    if (c->language->request(&out, *ret_number, run->env, run->code, err) < 0)
        return -1;
    return kernel_send(c, place, (struct slice){out.data, out.len}, err);
}

/* A kernel that has just died is found out by writing to it: then there is another. */
static int begin(struct context *c, const struct code_place *place, const struct code_run *run,
                 uint32_t *ret_number, struct error *err)
{
    struct error why = {0};
    for (int tries = 0; tries < 2; tries++) {
        if (kernel_ready(c, place, 'A', err) < 0)
            return -1;
        if (c->ending > 0) /* since before it was there to be killed */
            return error_set(err, ERROR_CONFLICT,
                             "the context was restarted or deleted before this began");
        if (send_run(c, place, run, ret_number, &why) == 0)
            return 0;
        kernel_close(c);
        if (why.code != ERROR_UNAVAILABLE && why.code != ERROR_STDIN_CLOSED)
            break;
    }
    *err = why;
    return -1;
}

static int check(const struct code_run *run, const struct language **ret_language,
                 struct error *err)
{
    *ret_language = language_find(run->language);
    if (run->context != NULL && run->language != NULL)
        return error_set(err, ERROR_INVALID_ARGUMENT,
                         "a run is in a context or in a language's default one: not both");
    if (*ret_language == NULL)
        return error_set(err, ERROR_CODE_LANGUAGE_UNKNOWN, "language: there is no \"%.40s\" here",
                         run->language);
    if (run->code.len > CODE_SOURCE_MAX)
        return error_set(err, ERROR_PAYLOAD_TOO_LARGE, "code: is larger than %d bytes",
                         CODE_SOURCE_MAX);
    return 0;
}

/* Finds it and locks it. One that was forgotten while it was waited for is looked for again. */
static int find_and_lock(struct code *code, const struct code_place *place, const char *id,
                         const struct language *language, struct context **ret_context,
                         struct error *err)
{
    for (;;) {
        struct context *c;
        if (context_find(code, place, id, language, &c, err) < 0)
            return -1;
        if (context_lock(c, err) == 0) {
            *ret_context = c;
            return 0;
        }
        bool again = c->box == NULL && err->code == ERROR_CODE_CONTEXT_NOT_FOUND;
        context_drop(c);
        if (!again)
            return -1;
    }
}

int code_run(struct code *code, const struct code_place *place, const struct code_run *run,
             code_listener *listener, void *ctx, struct error *err)
{
    _cleanup_context_ struct context *c = NULL;
    const struct language *language;
    uint32_t number = 0;
    if (check(run, &language, err) < 0 ||
        find_and_lock(code, place, run->context, language, &c, err) < 0)
        return -1;
    void *seen = witness_code(code->sandboxes, place->workspace, place->sandbox, place->actor,
                              c->language->name, run->code);
    if (begin(c, place, run, &number, err) < 0) {
        witness_code_end(code->sandboxes, seen, NULL);
        execution_failed(code->loop, err);
        context_unlock(c);
        return -1;
    }
    c->runs++;
    struct running r = {.c = c,
                        .place = place,
                        .number = number,
                        .timeout_ms = run->timeout_ms,
                        .deadline =
                            run->timeout_ms > 0 ? loop_now(code->loop) + run->timeout_ms : 0,
                        .idle_ms = run->idle_ms,
                        .listener = listener,
                        .ctx = ctx};
    sandboxes_is_paused(code->sandboxes, place->workspace, place->sandbox, &r.paused_ms);
    if (run->execution == NULL) {
        history_run_begin(r.execution);
    } else {
        snprintf(r.execution, sizeof(r.execution), "%s", run->execution);
        history_run_told(code->sandboxes, place->workspace, place->sandbox, r.execution);
    }
    int rc = carry_out(&r, err);
    const int64_t status = r.status;
    witness_code_end(code->sandboxes, seen, rc < 0 ? NULL : &status);
    return rc;
}

int code_follow(struct code *code, const struct code_place *place, const char *id, int64_t idle_ms,
                code_listener *listener, void *ctx, struct error *err)
{
    _cleanup_context_ struct context *c = NULL;
    if (context_find(code, place, id, NULL, &c, err) < 0)
        return -1;
    if (c->busy)
        return error_set(err, ERROR_CONFLICT, "somebody follows what runs in this context");
    if (!c->started)
        return error_set(err, ERROR_CONFLICT, "nothing was run in this context yet");
    if (context_lock(c, err) < 0)
        return -1;
    if (kernel_ready(c, place, 'F', err) < 0) {
        context_unlock(c);
        return -1;
    }
    if (c->last_number == 0 || (c->language->piped && c->under_way == 0)) {
        kernel_rest(c);
        context_unlock(c);
        return error_set(err, ERROR_CONFLICT, "nothing was run in this context yet");
    }
    struct running r = {.c = c,
                        .place = place,
                        .number = c->language->piped ? c->under_way : 0,
                        .follow = !c->language->piped,
                        .idle_ms = idle_ms,
                        .listener = listener,
                        .ctx = ctx};
    history_run_begin(r.execution); /* who began it has not heard of its end */
    return carry_out(&r, err);
}
