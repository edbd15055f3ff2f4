/* SPDX-License-Identifier: Apache-2.0 */

/* Every route that E2B's clients know. As in api/routes.c, the first row that fits wins. */

#include "api/e2b/routes.h"

#include "api/e2b/handlers.h"
#include "api/route_class.h"
#include "auth/auth.h"
#include "base/cleanup.h"

/* clang-format off */
const struct route e2b_routes[] = {
    ROUTE("GET",    "/v2/sandboxes",                SCOPE_READ,  e2b_sandbox_list),
    ROUTE("POST",   "/v2/sandboxes",                SCOPE_WRITE | CLASS_CREATE, e2b_sandbox_create),
    ROUTE("POST",   "/v2/sandboxes/{name}/connect",   SCOPE_WRITE | CLASS_CREATE, e2b_sandbox_connect),
    ROUTE("GET",    "/v2/sandboxes/{name}/logs",      SCOPE_READ,  e2b_sandbox_logs_v2),

    ROUTE("GET",    "/sandboxes",                   SCOPE_READ,  e2b_sandbox_list_running),
    ROUTE("POST",   "/sandboxes",                   SCOPE_WRITE | CLASS_CREATE, e2b_sandbox_create),
    ROUTE("GET",    "/sandboxes/metrics",           SCOPE_READ,  e2b_sandboxes_metrics),
    /* With the sandbox's token in it: reading it takes as much as using it. */
    ROUTE("GET",    "/sandboxes/{name}",              SCOPE_WRITE, e2b_sandbox_get),
    ROUTE("DELETE", "/sandboxes/{name}",              SCOPE_WRITE, e2b_sandbox_kill),
    ROUTE("POST",   "/sandboxes/{name}/connect",      SCOPE_WRITE | CLASS_CREATE, e2b_sandbox_connect),
    ROUTE("POST",   "/sandboxes/{name}/timeout",      SCOPE_WRITE, e2b_sandbox_timeout),
    ROUTE("POST",   "/sandboxes/{name}/refreshes",    SCOPE_WRITE, e2b_sandbox_refresh),
    ROUTE("POST",   "/sandboxes/{name}/pause",        SCOPE_WRITE, e2b_sandbox_pause),
    ROUTE("POST",   "/sandboxes/{name}/resume",       SCOPE_WRITE | CLASS_CREATE, e2b_sandbox_resume),
    ROUTE("PUT",    "/sandboxes/{name}/network",      SCOPE_WRITE, e2b_sandbox_network),
    ROUTE("GET",    "/sandboxes/{name}/metrics",      SCOPE_READ,  e2b_sandbox_metrics),
    ROUTE("GET",    "/sandboxes/{name}/logs",         SCOPE_READ,  e2b_sandbox_logs),
    ROUTE("POST",   "/sandboxes/{name}/snapshots",    SCOPE_WRITE | CLASS_CREATE, e2b_snapshot_create),
    ROUTE("POST",   "/sandboxes/{name}/fork",         SCOPE_WRITE | CLASS_CREATE, e2b_sandbox_fork),

    ROUTE("GET",    "/snapshots",                   SCOPE_READ,  e2b_snapshot_list),
    ROUTE("GET",    "/templates",                   SCOPE_READ,  e2b_template_list),
    ROUTE("POST",   "/templates",                   SCOPE_WRITE | CLASS_CREATE, e2b_template_build),
    ROUTE("POST",   "/v2/templates",                SCOPE_WRITE | CLASS_CREATE, e2b_template_build),
    ROUTE("POST",   "/v3/templates",                SCOPE_WRITE | CLASS_CREATE, e2b_template_build),
    ROUTE("GET",    "/templates/aliases/{alias}",   SCOPE_READ,  e2b_template_alias),
    ROUTE("POST",   "/templates/tags",              SCOPE_WRITE, e2b_template_tag),
    ROUTE("DELETE", "/templates/tags",              SCOPE_WRITE, e2b_template_untag),
    ROUTE("GET",    "/templates/{id}/tags",         SCOPE_READ,  e2b_template_tags),
    ROUTE("GET",    "/templates/{id}/builds/{build}/status", SCOPE_READ, e2b_template_status),
    ROUTE("DELETE", "/templates/{id}",              SCOPE_WRITE, e2b_snapshot_delete),

    ROUTE("GET",    "/secrets",                     SCOPE_READ,  e2b_secret_list),
    ROUTE("POST",   "/secrets",                     SCOPE_ADMIN, e2b_secret_create),
    ROUTE("GET",    "/secrets/{id}",                SCOPE_READ,  e2b_secret_get),
    ROUTE("POST",   "/secrets/{id}",                SCOPE_ADMIN, e2b_secret_update),
    ROUTE("DELETE", "/secrets/{id}",                SCOPE_ADMIN, e2b_secret_delete),

    ROUTE("GET",    "/volumes",                     SCOPE_READ,  e2b_volume_list),
    ROUTE("POST",   "/volumes",                     SCOPE_WRITE, e2b_volume_create),
    ROUTE("GET",    "/volumes/{id}",                SCOPE_READ,  e2b_volume_find),
    ROUTE("DELETE", "/volumes/{id}",                SCOPE_WRITE, e2b_volume_find),
};

/* Who comes here has a sandbox's token, or a signed address, and no key: each handler asks for it. */
const struct route e2b_envd_routes[] = {
    ROUTE("GET",    "/health",                           SCOPE_PUBLIC, e2b_health),
    ROUTE("GET",    "/envs",                             SCOPE_PUBLIC, e2b_envs),
    ROUTE("GET",    "/files",                            SCOPE_PUBLIC | CLASS_FILES, e2b_file_get),
    ROUTE("POST",   "/files",                            SCOPE_PUBLIC | CLASS_FILES, e2b_file_post),
    ROUTE("POST",   "/filesystem.Filesystem/{method}",   SCOPE_PUBLIC | CLASS_FILES, e2b_filesystem),
    ROUTE("POST",   "/process.Process/{method}",         SCOPE_PUBLIC | CLASS_EXEC, e2b_process),

    ROUTE("POST",   "/execute",                          SCOPE_PUBLIC | CLASS_EXEC, e2b_execute),
    ROUTE("GET",    "/contexts",                         SCOPE_PUBLIC, e2b_context_list),
    ROUTE("POST",   "/contexts",                         SCOPE_PUBLIC | CLASS_EXEC, e2b_context_create),
    ROUTE("DELETE", "/contexts/{context}",               SCOPE_PUBLIC, e2b_context_delete),
    ROUTE("POST",   "/contexts/{context}/restart",       SCOPE_PUBLIC | CLASS_EXEC, e2b_context_restart),
};
/* clang-format on */

const size_t e2b_route_count = ARRAY_LEN(e2b_routes);
const size_t e2b_envd_route_count = ARRAY_LEN(e2b_envd_routes);
