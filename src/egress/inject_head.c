/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What is passed on of a request and of its answer. Left out: what is between two neighbours only,
 * what the Connection field names (a client could name the added header there, and have the next
 * server drop it), encodings that would hide an echo, and what would lead the client past here
 * (Alt-Svc, Strict-Transport-Security, a Location with https:// for one that speaks plain HTTP).
 */

#include "egress/inject_head.h"

#include <inttypes.h>
#include <string.h>
#include <strings.h>

#include "base/cleanup.h"
#include "base/limits.h"
#include "egress/redact.h"

static const char *const between_neighbours[] = {
    "Connection",
    "Keep-Alive",
    "Proxy-Connection",
    "Proxy-Authorization",
    "Proxy-Authenticate",
    "TE",
    "Trailer",
    "Transfer-Encoding",
    "Upgrade",
    "Content-Length",
};
static const char *const not_of_requests[] = {
    "Host",
    "Expect",
    "Accept-Encoding",
    "Accept-Charset",
    "Upgrade-Insecure-Requests",
    "Sec-WebSocket-Extensions",
    /* A part of an answer may hold a part of a secret, which is found as a whole only. */
    "Range",
    "If-Range",
    "Request-Range",
};
static const char *const not_of_answers[] = {"Alt-Svc", "Strict-Transport-Security",
                                             "Accept-Ranges", "Sec-WebSocket-Extensions"};

enum { REASON_MAX = 80 };

static bool in_list(const char *const *list, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (strcasecmp(list[i], name) == 0)
            return true;
    return false;
}

static const char *field(const struct http_header *headers, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (strcasecmp(headers[i].name, name) == 0)
            return headers[i].value;
    return NULL;
}

/* Whether a Connection field names it. */
static bool named_by_connection(const struct http_header *headers, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (strcasecmp(headers[i].name, "Connection") == 0 && http_list_has(headers[i].value, name))
            return true;
    return false;
}

/* --- requests --- */

int inject_check_request(const struct inject_session *session, const struct request_head *head,
                         struct error *err)
{
    struct net_host host;
    uint16_t port, usual = session->tls ? 443 : 80;
    if (strcmp(head->request.method, "TRACE") == 0)
        return error_set(err, ERROR_METHOD_NOT_ALLOWED,
                         "TRACE would have the host send the secret back");
    if (net_authority_parse(slice_of(head->request.host), usual, &host, &port, err) < 0)
        return error_set(err, ERROR_INVALID_HTTP, "the Host field names no host");
    if (host.kind != NET_HOST_NAME || strcmp(host.name, session->host) != 0 || port != usual)
        return error_set(err, ERROR_INVALID_HTTP,
                         "this connection is for %s, and a request on it for another host",
                         session->host);
    return 0;
}

bool inject_wants_upgrade(const struct request_head *head)
{
    const struct http_request *request = &head->request;
    const char *upgrade = field(request->headers, request->header_count, "Upgrade");
    return upgrade != NULL && strcasecmp(upgrade, "websocket") == 0 && !head->http10 &&
           named_by_connection(request->headers, request->header_count, "Upgrade") &&
           strcmp(request->method, "GET") == 0;
}

static bool is_added(const struct inject_session *session, const char *name)
{
    const struct inject_header *header = NULL;
    while ((header = inject_next(session->inject, session->host, header)) != NULL)
        if (strcasecmp(header->name, name) == 0)
            return true;
    return false;
}

/* The first one of a name counts: the rules before others, and all before the client's own. */
static void add_secrets(struct buf *out, const struct inject_session *session)
{
    const struct inject_header *header = NULL, *earlier;
    while ((header = inject_next(session->inject, session->host, header)) != NULL) {
        for (earlier = inject_next(session->inject, session->host, NULL); earlier != header;
             earlier = inject_next(session->inject, session->host, earlier))
            if (strcasecmp(earlier->name, header->name) == 0)
                break;
        if (earlier == header)
            buf_addf(out, "%s: %s\r\n", header->name, header->value);
    }
}

void inject_write_request(struct buf *out, const struct inject_session *session,
                          const struct request_head *head, bool upgrade)
{
    const struct http_request *request = &head->request;
    buf_addf(out, "%s %s%s%s HTTP/1.1\r\nHost: %s\r\n", request->method, request->path,
             request->query[0] != '\0' ? "?" : "", request->query, session->host);
    for (size_t i = 0; i < request->header_count; i++) {
        const char *name = request->headers[i].name;
        if (in_list(between_neighbours, ARRAY_LEN(between_neighbours), name) ||
            in_list(not_of_requests, ARRAY_LEN(not_of_requests), name) ||
            named_by_connection(request->headers, request->header_count, name) ||
            is_added(session, name))
            continue;
        buf_addf(out, "%s: %s\r\n", name, request->headers[i].value);
    }
    buf_adds(out, "Accept-Encoding: identity\r\n");
    add_secrets(out, session);
    if (head->chunked)
        buf_adds(out, "Transfer-Encoding: chunked\r\n");
    else if (request->content_length > 0 || strcmp(request->method, "POST") == 0 ||
             strcmp(request->method, "PUT") == 0 || strcmp(request->method, "PATCH") == 0)
        buf_addf(out, "Content-Length: %" PRId64 "\r\n", request->content_length);
    buf_adds(out, upgrade ? "Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
                          : "Connection: keep-alive\r\n\r\n");
}

/* --- answers --- */

enum inject_framing inject_answer_framing(const struct answer_head *answer, bool to_head_request)
{
    if (to_head_request || answer->status == 204 || answer->status == 304)
        return FRAMING_NONE;
    if (answer->chunked)
        return FRAMING_CHUNKED;
    if (answer->content_length >= 0)
        return FRAMING_LENGTH;
    return FRAMING_TO_END;
}

static bool is_encoded(const struct answer_head *answer)
{
    for (size_t i = 0; i < answer->header_count; i++)
        if (strcasecmp(answer->headers[i].name, "Content-Encoding") == 0 &&
            strcasecmp(answer->headers[i].value, "identity") != 0)
            return true;
    return false;
}

int inject_check_answer(const struct inject_session *session, const struct answer_head *answer,
                        enum inject_framing framing, struct error *err)
{
    if (answer->status == 206)
        return error_set(err, ERROR_UPSTREAM_FAILED,
                         "%s sends a part of an answer (206): a secret cannot be taken out of "
                         "parts, so whole answers only are passed on",
                         session->host);
    if (framing != FRAMING_NONE && is_encoded(answer))
        return error_set(err, ERROR_UPSTREAM_FAILED,
                         "%s encodes its answer unasked, which cannot be searched for the "
                         "secret then",
                         session->host);
    return 0;
}

/* "https://host/…" of this host, which the client is to ask for as it asked for this. */
static const char *own_location(const struct inject_session *session, const char *value)
{
    static const char scheme[] = "https://";
    size_t len = strlen(session->host);
    if (session->tls || strncasecmp(value, scheme, sizeof(scheme) - 1) != 0)
        return NULL;
    const char *rest = value + sizeof(scheme) - 1;
    if (strncasecmp(rest, session->host, len) != 0)
        return NULL;
    rest += len;
    if (strncmp(rest, ":443", 4) == 0)
        rest += 4;
    return *rest == '\0' || *rest == '/' || *rest == '?' ? rest : NULL;
}

static void add_answer_field(struct buf *out, const struct inject_session *session,
                             struct redact *redact, const struct http_header *header)
{
    const char *rest =
        strcasecmp(header->name, "Location") == 0 ? own_location(session, header->value) : NULL;
    redact_text(redact, slice_of(header->name), out);
    buf_adds(out, ": ");
    if (rest != NULL)
        buf_addf(out, "http://%s", session->host);
    redact_text(redact, slice_of(rest != NULL ? rest : header->value), out);
    buf_adds(out, "\r\n");
}

void inject_write_answer(struct buf *out, const struct inject_session *session,
                         struct redact *redact, const struct answer_head *answer,
                         struct slice reason, enum inject_framing framing, bool close)
{
    buf_addf(out, "HTTP/1.1 %d ", answer->status);
    if (reason.len <= REASON_MAX)
        redact_text(redact, reason, out);
    buf_adds(out, "\r\n");
    for (size_t i = 0; i < answer->header_count; i++) {
        const char *name = answer->headers[i].name;
        if (in_list(between_neighbours, ARRAY_LEN(between_neighbours), name) ||
            in_list(not_of_answers, ARRAY_LEN(not_of_answers), name) ||
            named_by_connection(answer->headers, answer->header_count, name))
            continue;
        add_answer_field(out, session, redact, &answer->headers[i]);
    }
    if (answer->status == 101)
        buf_adds(out, "Connection: Upgrade\r\nUpgrade: websocket\r\n");
    else if (answer->content_length >= 0 && framing != FRAMING_CHUNKED && answer->status != 204 &&
             !is_encoded(answer)) /* the length of a packed echo says how well a guess fits */
        buf_addf(out, "Content-Length: %" PRId64 "\r\n", answer->content_length);
    if (framing == FRAMING_CHUNKED)
        buf_adds(out, "Transfer-Encoding: chunked\r\n");
    if (close)
        buf_adds(out, "Connection: close\r\n");
    buf_adds(out, "\r\n");
}
