/* SPDX-License-Identifier: Apache-2.0 */

/* /v1/sandboxes/{name}/ports: a list that is kept, and opens and closes nothing. */

#include "api/scalebox/ports.h"

#include <string.h>

#include "api/blaxel/members.h"
#include "api/call.h"
#include "api/e2b/sandbox_json.h"
#include "api/scalebox/handlers.h"
#include "api/scalebox/sandbox_json.h"

enum { NAME_LEN_MAX = 63 };

/* --- one port --- */

static int refuse(yyjson_val *object, const char *where, uint64_t port, struct error *err)
{
    const char *protocol = "TCP";
    uint64_t outside = port;
    bool is_protected = false;
    if (member_text(object, where, "protocol", &protocol, err) < 0 ||
        member_uint(object, where, "service_port", 1, UINT16_MAX, &outside, err) < 0 ||
        member_bool(object, where, "is_protected", &is_protected, err) < 0)
        return -1;
    if (strcasecmp(protocol, "TCP") != 0)
        return error_set(err, ERROR_INVALID_ARGUMENT,
                         "%s.protocol: \"%.20s\" is not passed on, only TCP is", where, protocol);
    if (outside != port)
        return error_set(err, ERROR_INVALID_ARGUMENT,
                         "%s.service_port: has to be the port itself, which getHost() names",
                         where);
    if (is_protected)
        return error_set(err, ERROR_INVALID_ARGUMENT,
                         "%s.is_protected: ports are open to all who know the sandbox's name",
                         where);
    return 0;
}

int scalebox_port_from_json(struct arena *arena, yyjson_val *object, const char *where,
                            struct scalebox_port *ret_port, struct error *err)
{
    uint64_t port = 0;
    const char *name = NULL;
    if (!yyjson_is_obj(object))
        return error_set(err, ERROR_INVALID_ARGUMENT, "%s: must be an object with port and name",
                         where);
    if (member_uint(object, where, "port", 1, UINT16_MAX, &port, err) < 0 ||
        member_text(object, where, "name", &name, err) < 0)
        return -1;
    if (port == 0)
        return error_set(err, ERROR_INVALID_ARGUMENT, "%s.port is required: 1 to 65535", where);
    if (name != NULL && strlen(name) > NAME_LEN_MAX)
        return error_set(err, ERROR_INVALID_ARGUMENT, "%s.name: at most %d bytes", where,
                         NAME_LEN_MAX);
    if (refuse(object, where, port, err) < 0)
        return -1;
    if (name == NULL || name[0] == '\0')
        name = arena_printf(arena, "port-%u", (unsigned)port);
    *ret_port = (struct scalebox_port){(uint16_t)port, name};
    return 0;
}

int scalebox_ports_add(struct scalebox_ports *ports, const struct scalebox_port *port,
                       struct error *err)
{
    for (size_t i = 0; i < ports->count; i++)
        if (ports->items[i].port == port->port)
            return error_set(err, ERROR_ALREADY_EXISTS, "port %u is listed already", port->port);
    if (ports->count == SCALEBOX_PORTS_MAX)
        return error_set(err, ERROR_LIMIT_EXCEEDED, "%d ports are listed already",
                         SCALEBOX_PORTS_MAX);
    ports->items[ports->count++] = *port;
    return 0;
}

/* --- as it is kept --- */

void scalebox_ports_read(const struct e2b_spec *spec, struct scalebox_ports *ret_ports)
{
    size_t index, max;
    yyjson_val *item;
    ret_ports->count = 0;
    yyjson_arr_foreach(spec->ports, index, max, item)
    {
        uint64_t port = yyjson_get_uint(yyjson_obj_get(item, "port"));
        const char *name = yyjson_get_str(yyjson_obj_get(item, "name"));
        if (port > 0 && port <= UINT16_MAX && name != NULL && ret_ports->count < SCALEBOX_PORTS_MAX)
            ret_ports->items[ret_ports->count++] = (struct scalebox_port){(uint16_t)port, name};
    }
}

void scalebox_ports_keep(struct arena *arena, const struct scalebox_ports *ports,
                         struct e2b_spec *spec)
{
    yyjson_mut_doc *doc = json_doc(arena);
    yyjson_mut_val *list = yyjson_mut_arr(doc);
    yyjson_mut_doc_set_root(doc, list);
    for (size_t i = 0; i < ports->count; i++) {
        yyjson_mut_val *item = yyjson_mut_arr_add_obj(doc, list);
        yyjson_mut_obj_add_uint(doc, item, "port", ports->items[i].port);
        yyjson_mut_obj_add_str(doc, item, "name", ports->items[i].name);
    }
    spec->ports = NULL;
    if (ports->count > 0)
        json_parse(arena, json_write(arena, doc, false), &spec->ports, NULL);
}

static yyjson_mut_val *list_json(yyjson_mut_doc *doc, const struct scalebox_ports *ports)
{
    yyjson_mut_val *list = yyjson_mut_arr(doc);
    for (size_t i = 0; i < ports->count; i++) {
        yyjson_mut_val *item = yyjson_mut_arr_add_obj(doc, list);
        yyjson_mut_obj_add_uint(doc, item, "port", ports->items[i].port);
        yyjson_mut_obj_add_uint(doc, item, "service_port", ports->items[i].port);
        yyjson_mut_obj_add_str(doc, item, "protocol", "TCP");
        yyjson_mut_obj_add_strcpy(doc, item, "name", ports->items[i].name);
        yyjson_mut_obj_add_bool(doc, item, "is_protected", false);
    }
    return list;
}

/* No template lists any. */
void scalebox_ports_json(yyjson_mut_doc *doc, yyjson_mut_val *object,
                         const struct scalebox_ports *ports)
{
    yyjson_mut_obj_add_val(doc, object, "ports", list_json(doc, ports));
    yyjson_mut_obj_add_arr(doc, object, "template_ports");
    yyjson_mut_obj_add_val(doc, object, "custom_ports", list_json(doc, ports));
}

/* --- routes --- */

static int find(struct http_exchange *x, const struct route_params *params,
                const struct api_call *call, struct sandbox_info *ret_info,
                struct e2b_spec *ret_spec, struct scalebox_ports *ret_ports, struct error *err)
{
    if (e2b_sandbox_find(x, call, route_param(params, "name"), ret_info, err) < 0)
        return -1;
    e2b_spec_read(http_arena(x), ret_info->metadata.e2b_spec, ret_spec);
    scalebox_ports_read(ret_spec, ret_ports);
    return 0;
}

static int keep(struct http_exchange *x, const struct api_call *call, struct sandbox_info *info,
                struct e2b_spec *spec, const struct scalebox_ports *ports, struct error *err)
{
    scalebox_ports_keep(http_arena(x), ports, spec);
    const struct sandbox_update update = {.workspace = call->workspace,
                                          .name = info->id,
                                          .e2b_spec = e2b_spec_text(http_arena(x), spec),
                                          .actor = call->principal.name};
    return sandboxes_update(call->api->sandboxes, &update, http_arena(x), info, err);
}

int scalebox_port_list(struct http_exchange *x, const struct route_params *params, void *ctx,
                       struct error *err)
{
    struct sandbox_info info;
    struct e2b_spec spec;
    struct scalebox_ports ports;
    if (find(x, params, ctx, &info, &spec, &ports, err) < 0)
        return -1;
    yyjson_mut_doc *doc;
    yyjson_mut_val *root = scalebox_envelope(http_arena(x), &doc);
    scalebox_ports_json(doc, yyjson_mut_obj_add_obj(doc, root, "data"), &ports);
    return api_reply_json(x, 200, doc, err);
}

int scalebox_port_add(struct http_exchange *x, const struct route_params *params, void *ctx,
                      struct error *err)
{
    const struct api_call *call = ctx;
    struct sandbox_info info;
    struct e2b_spec spec;
    struct scalebox_ports ports;
    struct scalebox_port port;
    yyjson_val *body;
    if (api_json_body(x, &body, err) < 0 ||
        scalebox_port_from_json(http_arena(x), body, "port", &port, err) < 0 ||
        find(x, params, call, &info, &spec, &ports, err) < 0 ||
        scalebox_ports_add(&ports, &port, err) < 0 || keep(x, call, &info, &spec, &ports, err) < 0)
        return -1;
    return scalebox_reply_sandbox(x, call, 201, &info, err);
}

int scalebox_port_remove(struct http_exchange *x, const struct route_params *params, void *ctx,
                         struct error *err)
{
    const struct api_call *call = ctx;
    struct sandbox_info info;
    struct e2b_spec spec;
    struct scalebox_ports ports, left = {0};
    uint16_t port;
    if (api_port_param(params, &port, err) < 0 ||
        find(x, params, call, &info, &spec, &ports, err) < 0)
        return -1;
    for (size_t i = 0; i < ports.count; i++)
        if (ports.items[i].port != port)
            left.items[left.count++] = ports.items[i];
    if (left.count == ports.count)
        return error_set(err, ERROR_PORT_NOT_PUBLISHED, "port %u is not listed", port);
    if (keep(x, call, &info, &spec, &left, err) < 0)
        return -1;
    return scalebox_reply_sandbox(x, call, 200, &info, err);
}
