/* SPDX-License-Identifier: Apache-2.0 */

/* GET /health of a sandbox: it is well when its agent answers a question, so one is asked. */

#include "api/blaxel/handlers.h"
#include "api/call.h"
#include "sandbox/processes.h"

int box_health(struct http_exchange *x, const struct route_params *params, void *ctx,
               struct error *err)
{
    const struct api_call *call = ctx;
    const char *name = route_param(params, "name");
    struct agent_process *items = NULL;
    struct sandbox_info info;
    size_t count = 0;
    if (sandbox_process_list(call->api->sandboxes, call->workspace, name, http_arena(x), &items,
                             &count, err) < 0 ||
        sandboxes_get(call->api->sandboxes, call->workspace, name, http_arena(x), &info, err) < 0)
        return -1;
    yyjson_mut_val *root;
    yyjson_mut_doc *doc = api_json_new(http_arena(x), &root);
    yyjson_mut_obj_add_str(doc, root, "status", "ok");
    yyjson_mut_obj_add_str(doc, root, "version", CELLA_VERSION);
    yyjson_mut_obj_add_str(doc, root, "os", "linux");
    yyjson_mut_obj_add_int(doc, root, "uptimeSeconds", (time_now_ms() - info.created_ms) / 1000);
    return api_reply_json(x, 200, doc, err);
}
