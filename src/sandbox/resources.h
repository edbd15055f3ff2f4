/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Everything of a machine that a sandbox can be given a part of: one list, from which the names in
 * the API, the columns of the store, the limits, admission and what is reported all come.
 *
 * X(ENUM, member of sandbox_resources, name in the API, member of spec_limits)
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/slice.h"

#define RESOURCES(X)                                                                               \
    X(CPU, cpu, "cpu", cpu_millis)                                                                 \
    X(MEMORY, memory, "memory", memory_bytes)                                                      \
    X(DISK, disk, "disk", disk_bytes)                                                              \
    X(PIDS, pids, "pids", pids)                                                                    \
    X(DISK_READ, disk_read, "diskRead", disk_read)                                                 \
    X(DISK_WRITE, disk_write, "diskWrite", disk_write)                                             \
    X(DISK_READ_OPS, disk_read_ops, "diskReadOps", disk_read_ops)                                  \
    X(DISK_WRITE_OPS, disk_write_ops, "diskWriteOps", disk_write_ops)                              \
    X(NETWORK_IN, network_in, "networkIn", network_in)                                             \
    X(NETWORK_OUT, network_out, "networkOut", network_out)                                         \
    X(MEMORY_BANDWIDTH, memory_bandwidth, "memoryBandwidth", memory_bandwidth)

enum resource {
#define X(name, member, text, limit) RESOURCE_##name,
    RESOURCES(X)
#undef X
        RESOURCE_COUNT
};

/* As text, for the API: a quantity or a share of the machine ("25%"). NULL: the default. */
struct sandbox_resources {
    union {
        struct {
#define X(name, member, text, limit) const char *member;
            RESOURCES(X)
#undef X
        };
        const char *of[RESOURCE_COUNT];
    };
};

/* The same as numbers: thousandths of a core, bytes, processes, bytes or operations per second. 0
 * in one that has no default: no limit. */
struct spec_limits {
    union {
        struct {
#define X(name, member, text, limit) uint64_t limit;
            RESOURCES(X)
#undef X
        };
        uint64_t of[RESOURCE_COUNT];
    };
};

const char *resource_name(enum resource resource); /* "diskRead" */
/* The resource of that name; RESOURCE_COUNT: there is none. */
enum resource resource_find(const char *name, size_t len);

/* Whether any is given. */
bool resources_given(const struct sandbox_resources *resources);
/* What `over` gives, and what `under` has where it gives nothing. Borrowed. */
struct sandbox_resources resources_over(const struct sandbox_resources *over,
                                        const struct sandbox_resources *under);

/* Copies: on the heap (-1 without memory: nothing is held then), or in an arena. */
int resources_copy(const struct sandbox_resources *from, struct sandbox_resources *to);
void resources_release(struct sandbox_resources *resources);
struct sandbox_resources resources_arena(const struct sandbox_resources *from, struct arena *arena);

/* Those after disk as a list "pids=100", …, as the store keeps them; what is in the list that
 * nobody knows (any more) is left out. resources_unpack() borrows. */
struct slice resources_pack(const struct sandbox_resources *resources, struct arena *arena);
void resources_unpack(struct slice list, struct sandbox_resources *resources);
