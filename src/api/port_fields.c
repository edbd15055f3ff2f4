/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Fields through the port proxy. Two things must not happen: a field of one connection that is
 * understood on the other (RFC 9110, 7.6.1), and a secret of this server's, or of a browser's for
 * this server's origin, in the hands of a program in a sandbox.
 */

#include "api/port_fields.h"

#include <string.h>
#include <strings.h>

#include "api/cookie.h"
#include "auth/recognize.h"
#include "base/cleanup.h"
#include "http/parse.h"
#include "http/upgrade.h"
#include "sandbox/sandbox.h"

enum { OWN_FIELDS = 8 };

static bool among(const char *name, const char *const *names)
{
    for (; *names != NULL; names++)
        if (strcasecmp(*names, name) == 0)
            return true;
    return false;
}

/* Of one connection, or made anew from what was parsed. */
static const char *const hop_by_hop[] = {
    "Connection",
    "Keep-Alive",
    "Proxy-Connection",
    "Proxy-Authenticate",
    "Proxy-Authorization",
    "TE",
    "Trailer",
    "Transfer-Encoding",
    "Upgrade",
    "Content-Length",
    NULL,
};

static const char *const request_only[] = {
    "Host",
    "Expect",
    "HTTP2-Settings",
    /* this server's */
    "X-Api-Key",
    "X-Blaxel-Authorization",
    "X-Blaxel-Preview-Token",
    "X-Blaxel-Workspace",
    "X-Cella-Port-Token",
    "X-Cella-Workspace",
    "X-Cella-Timeout",
    "E2b-Traffic-Access-Token",
    /* said anew: a client's word would be a lie that the program believes */
    "Forwarded",
    "Via",
    "X-Forwarded-For",
    "X-Forwarded-Host",
    "X-Forwarded-Port",
    "X-Forwarded-Prefix",
    "X-Forwarded-Proto",
    "X-Real-IP",
    NULL,
};

static bool is_set_by(struct slice list, const char *name)
{
    size_t len = strlen(name);
    strv_each (header, list)
        if (strncasecmp(header, name, len) == 0 && header[len] == ':')
            return true;
    return false;
}

static struct http_header split(struct arena *arena, const char *header)
{
    size_t len = strcspn(header, ":");
    return (struct http_header){arena_dup(arena, header, len), header + len + 2};
}

/* Whether a Connection field of the message names it. */
static bool is_named(const char *name, const struct http_header *headers, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (strcasecmp(headers[i].name, "Connection") == 0 && http_list_has(headers[i].value, name))
            return true;
    return false;
}

/* --- the request --- */

const char *port_wants_upgrade(const struct http_exchange *x)
{
    const char *protocol = http_header(x, "Upgrade");
    return protocol != NULL && http_wants_upgrade(x, protocol) ? protocol : NULL;
}

/* An Authorization is the program's own only when ours came in another field, and it is none of
 * ours all the same. */
static bool is_programs_own(struct http_exchange *x, const struct api_call *call, const char *value)
{
    if (call->credential_field != NULL && strcasecmp(call->credential_field, "Authorization") == 0)
        return false;
    struct slice text = auth_bearer(value);
    if (text.data == NULL)
        return true;
    const char *token = arena_dup(http_arena(x), text.data, text.len);
    return !auth_recognizes(call->api->auth, http_arena(x), token);
}

/* X-Access-Token is a name that programs use, too: ours is the one that opens this sandbox, or the
 * one that it names itself ("id:token"). */
static bool opens_sandbox(struct http_exchange *x, const struct api_call *call,
                          const struct proxy_target *target, const char *value)
{
    const struct auth *auth = call->api->auth;
    const char *colon = strchr(value, ':');
    struct sandbox_info info;
    if (auth == NULL)
        return false;
    if (colon != NULL)
        return auth_recognizes_box(auth, arena_dup(http_arena(x), value, (size_t)(colon - value)),
                                   colon + 1);
    return sandboxes_get(call->api->sandboxes, call->workspace, target->sandbox, http_arena(x),
                         &info, NULL) == 0 &&
           auth_recognizes_box(auth, info.id, value);
}

static bool request_passes(struct http_exchange *x, const struct api_call *call,
                           const struct proxy_target *target, const struct http_header *h)
{
    const struct http_request *request = http_request(x);
    if (among(h->name, hop_by_hop) || among(h->name, request_only) ||
        is_set_by(target->request_headers, h->name) ||
        is_named(h->name, request->headers, request->header_count))
        return false;
    if (call->credential_field != NULL && strcasecmp(call->credential_field, h->name) == 0)
        return false;
    if (strcasecmp(h->name, "Authorization") == 0)
        return is_programs_own(x, call, h->value);
    if (strcasecmp(h->name, "X-Access-Token") == 0)
        return !opens_sandbox(x, call, target, h->value);
    if (strcasecmp(h->name, "Cookie") == 0)
        return target->own_origin && cookie_for_program(http_arena(x), h->value) != NULL;
    /* A page that was opened with a token in its address tells it in here. */
    if (strcasecmp(h->name, "Referer") == 0)
        return strstr(h->value, "token=") == NULL;
    return true;
}

static const char *peer_address(struct http_exchange *x)
{
    const char *peer = http_request(x)->peer, *colon = strrchr(peer, ':');
    if (colon == NULL)
        return NULL; /* a unix socket */
    size_t len = (size_t)(colon - peer);
    if (len > 1 && peer[0] == '[')
        return arena_dup(http_arena(x), peer + 1, len - 2);
    return arena_dup(http_arena(x), peer, len);
}

struct http_header *port_request_fields(struct http_exchange *x, const struct api_call *call,
                                        const struct proxy_target *target, const char *upgrade,
                                        size_t *ret_count)
{
    const struct http_request *request = http_request(x);
    size_t n = 0, extra = 0;
    strv_each (header, target->request_headers)
        extra += header[0] != '\0';
    struct http_header *headers =
        arena_alloc(http_arena(x), (request->header_count + OWN_FIELDS + extra) * sizeof(*headers));
    strv_each (header, target->request_headers)
        headers[n++] = split(http_arena(x), header);
    for (size_t i = 0; i < request->header_count; i++) {
        struct http_header h = request->headers[i];
        if (!request_passes(x, call, target, &h))
            continue;
        if (strcasecmp(h.name, "Cookie") == 0)
            h.value = cookie_for_program(http_arena(x), h.value);
        headers[n++] = h;
    }
    const char *url = call->api->public_url, *peer = peer_address(x);
    bool https =
        http_is_tls(x) || (url != NULL && !target->plain && strncasecmp(url, "https:", 6) == 0);
    if (peer != NULL)
        headers[n++] = (struct http_header){"X-Forwarded-For", peer};
    headers[n++] = (struct http_header){"X-Forwarded-Host", request->host};
    headers[n++] = (struct http_header){"X-Forwarded-Proto", https ? "https" : "http"};
    if (target->prefix[0] != '\0')
        headers[n++] = (struct http_header){"X-Forwarded-Prefix", target->prefix};
    headers[n++] = (struct http_header){"Via", "1.1 cella"};
    if (upgrade != NULL) {
        headers[n++] = (struct http_header){"Connection", "Upgrade"};
        headers[n++] = (struct http_header){"Upgrade", upgrade};
    }
    *ret_count = n;
    return headers;
}

/* Tokens of this server that a browser may carry in an address. */
static const char *const query_secrets[] = {"bl_preview_token", "cella_token", NULL};

static bool is_secret(const char *item, size_t len)
{
    for (const char *const *name = query_secrets; *name != NULL; name++)
        if (len >= strlen(*name) && strncasecmp(item, *name, strlen(*name)) == 0 &&
            (len == strlen(*name) || item[strlen(*name)] == '='))
            return true;
    return false;
}

const char *port_request_target(struct http_exchange *x, const struct proxy_target *target)
{
    const char *query = http_request(x)->query;
    size_t cap = target->path.len + strlen(query) + 3, at = 0;
    char *text = arena_alloc(http_arena(x), cap);
    text[at++] = '/';
    if (target->path.len > 0)
        memcpy(text + at, target->path.data, target->path.len);
    at += target->path.len;
    char mark = '?';
    while (*query != '\0') {
        size_t len = strcspn(query, "&");
        if (!is_secret(query, len)) {
            text[at++] = mark;
            memcpy(text + at, query, len);
            at += len;
            mark = '&';
        }
        query += len + (query[len] == '&');
    }
    return text;
}

/* --- the answer --- */

/* Ours are there already. */
static const char *const answer_only[] = {"Date", "Server", NULL};

/* What a program may say about its own origin, but not about the API's. */
static const char *const own_origin_only[] = {
    "Set-Cookie",
    "Clear-Site-Data",
    "Strict-Transport-Security",
    "Service-Worker-Allowed",
    "Public-Key-Pins",
    "Alt-Svc",
    NULL,
};

void port_answer_fields(struct http_exchange *x, const struct proxy_target *target,
                        const struct http_answer *answer)
{
    if (target->own_origin)
        http_clear_headers(x); /* what was set for the API's own */
    for (size_t i = 0; i < answer->header_count; i++) {
        const struct http_header *h = &answer->headers[i];
        if (among(h->name, hop_by_hop) || among(h->name, answer_only) ||
            is_set_by(target->response_headers, h->name) ||
            is_named(h->name, answer->headers, answer->header_count))
            continue;
        if (!target->own_origin &&
            (among(h->name, own_origin_only) || strncasecmp(h->name, "Access-Control-", 15) == 0))
            continue;
        const char *value = strcasecmp(h->name, "Set-Cookie") == 0
                                ? cookie_from_program(http_arena(x), h->value)
                                : h->value;
        if (value != NULL)
            http_set_header(x, h->name, "%s", value);
    }
    if (target->cookie != NULL)
        http_set_header(x, "Set-Cookie", "%s", target->cookie);
    strv_each (header, target->response_headers) {
        struct http_header set = split(http_arena(x), header);
        http_set_header(x, set.name, "%s", set.value);
    }
    if (!target->own_origin)
        http_set_header(x, "Content-Security-Policy",
                        "sandbox allow-downloads allow-forms allow-modals allow-popups "
                        "allow-scripts");
}
