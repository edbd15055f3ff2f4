/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * How /api/sandbox sees a sandbox: as a container with the id "container_" and the sandbox's own,
 * in which everything is done by the ordinary user, in /workspace.
 */

#include "api/call.h"

#define AISANDBOX_USER "user"
#define AISANDBOX_DIR  "/workspace"

enum {
    AISANDBOX_LIFE_S = 30 * 60,          /* from its creation on */
    AISANDBOX_TIMEOUT_MS = 30 * 1000,    /* of an execution, unless options.timeout says */
    AISANDBOX_TIMEOUT_MAX_MS = 86400000, /* a day */
};

/* "abc" for "container_abc"; other names and ids as they are. */
const char *aisandbox_plain(const char *reference);

/* By what it is called here, or by any id or name of the workspace. SANDBOX_NOT_FOUND, also once it
 * is being deleted, and for any other than the one that the caller's token is bound to. */
int aisandbox_find(struct http_exchange *x, const struct api_call *call, const char *reference,
                   struct sandbox_info *ret_info, struct error *err);

const char *aisandbox_id(struct arena *arena, const struct sandbox_info *info);
