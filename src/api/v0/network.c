/* SPDX-License-Identifier: Apache-2.0 */

/* /network/process/{pid}: the ports that a process and its children listen on, and being told of
 * them. */

#include "api/handlers.h"
#include "api/port_callback.h"
#include "api/v0/process.h"
#include "base/cleanup.h"
#include "sandbox/monitors.h"
#include "sandbox/ports.h"

int v0_process_ports(struct http_exchange *x, const struct route_params *params, void *ctx,
                     struct error *err)
{
    struct process_place place = process_place(params, ctx);
    struct agent_process process;
    struct agent_port *ports = NULL;
    size_t count = 0;

    if (sandbox_process_get(place.sandboxes, place.workspace, place.sandbox, place.process,
                            http_arena(x), &process, err) < 0 ||
        sandbox_process_ports(place.sandboxes, place.workspace, place.sandbox, place.process,
                              http_arena(x), &ports, &count, err) < 0)
        return -1;
    yyjson_mut_val *root;
    yyjson_mut_doc *doc = api_json_new(http_arena(x), &root);
    yyjson_mut_obj_add_uint(doc, root, "pid", process.pid);
    yyjson_mut_val *list = yyjson_mut_obj_add_arr(doc, root, "ports");
    for (size_t i = 0; i < count; i++) {
        char address[PORT_ADDRESS_MAX];
        yyjson_mut_val *item = yyjson_mut_arr_add_obj(doc, list);
        port_address_text(&ports[i], address);
        yyjson_mut_obj_add_uint(doc, item, "localPort", ports[i].port);
        yyjson_mut_obj_add_str(doc, item, "protocol",
                               ports[i].protocol == PORT_TCP ? "tcp" : "udp");
        yyjson_mut_obj_add_strcpy(doc, item, "address", address);
    }
    return api_reply_json(x, 200, doc, err);
}

int v0_process_monitor(struct http_exchange *x, const struct route_params *params, void *ctx,
                       struct error *err)
{
    static const struct json_field fields[] = {{"callback", JSON_STRING, true}};
    const struct api_call *call = ctx;
    struct process_place place = process_place(params, call);
    _cleanup_free_ char *url = NULL;
    const char *callback = NULL;
    yyjson_val *body;
    uint64_t pid;

    if (api_json_body(x, &body, err) < 0)
        return -1;
    if (body == NULL)
        return error_set(err, ERROR_INVALID_ARGUMENT, "callback is required");
    if (json_read(http_arena(x), body, "", fields, ARRAY_LEN(fields), &callback, err) < 0 ||
        webhook_check(call->api->webhook, callback, &url, err) < 0 ||
        sandbox_monitor_start(place.sandboxes, place.workspace, place.sandbox, place.process, url,
                              PORT_CALLBACK_NUMBER, &pid, err) < 0)
        return -1;
    return process_reply_message(x, pid, "Port monitoring started", err);
}

int v0_process_monitor_stop(struct http_exchange *x, const struct route_params *params, void *ctx,
                            struct error *err)
{
    struct process_place place = process_place(params, ctx);
    uint64_t pid;

    if (sandbox_monitor_stop(place.sandboxes, place.workspace, place.sandbox, place.process, &pid,
                             err) < 0)
        return -1;
    return process_reply_message(x, pid, "Port monitoring stopped", err);
}
