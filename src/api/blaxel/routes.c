/* SPDX-License-Identifier: Apache-2.0 */

/* Every route that Blaxel's clients know. As in api/routes.c, the first row that fits wins. */

#include "api/blaxel/routes.h"

#include "api/blaxel/handlers.h"
#include "api/handlers.h"
#include "api/route_class.h"
#include "auth/auth.h"
#include "base/cleanup.h"

/* Inside one sandbox. */
#define OF_BOX(method, path, scope, handler)                                                       \
    ROUTE(method, "/{workspace}/sandboxes/{name}" path, scope, handler)
/* With no effect outside of it. */
#define IN_BOX(method, path, scope, handler) OF_BOX(method, path, (scope) | ROUTE_INSIDE, handler)

/* clang-format off */
const struct route blaxel_routes[] = {
    ROUTE("GET",    "/v0/sandboxes",                     SCOPE_READ,  blaxel_sandbox_list),
    ROUTE("POST",   "/v0/sandboxes",                     SCOPE_WRITE | CLASS_CREATE, blaxel_sandbox_create),
    ROUTE("GET",    "/v0/sandboxes/by-external-id/{id}", SCOPE_READ,  blaxel_sandbox_by_external_id),
    ROUTE("GET",    "/v0/sandboxes/{name}",              SCOPE_READ,  blaxel_sandbox_get),
    ROUTE("PUT",    "/v0/sandboxes/{name}",              SCOPE_WRITE, blaxel_sandbox_put),
    ROUTE("PATCH",  "/v0/sandboxes/{name}",              SCOPE_WRITE, blaxel_sandbox_put),
    ROUTE("DELETE", "/v0/sandboxes/{name}",              SCOPE_WRITE, blaxel_sandbox_delete),
    ROUTE("POST",   "/v0/sandboxes/{name}/fork",         SCOPE_WRITE | CLASS_CREATE, blaxel_sandbox_fork),

    ROUTE("GET",    "/v0/images",                              SCOPE_READ,  blaxel_empty_list),
    ROUTE("GET",    "/v0/volumes",                             SCOPE_READ,  blaxel_empty_page),
    ROUTE("GET",    "/v0/drives",                              SCOPE_READ,  blaxel_empty_page),
    ROUTE("GET",    "/v0/snapshots",                           SCOPE_READ,  blaxel_empty_page),
    ROUTE("GET",    "/v0/sandboxes/{name}/schedules",          SCOPE_READ,  blaxel_sandbox_empty_page),
    ROUTE("GET",    "/v0/sandboxes/{name}/schedule-executions", SCOPE_READ, blaxel_sandbox_empty_page),
    ROUTE("GET",    "/v0/sandboxes/{name}/snapshots",          SCOPE_READ,  blaxel_sandbox_empty_list),

    ROUTE("GET",    "/v0/sandboxes/{name}/previews",           SCOPE_READ,  blaxel_preview_list),
    ROUTE("POST",   "/v0/sandboxes/{name}/previews",           SCOPE_WRITE, blaxel_preview_create),
    ROUTE("GET",    "/v0/sandboxes/{name}/previews/{preview}", SCOPE_READ,  blaxel_preview_get),
    ROUTE("PUT",    "/v0/sandboxes/{name}/previews/{preview}", SCOPE_WRITE, blaxel_preview_put),
    ROUTE("DELETE", "/v0/sandboxes/{name}/previews/{preview}", SCOPE_WRITE, blaxel_preview_delete),
    /* A token is shown in full, so reading it takes as much as making one. */
    ROUTE("GET",    "/v0/sandboxes/{name}/previews/{preview}/tokens",         SCOPE_WRITE,
          blaxel_preview_token_list),
    ROUTE("POST",   "/v0/sandboxes/{name}/previews/{preview}/tokens",         SCOPE_WRITE,
          blaxel_preview_token_create),
    ROUTE("DELETE", "/v0/sandboxes/{name}/previews/{preview}/tokens/{token}", SCOPE_WRITE,
          blaxel_preview_token_delete),
};

/* Who comes here has no key; the preview itself says what it takes. */
const struct route preview_routes[] = {
    ROUTE("ANY",    "/preview/{id}/{path*}", SCOPE_PUBLIC | CLASS_PROXY, preview_serve),
};

const struct route blaxel_box_routes[] = {
    IN_BOX("GET",    "/health",             SCOPE_READ,  box_health),

    /* Before /filesystem/{path*}: a directory /tree of the sandbox is /filesystem//tree. */
    IN_BOX("GET",    "/filesystem/tree/{path*}", SCOPE_READ | CLASS_FILES,  box_tree_get),
    IN_BOX("PUT",    "/filesystem/tree/{path*}", SCOPE_WRITE | CLASS_FILES, box_tree_put),
    IN_BOX("DELETE", "/filesystem/tree/{path*}", SCOPE_WRITE | CLASS_FILES, box_tree_delete),
    IN_BOX("GET",    "/filesystem/{path*}", SCOPE_READ | CLASS_FILES,  box_file_get),
    IN_BOX("PUT",    "/filesystem/{path*}", SCOPE_WRITE | CLASS_FILES, box_file_put),
    IN_BOX("DELETE", "/filesystem/{path*}", SCOPE_WRITE | CLASS_FILES, box_file_delete),


    IN_BOX("GET",    "/filesystem-find/{path*}",           SCOPE_READ | CLASS_FILES, box_file_find),
    IN_BOX("GET",    "/filesystem-search/{path*}",         SCOPE_READ | CLASS_FILES, box_file_search),
    IN_BOX("GET",    "/filesystem-content-search/{path*}", SCOPE_READ | CLASS_FILES, box_file_content_search),
    IN_BOX("GET",    "/watch/filesystem/{path*}",          SCOPE_READ | CLASS_STREAM, box_file_watch),

    IN_BOX("GET",    "/filesystem-multipart",                  SCOPE_READ | CLASS_FILES,  v0_upload_list),
    IN_BOX("POST",   "/filesystem-multipart/initiate/{path*}", SCOPE_WRITE | CLASS_FILES, box_upload_start),
    IN_BOX("PUT",    "/filesystem-multipart/{id}/part",        SCOPE_WRITE | CLASS_FILES, box_upload_part),
    IN_BOX("POST",   "/filesystem-multipart/{id}/complete",    SCOPE_WRITE | CLASS_FILES, v0_upload_complete),
    IN_BOX("DELETE", "/filesystem-multipart/{id}/abort",       SCOPE_WRITE | CLASS_FILES, v0_upload_abort),
    IN_BOX("GET",    "/filesystem-multipart/{id}/parts",       SCOPE_READ | CLASS_FILES,  v0_upload_parts),

    IN_BOX("GET",    "/process",                   SCOPE_READ,  box_process_list),
    IN_BOX("POST",   "/process",                   SCOPE_WRITE | CLASS_EXEC, box_process_exec),
    IN_BOX("GET",    "/process/{pid}",             SCOPE_READ,  box_process_get),
    IN_BOX("DELETE", "/process/{pid}",             SCOPE_WRITE, box_process_stop),
    IN_BOX("DELETE", "/process/{pid}/kill",        SCOPE_WRITE, box_process_kill),
    IN_BOX("POST",   "/process/{pid}/kill",        SCOPE_WRITE, box_process_kill),
    IN_BOX("GET",    "/process/{pid}/logs",        SCOPE_READ,  box_process_logs),
    IN_BOX("GET",    "/process/{pid}/logs/stream", SCOPE_READ | CLASS_STREAM,  box_process_logs_stream),
    /* These answer in the seed's shape, which is the same. */
    IN_BOX("POST",   "/process/{pid}/stdin",       SCOPE_WRITE, v0_process_stdin),
    IN_BOX("DELETE", "/process/{pid}/stdin",       SCOPE_WRITE, v0_process_stdin_end),

    IN_BOX("GET",    "/network/process/{pid}/ports",   SCOPE_READ,  v0_process_ports),
    OF_BOX("POST",   "/network/process/{pid}/monitor", SCOPE_WRITE, v0_process_monitor),
    OF_BOX("DELETE", "/network/process/{pid}/monitor", SCOPE_WRITE, v0_process_monitor_stop),

    IN_BOX("ANY",    "/port/{port}/{path*}",   SCOPE_WRITE | ROUTE_FORWARDS | CLASS_PROXY,       box_port_proxy),
    IN_BOX("GET",    "/tunnel/{port}",         SCOPE_WRITE | CLASS_PROXY,                        v0_port_tunnel),

    IN_BOX("GET",    "/terminal",              SCOPE_WRITE | ROUTE_TOKEN_IN_QUERY | CLASS_STREAM, v0_terminal_page),
    IN_BOX("GET",    "/terminal/ws",           SCOPE_WRITE | ROUTE_TOKEN_IN_QUERY | CLASS_STREAM, v0_terminal_ws),
    IN_BOX("GET",    "/terminal/sessions",     SCOPE_READ,                         v0_terminal_list),
    IN_BOX("POST",   "/terminal/sessions",     SCOPE_WRITE | CLASS_EXEC,                        v0_terminal_create),
    IN_BOX("DELETE", "/terminal/{sessionId}",  SCOPE_WRITE,                        v0_terminal_close),
};
/* clang-format on */

const size_t blaxel_route_count = ARRAY_LEN(blaxel_routes);
const size_t preview_route_count = ARRAY_LEN(preview_routes);
const size_t blaxel_box_route_count = ARRAY_LEN(blaxel_box_routes);
