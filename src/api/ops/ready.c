/* SPDX-License-Identifier: Apache-2.0 */

/*
 * GET /ready: whether a load balancer should send requests here. Unlike /health, which tells that
 * the process is alive, it looks at what a request needs: the database, the privileged process,
 * room on the disk, an audit log that can be written; and it says no as soon as the server is on
 * its way out.
 */

#include "api/call.h"
#include "api/handlers.h"
#include "api/record.h"
#include "base/cleanup.h"
#include "sandbox/readiness.h"

int ops_ready(struct http_exchange *x, const struct route_params *params, void *ctx,
              struct error *err)
{
    const struct api_call *call = ctx;
    struct readiness ready;
    struct error why;
    sandboxes_readiness(call->api->sandboxes, &ready);
    const struct {
        const char *name, *problem; /* "": none */
    } checks[] = {
        {"store", ready.store},
        {"warden", ready.warden},
        {"disk", ready.disk},
        {"audit", audit_admit(call->api->recorder->audit, &why) < 0 ? error_name(why.code) : ""},
        {"draining", call->api->draining ? "the server is shutting down" : ""},
    };
    bool all = true;
    yyjson_mut_val *root;
    yyjson_mut_doc *doc = api_json_new(http_arena(x), &root);
    yyjson_mut_val *list = yyjson_mut_obj(doc);
    for (size_t i = 0; i < ARRAY_LEN(checks); i++) {
        bool ok = checks[i].problem[0] == '\0';
        yyjson_mut_obj_add_str(doc, list, checks[i].name, ok ? "ok" : checks[i].problem);
        all = all && ok;
    }
    yyjson_mut_obj_add_str(doc, root, "status", all ? "ready" : "not ready");
    yyjson_mut_obj_add_val(doc, root, "checks", list);
    http_set_header(x, "Cache-Control", "no-store");
    return api_reply_json(x, all ? 200 : 503, doc, err);
}
