/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Who may come in to a port. To somebody without a key or token a port that is private, one that
 * asks for a token and one that does not exist look the same. What opens a port opens that port and
 * nothing else: its token is signed for one sandbox, one port and one generation of it.
 */

#include "api/port_serve.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "api/authorize.h"
#include "api/confine.h"
#include "api/cookie.h"
#include "api/live.h"
#include "api/origin.h"
#include "api/port_fields.h"
#include "api/port_proxy.h"
#include "api/record.h"
#include "auth/token.h"
#include "auth/workspaces.h"
#include "base/cleanup.h"
#include "base/limits.h"

enum { LIVE_NAME_SIZE = SANDBOX_ID_LEN + 8 };

const char *port_token_audience(struct arena *arena, const struct port_info *info)
{
    return arena_printf(arena, "port/%s/%u/%s", info->sandbox_id, info->port, info->generation);
}

static const char *cookie_name(struct arena *arena, const struct port_info *info)
{
    return arena_printf(arena, COOKIE_PORT_PREFIX "%u_%s", info->port, info->sandbox_id);
}

/* --- who may --- */

struct pass {
    struct api_call call;
    bool plain;         /* as port_visit's */
    const char *cookie; /* for a browser that has shown a token in its address; NULL */
};

/* A browser that came with the token in the address has to show it again on its next step. */
static const char *cookie_for(struct http_exchange *x, const struct port_info *info,
                              const struct pass *pass, const char *in_query)
{
    const char *url = pass->call.api->public_url;
    bool https =
        http_is_tls(x) || (!pass->plain && url != NULL && strncasecmp(url, "https:", 6) == 0);
    if (in_query == NULL || !http_accepts(x, "text/html"))
        return NULL;
    return arena_printf(http_arena(x), "%s=%s; Path=/; HttpOnly; SameSite=Lax%s",
                        cookie_name(http_arena(x), info), in_query, https ? "; Secure" : "");
}

/* 1: it opens the port; 0: none does that was shown. */
static int shows_token(struct http_exchange *x, const struct api *api, const struct port_info *info,
                       struct pass *pass, struct error *err)
{
    struct arena *arena = http_arena(x);
    const char *in_query = NULL;
    if (http_query(x, PORT_TOKEN_QUERY, &in_query, err) < 0)
        return -1;
    const char *const shown[] = {
        http_header(x, PORT_TOKEN_FIELD),
        in_query,
        cookie_get(arena, http_header(x, "Cookie"), cookie_name(arena, info)),
    };
    const char *audience = port_token_audience(arena, info);
    for (size_t i = 0; i < ARRAY_LEN(shown); i++) {
        struct token_claims claims;
        if (shown[i] != NULL &&
            auth_token_verify(api->auth, shown[i], audience, arena, &claims, NULL) == 0) {
            pass->cookie = cookie_for(x, info, pass, shown[i] == in_query ? in_query : NULL);
            return 1;
        }
    }
    return 0;
}

static int shows_key(struct http_exchange *x, const struct port_info *info, struct pass *pass,
                     struct error *err)
{
    const struct auth *auth = pass->call.api->auth;
    const char *workspace;
    if (api_authorize(x, SCOPE_WRITE | ROUTE_FORWARDS | ROUTE_INSIDE, &pass->call, err) < 0) {
        if (err->code == ERROR_UNAUTHORIZED)
            error_set(err, ERROR_UNAUTHORIZED,
                      "this port is open to those who send a key (X-Api-Key), or a token for it "
                      "(" PORT_TOKEN_FIELD ", or " PORT_TOKEN_QUERY " in the query)");
        return -1;
    }
    /* Another's, and one that does not exist, look the same. */
    if (info == NULL || !confine_allows(&pass->call.principal, info->sandbox_id) ||
        auth_workspace_enter(auth, &pass->call.principal, info->workspace, http_arena(x),
                             &workspace, NULL) < 0)
        return error_set(err, ERROR_SANDBOX_NOT_FOUND, "there is no such sandbox");
    return 0;
}

/* info NULL: there is no such sandbox. */
static int admit(struct http_exchange *x, const struct port_info *info, struct pass *pass,
                 struct error *err)
{
    const struct api *api = pass->call.api;
    if (info != NULL && info->access == PORT_PUBLIC)
        return 0;
    if (origin_check_own(x, api, err) < 0)
        return -1;
    if (info != NULL && info->access == PORT_TOKEN) {
        int shown = shows_token(x, api, info, pass, err);
        if (shown != 0)
            return shown < 0 ? -1 : 0;
    }
    return shows_key(x, info, pass, err);
}

/* --- serving --- */

static void live_name(char out[LIVE_NAME_SIZE], const char *sandbox_id, uint16_t port)
{
    snprintf(out, LIVE_NAME_SIZE, "%u-%s", port, sandbox_id);
}

void port_serve_end(const struct api *api, const char *sandbox_id, uint16_t port)
{
    char name[LIVE_NAME_SIZE];
    live_name(name, sandbox_id, port);
    live_cancel(api->live, name, NULL);
}

/* A token in an address is told to every page that a link leads to, and stays in the browser's
 * history: the browser goes on without it. An address of two slashes would lead it elsewhere. */
static bool is_to_go_on(struct http_exchange *x, const struct pass *pass)
{
    const struct http_request *request = http_request(x);
    return pass->cookie != NULL && strcmp(request->method, "GET") == 0 &&
           port_wants_upgrade(x) == NULL && request->path[1] != '/' && request->path[1] != '\\';
}

static int go_on(struct http_exchange *x, const struct proxy_target *target, struct error *err)
{
    http_set_header(x, "Set-Cookie", "%s", target->cookie);
    http_set_header(x, "Location", "%s", port_request_target(x, target));
    http_set_header(x, "Cache-Control", "no-store");
    http_set_header(x, "Referrer-Policy", "no-referrer");
    return http_reply(x, 303, "text/plain", "", 0, err);
}

static int proxy(struct http_exchange *x, const struct pass *pass,
                 const struct proxy_target *target, struct error *err)
{
    struct live_calls *live = pass->call.api->live;
    struct co *co = co_self(pass->call.api->loop);
    char name[LIVE_NAME_SIZE];
    struct live_call by_key, by_port;
    live_name(name, target->sandbox, target->port);
    live_begin(live, &by_key, co, pass->call.principal.key_id);
    by_key.sandbox = pass->call.principal.sandbox;
    live_begin(live, &by_port, co, name);
    int rc = api_proxy_port(x, &pass->call, target, err);
    live_end(live, &by_port);
    live_end(live, &by_key);
    if (rc < 0 && (by_key.cancelled || by_port.cancelled))
        return error_set(err, ERROR_UNAUTHORIZED,
                         "the port is not open any more to those who were let in before");
    /* What it is called is not for strangers. */
    if (rc < 0 && err->code == ERROR_NOT_RUNNING && pass->call.principal.name[0] == '\0')
        return error_set(err, ERROR_NOT_RUNNING, "what is behind this address does not run");
    return rc;
}

int port_serve(struct http_exchange *x, const struct api *api, const struct port_visit *visit,
               struct error *err)
{
    const char *path = http_request(x)->path;
    struct port_info info;
    struct pass pass = {.call = {.api = api}, .plain = visit->plain};
    bool found =
        port_find(api->sandboxes, visit->sandbox_id, visit->port, http_arena(x), &info, NULL) == 0;
    if (admit(x, found ? &info : NULL, &pass, err) < 0)
        return -1;
    if (path[0] != '/')
        return error_set(err, ERROR_INVALID_ARGUMENT, "\"%.40s\" is not a path", path);
    pass.call.workspace = info.workspace;
    if ((pass.call.principal.name[0] == '\0'
             ? record_guest(x, info.workspace, err)
             : record_caller(x, &pass.call.principal, info.workspace, err)) < 0)
        return -1;
    const struct proxy_target target = {.sandbox = info.sandbox_id,
                                        .port = info.port,
                                        .path = slice_of(path + 1),
                                        .prefix = "",
                                        .own_origin = true,
                                        .plain = visit->plain,
                                        .cookie = pass.cookie};
    return is_to_go_on(x, &pass) ? go_on(x, &target, err) : proxy(x, &pass, &target, err);
}
