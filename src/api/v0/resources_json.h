/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What a sandbox may use, as JSON: {"cpu": "500m", "memory": "25%", "pids": 100, …}. */

#include <yyjson.h>

#include "base/arena.h"
#include "base/error.h"
#include "json/json.h"
#include "sandbox/resources.h"

/* A row for each resource, into the member `into` of `type`, a struct sandbox_resources. */
#define RESOURCE_FIELD(member, text, type, into)                                                   \
    {                                                                                              \
        text, JSON_SCALAR_TEXT, .offset = offsetof(type, into.member)                              \
    }
#define RESOURCE_FIELDS(type, into)                                                                \
    RESOURCE_FIELD(cpu, "cpu", type, into), RESOURCE_FIELD(memory, "memory", type, into),          \
        RESOURCE_FIELD(disk, "disk", type, into), RESOURCE_FIELD(pids, "pids", type, into),        \
        RESOURCE_FIELD(disk_read, "diskRead", type, into),                                         \
        RESOURCE_FIELD(disk_write, "diskWrite", type, into),                                       \
        RESOURCE_FIELD(disk_read_ops, "diskReadOps", type, into),                                  \
        RESOURCE_FIELD(disk_write_ops, "diskWriteOps", type, into),                                \
        RESOURCE_FIELD(network_in, "networkIn", type, into),                                       \
        RESOURCE_FIELD(network_out, "networkOut", type, into),                                     \
        RESOURCE_FIELD(memory_bandwidth, "memoryBandwidth", type, into)

/* object may be NULL: nothing is given then. */
int resources_from_json(struct arena *arena, yyjson_val *object, const char *where,
                        struct sandbox_resources *into, struct error *err);

/* Those that were given, as they were: numbers as numbers where they are counts. */
void resources_to_json(yyjson_mut_doc *doc, yyjson_mut_val *object,
                       const struct sandbox_resources *resources);
