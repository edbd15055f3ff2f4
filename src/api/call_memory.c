/* SPDX-License-Identifier: Apache-2.0 */

/* The memory budgets of callers: one for each caller with a request under way. */

#include "api/call_memory.h"

#include <stdlib.h>

#include <uthash.h>

#include "base/cleanup.h"

struct caller_memory {
    struct memory_owner owner;
    struct limits *limits;
    struct caller caller; /* known by its bytes alone */
    UT_hash_handle hh;
};

static void caller_unused(struct memory_owner *owner)
{
    struct caller_memory *memory = container_of(owner, struct caller_memory, owner);
    HASH_DELETE(hh, memory->limits->memory, memory);
    free(memory);
}

void limits_memory_join(struct limits *limits, struct http_exchange *x, struct caller caller)
{
    struct caller_memory *memory;
    HASH_FIND(hh, limits->memory, caller.bytes, sizeof(caller.bytes), memory);
    if (memory == NULL) {
        memory = calloc(1, sizeof(*memory));
        if (memory == NULL)
            abort();
        memory->owner.budget.max = limits->config.memory_per_caller;
        memory->owner.unused = caller_unused;
        memory->limits = limits;
        memory->caller = caller;
        HASH_ADD(hh, limits->memory, caller.bytes, sizeof(memory->caller.bytes), memory);
    }
    memory_set_owner(http_memory(x), &memory->owner);
}

unsigned limits_memory_owners(const struct limits *limits)
{
    return HASH_COUNT(limits->memory);
}
