/* SPDX-License-Identifier: Apache-2.0 */

/* From what a container is called to the sandbox that it is. */

#include "api/aisandbox/door.h"

#include <string.h>

#include "api/confine.h"
#include "api/e2b/spec.h"

#define PREFIX "container_" /* no name of a sandbox begins so: '_' is in none */

const char *aisandbox_id(struct arena *arena, const struct sandbox_info *info)
{
    return arena_printf(arena, PREFIX "%s", info->id);
}

const char *aisandbox_plain(const char *reference)
{
    size_t len = sizeof(PREFIX) - 1;
    return reference + (strncmp(reference, PREFIX, len) == 0 ? len : 0);
}

int aisandbox_find(struct http_exchange *x, const struct api_call *call, const char *reference,
                   struct sandbox_info *ret_info, struct error *err)
{
    struct sandbox_info info;
    if (sandboxes_get(call->api->sandboxes, call->workspace, aisandbox_plain(reference),
                      http_arena(x), &info, NULL) < 0 ||
        !confine_allows(&call->principal, info.id) || info.status == SANDBOX_DELETING ||
        e2b_is_snapshot(http_arena(x), info.metadata.e2b_spec))
        return error_set(err, ERROR_SANDBOX_NOT_FOUND, "no container \"%.150s\" in this workspace",
                         reference);
    *ret_info = info;
    return 0;
}
