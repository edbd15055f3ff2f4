/* SPDX-License-Identifier: Apache-2.0 */

/* Reading create requests: Docker's amounts become ours. */

#include "api/aisandbox/sandbox_request.h"

#include <inttypes.h>

#include "api/aisandbox/docker_units.h"
#include "api/aisandbox/door.h"
#include "base/cleanup.h"
#include "sandbox/spec.h"

struct body {
    const char *image;
    yyjson_val *options;
};

static const struct json_field body_fields[] = {
    {"image", JSON_STRING, .offset = offsetof(struct body, image)},
    {"options", JSON_OBJECT, .offset = offsetof(struct body, options)},
};

struct options {
    int64_t timeout_ms;
    const char *memory, *cpus;
};

static const struct json_field option_fields[] = {
    {"timeout", JSON_INT, .offset = offsetof(struct options, timeout_ms), .min = 1,
     .max = AISANDBOX_TIMEOUT_MAX_MS},
    {"memoryLimit", JSON_SCALAR_TEXT, .offset = offsetof(struct options, memory)},
    {"cpuLimit", JSON_SCALAR_TEXT, .offset = offsetof(struct options, cpus)},
};

static int read_memory(struct arena *arena, const char *text, const char **ret, struct error *err)
{
    uint64_t bytes, least = spec_minimum(RESOURCE_MEMORY);
    if (docker_memory(text, &bytes, err) < 0)
        return error_prefix(err, "options.memoryLimit");
    if (bytes < least)
        return error_set(err, ERROR_INVALID_QUANTITY,
                         "options.memoryLimit: \"%.40s\" is too little; the least is \"%s\"", text,
                         docker_memory_text(least, arena));
    *ret = arena_printf(arena, "%" PRIu64, bytes);
    return 0;
}

static int read_cpus(struct arena *arena, const char *text, const char **ret, struct error *err)
{
    uint64_t millis, least = spec_minimum(RESOURCE_CPU);
    if (docker_cpus(text, &millis, err) < 0)
        return error_prefix(err, "options.cpuLimit");
    if (millis < least)
        return error_set(err, ERROR_INVALID_QUANTITY,
                         "options.cpuLimit: \"%.40s\" is too little; the least is \"%s\"", text,
                         docker_cpus_text((double)least / 1000, arena));
    *ret = arena_printf(arena, "%" PRIu64 "m", millis);
    return 0;
}

int aisandbox_create_from_json(struct arena *arena, yyjson_val *body,
                               struct aisandbox_create_request *ret_request, struct error *err)
{
    struct body parts = {.image = ""};
    struct options options = {.timeout_ms = AISANDBOX_TIMEOUT_MS};
    struct aisandbox_create_request request = {.image = ""};
    if (body != NULL &&
        json_read(arena, body, "", body_fields, ARRAY_LEN(body_fields), &parts, err) < 0)
        return -1;
    if (parts.options != NULL && json_read(arena, parts.options, "options", option_fields,
                                           ARRAY_LEN(option_fields), &options, err) < 0)
        return -1;
    if ((options.memory != NULL &&
         read_memory(arena, options.memory, &request.resources.memory, err) < 0) ||
        (options.cpus != NULL && read_cpus(arena, options.cpus, &request.resources.cpu, err) < 0))
        return -1;
    request.image = parts.image;
    request.timeout_ms = options.timeout_ms;
    *ret_request = request;
    return 0;
}
