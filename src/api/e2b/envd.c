/* SPDX-License-Identifier: Apache-2.0 */

/* Inside a sandbox: whether it is there, and the two services of connect/. */

#include <string.h>

#include "api/call.h"
#include "api/connect/box.h"
#include "api/e2b/door.h"
#include "api/e2b/handlers.h"
#include "api/e2b/sandbox_json.h"
#include "api/secret_env.h"
#include "api/v0/env.h"

/* Asks for no token: whether a sandbox is there is what a client asks before anything else. */
int e2b_health(struct http_exchange *x, const struct route_params *params, void *ctx,
               struct error *err)
{
    const struct api_call *call = ctx;
    if (e2b_box_runs(x, call->api, err) < 0)
        return -1;
    return e2b_reply_nothing(x, err);
}

int e2b_filesystem(struct http_exchange *x, const struct route_params *params, void *ctx,
                   struct error *err)
{
    const struct api_call *call = ctx;
    struct connect_box box;
    if (e2b_box(x, call->api, E2B_NEEDS_TOKEN, NULL, &box, err) < 0)
        return -1;
    return connect_filesystem(x, &box, route_param(params, "method"), err);
}

int e2b_process(struct http_exchange *x, const struct route_params *params, void *ctx,
                struct error *err)
{
    const struct api_call *call = ctx;
    struct connect_box box;
    if (e2b_box(x, call->api, E2B_NEEDS_TOKEN, NULL, &box, err) < 0)
        return -1;
    return connect_process(x, &box, route_param(params, "method"), err);
}

/* GET /envs: the environment that the sandbox's commands start with. */
int e2b_envs(struct http_exchange *x, const struct route_params *params, void *ctx,
             struct error *err)
{
    const struct api_call *call = ctx;
    struct connect_box box;
    struct sandbox_info info;
    if (e2b_box(x, call->api, E2B_NEEDS_TOKEN, "root", &box, err) < 0 ||
        sandboxes_get_by_id(call->api->sandboxes, box.sandbox, http_arena(x), &info, err) < 0)
        return -1;
    yyjson_mut_doc *doc = json_doc(http_arena(x));
    yyjson_mut_doc_set_root(doc, env_to_json(doc, secret_env_shown(http_arena(x), &info)));
    return api_reply_json(x, 200, doc, err);
}
