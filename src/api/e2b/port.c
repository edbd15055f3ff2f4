/* SPDX-License-Identifier: Apache-2.0 */

/* Who may come in to a port of E2B's, and the way there. */

#include "api/e2b/port.h"

#include <stdio.h>
#include <string.h>

#include "api/call.h"
#include "api/e2b/spec.h"
#include "api/live.h"
#include "api/port_proxy.h"
#include "api/record.h"
#include "auth/box_token.h"
#include "base/limits.h"
#include "sandbox/publish.h"

#define TOKEN_FIELD "E2b-Traffic-Access-Token"

bool e2b_port_is_open(struct http_exchange *x, const struct api *api, const char *sandbox_id,
                      uint16_t port)
{
    struct sandbox_info info;
    struct port_info published;
    return sandboxes_get_by_id(api->sandboxes, sandbox_id, http_arena(x), &info, NULL) == 0 &&
           info.metadata.e2b_spec != NULL &&
           port_find(api->sandboxes, sandbox_id, port, http_arena(x), &published, NULL) == 0 &&
           published.generation[0] == '\0';
}

int e2b_traffic_check(struct http_exchange *x, const struct api *api, const char *sandbox_id,
                      struct error *err)
{
    return auth_box_check(api->auth, BOX_TRAFFIC, sandbox_id, http_header(x, TOKEN_FIELD),
                          http_request(x)->peer, err);
}

static int admit(struct http_exchange *x, const struct api *api, const struct sandbox_info *info,
                 const struct e2b_spec *spec, struct error *err)
{
    struct error why = {0};
    if (e2b_spec_is_public(spec) || e2b_traffic_check(x, api, info->id, &why) == 0)
        return 0;
    if (why.code == ERROR_TOO_MANY_ATTEMPTS) {
        *err = why;
        return -1;
    }
    return error_set(err, ERROR_FORBIDDEN,
                     "the sandbox's ports ask for its traffic token: send " TOKEN_FIELD);
}

/* bound: the sandbox whose token let it in; NULL: everybody is let in. */
static int proxy(struct http_exchange *x, const struct api_call *call,
                 const struct proxy_target *target, const char *bound, struct error *err)
{
    struct live_call mine;
    live_begin(call->api->live, &mine, co_self(call->api->loop), "");
    mine.sandbox = bound;
    int rc = api_proxy_port(x, call, target, err);
    live_end(call->api->live, &mine);
    return rc < 0 && mine.cancelled
               ? error_set(err, ERROR_UNAUTHORIZED, "the sandbox's tokens were revoked meanwhile")
               : rc;
}

int e2b_port_serve(struct http_exchange *x, const struct api *api, const char *sandbox_id,
                   uint16_t port, bool own_origin, struct error *err)
{
    const char *path = http_request(x)->path;
    struct sandbox_info info;
    struct e2b_spec spec;
    if (!e2b_port_is_open(x, api, sandbox_id, port))
        return error_set(err, ERROR_SANDBOX_NOT_FOUND, "The sandbox was not found");
    if (sandboxes_get_by_id(api->sandboxes, sandbox_id, http_arena(x), &info, err) < 0)
        return -1;
    e2b_spec_read(http_arena(x), info.metadata.e2b_spec, &spec);
    if (admit(x, api, &info, &spec, err) < 0 || record_guest(x, info.workspace, err) < 0)
        return -1;
    if (path[0] != '/')
        return error_set(err, ERROR_INVALID_ARGUMENT, "\"%.40s\" is not a path", path);
    const struct api_call call = {.api = api, .workspace = info.workspace};
    const struct proxy_target target = {.sandbox = info.id,
                                        .port = port,
                                        .host = e2b_spec_mask(http_arena(x), &spec, port),
                                        .path = slice_of(path + 1),
                                        .prefix = "",
                                        .own_origin = own_origin};
    return proxy(x, &call, &target, e2b_spec_is_public(&spec) ? NULL : info.id, err);
}
