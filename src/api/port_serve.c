/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Who may come in to a port. To somebody without a key or token a port that is private, one that
 * asks for a token and one that does not exist look the same. What opens a port opens that port and
 * nothing else: its token is signed for one sandbox, one port and one generation of it.
 */

#include "api/port_serve.h"

#include <stdio.h>
#include <string.h>

#include "api/authorize.h"
#include "api/cookie.h"
#include "api/live.h"
#include "api/origin.h"
#include "api/port_proxy.h"
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
    const char *cookie; /* for a browser that has shown a token in its address; NULL */
};

/* A browser that came with the token in the address has to show it again on its next step. */
static const char *cookie_for(struct http_exchange *x, const struct port_info *info,
                              const char *in_query)
{
    if (in_query == NULL || !http_accepts(x, "text/html"))
        return NULL;
    return arena_printf(http_arena(x), "%s=%s; Path=/; HttpOnly; SameSite=Lax",
                        cookie_name(http_arena(x), info), in_query);
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
            pass->cookie = cookie_for(x, info, shown[i] == in_query ? in_query : NULL);
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
    if (api_authorize(x, SCOPE_WRITE | ROUTE_FORWARDS, &pass->call, err) < 0) {
        if (err->code == ERROR_UNAUTHORIZED)
            error_set(err, ERROR_UNAUTHORIZED,
                      "this port is open to those who send a key (X-Api-Key), or a token for it "
                      "(" PORT_TOKEN_FIELD ", or " PORT_TOKEN_QUERY " in the query)");
        return -1;
    }
    /* Another's, and one that does not exist, look the same. */
    if (info == NULL || auth_workspace_enter(auth, &pass->call.principal, info->workspace,
                                             http_arena(x), &workspace, NULL) < 0)
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

int port_serve(struct http_exchange *x, const struct api *api, const struct port_visit *visit,
               struct error *err)
{
    const char *path = http_request(x)->path;
    struct port_info info;
    struct pass pass = {.call = {.api = api}};
    bool found =
        port_find(api->sandboxes, visit->sandbox_id, visit->port, http_arena(x), &info, NULL) == 0;
    if (admit(x, found ? &info : NULL, &pass, err) < 0)
        return -1;
    if (path[0] != '/')
        return error_set(err, ERROR_INVALID_ARGUMENT, "\"%.40s\" is not a path", path);
    pass.call.workspace = info.workspace;
    const struct proxy_target target = {.sandbox = info.sandbox_id,
                                        .port = info.port,
                                        .path = slice_of(path + 1),
                                        .prefix = "",
                                        .own_origin = true,
                                        .plain = visit->plain,
                                        .cookie = pass.cookie};
    char name[LIVE_NAME_SIZE];
    struct live_call by_key, by_port;
    live_name(name, info.sandbox_id, info.port);
    live_begin(api->live, &by_key, co_self(api->loop), pass.call.principal.key_id);
    live_begin(api->live, &by_port, co_self(api->loop), name);
    int rc = api_proxy_port(x, &pass.call, &target, err);
    live_end(api->live, &by_port);
    live_end(api->live, &by_key);
    if (rc < 0 && (by_key.cancelled || by_port.cancelled))
        return error_set(err, ERROR_UNAUTHORIZED,
                         "the port is not open any more to those who were let in before");
    return rc;
}
