/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Requests as lines of the audit log (what they run: record_runs.c). A line is made in the log's
 * own buffer, from what the record points at: a request that only looks at something costs a few
 * hundred bytes in memory here, and a share of one write.
 */

#include "api/record.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "api/observed.h"
#include "api/record_state.h"
#include "base/buf.h"
#include "base/errand.h"
#include "base/limits.h"
#include "base/names.h"
#include "base/timetext.h"
#include "loop/co.h"

int64_t record_now_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static struct record *record_of(const struct http_exchange *x)
{
    return co_local(http_loop(x));
}

void record_name_request(struct record *r)
{
    const struct errand *errand = co_errand(r->recorder->loop);
    if (r->who.request_id != NULL)
        return;
    if (errand != NULL && errand->request_id[0] != '\0')
        r->who.request_id = arena_strdup(http_arena(r->x), errand->request_id);
    else
        r->who.request_id = arena_printf(http_arena(r->x), "%s-%llu", r->recorder->prefix,
                                         (unsigned long long)++r->recorder->requests);
}

void record_name_sandbox(struct record *r, const char *name, const char *id)
{
    r->sandbox = arena_strdup(http_arena(r->x), name);
    r->sandbox_id = arena_strdup(http_arena(r->x), id);
}

/* --- lines --- */

void record_add_who(struct buf *line, const struct recorded_who *who)
{
    char text[WORD_SHOWN_MAX];
    audit_add_text(line, "requestId", slice_of(who->request_id), WORD_SHOWN_MAX);
    audit_add_text(line, "keyId", slice_of(who->key_id), WORD_SHOWN_MAX);
    audit_add_text(line, "key", slice_of(who->key), WORD_SHOWN_MAX);
    audit_add_text(line, "workspace", slice_of(who->workspace), WORD_SHOWN_MAX);
    audit_add_text(line, "address", slice_of(who->address), WORD_SHOWN_MAX);
    audit_add_text(line, "api", slice_of(who->dialect->name), WORD_SHOWN_MAX);
    audit_add_text(line, "class", slice_of(route_class_name(who->class)), WORD_SHOWN_MAX);
    const char *path = who->route != NULL                ? who->route->path
                       : who->class == ROUTE_CLASS_PROXY ? "(port)"
                                                         : "(none)";
    snprintf(text, sizeof(text), "%.16s %s", who->method, path);
    audit_add_text(line, "operation", slice_of(text), WORD_SHOWN_MAX);
}

static void add_request_line(struct buf *line, struct record *r, const char *phase)
{
    audit_add_text(line, "phase", slice_of(phase), WORD_SHOWN_MAX);
    record_name_request(r);
    record_add_who(line, &r->who);
    audit_add_text(line, "sandbox", slice_of(r->sandbox), WORD_SHOWN_MAX);
    audit_add_text(line, "sandboxId", slice_of(r->sandbox_id), WORD_SHOWN_MAX);
    audit_add_text(line, "target", slice_of(r->target), TARGET_SHOWN_MAX);
    if (r->run != NULL)
        record_add_run(line, r->run);
    if (r->status != 0)
        audit_add_number(line, "status", r->status);
    if (r->error != ERROR_NONE)
        audit_add_text(line, "error", slice_of(error_name(r->error)), WORD_SHOWN_MAX);
    audit_add_us(line, "durationMs", record_now_us() - r->begun_us);
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
        recorded_run_told(r->run);
}

/* --- the exchange --- */

static bool is_recorded(const struct record *r, int status)
{
    const struct audit_options *options = audit_options_of(r->recorder->audit);
    bool preflight = r->who.route == NULL && strcmp(http_request(r->x)->method, "OPTIONS") == 0;
    if (options->off || preflight)
        return false;
    if (r->who.class == ROUTE_CLASS_FREE)
        return status == 401 || status == 403;
    return !options->no_reads || r->changes || r->run != NULL || status == 401 || status == 403;
}

static bool was_refused(const struct record *r)
{
    return r->status == 401 || r->status == 403 || r->status == 429;
}

static bool removes(const struct record *r)
{
    return r->changes && strcmp(r->who.method, "DELETE") == 0;
}

/* What was run, or changed by somebody who is known, always has its line. There is only so much
 * room for the rest: for all those together whom nobody knows, and for each of the others. */
static bool has_room(const struct record *r)
{
    bool known = r->who.key != NULL;
    if (audit_saves_room(r->recorder->audit) && r->run == NULL && !removes(r)) {
        audit_skip(r->recorder->audit);
        return false;
    }
    if (r->run != NULL || (known && r->changes && !was_refused(r)))
        return true;
    if (!known)
        return audit_spare(r->recorder->audit, time_now_ms());
    if (audit_options_of(r->recorder->audit)->all_reads ||
        limits_take_line(r->recorder->limits, r->caller))
        return true;
    audit_skip(r->recorder->audit);
    return false;
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
        recorded_run_tell(r->run, NULL);
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
                         .who = {.address = http_request(x)->peer,
                                 .method = http_request(x)->method,
                                 .dialect = dialect},
                         .begun_us = record_now_us(),
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
        bool hidden = r->who.class == ROUTE_CLASS_PROXY && strcmp(name, "path") == 0;
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

/* Removing must work on a full disk: it is what makes room. */
static int admit_change(struct record *r, struct error *err)
{
    if (!r->changes)
        return 0;
    return removes(r) ? audit_admit_removal(r->recorder->audit, err)
                      : audit_admit(r->recorder->audit, err);
}

static int admit(struct record *r, struct error *err)
{
    if (admit_change(r, err) < 0)
        return -1;
    return limits_admit_address(r->recorder->limits, r->x, err);
}

static void settle_route(struct record *r, const struct route *route,
                         const struct route_params *params)
{
    r->who.route = route;
    r->who.class = route_class(route);
    r->changes = route != NULL && may_change(route, r->who.class, r->who.method);
    if (route != NULL) {
        const char *name = route_param(params, "name");
        r->sandbox = name[0] == '\0' ? NULL : name;
        r->target = target_of(r, params);
    } else {
        r->target = http_request(r->x)->path;
    }
}

int record_route(struct http_exchange *x, const struct route *route,
                 const struct route_params *params, struct error *err)
{
    struct record *r = record_of(x);
    if (r == NULL)
        return 0;
    settle_route(r, route, params);
    if (r->who.class == ROUTE_CLASS_FREE)
        return 0;
    if (admit(r, err) < 0)
        return -1;
    if (route != NULL && (route->scope & SCOPE_PUBLIC) != 0 && !r->who.dialect->by_box)
        return limits_admit(r->recorder->limits, x, r->caller, r->who.class, err);
    return 0;
}

int record_visit(struct http_exchange *x, const char *sandbox_id, struct error *err)
{
    struct record *r = record_of(x);
    if (r == NULL)
        return 0;
    r->who.class = ROUTE_CLASS_PROXY;
    r->sandbox_id = arena_strdup(http_arena(x), sandbox_id);
    if (admit(r, err) < 0)
        return -1;
    return limits_admit(r->recorder->limits, x, r->caller, r->who.class, err);
}

int record_guest(struct http_exchange *x, const char *workspace, struct error *err)
{
    struct record *r = record_of(x);
    if (r == NULL)
        return 0;
    r->caller = caller_in(r->caller, workspace);
    return limits_admit_guest(r->recorder->limits, x, r->caller, r->who.class, err);
}

static void name_caller(struct record *r, const struct principal *principal, const char *workspace)
{
    struct arena *arena = http_arena(r->x);
    http_vouch(r->x);
    r->who.key_id = arena_strdup(arena, principal->key_id);
    r->who.key = arena_strdup(arena, principal->name);
    r->who.workspace = arena_strdup(arena, workspace);
}

void record_client(struct http_exchange *x, const struct principal *principal)
{
    struct record *r = record_of(x);
    if (r != NULL)
        name_caller(r, principal, principal->workspace);
}

int record_caller(struct http_exchange *x, const struct principal *principal, const char *workspace,
                  struct error *err)
{
    struct record *r = record_of(x);
    if (r == NULL)
        return 0;
    name_caller(r, principal, workspace);
    r->caller = caller_in(caller_of_principal(principal, http_request(x)->peer), workspace);
    return r->who.class == ROUTE_CLASS_FREE
               ? 0
               : limits_admit(r->recorder->limits, x, r->caller, r->who.class, err);
}

int record_box(struct http_exchange *x, const char *workspace, const char *sandbox_id,
               struct error *err)
{
    struct record *r = record_of(x);
    if (r == NULL)
        return 0;
    http_vouch(x);
    r->who.key = "(sandbox token)";
    r->who.workspace = workspace;
    r->sandbox_id = sandbox_id;
    r->caller = caller_in(caller_of_sandbox(sandbox_id), workspace);
    return limits_admit(r->recorder->limits, x, r->caller, r->who.class, err);
}

int record_session(struct http_exchange *x, const struct recorded_session *session,
                   struct error *err)
{
    struct record *r = record_of(x);
    if (r == NULL)
        return 0;
    settle_route(r, session->route, session->params);
    if (admit_change(r, err) < 0)
        return -1;
    int rc = record_box(x, session->workspace, session->sandbox_id, err);
    r->who.key = "(preview token)";
    r->sandbox = session->sandbox;
    return rc;
}

int record_stranger(struct http_exchange *x, const char *workspace, const char *sandbox_id,
                    struct error *err)
{
    struct record *r = record_of(x);
    if (r == NULL)
        return 0;
    r->who.workspace = workspace;
    r->sandbox_id = sandbox_id;
    if (limits_admit(r->recorder->limits, x, r->caller, r->who.class, err) < 0)
        return -1;
    return record_guest(x, workspace, err);
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

void record_failure(struct http_exchange *x, const struct error *why)
{
    struct record *r = record_of(x);
    if (r == NULL || r->failed)
        return; /* a stream that could not tell its failure to the end fails by that, too */
    r->failed = true;
    r->error = why->code;
    observed_error(r->api, why);
}

struct caller record_caller_of(const struct http_exchange *x)
{
    const struct record *r = record_of(x);
    return r == NULL ? caller_of_peer(http_request(x)->peer) : r->caller;
}

void recorder_init(struct recorder *recorder, struct loop *loop, struct audit *audit,
                   struct limits *limits, struct sandboxes *sandboxes)
{
    *recorder = (struct recorder){.loop = loop, .audit = audit, .limits = limits};
    random_id(recorder->prefix, RECORD_PREFIX_LEN);
    recorder_witness(recorder, sandboxes);
}
