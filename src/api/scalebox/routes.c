/* SPDX-License-Identifier: Apache-2.0 */

/* Every route that Scalebox's clients know. As in api/routes.c, the first row that fits wins. */

#include "api/scalebox/routes.h"

#include <string.h>

#include "api/scalebox/handlers.h"
#include "api/route_class.h"
#include "auth/auth.h"
#include "base/cleanup.h"

/* clang-format off */
const struct route scalebox_routes[] = {
    ROUTE("GET",    "/v1/sandboxes",              SCOPE_READ,  scalebox_sandbox_list),
    ROUTE("POST",   "/v1/sandboxes",              SCOPE_WRITE | CLASS_CREATE, scalebox_sandbox_create),
    /* With the sandbox's token in it: reading it takes as much as using it. */
    ROUTE("GET",    "/v1/sandboxes/{name}",         SCOPE_WRITE, scalebox_sandbox_get),
    ROUTE("DELETE", "/v1/sandboxes/{name}",         SCOPE_WRITE, scalebox_sandbox_kill),
    ROUTE("POST",   "/v1/sandboxes/{name}/connect", SCOPE_WRITE | CLASS_CREATE, scalebox_sandbox_connect),
    ROUTE("POST",   "/v1/sandboxes/{name}/timeout", SCOPE_WRITE, scalebox_sandbox_timeout),
    ROUTE("POST",   "/v1/sandboxes/{name}/pause",   SCOPE_WRITE, scalebox_sandbox_pause),
    ROUTE("POST",   "/v1/sandboxes/{name}/resume",  SCOPE_WRITE | CLASS_CREATE, scalebox_sandbox_resume),
    ROUTE("GET",    "/v1/sandboxes/{name}/metrics", SCOPE_READ,  scalebox_sandbox_metrics),
    ROUTE("POST",   "/v1/sandboxes/{name}/execute", SCOPE_WRITE | CLASS_EXEC, scalebox_execute),
    ROUTE("GET",    "/v1/sandboxes/{name}/ports",   SCOPE_READ,  scalebox_port_list),
    ROUTE("POST",   "/v1/sandboxes/{name}/ports",   SCOPE_WRITE, scalebox_port_add),
    ROUTE("DELETE", "/v1/sandboxes/{name}/ports/{port}", SCOPE_WRITE, scalebox_port_remove),
    ROUTE("POST",   "/v1/sandboxes/{name}/create-template", SCOPE_WRITE | CLASS_CREATE, scalebox_template_create),
    ROUTE("POST",   "/v1/contexts",                 SCOPE_WRITE | CLASS_EXEC, scalebox_context_create),
    ROUTE("GET",    "/v1/contexts/{id}",            SCOPE_READ,  scalebox_context_get),
    ROUTE("DELETE", "/v1/contexts/{id}",            SCOPE_WRITE, scalebox_context_delete),
};

/* Who comes here has a sandbox's token, or a signed address, and no key: each handler asks for it. */
const struct route scalebox_box_routes[] = {
    ROUTE("GET",    "/health",                                  SCOPE_PUBLIC, scalebox_health),
    ROUTE("POST",   "/upload",                                  SCOPE_PUBLIC | CLASS_FILES, scalebox_upload),
    ROUTE("GET",    "/download/{path*}",                        SCOPE_PUBLIC | CLASS_FILES, scalebox_download),
    ROUTE("POST",   "/sandboxagent.Filesystem/{method}",        SCOPE_PUBLIC | CLASS_FILES, scalebox_filesystem),
    ROUTE("POST",   "/sandboxagent.Process/{method}",           SCOPE_PUBLIC | CLASS_EXEC, scalebox_process),
    ROUTE("POST",   "/sandboxagent.ContextService/{method}",    SCOPE_PUBLIC | CLASS_EXEC, scalebox_context),
    ROUTE("POST",   "/sandboxagent.ExecutionService/{method}",  SCOPE_PUBLIC | CLASS_EXEC, scalebox_execution),
};
/* clang-format on */

const size_t scalebox_route_count = ARRAY_LEN(scalebox_routes);
const size_t scalebox_box_route_count = ARRAY_LEN(scalebox_box_routes);

bool scalebox_box_path(const char *path)
{
    return strcmp(path, "/upload") == 0 || strncmp(path, "/download/", 10) == 0 ||
           strncmp(path, "/sandboxagent.", 14) == 0;
}
