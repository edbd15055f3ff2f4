/* SPDX-License-Identifier: Apache-2.0 */

/*
 * One request and its answer. Whatever the handler does or leaves undone, exactly one answer goes
 * out, and the connection goes on only when it is certain where the next request begins.
 */

#include <strings.h>

#include "base/log.h"
#include "http/conn.h"

/* --- access to the request --- */

const struct http_request *http_request(const struct http_exchange *x)
{
    return &x->head.request;
}

void http_set_peer(struct http_exchange *x, const char *peer)
{
    x->head.request.peer = peer;
}

struct arena *http_arena(struct http_exchange *x)
{
    return x->arena;
}

struct memory_account *http_memory(const struct http_exchange *x)
{
    return x->account;
}

struct loop *http_loop(const struct http_exchange *x)
{
    return x->conn->server->loop;
}

void http_set_route(struct http_exchange *x, const char *route, unsigned api, unsigned kind)
{
    x->route = route;
    x->api = api;
    x->kind = kind;
}

bool http_is_ending(const struct http_exchange *x)
{
    return x->conn->server->closing && !x->conn->gone && !x->cut;
}

bool http_can_tell(const struct http_exchange *x, struct error *why)
{
    if (why->code != ERROR_CANCELLED)
        return true;
    if (!http_is_ending(x))
        return false;
    error_set(why, ERROR_UNAVAILABLE, "the server is shutting down");
    return true;
}

bool http_is_tls(const struct http_exchange *x)
{
    return !conn_is_plain(x->conn);
}

const char *http_header(const struct http_exchange *x, const char *name)
{
    const struct http_request *request = &x->head.request;
    for (size_t i = 0; i < request->header_count; i++)
        if (strcasecmp(request->headers[i].name, name) == 0)
            return request->headers[i].value;
    return NULL;
}

/* The media type that a field's value begins with. */
static bool begins_with_type(const char *value, const char *type)
{
    size_t len = strlen(type);
    if (value == NULL || strncasecmp(value, type, len) != 0)
        return false;
    value += len;
    value += strspn(value, " \t");
    return *value == '\0' || *value == ';' || *value == ',';
}

int http_accepts(const struct http_exchange *x, const char *type)
{
    return begins_with_type(http_header(x, "Accept"), type);
}

int http_content_is(const struct http_exchange *x, const char *type)
{
    return begins_with_type(http_header(x, "Content-Type"), type);
}

/* --- watching --- */

void http_observe(struct http_exchange *x, const struct http_observer *observer, void *ctx)
{
    x->observer = observer;
    x->observer_ctx = ctx;
}

int exchange_answering(struct http_exchange *x, int status, bool streamed, struct error *err)
{
    if (x->observer == NULL)
        return 0;
    int rc = x->observer->answering(x->observer_ctx, status, streamed, err);
    return status >= 400 ? 0 : rc;
}

/* --- running it --- */

static int take_fault(enum conn_fault fault, struct error *err)
{
    if (fault == CONN_HEAD_TIMEOUT)
        return error_set(err, ERROR_REQUEST_TIMEOUT, "the header did not come in time");
    return error_set(err, ERROR_INVALID_HTTP, "the header ends too early");
}

static int take_head(struct http_exchange *x, struct error *err)
{
    struct http_conn *c = x->conn;
    if (c->fault != CONN_NO_FAULT)
        return take_fault(c->fault, err);
    /* The connection has scanned it, but does not keep why it was bad. */
    struct head_scan scan = {0};
    const char *data = c->in + c->in_start;
    if (head_scan(&scan, data, conn_buffered(c), &c->server->limits, err) != HEAD_WHOLE)
        return -1;
    if (request_parse(x->arena, data + scan.start, scan.at - scan.start, &x->head, err) != 0)
        return -1;
    x->head.request.peer = c->peer;
    c->in_start += scan.at;
    c->scan = (struct head_scan){0};
    return 0;
}

/* Something for those who look at a request that could not be read. */
static void empty_request(struct http_exchange *x)
{
    x->head = (struct request_head){.request = {.method = "",
                                                .target = "",
                                                .path = "",
                                                .query = "",
                                                .host = "",
                                                .peer = x->conn->peer}};
    x->close = true;
    x->body_done = true;
}

static void reply_failure(struct http_exchange *x, struct error *why)
{
    http_can_tell(x, why);
    if (why->code == ERROR_INTERNAL)
        log_error("%s %s: %s", x->head.request.method, x->head.request.path, why->message);
    http_reply_error(x, why, NULL);
}

/* Sees to it that there is one whole answer; false when the connection has to be cut instead. */
static bool complete_answer(struct http_exchange *x, int rc, struct error *why)
{
    if (x->conn->gone)
        return false;
    if (rc != 0 && x->conn->upgraded)
        return false;
    if (rc != 0 && x->state != ANSWER_NONE)
        return x->state == ANSWER_ENDED && !x->cut;
    if (rc == 0 && x->state == ANSWER_NONE)
        rc = error_set(why, ERROR_INTERNAL, "the request was not answered");
    if (rc != 0)
        reply_failure(x, why);
    else if (x->state == ANSWER_STARTED)
        http_reply_end(x, NULL);
    return !x->cut && x->state == ANSWER_ENDED;
}

/* What no handler gets to see; the others count for themselves. */
static void count_refusal(struct meters *meters, enum error_code code)
{
    meter_error(meters, code);
    if (code == ERROR_REQUEST_TIMEOUT)
        meter_count(meters, METER_TIMEOUT_REQUEST);
}

static enum exchange_end run(struct http_exchange *x)
{
    struct http_server *server = x->conn->server;
    struct error err = {.code = ERROR_INTERNAL};
    int rc = take_head(x, &err);
    if (rc != 0)
        empty_request(x);
    request_scope_begin(x);
    if (rc != 0) {
        count_refusal(loop_meters(server->loop), err.code);
    } else {
        body_begin(x);
        rc = server->handler(x, server->ctx, &err);
    }
    bool whole = complete_answer(x, rc, &err);
    request_scope_end(x, whole);
    if (!whole)
        return EXCHANGE_CUT;
    if (x->close || !body_drain(x))
        return EXCHANGE_CLOSE;
    return x->conn->gone || server->closing ? EXCHANGE_CLOSE : EXCHANGE_NEXT;
}

enum exchange_end exchange_run(struct http_conn *c)
{
    struct memory_account account = {.server = &c->server->memory};
    struct arena *arena = arena_new_for(&account);
    struct http_exchange *x = arena_alloc(arena, sizeof(*x));
    x->conn = c;
    x->arena = arena;
    x->account = &account;
    buf_init(&x->fields, c->server->limits.headers_max);
    enum exchange_end end = run(x);
    if (x->observer != NULL)
        x->observer->ended(x->observer_ctx, end != EXCHANGE_CUT);
    buf_release(&x->fields);
    arena_free(arena);
    memory_set_owner(&account, NULL);
    return end;
}
