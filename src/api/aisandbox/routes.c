/* SPDX-License-Identifier: Apache-2.0 */

/* Every route of /api/sandbox. As in api/routes.c, the first row that fits wins. */

#include "api/aisandbox/routes.h"

#include "api/aisandbox/handlers.h"
#include "api/route_class.h"
#include "auth/auth.h"
#include "base/cleanup.h"

/* clang-format off */
const struct route aisandbox_routes[] = {
    ROUTE("POST",   "/api/sandbox",                 SCOPE_WRITE | CLASS_CREATE, aisandbox_create),
    ROUTE("POST",   "/api/sandbox/exec",            SCOPE_WRITE | CLASS_EXEC | ROUTE_INSIDE | ROUTE_NAMED_IN_BODY, aisandbox_exec),
    ROUTE("GET",    "/api/sandbox/{name}",          SCOPE_READ | ROUTE_INSIDE, aisandbox_get),
    ROUTE("DELETE", "/api/sandbox/{name}",          SCOPE_WRITE, aisandbox_delete),
    ROUTE("GET",    "/api/sandbox/{name}/ws",       SCOPE_WRITE | CLASS_STREAM | ROUTE_TOKEN_IN_QUERY | ROUTE_INSIDE, aisandbox_ws),
    ROUTE("GET",    "/api/sandbox/{name}/history",  SCOPE_READ | CLASS_FILES | ROUTE_INSIDE, aisandbox_history),
    /* A question, though it has a body. */
    ROUTE("POST",   "/api/sandbox/{name}/diff",     SCOPE_READ | CLASS_FILES | ROUTE_INSIDE, aisandbox_diff),
    ROUTE("POST",   "/api/sandbox/{name}/rollback", SCOPE_WRITE | CLASS_FILES | ROUTE_INSIDE, aisandbox_rollback),
};
/* clang-format on */

const size_t aisandbox_route_count = ARRAY_LEN(aisandbox_routes);
