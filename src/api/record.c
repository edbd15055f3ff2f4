/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Requests and commands as lines of the audit log. A line is made in the log's own buffer, from
 * what the record points at: a request that only looks at something costs a few hundred bytes in
 * memory here, and a share of one write.
 */

#include "api/record.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/buf.h"
#include "base/errand.h"
#include "base/limits.h"
#include "base/names.h"
#include "base/timetext.h"
#include "loop/co.h"

enum {
    COMMAND_SHOWN_MAX = 1000, /* bytes of a command, or of code */
    TARGET_SHOWN_MAX = 300,
    WORD_SHOWN_MAX = 200,
};

struct record {
    const struct api *api;
    struct recorder *recorder;
    struct http_exchange *x;
    const struct dialect *dialect;
    const struct route *route;
    const struct route_params *params; /* good while the handler runs */
    enum route_class class;
    int64_t begun_us;
    struct caller caller;
    struct caller streamer; /* who has the place among streams: who he is may be settled later */
    const char *request_id, *key_id, *key, *workspace, *sandbox, *sandbox_id, *target;
    struct recorded_run *run; /* the newest one that no line has told of */
    enum error_code error;
    int status;
    bool changes;    /* it may: its line is written before its answer leaves */
    bool has_stream; /* one of the places for streams */
    bool streamed;   /* its answer is one */
    bool told;       /* there is a line on it */
    bool left_out;   /* there will be none */
};

/* A command, until its end is known and told. In an arena of its own: a request that is a
 * WebSocket can have any number of them. */
struct recorded_run {
    struct arena *arena;
    struct record *record;
    const char *sandbox_id, *sandbox, *user, *cwd, *language;
    struct slice text;
    int64_t begun_us;
    int64_t exit_code;
    bool has_exit, ended, told, counted;
    struct recorded_run *previous, *next; /* among those that no line has told of */
};

static int64_t now_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static struct record *record_of(const struct http_exchange *x)
{
    return co_local(http_loop(x));
}

/* The errand's, or one of its own; kept, since lines are also made when no coroutine runs. */
static void name_request(struct record *r)
{
    const struct errand *errand = co_errand(r->recorder->loop);
    if (r->request_id != NULL)
        return;
    if (errand != NULL && errand->request_id[0] != '\0')
        r->request_id = arena_strdup(http_arena(r->x), errand->request_id);
    else
        r->request_id = arena_printf(http_arena(r->x), "%s-%llu", r->recorder->prefix,
                                     (unsigned long long)++r->recorder->requests);
}

/* --- lines --- */

static void add_who(struct buf *line, struct record *r)
{
    name_request(r);
    audit_add_text(line, "requestId", slice_of(r->request_id), WORD_SHOWN_MAX);
    audit_add_text(line, "keyId", slice_of(r->key_id), WORD_SHOWN_MAX);
    audit_add_text(line, "key", slice_of(r->key), WORD_SHOWN_MAX);
    audit_add_text(line, "workspace", slice_of(r->workspace), WORD_SHOWN_MAX);
    audit_add_text(line, "address", slice_of(http_request(r->x)->peer), WORD_SHOWN_MAX);
}

static void add_operation(struct buf *line, const struct record *r)
{
    char text[WORD_SHOWN_MAX];
    const char *method = http_request(r->x)->method;
    audit_add_text(line, "api", slice_of(r->dialect->name), WORD_SHOWN_MAX);
    audit_add_text(line, "class", slice_of(route_class_name(r->class)), WORD_SHOWN_MAX);
    const char *path = r->route != NULL                ? r->route->path
                       : r->class == ROUTE_CLASS_PROXY ? "(port)"
                                                       : "(none)";
    snprintf(text, sizeof(text), "%.16s %s", method, path);
    audit_add_text(line, "operation", slice_of(text), WORD_SHOWN_MAX);
}

static void add_run(struct buf *line, const struct recorded_run *run)
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
    struct recorder *recorder = run->record->recorder;
    if (!run->counted)
        return;
    *(run->previous != NULL ? &run->previous->next : &recorder->running) = run->next;
    if (run->next != NULL)
        run->next->previous = run->previous;
    run->counted = false;
}

/* A line has told of it; when its end is known as well, it is done with. */
static void run_told(struct recorded_run *run)
{
    unlink_run(run);
    run->told = true;
    if (run->record->run == run)
        run->record->run = NULL;
    if (run->ended)
        arena_free(run->arena);
}

static void add_run_line(struct buf *line, struct recorded_run *run, const char *phase)
{
    struct record *r = run->record;
    audit_add_text(line, "phase", slice_of(phase), WORD_SHOWN_MAX);
    add_who(line, r);
    add_operation(line, r);
    audit_add_text(line, "sandbox", slice_of(run->sandbox), WORD_SHOWN_MAX);
    audit_add_text(line, "sandboxId", slice_of(run->sandbox_id), WORD_SHOWN_MAX);
    add_run(line, run);
    if (run->ended)
        audit_add_us(line, "durationMs", now_us() - run->begun_us);
    audit_end(r->recorder->audit);
}

/* The command's own line. */
static void tell_run(struct recorded_run *run, const char *phase)
{
    struct buf *line = audit_begin(run->record->recorder->audit, "command", time_now_ms());
    if (line != NULL)
        add_run_line(line, run, phase);
    run_told(run);
}

static void add_request_line(struct buf *line, struct record *r, const char *phase)
{
    audit_add_text(line, "phase", slice_of(phase), WORD_SHOWN_MAX);
    add_who(line, r);
    add_operation(line, r);
    audit_add_text(line, "sandbox", slice_of(r->sandbox), WORD_SHOWN_MAX);
    audit_add_text(line, "sandboxId", slice_of(r->sandbox_id), WORD_SHOWN_MAX);
    audit_add_text(line, "target", slice_of(r->target), TARGET_SHOWN_MAX);
    if (r->run != NULL)
        add_run(line, r->run);
    if (r->status != 0)
        audit_add_number(line, "status", r->status);
    if (r->error != ERROR_NONE)
        audit_add_text(line, "error", slice_of(error_name(r->error)), WORD_SHOWN_MAX);
    audit_add_us(line, "durationMs", now_us() - r->begun_us);
    audit_end(r->recorder->audit);
}

/* The request's line; its command is in it, unless one of its own has told of that. */
static void tell_request(struct record *r, const char *phase)
{
    struct buf *line = audit_begin(r->recorder->audit, "request", time_now_ms());
    if (line != NULL)
        add_request_line(line, r, phase);
    r->told = true;
    if (r->run != NULL)
        run_told(r->run);
}

/* --- the exchange --- */

static bool is_recorded(const struct record *r, int status)
{
    const struct audit_options *options = audit_options_of(r->recorder->audit);
    bool preflight = r->route == NULL && strcmp(http_request(r->x)->method, "OPTIONS") == 0;
    if (options->off || preflight)
        return false;
    if (r->class == ROUTE_CLASS_FREE)
        return status == 401 || status == 403;
    return !options->no_reads || r->changes || r->run != NULL || status == 401 || status == 403;
}

/* Nobody knows who asks, and nothing was run: there is only so much room for that. */
static bool has_room(const struct record *r)
{
    return r->key != NULL || r->run != NULL || audit_spare(r->recorder->audit, time_now_ms());
}

static int take_stream(struct record *r, struct error *err)
{
    if (r->has_stream)
        return 0;
    if (limits_stream_begin(r->recorder->limits, r->caller, err) < 0)
        return -1;
    r->streamer = r->caller;
    r->has_stream = true;
    return 0;
}

static int answering(void *ctx, int status, bool streamed, struct error *err)
{
    struct record *r = ctx;
    struct error why;
    if (streamed && take_stream(r, err) < 0)
        return -1;
    bool acts = r->changes || r->run != NULL;
    r->status = status;
    r->streamed = streamed;
    r->left_out = !is_recorded(r, status) || !has_room(r);
    if (r->left_out)
        return 0;
    tell_request(r, streamed ? "begin" : NULL);
    if (!acts || audit_flush(r->recorder->audit, &why) == 0 ||
        audit_options_of(r->recorder->audit)->go_on)
        return 0;
    r->error = why.code;
    *err = why;
    return -1;
}

static void ended(void *ctx, bool whole)
{
    struct record *r = ctx;
    co_set_local(r->recorder->loop, NULL);
    if (r->has_stream)
        limits_stream_end(r->recorder->limits, r->streamer);
    r->has_stream = false;
    if (r->left_out && r->run != NULL)
        tell_run(r->run, NULL);
    if (r->left_out || !(r->streamed || !r->told))
        return;
    if (!whole && r->error == ERROR_NONE)
        r->error = ERROR_CANCELLED;
    if (!r->told && !(is_recorded(r, 0) && has_room(r)))
        return;
    bool acts = r->changes || r->run != NULL;
    tell_request(r, r->streamed ? "end" : NULL);
    if (acts)
        audit_flush(r->recorder->audit, NULL);
}

static const struct http_observer observer = {.answering = answering, .ended = ended};

void record_begin(struct http_exchange *x, const struct api *api, const struct dialect *dialect)
{
    struct record *r = arena_alloc(http_arena(x), sizeof(*r));
    *r = (struct record){.api = api,
                         .recorder = api->recorder,
                         .x = x,
                         .dialect = dialect,
                         .begun_us = now_us(),
                         .caller = caller_of_peer(http_request(x)->peer)};
    co_set_local(api->loop, r);
    http_observe(x, &observer, r);
}

/* --- what it is, and who --- */

/* What goes to ports is for what is behind them; a terminal is opened by a GET. */
static bool may_change(const struct route *route, enum route_class class, const char *method)
{
    if (class == ROUTE_CLASS_PROXY)
        return false;
    if (class == ROUTE_CLASS_STREAM && (route->scope & SCOPE_READ) == 0)
        return true;
    return strcmp(method, "GET") != 0 && strcmp(method, "HEAD") != 0 &&
           strcmp(method, "OPTIONS") != 0;
}

/* Which thing of the sandbox or the workspace it is about: parts of the path, but those that are
 * told anyway, those that open something, and what is another server's. */
static const char *target_of(const struct record *r, const struct route_params *params)
{
    static const char *const others[] = {"workspace", "name", "token"};
    struct buf text = BUF_INIT(HTTP_TARGET_MAX + 64);
    for (size_t i = 0; i < params->count; i++) {
        const char *name = params->items[i].name;
        bool hidden = r->class == ROUTE_CLASS_PROXY && strcmp(name, "path") == 0;
        for (size_t k = 0; k < sizeof(others) / sizeof(others[0]); k++)
            hidden |= strcmp(name, others[k]) == 0;
        if (hidden || params->items[i].value.len == 0)
            continue;
        if (text.len > 0)
            buf_addc(&text, ' ');
        buf_add(&text, params->items[i].value.data, params->items[i].value.len);
    }
    const char *target = text.len == 0 ? NULL : arena_dup(http_arena(r->x), text.data, text.len);
    buf_release(&text);
    return target;
}

static int admit(struct record *r, struct error *err)
{
    if (r->changes && audit_admit(r->recorder->audit, err) < 0)
        return -1;
    return limits_admit_address(r->recorder->limits, r->x, err);
}

int record_route(struct http_exchange *x, const struct route *route,
                 const struct route_params *params, struct error *err)
{
    struct record *r = record_of(x);
    if (r == NULL)
        return 0;
    r->route = route;
    r->class = route_class(route);
    r->changes = route != NULL && may_change(route, r->class, http_request(x)->method);
    if (route != NULL) {
        const char *name = route_param(params, "name");
        r->sandbox = name[0] == '\0' ? NULL : name;
        r->target = target_of(r, params);
    } else {
        r->target = http_request(x)->path;
    }
    if (r->class == ROUTE_CLASS_FREE)
        return 0;
    if (admit(r, err) < 0)
        return -1;
    if (route != NULL && (route->scope & SCOPE_PUBLIC) != 0 && !r->dialect->by_box)
        return limits_admit(r->recorder->limits, x, r->caller, r->class, err);
    return 0;
}

int record_visit(struct http_exchange *x, const char *sandbox_id, struct error *err)
{
    struct record *r = record_of(x);
    if (r == NULL)
        return 0;
    r->class = ROUTE_CLASS_PROXY;
    r->sandbox_id = arena_strdup(http_arena(x), sandbox_id);
    if (admit(r, err) < 0)
        return -1;
    return limits_admit(r->recorder->limits, x, r->caller, r->class, err);
}

int record_caller(struct http_exchange *x, const struct principal *principal, const char *workspace,
                  struct error *err)
{
    struct record *r = record_of(x);
    if (r == NULL)
        return 0;
    struct arena *arena = http_arena(x);
    r->key_id = arena_strdup(arena, principal->key_id);
    r->key = arena_strdup(arena, principal->name);
    r->workspace = workspace;
    r->caller = caller_of_principal(principal, http_request(x)->peer);
    return r->class == ROUTE_CLASS_FREE
               ? 0
               : limits_admit(r->recorder->limits, x, r->caller, r->class, err);
}

int record_box(struct http_exchange *x, const char *workspace, const char *sandbox_id,
               struct error *err)
{
    struct record *r = record_of(x);
    if (r == NULL)
        return 0;
    r->key = "(sandbox token)";
    r->workspace = workspace;
    r->sandbox_id = sandbox_id;
    r->caller = caller_of_sandbox(sandbox_id);
    return limits_admit(r->recorder->limits, x, r->caller, r->class, err);
}

int record_stream(struct http_exchange *x, struct error *err)
{
    struct record *r = record_of(x);
    return r == NULL ? 0 : take_stream(r, err);
}

int record_exec(struct http_exchange *x, struct error *err)
{
    struct record *r = record_of(x);
    if (r == NULL)
        return 0;
    if (audit_admit(r->recorder->audit, err) < 0)
        return -1;
    return limits_admit_more(r->recorder->limits, http_request(x)->peer, r->caller,
                             ROUTE_CLASS_EXEC, err);
}

void record_error(struct http_exchange *x, enum error_code code)
{
    struct record *r = record_of(x);
    if (r != NULL)
        r->error = code;
}

struct caller record_caller_of(const struct http_exchange *x)
{
    const struct record *r = record_of(x);
    return r == NULL ? caller_of_peer(http_request(x)->peer) : r->caller;
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

static void name_sandbox(struct record *r, const char *name, const char *id)
{
    r->sandbox = arena_strdup(http_arena(r->x), name);
    r->sandbox_id = arena_strdup(http_arena(r->x), id);
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
    struct arena *arena = arena_new();
    struct recorded_run *run = arena_alloc(arena, sizeof(*run));
    *run = (struct recorded_run){.arena = arena,
                                 .record = r,
                                 .sandbox_id = arena_strdup(arena, seen->sandbox_id),
                                 .sandbox = arena_strdup(arena, seen->sandbox),
                                 .user = arena_strdup(arena, seen->user),
                                 .cwd = arena_strdup(arena, seen->cwd),
                                 .language = arena_strdup(arena, seen->language),
                                 .text = text_of(arena, seen),
                                 .begun_us = now_us()};
    if (r->sandbox == NULL || r->sandbox_id == NULL)
        name_sandbox(r, seen->sandbox, seen->sandbox_id);
    if (r->run != NULL)
        tell_run(r->run, r->run->ended ? NULL : "begin");
    run->next = recorder->running;
    if (run->next != NULL)
        run->next->previous = run;
    recorder->running = run;
    run->counted = true;
    r->run = run;
    name_request(r);
    if (r->status == 0) {            /* its answer is to come */
        audit_wake(recorder->audit); /* a line on it soon, should it take long */
        return run;
    }
    tell_run(run, "begin");
    audit_flush(recorder->audit, NULL);
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
        run_told(run);
        return;
    }
    tell_run(run, "end");
    audit_flush(recorder->audit, NULL);
}

static void sandbox_made(void *ctx, const char *workspace, const char *name, const char *id)
{
    const struct recorder *recorder = ctx;
    struct record *r = co_local(recorder->loop);
    if (r == NULL)
        return;
    name_sandbox(r, name, id);
}

/* Commands that are under way, before the log is written. */
static void tick(void *ctx)
{
    struct recorder *recorder = ctx;
    for (struct recorded_run *run = recorder->running, *next; run != NULL; run = next) {
        next = run->next;
        if (!run->ended)
            tell_run(run, "begin");
    }
}

void recorder_init(struct recorder *recorder, struct loop *loop, struct audit *audit,
                   struct limits *limits, struct sandboxes *sandboxes)
{
    *recorder = (struct recorder){.loop = loop, .audit = audit, .limits = limits};
    random_id(recorder->prefix, RECORD_PREFIX_LEN);
    recorder->witness = (struct command_witness){
        .begun = command_begun, .ended = command_ended, .made = sandbox_made, .ctx = recorder};
    audit_set_tick(audit, tick, recorder);
    sandboxes_set_witness(sandboxes, &recorder->witness);
}
