/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Pages and the API. Keys travel in fields that a page has to set itself, never in cookies, so a
 * browser adds nothing to a stranger's request, and letting every page read answers (`*`) gives
 * away no more than the server gives to everybody. That is not so without keys: docs/security.md.
 */

#include "api/origin.h"

#include <string.h>
#include <strings.h>

#include "api/port_host.h"
#include "auth/throttle.h"
#include "base/cleanup.h"
#include "http/parse.h"

enum { ASKED_MAX = 2048 }; /* of the fields that a page wants to set */

/* --- who may read --- */

void origin_fields(struct http_exchange *x, const struct api *api)
{
    const char *allowed = api->cors_origin, *origin = http_header(x, "Origin");
    if (allowed == NULL)
        return;
    bool all = strcmp(allowed, "*") == 0;
    if (!all)
        http_set_header(x, "Vary", "Origin");
    if (!all && (origin == NULL || !http_list_has(allowed, origin)))
        return;
    http_set_header(x, "Access-Control-Allow-Origin", "%s", all ? "*" : origin);
    http_set_header(x, "Access-Control-Expose-Headers", "*");
}

bool origin_is_preflight(const struct http_exchange *x)
{
    return strcmp(http_request(x)->method, "OPTIONS") == 0 && http_header(x, "Origin") != NULL &&
           http_header(x, "Access-Control-Request-Method") != NULL;
}

int origin_reply_options(struct http_exchange *x, const struct api *api, const char *methods,
                         struct error *err)
{
    const char *asked = http_header(x, "Access-Control-Request-Headers");
    if (api->cors_origin != NULL) {
        http_set_header(x, "Access-Control-Allow-Methods", "%s", methods);
        /* As asked: `*` does not cover Authorization. */
        if (asked != NULL && strlen(asked) <= ASKED_MAX)
            http_set_header(x, "Access-Control-Allow-Headers", "%s", asked);
        http_set_header(x, "Access-Control-Max-Age", "600");
    }
    return http_reply(x, 204, NULL, NULL, 0, err);
}

/* --- who may ask, where no key does --- */

/* The name in "name:port"; an address of IPv6 with its brackets. */
static struct slice name_of(const char *authority)
{
    size_t len = authority[0] == '[' ? strcspn(authority, "]") + 1 : strcspn(authority, ":");
    size_t all = strlen(authority);
    return (struct slice){authority, len < all ? len : all};
}

static const char *authority_of(const char *url)
{
    const char *at = strstr(url, "://");
    return at == NULL ? "" : at + 3;
}

static bool same_name(struct slice a, struct slice b)
{
    return a.len == b.len && strncasecmp(a.data, b.data, a.len) == 0;
}

static bool is_own_name(const struct api *api, struct slice name)
{
    static const char *const own[] = {"localhost", "127.0.0.1", "[::1]", ""};
    for (size_t i = 0; i < ARRAY_LEN(own); i++)
        if (same_name(name, slice_of(own[i])))
            return true;
    if (api->public_url == NULL)
        return false;
    const char *authority = authority_of(api->public_url);
    const char *copy = authority + strcspn(authority, "/:");
    return same_name(name, (struct slice){authority, (size_t)(copy - authority)});
}

static bool field_is(const struct http_exchange *x, const char *name, const char *value)
{
    const char *sent = http_header(x, name);
    return sent != NULL && strcmp(sent, value) == 0;
}

/* What a page asks for by an element (an image, a frame, a script) has no Origin, but browsers say
 * of it that a page of another origin wants it. Programs that are no browser say nothing. */
static bool is_foreign_element(const struct http_exchange *x)
{
    const char *site = http_header(x, "Sec-Fetch-Site");
    return site != NULL && strcmp(site, "none") != 0 && strcmp(site, "same-origin") != 0;
}

/* Somebody follows a link: what comes is shown to him, and to no page. */
static bool is_link(const struct http_exchange *x)
{
    return strcmp(http_request(x)->method, "GET") == 0 &&
           field_is(x, "Sec-Fetch-Mode", "navigate") && field_is(x, "Sec-Fetch-Dest", "document");
}

/* What is there to be linked to. */
static bool is_page_of_ours(const char *path)
{
    static const char previews[] = "/preview/";
    return strcmp(path, "/docs") == 0 || strncmp(path, previews, sizeof(previews) - 1) == 0;
}

/* A page of another origin than the one that it asks. linked: all of it may be linked to. */
static int check_page(struct http_exchange *x, const struct api *api, bool linked,
                      struct error *err)
{
    const struct http_request *request = http_request(x);
    const char *origin = http_header(x, "Origin");
    if (origin == NULL &&
        (!is_foreign_element(x) || (is_link(x) && (linked || is_page_of_ours(request->path)))))
        return 0;
    if (origin != NULL && (strcasecmp(authority_of(origin), request->host) == 0 ||
                           (api->cors_origin != NULL && http_list_has(api->cors_origin, origin))))
        return 0;
    return error_set(err, ERROR_FORBIDDEN,
                     "this server asks for no key, and serves no pages of other origins; "
                     "start it with keys, or with --cors-origin");
}

static bool is_open_to(struct http_exchange *x, const struct api *api)
{
    return api->open && strcmp(http_request(x)->peer, "unix") != 0;
}

/* Ports of the host may be on any address, and a proxy on this machine may stand for anybody: what
 * a stranger writes into Host does not make him a program of this machine. A proxy that was not
 * named to us is known by what it adds; a program that asks for itself has no reason to. */
static int check_peer(struct http_exchange *x, struct error *err)
{
    static const char *const added[] = {"X-Forwarded-For", "Forwarded", "Via", "X-Real-IP"};
    for (size_t i = 0; i < ARRAY_LEN(added); i++)
        if (http_header(x, added[i]) != NULL)
            return error_set(err, ERROR_FORBIDDEN,
                             "this server asks for no key, and serves nobody who comes through a "
                             "proxy (%s)",
                             added[i]);
    if (peer_is_local(http_request(x)->peer))
        return 0;
    return error_set(err, ERROR_FORBIDDEN,
                     "this server asks for no key, and serves requests from its own machine only");
}

static int check_open(struct http_exchange *x, const struct api *api, bool linked,
                      struct error *err)
{
    const struct http_request *request = http_request(x);
    if (!is_open_to(x, api))
        return 0;
    if (check_peer(x, err) < 0)
        return -1;
    if (!is_own_name(api, name_of(request->host)))
        return error_set(err, ERROR_FORBIDDEN,
                         "this server asks for no key, and serves requests to localhost only, not "
                         "to \"%.100s\"",
                         request->host);
    return check_page(x, api, linked, err);
}

int origin_check_open(struct http_exchange *x, const struct api *api, struct error *err)
{
    return check_open(x, api, false, err);
}

int origin_check_own(struct http_exchange *x, const struct api *api, struct error *err)
{
    struct port_host host;
    bool by_name =
        api->domain != NULL && port_host_parse(http_request(x)->host, api->domain, &host);
    if (!by_name)
        return check_open(x, api, true, err);
    if (!is_open_to(x, api))
        return 0;
    return check_peer(x, err) < 0 || check_page(x, api, true, err) < 0 ? -1 : 0;
}
