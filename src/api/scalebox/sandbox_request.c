/* SPDX-License-Identifier: Apache-2.0 */

/* Reading create requests. */

#include "api/scalebox/sandbox_request.h"

#include <inttypes.h>

#include "api/blaxel/members.h"
#include "api/e2b/sandbox_request.h"
#include "api/e2b_network.h"
#include "api/scalebox/ports.h"
#include "api/v0/env.h"
#include "base/cleanup.h"

enum { CORES_MAX = 1024, MEMORY_MB_MAX = 1 << 24, STORAGE_GB_MAX = 1 << 20 };

/* "cpu_count": 2 as a quantity; 0 is none given. */
static int read_amount(struct arena *arena, yyjson_val *body, const char *name, uint64_t max,
                       const char *unit, const char **ret, struct error *err)
{
    uint64_t amount = 0;
    if (member_uint(body, "", name, 0, max, &amount, err) < 0)
        return -1;
    if (amount > 0)
        *ret = arena_printf(arena, "%" PRIu64 "%s", amount, unit);
    return 0;
}

int scalebox_resources_from_json(struct arena *arena, yyjson_val *body,
                                 struct sandbox_resources *ret, struct error *err)
{
    /* The client makes the second of "memoryMB" where it turns names over by rule. */
    static const char *const memory[] = {"memory_mb", "memory_m_b"};
    if (read_amount(arena, body, "cpu_count", CORES_MAX, "", &ret->cpu, err) < 0)
        return -1;
    for (size_t i = 0; i < ARRAY_LEN(memory); i++)
        if (read_amount(arena, body, memory[i], MEMORY_MB_MAX, "Mi", &ret->memory, err) < 0)
            return -1;
    return read_amount(arena, body, "storage_gb", STORAGE_GB_MAX, "Gi", &ret->disk, err);
}

static int read_lifespan(yyjson_val *body, struct scalebox_create_request *request,
                         struct error *err)
{
    int64_t seconds = SCALEBOX_TIMEOUT_DEFAULT_S;
    bool pauses = false;
    if (e2b_timeout_from_json(body, &seconds, err) < 0 ||
        member_bool(body, "", "auto_pause", &pauses, err) < 0)
        return -1;
    request->spec.timeout_s = seconds;
    request->lifespan =
        (struct lifespan){.ttl_s = seconds, .on_expire = pauses ? LIFESPAN_PAUSE : LIFESPAN_DELETE};
    return 0;
}

/* What somebody relies on and would not get is refused, rather than left out without a word. */
static int refuse_unknown(yyjson_val *body, struct error *err)
{
    if (yyjson_is_obj(yyjson_obj_get(body, "object_storage")))
        return error_set(err, ERROR_INVALID_ARGUMENT,
                         "object_storage: buckets cannot be mounted here");
    return 0;
}

static int read_ports(struct arena *arena, yyjson_val *body, struct e2b_spec *spec,
                      struct error *err)
{
    struct scalebox_ports ports = {0};
    struct scalebox_port port;
    yyjson_val *list = NULL, *item;
    size_t index, max;
    if (member_array(body, "", "custom_ports", &list, err) < 0)
        return -1;
    yyjson_arr_foreach(list, index, max, item)
    {
        const char *where = arena_printf(arena, "custom_ports[%zu]", index);
        if (scalebox_port_from_json(arena, item, where, &port, err) < 0)
            return -1;
        if (scalebox_ports_add(&ports, &port, err) < 0)
            return error_prefix(err, "%s", where);
    }
    scalebox_ports_keep(arena, &ports, spec);
    return 0;
}

int scalebox_create_from_json(struct arena *arena, yyjson_val *body,
                              struct scalebox_create_request *ret, struct error *err)
{
    struct scalebox_create_request request = {
        .spec = {.template_id = "base", .secure = true, .internet = true}};
    struct e2b_spec *spec = &request.spec;
    yyjson_val *env = NULL;
    if (member_text(body, "", "template", &spec->template_id, err) < 0 ||
        member_text(body, "", "name", &request.name, err) < 0 ||
        e2b_metadata_from_json(body, spec, err) < 0 ||
        member_object(body, "", "env_vars", &env, err) < 0 ||
        env_from_json(arena, env, "env_vars", &request.env, err) < 0 ||
        member_bool(body, "", "allow_internet_access", &spec->internet, err) < 0 ||
        member_bool(body, "", "is_async", &request.is_async, err) < 0 ||
        scalebox_resources_from_json(arena, body, &request.resources, err) < 0 ||
        read_ports(arena, body, spec, err) < 0 || read_lifespan(body, &request, err) < 0 ||
        refuse_unknown(body, err) < 0 ||
        e2b_network_request(arena, NULL, spec->internet, &request.network, err) < 0)
        return -1;
    /* Nobody asked for rules: where sandboxes have no network here, they go without. */
    request.network.by_default = spec->internet;
    *ret = request;
    return 0;
}
