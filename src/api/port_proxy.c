/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The port proxy: one coroutine for the answer, and while there is a body a second one for that, so
 * that a program may answer before it has read everything, or while it reads.
 *
 * A connection is kept for the next request when the answer was read to its end. A kept one may
 * turn out to be dead; only requests that can be sent twice without harm go on one.
 */

#include "api/port_proxy.h"

#include <string.h>
#include <sys/socket.h>

#include "api/port_fields.h"
#include "base/cleanup.h"
#include "base/limits.h"
#include "http/client.h"
#include "http/parse.h"
#include "http/upgrade.h"
#include "loop/net.h"
#include "loop/task.h"
#include "sandbox/tunnel.h"

enum { PIECE = 32 * 1024, MUCH = 32 * 1024 };

struct proxy {
    struct http_exchange *x;
    const struct api_call *call;
    const struct proxy_target *target;
    struct tunnel *tunnel;
    struct http_client *client;
    const char *upgrade; /* the protocol asked for; NULL: none */
    int64_t timeout_ms;

    struct task body;
    bool body_failed; /* the client's fault */
    struct error body_error;
};

/* --- the request --- */

/* Runs beside the answer. What the program does not take is no failure: it may have answered. What
 * the client does not send is one, and the program is left. */
static void send_body(void *arg)
{
    struct proxy *p = arg;
    char piece[PIECE];
    ssize_t n;
    while ((n = http_body_read(p->x, piece, sizeof(piece), &p->body_error)) > 0)
        if (http_client_write(p->client, piece, (size_t)n, NULL) != 0)
            return;
    if (n == 0)
        http_client_end(p->client, NULL);
    p->body_failed = n < 0;
    if (p->body_failed)
        shutdown(tunnel_fd(p->tunnel), SHUT_RDWR); /* wakes whoever waits for the answer */
}

static int send_request(struct proxy *p, struct error *err)
{
    const struct http_request *request = http_request(p->x);
    struct http_call call = {
        .method = request->method,
        .target = port_request_target(p->x, p->target),
        .content_length = request->content_length,
        .timeout_ms = p->timeout_ms,
        .upgrade = p->upgrade != NULL,
        .duplex = request->content_length != 0,
    };
    call.headers = port_request_fields(p->x, p->call, p->target, p->upgrade, &call.header_count);
    if (http_client_send(p->client, &call, err) != 0)
        return -1;
    if (!call.duplex)
        return 0;
    return task_start(http_loop(p->x), &p->body, send_body, p, err);
}

/* --- the answer --- */

/* -1: unknown. For HEAD it is what the fields say, though no body comes. */
static int64_t answer_length(struct proxy *p, const struct http_answer *answer)
{
    const char *length = http_answer_header(answer, "Content-Length");
    uint64_t value;
    if (strcmp(http_request(p->x)->method, "HEAD") != 0)
        return answer->content_length;
    return length != NULL && api_parse_uint(length, 0, INT64_MAX, &value) ? (int64_t)value : -1;
}

static int send_answer(struct proxy *p, const struct http_answer *answer, struct error *err)
{
    if (answer->status < 200 || answer->status > 599)
        return error_set(err, ERROR_UPSTREAM_FAILED, "the program answered with status %d",
                         answer->status);
    if (answer->content_length < 0 || answer->content_length > MUCH)
        tunnel_unwatch(p->tunnel); /* who pumps has a watch of his own */
    port_answer_fields(p->x, p->target, answer);
    if (http_reply_start(p->x, answer->status, NULL, answer_length(p, answer), err) != 0)
        return -1;
    uint64_t moved;
    do
        if (http_client_forward(p->client, p->x, &moved, err) != 0)
            return -1;
    while (moved > 0);
    return http_reply_end(p->x, err);
}

/* --- another protocol --- */

static int join(struct proxy *p, const struct http_answer *answer, struct error *err)
{
    struct loop *loop = http_loop(p->x);
    const char *protocol = http_answer_header(answer, "Upgrade");
    const char *connection = http_answer_header(answer, "Connection");
    if (protocol == NULL || connection == NULL || !http_list_has(connection, "upgrade") ||
        !http_list_has(p->upgrade, protocol))
        return error_set(err, ERROR_UPSTREAM_FAILED,
                         "the program switched to a protocol that was not asked for");
    int inside = tunnel_fd(p->tunnel), outside = -1;
    struct slice from_client, from_program;
    port_answer_fields(p->x, p->target, answer);
    http_client_detach(p->client, &from_program);
    tunnel_unwatch(p->tunnel);
    if (http_upgrade(p->x, protocol, &outside, &from_client, err) != 0 ||
        net_write(loop, outside, from_program.data, from_program.len, p->timeout_ms, err) != 0 ||
        net_write(loop, inside, from_client.data, from_client.len, p->timeout_ms, err) != 0)
        return -1;
    return net_relay(loop, outside, inside, TUNNEL_IDLE_MS, err);
}

/* --- together --- */

/* What went wrong, in the words of somebody who asked for a port. */
static int explain(const struct proxy *p, const struct error *why, struct error *err)
{
    if (p->body_failed)
        return error_set(err, p->body_error.code, "%s", p->body_error.message);
    if (why->code == ERROR_INVALID_HTTP || why->code == ERROR_HEADERS_TOO_LARGE ||
        why->code == ERROR_NOT_IMPLEMENTED || why->code == ERROR_URI_TOO_LONG ||
        why->code == ERROR_PAYLOAD_TOO_LARGE)
        return error_set(err, ERROR_UPSTREAM_FAILED,
                         "what listens on port %u does not answer in HTTP/1.1: %s", p->target->port,
                         why->message);
    if (why->code == ERROR_UNAVAILABLE)
        return error_set(err, ERROR_UPSTREAM_FAILED,
                         "what listens on port %u closed the connection without a whole answer",
                         p->target->port);
    if (why->code == ERROR_TIMEOUT)
        return error_set(err, ERROR_TIMEOUT, "what listens on port %u said nothing for %lld s",
                         p->target->port, (long long)(p->timeout_ms / 1000));
    return error_set(err, why->code, "%s", why->message);
}

static int run(struct proxy *p, struct error *err)
{
    struct error why = {0};
    struct http_answer answer;
    int rc = send_request(p, &why);
    if (rc == 0)
        rc = http_client_answer(p->client, &answer, &why);
    if (rc == 0 && answer.status == 101)
        rc = join(p, &answer, &why);
    else if (rc == 0)
        rc = send_answer(p, &answer, &why);
    task_stop(&p->body);
    return rc == 0 ? 0 : explain(p, &why, err);
}

/* RFC 9110, 9.2.2, without a body: sent twice, it is as if it were sent once. */
static bool is_repeatable(const struct proxy *p)
{
    static const char *const methods[] = {"GET", "HEAD", "OPTIONS", "PUT", "DELETE"};
    if (http_request(p->x)->content_length != 0 || p->upgrade != NULL)
        return false;
    for (size_t i = 0; i < ARRAY_LEN(methods); i++)
        if (strcmp(methods[i], http_request(p->x)->method) == 0)
            return true;
    return false;
}

/* One try. *ret_again: the connection was a kept one, and dead. */
static int try(struct proxy *p, bool may_reuse, bool *ret_again, struct error *err)
{
    const struct api_call *call = p->call;
    const char *host = p->target->host != NULL
                           ? p->target->host
                           : arena_printf(http_arena(p->x), "localhost:%u", p->target->port);
    *ret_again = false;
    if (sandbox_tunnel(call->api->sandboxes, call->workspace, p->target->sandbox, p->target->port,
                       may_reuse, &p->tunnel, err) != 0)
        return -1;
    p->client =
        http_client_on(http_loop(p->x), tunnel_fd(p->tunnel), host, tunnel_wait, p->tunnel, err);
    int rc = p->client == NULL ? -1 : run(p, err);
    *ret_again = rc != 0 && tunnel_was_used(p->tunnel) && !http_started(p->x) &&
                 err->code == ERROR_UPSTREAM_FAILED;
    bool keep = rc == 0 && http_client_is_reusable(p->client);
    http_client_free(p->client);
    p->client = NULL;
    if (keep)
        tunnel_keep(p->tunnel);
    else
        tunnel_close(p->tunnel);
    p->tunnel = NULL;
    return rc;
}

static int take_timeout(struct proxy *p, struct error *err)
{
    const char *text = http_header(p->x, "X-Cella-Timeout");
    uint64_t seconds = PROXY_TIMEOUT_MS / 1000;
    if (text != NULL && !api_parse_uint(text, 1, PROXY_TIMEOUT_MAX_S, &seconds))
        return error_set(err, ERROR_INVALID_ARGUMENT,
                         "X-Cella-Timeout: \"%.40s\" is not a number of seconds from 1 to %d", text,
                         PROXY_TIMEOUT_MAX_S);
    p->timeout_ms = (int64_t)seconds * 1000;
    return 0;
}

int api_proxy_port(struct http_exchange *x, const struct api_call *call,
                   const struct proxy_target *target, struct error *err)
{
    struct proxy p = {.x = x, .call = call, .target = target, .upgrade = port_wants_upgrade(x)};
    struct error why = {0};
    bool again;
    if (take_timeout(&p, err) != 0)
        return -1;
    int rc = try(&p, is_repeatable(&p), &again, &why);
    if (rc != 0 && again)
        rc = try(&p, false, &again, &why);
    return rc == 0 ? 0 : error_set(err, why.code, "%s", why.message);
}
