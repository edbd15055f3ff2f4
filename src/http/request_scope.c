/* SPDX-License-Identifier: Apache-2.0 */

/*
 * On whose behalf a coroutine answers a request, and what came of it. The errand belongs to the
 * coroutine, which may serve several requests of a connection one after the other.
 */

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/cleanup.h"
#include "http/conn.h"
#include "loop/co.h"
#include "observe/trace_context.h"

const char *request_id(const struct http_exchange *x)
{
    const struct errand *errand = co_errand(x->conn->server->loop);
    return errand == NULL ? "" : errand->request_id;
}

static bool id_is_right(const char *text)
{
    static const char marks[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._:-";
    size_t len = strnlen(text, REQUEST_ID_MAX + 1);
    return len > 0 && len <= REQUEST_ID_MAX && strspn(text, marks) == len;
}

static void make_id(struct id_source *ids, char *out)
{
    static const char digits[] = "0123456789abcdef";
    for (int half = 0; half < 2; half++) {
        uint64_t number = id_next(ids);
        for (int i = 0; i < 16; i++, number >>= 4)
            *out++ = digits[number & 15];
    }
    *out = '\0';
}

/* What the fields say. Two traceparents are as good as none. */
struct scope_fields {
    const char *id, *parent;
    unsigned parents;
    bool has_state;
};

static void find_fields(const struct http_request *request, struct scope_fields *ret_fields)
{
    *ret_fields = (struct scope_fields){0};
    for (size_t i = 0; i < request->header_count; i++) {
        const struct http_header *h = &request->headers[i];
        char first = h->name[0];
        if (first != 'x' && first != 'X' && first != 't' && first != 'T')
            continue;
        if (strcasecmp(h->name, "X-Request-Id") == 0)
            ret_fields->id = h->value;
        else if (strcasecmp(h->name, "traceparent") == 0) {
            ret_fields->parent = h->value;
            ret_fields->parents++;
        } else if (strcasecmp(h->name, "tracestate") == 0)
            ret_fields->has_state = true;
    }
}

static void take_state(const struct http_request *request, struct errand *errand)
{
    for (size_t i = 0; i < request->header_count; i++)
        if (strcasecmp(request->headers[i].name, "tracestate") == 0 &&
            !trace_state_add(request->headers[i].value, errand))
            return;
}

void request_scope_begin(struct http_exchange *x)
{
    struct http_server *server = x->conn->server;
    struct errand *errand = co_errand(server->loop);
    const struct http_request *request = &x->head.request;
    struct scope_fields fields;
    x->begun_ns = meter_now();
    if (errand == NULL)
        return;
    find_fields(request, &fields);
    memset(errand, 0, offsetof(struct errand, tracestate) + 1);
    if (fields.id != NULL && id_is_right(fields.id))
        memcpy(errand->request_id, fields.id, strlen(fields.id) + 1);
    else
        make_id(&server->ids, errand->request_id);
    if (fields.parents == 1 && trace_parent_parse(fields.parent, errand) && fields.has_state)
        take_state(request, errand);
    span_begin_request(server->tracer, errand, &x->span);
}

/* "127.0.0.1:4711", "[::1]:4711"; anything else is an address as a whole, with port 0: none. */
static void split_peer(struct arena *arena, const char *peer, const char **ret_address,
                       int64_t *ret_port)
{
    bool bracketed = peer[0] == '[';
    const char *end = bracketed ? strstr(peer, "]:") : strrchr(peer, ':');
    *ret_address = peer;
    *ret_port = 0;
    if (end == NULL)
        return;
    *ret_address = arena_printf(arena, "%.*s", (int)(end - peer) - bracketed, peer + bracketed);
    *ret_port = strtol(end + 1 + bracketed, NULL, 10);
}

/* "GET /v0/sandbox/{name}", as OpenTelemetry wants a server's spans to be called. */
static void end_span(struct http_exchange *x, struct errand *errand)
{
    const struct http_request *request = &x->head.request;
    const char *address;
    int64_t port;
    if (!x->span.recorded)
        return;
    split_peer(x->arena, request->peer, &address, &port);
    const struct span_attribute attributes[] = {
        {.name = "http.request.method", .text = request->method},
        {.name = "url.path", .text = request->path},
        {.name = "http.route", .text = x->route != NULL ? x->route : ""},
        {.name = "url.scheme", .text = http_is_tls(x) ? "https" : "http"},
        {.name = "client.address", .text = address},
        {.name = "cella.request_id", .text = errand->request_id},
        {.name = "http.response.status_code", .number = x->status},
        {.name = "client.port", .number = port}, /* the last: it may be missing */
    };
    struct error why = {.code = ERROR_INTERNAL};
    x->span.name =
        arena_printf(x->arena, "%s %s", request->method, x->route != NULL ? x->route : "");
    bool failed = x->status >= 500 || x->status == 0; /* 4xx is no error of a server's */
    span_end(errand, &x->span, SPAN_SERVER, failed ? &why : NULL, attributes,
             ARRAY_LEN(attributes) - (port == 0));
}

void request_scope_end(struct http_exchange *x, bool whole)
{
    struct http_server *server = x->conn->server;
    struct errand *errand = co_errand(server->loop);
    const struct http_summary summary = {
        .request = &x->head.request,
        .route = x->route,
        .api = x->api,
        .kind = x->kind,
        .status = x->status,
        .cut = !whole,
        .sent = x->sent,
        .seconds = (double)(meter_now() - x->begun_ns) / 1e9,
    };
    if (server->recorder != NULL)
        server->recorder(x, &summary, server->ctx);
    if (errand != NULL)
        end_span(x, errand);
}
