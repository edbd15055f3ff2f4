/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Commands and code, told by the sandboxes (sandbox/witness.h), as lines of the audit log: in the
 * line of their request where that is still to come, else in lines of their own. One that nobody
 * waits for outlives its request, so it takes along who asked for it.
 */

#include "api/record_state.h"

#include <string.h>

#include "base/cleanup.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/timetext.h"
#include "loop/co.h"

/* Of one whose command is a line of text, with who asked for it; what is longer takes more. */
enum { RUN_SIZE = 896 };

/* --- lines --- */

void record_add_run(struct buf *line, const struct recorded_run *run)
{
    audit_add_text(line, run->language != NULL ? "code" : "command", run->text, COMMAND_SHOWN_MAX);
    audit_add_text(line, "language", slice_of(run->language), WORD_SHOWN_MAX);
    audit_add_text(line, "user", slice_of(run->user), WORD_SHOWN_MAX);
    audit_add_text(line, "cwd", slice_of(run->cwd), TARGET_SHOWN_MAX);
    if (run->has_exit)
        audit_add_number(line, "exitCode", run->exit_code);
}

static void unlink_run(struct recorded_run *run)
{
    if (!run->counted)
        return;
    *(run->previous != NULL ? &run->previous->next : &run->recorder->running) = run->next;
    if (run->next != NULL)
        run->next->previous = run->previous;
    run->counted = false;
}

void recorded_run_told(struct recorded_run *run)
{
    unlink_run(run);
    run->told = true;
    if (run->record != NULL && run->record->run == run)
        run->record->run = NULL;
    if (run->record != NULL && run->who != &run->record->who)
        run->record = NULL; /* from here on it may be over */
    if (!run->ended)
        return;
    run->recorder->left -= run->left;
    arena_free(run->arena);
}

static void add_run_line(struct buf *line, struct recorded_run *run, const char *phase)
{
    audit_add_text(line, "phase", slice_of(phase), WORD_SHOWN_MAX);
    record_add_who(line, run->who);
    audit_add_text(line, "sandbox", slice_of(run->sandbox), WORD_SHOWN_MAX);
    audit_add_text(line, "sandboxId", slice_of(run->sandbox_id), WORD_SHOWN_MAX);
    record_add_run(line, run);
    if (run->ended)
        audit_add_us(line, "durationMs", record_now_us() - run->begun_us);
    audit_end(run->recorder->audit);
}

void recorded_run_tell(struct recorded_run *run, const char *phase)
{
    struct buf *line = audit_begin(run->recorder->audit, "command", time_now_ms());
    if (line != NULL)
        add_run_line(line, run, phase);
    recorded_run_told(run);
}

/* --- commands --- */

/* A program and its arguments with blanks between, as far as it is shown. */
static struct slice text_of(struct arena *arena, const struct command_seen *seen)
{
    if (seen->language != NULL || seen->command != NULL) {
        struct slice whole = seen->language != NULL ? seen->code : slice_of(seen->command);
        size_t len = whole.len < COMMAND_SHOWN_MAX + 1 ? whole.len : COMMAND_SHOWN_MAX + 1;
        return (struct slice){arena_dup(arena, whole.data, len), len};
    }
    struct buf text = BUF_INIT(2 * COMMAND_MAX);
    strv_each (word, seen->argv) {
        if (text.len > COMMAND_SHOWN_MAX)
            break;
        if (text.len > 0)
            buf_addc(&text, ' ');
        buf_add(&text, word, strnlen(word, COMMAND_SHOWN_MAX + 1));
    }
    struct slice shown = {arena_dup(arena, text.data, text.len), text.len};
    buf_release(&text);
    return shown;
}

/* Nobody's request: a command that the server itself starts. */
static void tell_own(struct recorder *recorder, const struct command_seen *seen)
{
    struct arena *arena = arena_new();
    struct buf *line = audit_begin(recorder->audit, "command", time_now_ms());
    if (line != NULL) {
        audit_add_text(line, "key", slice_of(seen->actor), WORD_SHOWN_MAX);
        audit_add_text(line, "workspace", slice_of(seen->workspace), WORD_SHOWN_MAX);
        audit_add_text(line, "class", slice_of(route_class_name(ROUTE_CLASS_EXEC)), WORD_SHOWN_MAX);
        audit_add_text(line, "sandbox", slice_of(seen->sandbox), WORD_SHOWN_MAX);
        audit_add_text(line, "sandboxId", slice_of(seen->sandbox_id), WORD_SHOWN_MAX);
        audit_add_text(line, "command", text_of(arena, seen), COMMAND_SHOWN_MAX);
        audit_add_text(line, "user", slice_of(seen->user), WORD_SHOWN_MAX);
        audit_add_text(line, "cwd", slice_of(seen->cwd), TARGET_SHOWN_MAX);
        audit_end(recorder->audit);
        audit_flush(recorder->audit, NULL);
    }
    arena_free(arena);
}

static void *command_begun(void *ctx, const struct command_seen *seen)
{
    struct recorder *recorder = ctx;
    struct record *r = co_local(recorder->loop);
    if (audit_options_of(recorder->audit)->off)
        return NULL;
    if (r == NULL) {
        tell_own(recorder, seen);
        return NULL;
    }
    struct arena *arena = arena_new_sized(RUN_SIZE);
    struct recorded_run *run = arena_alloc(arena, sizeof(*run));
    *run = (struct recorded_run){.arena = arena,
                                 .recorder = recorder,
                                 .record = r,
                                 .who = &r->who,
                                 .sandbox_id = arena_strdup(arena, seen->sandbox_id),
                                 .sandbox = arena_strdup(arena, seen->sandbox),
                                 .user = arena_strdup(arena, seen->user),
                                 .cwd = arena_strdup(arena, seen->cwd),
                                 .language = arena_strdup(arena, seen->language),
                                 .text = text_of(arena, seen),
                                 .begun_us = record_now_us()};
    if (r->sandbox == NULL || r->sandbox_id == NULL)
        record_name_sandbox(r, seen->sandbox, seen->sandbox_id);
    if (r->run != NULL)
        recorded_run_tell(r->run, r->run->ended ? NULL : "begin");
    run->next = recorder->running;
    if (run->next != NULL)
        run->next->previous = run;
    recorder->running = run;
    run->counted = true;
    r->run = run;
    record_name_request(r);
    if (r->status == 0) {            /* its answer is to come */
        audit_wake(recorder->audit); /* a line on it soon, should it take long */
        return run;
    }
    recorded_run_tell(run, "begin");
    audit_flush(recorder->audit, NULL);
    return run;
}

/* Its request may be over by the time it ends. */
static void *command_left(void *ctx, void *token)
{
    struct recorder *recorder = ctx;
    struct recorded_run *run = token;
    if (recorder->left >= AUDIT_LEFT_MAX) {
        if (!recorder->left_told)
            log_warn("more than %d commands run that nobody waits for: their ends are not recorded",
                     AUDIT_LEFT_MAX);
        recorder->left_told = true;
        run->ended = true;
        if (run->told)
            recorded_run_told(run);
        return NULL;
    }
    recorder->left++;
    run->left = true;
    struct recorded_who *copy = arena_alloc(run->arena, sizeof(*copy));
    *copy = *run->who;
    const char **const texts[] = {&copy->request_id, &copy->key_id,  &copy->key,
                                  &copy->workspace,  &copy->address, &copy->method};
    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        *texts[i] = arena_strdup(run->arena, *texts[i]);
    run->who = copy;
    if (run->told)
        run->record = NULL;
    return run;
}

static void command_ended(void *ctx, void *token, const int64_t *exit_code)
{
    struct recorder *recorder = ctx;
    struct recorded_run *run = token;
    run->ended = true;
    run->has_exit = exit_code != NULL;
    run->exit_code = exit_code == NULL ? 0 : *exit_code;
    if (!run->told) /* it will be, with its request */
        return;
    if (exit_code == NULL) {
        recorded_run_told(run);
        return;
    }
    recorded_run_tell(run, "end");
    audit_flush(recorder->audit, NULL);
}

static void sandbox_made(void *ctx, const char *workspace, const char *name, const char *id)
{
    const struct recorder *recorder = ctx;
    struct record *r = co_local(recorder->loop);
    if (r == NULL)
        return;
    record_name_sandbox(r, name, id);
}

/* Commands that are under way, before the log is written. */
static void tick(void *ctx)
{
    struct recorder *recorder = ctx;
    for (struct recorded_run *run = recorder->running, *next; run != NULL; run = next) {
        next = run->next;
        if (!run->ended)
            recorded_run_tell(run, "begin");
    }
}

void recorder_witness(struct recorder *recorder, struct sandboxes *sandboxes)
{
    recorder->witness = (struct command_witness){.begun = command_begun,
                                                 .left = command_left,
                                                 .ended = command_ended,
                                                 .made = sandbox_made,
                                                 .ctx = recorder};
    audit_set_tick(recorder->audit, tick, recorder);
    sandboxes_set_witness(sandboxes, &recorder->witness);
}
