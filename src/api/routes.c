/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Every route there is, in one place: what is not here cannot be reached, and no row can leave out
 * its scope. The first row that fits wins, so the literal paths stand before /{workspace}/…: that
 * is why v0 can never be a workspace (auth/workspaces.c has the names; a test compares).
 *
 * {workspace} in a path is settled before the handler runs, as is every other way to name one: a
 * handler looks names up in call->workspace and nowhere else. A row that browsers open adds
 * ROUTE_TOKEN_IN_QUERY to its scope, one that passes requests on to a sandbox ROUTE_FORWARDS. What
 * changes how a sandbox stands to the outside (its life, network, published ports, tokens) is
 * OF_SANDBOX, what happens in it IN_SANDBOX.
 */

#include "api/routes.h"

#include "api/handlers.h"
#include "api/route_class.h"
#include "auth/auth.h"
#include "base/cleanup.h"

/* What works inside one sandbox is found below the control plane's path and below the address that
 * the sandbox's access.api_endpoint names. */
#define OF_SANDBOX(method, path, scope, handler)                                                   \
    ROUTE(method, "/v0/sandbox/{name}" path, scope, handler),                                      \
        ROUTE(method, "/{workspace}/sandbox/{name}" path, scope, handler)
/* The same for what has no effect outside of it: open to tokens that are bound to the sandbox. */
#define IN_SANDBOX(method, path, scope, handler)                                                   \
    OF_SANDBOX(method, path, (scope) | ROUTE_INSIDE, handler)

/* Keys of the caller's workspace, or of one that the path names. */
#define KEYS(method, path, scope, handler)                                                         \
    ROUTE(method, "/v0" path, scope, handler),                                                     \
        ROUTE(method, "/v0/workspaces/{workspace}" path, scope, handler)

/* clang-format off */
const struct route api_routes[] = {
    ROUTE("GET",    "/health",                  SCOPE_PUBLIC | CLASS_FREE, ops_health),
    ROUTE("GET",    "/ready",                   SCOPE_PUBLIC | CLASS_FREE, ops_ready),
    ROUTE("GET",    "/metrics",                 SCOPE_READ | CLASS_FREE, ops_metrics),
    ROUTE("GET",    "/openapi.json",            SCOPE_PUBLIC, ops_openapi),
    ROUTE("GET",    "/docs",                    SCOPE_PUBLIC, ops_docs),
    ROUTE("GET",    "/docs/{file}",             SCOPE_PUBLIC, ops_docs_part),

    ROUTE("POST",   "/v0/oauth/token",          SCOPE_PUBLIC | CLASS_LOGIN, v0_oauth_token),
    ROUTE("GET",    "/v0/whoami",               SCOPE_READ | ROUTE_OF_CALLER, v0_whoami),

    ROUTE("GET",    "/v0/workspaces",           SCOPE_READ,   v0_workspace_list),
    ROUTE("POST",   "/v0/workspaces",           SCOPE_SERVER, v0_workspace_create),
    ROUTE("GET",    "/v0/workspaces/{workspace}", SCOPE_READ, v0_workspace_get),
    ROUTE("DELETE", "/v0/workspaces/{workspace}", SCOPE_SERVER, v0_workspace_delete),
    ROUTE("GET",    "/v0/workspaces/{workspace}/limits", SCOPE_SERVER, v0_workspace_limits_get),
    ROUTE("PUT",    "/v0/workspaces/{workspace}/limits", SCOPE_SERVER, v0_workspace_limits_put),
    ROUTE("DELETE", "/v0/workspaces/{workspace}/limits", SCOPE_SERVER, v0_workspace_limits_delete),

    KEYS("GET",    "/api-keys",                 SCOPE_ADMIN,  v0_key_list),
    KEYS("POST",   "/api-keys",                 SCOPE_ADMIN,  v0_key_create),
    KEYS("GET",    "/api-keys/{id}",            SCOPE_ADMIN,  v0_key_get),
    KEYS("DELETE", "/api-keys/{id}",            SCOPE_ADMIN,  v0_key_delete),

    ROUTE("GET",    "/v0/secrets",              SCOPE_READ,   v0_secret_list),
    ROUTE("POST",   "/v0/secrets",              SCOPE_ADMIN,  v0_secret_create),
    ROUTE("GET",    "/v0/secrets/{secret}",     SCOPE_READ,   v0_secret_get),
    ROUTE("PUT",    "/v0/secrets/{secret}",     SCOPE_ADMIN,  v0_secret_put),
    ROUTE("DELETE", "/v0/secrets/{secret}",     SCOPE_ADMIN,  v0_secret_delete),

    ROUTE("GET",    "/v0/pools",                SCOPE_SERVER, v0_pool_list),
    ROUTE("POST",   "/v0/pools",                SCOPE_SERVER, v0_pool_create),
    ROUTE("GET",    "/v0/pools/{pool}",         SCOPE_SERVER, v0_pool_get),
    ROUTE("PUT",    "/v0/pools/{pool}",         SCOPE_SERVER, v0_pool_update),
    ROUTE("PATCH",  "/v0/pools/{pool}",         SCOPE_SERVER, v0_pool_update),
    ROUTE("DELETE", "/v0/pools/{pool}",         SCOPE_SERVER, v0_pool_delete),

    ROUTE("GET",    "/v0/sandbox",              SCOPE_READ,   v0_sandbox_list),
    ROUTE("POST",   "/v0/sandbox",              SCOPE_WRITE | CLASS_CREATE,  v0_sandbox_create),
    ROUTE("GET",    "/v0/sandbox/{name}",       SCOPE_READ | ROUTE_INSIDE, v0_sandbox_get),
    ROUTE("PUT",    "/v0/sandbox/{name}",       SCOPE_WRITE,  v0_sandbox_update),
    ROUTE("PATCH",  "/v0/sandbox/{name}",       SCOPE_WRITE,  v0_sandbox_patch),
    ROUTE("DELETE", "/v0/sandbox/{name}",       SCOPE_WRITE,  v0_sandbox_delete),
    ROUTE("POST",   "/v0/sandbox/{name}/release", SCOPE_WRITE, v0_sandbox_release),
    ROUTE("POST",   "/v0/sandbox/{name}/clone", SCOPE_WRITE | CLASS_CREATE,  v0_sandbox_clone),
    ROUTE("PUT",    "/v0/sandbox/{name}/start", SCOPE_WRITE | CLASS_CREATE,  v0_sandbox_start),
    ROUTE("POST",   "/v0/sandbox/{name}/start", SCOPE_WRITE | CLASS_CREATE,  v0_sandbox_start),
    ROUTE("PUT",    "/v0/sandbox/{name}/stop",  SCOPE_WRITE,  v0_sandbox_stop),
    ROUTE("POST",   "/v0/sandbox/{name}/stop",  SCOPE_WRITE,  v0_sandbox_stop),
    ROUTE("PUT",    "/v0/sandbox/{name}/pause", SCOPE_WRITE,  v0_sandbox_pause),
    ROUTE("POST",   "/v0/sandbox/{name}/pause", SCOPE_WRITE,  v0_sandbox_pause),
    ROUTE("PUT",    "/v0/sandbox/{name}/resume", SCOPE_WRITE | CLASS_CREATE, v0_sandbox_resume),
    ROUTE("POST",   "/v0/sandbox/{name}/resume", SCOPE_WRITE | CLASS_CREATE, v0_sandbox_resume),

    /* What is below …/sandbox/{name} there is found by the rows of /v0/sandbox: api/group_path.h. */
    ROUTE("GET",    "/v0/groups",               SCOPE_READ,   v0_group_list),
    ROUTE("POST",   "/v0/groups",               SCOPE_ADMIN | CLASS_CREATE,  v0_group_create),
    ROUTE("GET",    "/v0/groups/{group}",       SCOPE_READ,   v0_group_get),
    ROUTE("PATCH",  "/v0/groups/{group}",       SCOPE_ADMIN,  v0_group_patch),
    ROUTE("DELETE", "/v0/groups/{group}",       SCOPE_ADMIN,  v0_group_end),
    ROUTE("POST",   "/v0/groups/{group}/end",   SCOPE_ADMIN,  v0_group_end),
    ROUTE("POST",   "/v0/groups/{group}/start", SCOPE_WRITE | CLASS_CREATE,  v0_group_start),
    ROUTE("POST",   "/v0/groups/{group}/stop",  SCOPE_WRITE,  v0_group_stop),
    ROUTE("POST",   "/v0/groups/{group}/resize", SCOPE_ADMIN, v0_group_resize),
    ROUTE("GET",    "/v0/groups/{group}/stats", SCOPE_READ,   v0_group_stats),
    ROUTE("GET",    "/v0/groups/{group}/sandbox", SCOPE_READ, v0_sandbox_list),
    ROUTE("POST",   "/v0/groups/{group}/sandbox", SCOPE_WRITE | CLASS_CREATE, v0_sandbox_create),

    ROUTE("POST",   "/v0/sandbox/{name}/resize", SCOPE_WRITE, v0_sandbox_resize),


    ROUTE("GET",    "/v0/sandbox/{name}/network/ca", SCOPE_READ, v0_sandbox_ca_get),
    ROUTE("PUT",    "/v0/sandbox/{name}/network/ca", SCOPE_WRITE, v0_sandbox_ca_put),
    ROUTE("DELETE", "/v0/sandbox/{name}/network/ca", SCOPE_WRITE, v0_sandbox_ca_delete),

    ROUTE("GET",    "/v0/limits",               SCOPE_READ,   v0_limits),
    ROUTE("GET",    "/v0/audit",                SCOPE_ADMIN,  v0_audit),
    ROUTE("GET",    "/v0/audit/head",           SCOPE_ADMIN,  v0_audit_head),
    ROUTE("GET",    "/v0/machine",              SCOPE_READ,   v0_machine),
    ROUTE("GET",    "/v0/metrics",              SCOPE_READ,   v0_metrics),

    /* First, because a page asks for many things at once. */
    IN_SANDBOX("ANY",    "/port/{port}/{path*}", SCOPE_WRITE | ROUTE_FORWARDS | CLASS_PROXY, v0_port_proxy),
    IN_SANDBOX("GET",    "/tunnel/{port}",      SCOPE_WRITE | CLASS_PROXY,  v0_port_tunnel),

    IN_SANDBOX("GET",    "/ports",              SCOPE_READ,   v0_port_list),
    OF_SANDBOX("POST",   "/ports",              SCOPE_WRITE,  v0_port_publish),
    IN_SANDBOX("GET",    "/ports/{port}",       SCOPE_READ,   v0_port_get),
    OF_SANDBOX("PATCH",  "/ports/{port}",       SCOPE_WRITE,  v0_port_change),
    OF_SANDBOX("DELETE", "/ports/{port}",       SCOPE_WRITE,  v0_port_unpublish),
    OF_SANDBOX("POST",   "/ports/{port}/tokens", SCOPE_WRITE, v0_port_token),
    OF_SANDBOX("DELETE", "/ports/{port}/tokens", SCOPE_WRITE, v0_port_revoke),

    OF_SANDBOX("POST",   "/tokens",             SCOPE_WRITE,  v0_sandbox_token_create),
    OF_SANDBOX("DELETE", "/tokens",             SCOPE_WRITE,  v0_sandbox_token_revoke),

    IN_SANDBOX("GET",    "/health",             SCOPE_READ,   v0_sandbox_health),
    IN_SANDBOX("GET",    "/metrics",            SCOPE_READ,   v0_sandbox_metrics),
    IN_SANDBOX("GET",    "/logs",               SCOPE_READ,   v0_sandbox_logs),

    /* Before /filesystem/{path*}: a directory /tree of the sandbox is /filesystem//tree. */
    IN_SANDBOX("GET",    "/filesystem/tree/{path*}", SCOPE_READ | CLASS_FILES,  v0_tree_get),
    IN_SANDBOX("PUT",    "/filesystem/tree/{path*}", SCOPE_WRITE | CLASS_FILES, v0_tree_put),
    IN_SANDBOX("DELETE", "/filesystem/tree/{path*}", SCOPE_WRITE | CLASS_FILES, v0_tree_delete),
    IN_SANDBOX("GET",    "/filesystem/{path*}", SCOPE_READ | CLASS_FILES,   v0_file_get),
    IN_SANDBOX("PUT",    "/filesystem/{path*}", SCOPE_WRITE | CLASS_FILES,  v0_file_put),
    IN_SANDBOX("DELETE", "/filesystem/{path*}", SCOPE_WRITE | CLASS_FILES,  v0_file_delete),

    IN_SANDBOX("GET",    "/filesystem-find/{path*}",           SCOPE_READ | CLASS_FILES, v0_file_find),
    IN_SANDBOX("GET",    "/filesystem-search/{path*}",         SCOPE_READ | CLASS_FILES, v0_file_search),
    IN_SANDBOX("GET",    "/filesystem-content-search/{path*}", SCOPE_READ | CLASS_FILES, v0_file_content_search),
    IN_SANDBOX("GET",    "/watch/filesystem/{path*}",          SCOPE_READ | CLASS_STREAM, v0_file_watch),

    IN_SANDBOX("GET",    "/filesystem-multipart",                  SCOPE_READ | CLASS_FILES,  v0_upload_list),
    IN_SANDBOX("POST",   "/filesystem-multipart/initiate/{path*}", SCOPE_WRITE | CLASS_FILES, v0_upload_start),
    IN_SANDBOX("PUT",    "/filesystem-multipart/{id}/part",        SCOPE_WRITE | CLASS_FILES, v0_upload_part),
    IN_SANDBOX("POST",   "/filesystem-multipart/{id}/complete",    SCOPE_WRITE | CLASS_FILES, v0_upload_complete),
    IN_SANDBOX("DELETE", "/filesystem-multipart/{id}/abort",       SCOPE_WRITE | CLASS_FILES, v0_upload_abort),
    IN_SANDBOX("GET",    "/filesystem-multipart/{id}/parts",       SCOPE_READ | CLASS_FILES,  v0_upload_parts),

    IN_SANDBOX("GET",    "/process",            SCOPE_READ,   v0_process_list),
    IN_SANDBOX("POST",   "/process",            SCOPE_WRITE | CLASS_EXEC,  v0_process_exec),
    IN_SANDBOX("GET",    "/process/{pid}",      SCOPE_READ,   v0_process_get),
    IN_SANDBOX("DELETE", "/process/{pid}",      SCOPE_WRITE,  v0_process_stop),
    IN_SANDBOX("GET",    "/process/{pid}/logs", SCOPE_READ,   v0_process_logs),
    IN_SANDBOX("GET",    "/process/{pid}/logs/stream", SCOPE_READ | CLASS_STREAM, v0_process_logs_stream),
    IN_SANDBOX("POST",   "/process/{pid}/kill", SCOPE_WRITE,  v0_process_kill),
    IN_SANDBOX("POST",   "/process/{pid}/stdin", SCOPE_WRITE, v0_process_stdin),
    IN_SANDBOX("DELETE", "/process/{pid}/stdin", SCOPE_WRITE, v0_process_stdin_end),

    IN_SANDBOX("GET",    "/exec/ws",            SCOPE_WRITE | CLASS_STREAM | ROUTE_TOKEN_IN_QUERY, v0_exec_ws),

    IN_SANDBOX("POST",   "/code",               SCOPE_WRITE | CLASS_EXEC,  v0_code_run),
    IN_SANDBOX("GET",    "/code/contexts",      SCOPE_READ,   v0_code_context_list),
    IN_SANDBOX("POST",   "/code/contexts",      SCOPE_WRITE | CLASS_EXEC,  v0_code_context_create),
    IN_SANDBOX("GET",    "/code/contexts/{context}", SCOPE_READ, v0_code_context_get),
    IN_SANDBOX("DELETE", "/code/contexts/{context}", SCOPE_WRITE, v0_code_context_delete),
    IN_SANDBOX("POST",   "/code/contexts/{context}/restart", SCOPE_WRITE | CLASS_EXEC, v0_code_context_restart),
    IN_SANDBOX("POST",   "/code/contexts/{context}/interrupt", SCOPE_WRITE, v0_code_context_interrupt),
    IN_SANDBOX("GET",    "/code/contexts/{context}/run", SCOPE_WRITE | CLASS_STREAM, v0_code_follow),

    IN_SANDBOX("GET",    "/history",            SCOPE_READ,   v0_history_list),
    IN_SANDBOX("GET",    "/diff",               SCOPE_READ | CLASS_FILES, v0_history_diff_get),
    IN_SANDBOX("POST",   "/diff",               SCOPE_READ | CLASS_FILES, v0_history_diff),
    IN_SANDBOX("POST",   "/rollback",           SCOPE_WRITE | CLASS_EXEC, v0_history_rollback),

    IN_SANDBOX("GET",    "/network",            SCOPE_READ,   v0_network_get),
    OF_SANDBOX("PUT",    "/network",            SCOPE_WRITE,  v0_network_put),
    OF_SANDBOX("PATCH",  "/network",            SCOPE_WRITE,  v0_network_patch),
    IN_SANDBOX("GET",    "/network/log",        SCOPE_READ,   v0_network_log),
    IN_SANDBOX("GET",    "/network/process/{pid}/ports", SCOPE_READ, v0_process_ports),
    OF_SANDBOX("POST",   "/network/process/{pid}/monitor", SCOPE_WRITE, v0_process_monitor),
    OF_SANDBOX("DELETE", "/network/process/{pid}/monitor", SCOPE_WRITE, v0_process_monitor_stop),

    IN_SANDBOX("GET",    "/terminal",           SCOPE_WRITE | ROUTE_TOKEN_IN_QUERY | CLASS_STREAM, v0_terminal_page),
    IN_SANDBOX("GET",    "/terminal/ws",        SCOPE_WRITE | ROUTE_TOKEN_IN_QUERY | CLASS_STREAM, v0_terminal_ws),
    IN_SANDBOX("GET",    "/terminal/sessions",  SCOPE_READ,   v0_terminal_list),
    IN_SANDBOX("POST",   "/terminal/sessions",  SCOPE_WRITE | CLASS_EXEC,  v0_terminal_create),
    IN_SANDBOX("DELETE", "/terminal/{sessionId}", SCOPE_WRITE, v0_terminal_close),
};
/* clang-format on */

const size_t api_route_count = ARRAY_LEN(api_routes);
