/* SPDX-License-Identifier: Apache-2.0 */

/* What is done with all resources alike: names, copies, and the list that the store keeps. */

#include "sandbox/resources.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

static const char *const names[RESOURCE_COUNT] = {
#define X(name, member, text, limit) text,
    RESOURCES(X)
#undef X
};

const char *resource_name(enum resource resource)
{
    return names[resource];
}

enum resource resource_find(const char *name, size_t len)
{
    for (int i = 0; i < RESOURCE_COUNT; i++)
        if (strlen(names[i]) == len && memcmp(names[i], name, len) == 0)
            return (enum resource)i;
    return RESOURCE_COUNT;
}

bool resources_given(const struct sandbox_resources *resources)
{
    for (int i = 0; i < RESOURCE_COUNT; i++)
        if (resources->of[i] != NULL)
            return true;
    return false;
}

struct sandbox_resources resources_over(const struct sandbox_resources *over,
                                        const struct sandbox_resources *under)
{
    struct sandbox_resources all = *under;
    for (int i = 0; i < RESOURCE_COUNT; i++)
        if (over->of[i] != NULL)
            all.of[i] = over->of[i];
    return all;
}

void resources_release(struct sandbox_resources *resources)
{
    for (int i = 0; i < RESOURCE_COUNT; i++) {
        free((char *)resources->of[i]);
        resources->of[i] = NULL;
    }
}

int resources_copy(const struct sandbox_resources *from, struct sandbox_resources *to)
{
    struct sandbox_resources copy = {0};
    for (int i = 0; i < RESOURCE_COUNT; i++) {
        if (from->of[i] == NULL)
            continue;
        copy.of[i] = strdup(from->of[i]);
        if (copy.of[i] == NULL) {
            resources_release(&copy);
            return -1;
        }
    }
    *to = copy;
    return 0;
}

struct sandbox_resources resources_arena(const struct sandbox_resources *from, struct arena *arena)
{
    struct sandbox_resources copy;
    for (int i = 0; i < RESOURCE_COUNT; i++)
        copy.of[i] = arena_strdup(arena, from->of[i]);
    return copy;
}

struct slice resources_pack(const struct sandbox_resources *resources, struct arena *arena)
{
    size_t size = 1, len = 0;
    for (int i = RESOURCE_DISK + 1; i < RESOURCE_COUNT; i++)
        if (resources->of[i] != NULL)
            size += strlen(names[i]) + strlen(resources->of[i]) + 2;
    char *list = arena_alloc(arena, size);
    for (int i = RESOURCE_DISK + 1; i < RESOURCE_COUNT; i++) {
        if (resources->of[i] == NULL)
            continue;
        const char *item = arena_printf(arena, "%s=%s", names[i], resources->of[i]);
        memcpy(list + len, item, strlen(item) + 1);
        len += strlen(item) + 1;
    }
    return (struct slice){list, len};
}

void resources_unpack(struct slice list, struct sandbox_resources *resources)
{
    if (!strv_valid(list))
        return;
    strv_each (item, list) {
        const char *eq = strchr(item, '=');
        enum resource found =
            eq == NULL ? RESOURCE_COUNT : resource_find(item, (size_t)(eq - item));
        if (found != RESOURCE_COUNT)
            resources->of[found] = eq + 1;
    }
}
