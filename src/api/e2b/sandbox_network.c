/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Changing what a sandbox that runs may reach. The clients send all of it each time, but for what
 * is about its ports, which stays as it was made.
 */

#include "api/e2b/sandbox_network.h"

#include "api/blaxel/members.h"
#include "api/call.h"
#include "api/e2b/handlers.h"
#include "api/e2b/sandbox_json.h"
#include "api/e2b/spec.h"
#include "api/e2b_network.h"
#include "api/v0/sandbox_ca.h"
#include "api/v0/security_json.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "network/policy.h"

static const char *const about_ports[] = {"allowPublicTraffic", "maskRequestHost"};

/* What was sent, with what the sandbox was made with and this does not change. */
static int merge(struct arena *arena, yyjson_val *sent, yyjson_val *before, yyjson_val **ret,
                 struct error *err)
{
    yyjson_mut_doc *doc = json_doc(arena);
    yyjson_mut_val *root = sent == NULL ? yyjson_mut_obj(doc) : yyjson_val_mut_copy(doc, sent);
    yyjson_mut_doc_set_root(doc, root);
    for (size_t i = 0; i < ARRAY_LEN(about_ports); i++) {
        yyjson_val *value = yyjson_obj_get(before, about_ports[i]);
        yyjson_mut_obj_remove_key(root, about_ports[i]);
        if (value != NULL)
            yyjson_mut_obj_add_val(doc, root, about_ports[i], yyjson_val_mut_copy(doc, value));
    }
    return json_parse(arena, json_write(arena, doc, false), ret, err);
}

static bool has_headers(const struct sandbox_info *info)
{
    _cleanup_(net_policy_release) struct net_policy policy = {0};
    return net_policy_unpack(info->network, &policy, NULL) == 0 && policy.header_count > 0;
}

void e2b_network_trust(struct http_exchange *x, const struct api_call *call,
                       const struct sandbox_info *info)
{
    struct error why = {0};
    if (has_headers(info) && sandbox_ca_install(x, call, info->id, &why) < 0)
        log_warn("sandbox %s: its certificate authority: %s", info->id, why.message);
}

int e2b_sandbox_network(struct http_exchange *x, const struct route_params *params, void *ctx,
                        struct error *err)
{
    const struct api_call *call = ctx;
    struct arena *arena = http_arena(x);
    struct sandbox_info info;
    struct e2b_spec spec;
    yyjson_val *body;
    struct sandbox_update update = {.workspace = call->workspace,
                                    .security.may_loosen = security_may_loosen(call),
                                    .actor = call->principal.name};
    if (api_json_body(x, &body, err) < 0 ||
        e2b_sandbox_find(x, call, route_param(params, "name"), &info, err) < 0)
        return -1;
    e2b_spec_read(arena, info.metadata.e2b_spec, &spec);
    spec.internet = true; /* unless it is said again */
    if (member_bool(body, "", "allow_internet_access", &spec.internet, err) < 0 ||
        e2b_network_request(arena, body, spec.internet, &update.network, err) < 0 ||
        merge(arena, body, spec.network, &spec.network, err) < 0)
        return -1;
    update.name = info.id;
    update.e2b_spec = e2b_spec_text(arena, &spec);
    if (sandboxes_update(call->api->sandboxes, &update, arena, &info, err) < 0)
        return -1;
    if (info.status == SANDBOX_RUNNING)
        e2b_network_trust(x, call, &info);
    return e2b_reply_nothing(x, err);
}
