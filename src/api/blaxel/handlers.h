/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The handlers that the rows of blaxel/routes.c name. Their ctx is a struct api_call (api/call.h).
 */

#include "http/router.h"

/* sandbox.c, sandbox_list.c: the control plane */
route_handler blaxel_sandbox_list, blaxel_sandbox_create, blaxel_sandbox_get, blaxel_sandbox_put,
    blaxel_sandbox_delete, blaxel_sandbox_by_external_id;

/* fork.c, lists.c */
route_handler blaxel_sandbox_fork, blaxel_empty_list, blaxel_empty_page, blaxel_sandbox_empty_page,
    blaxel_sandbox_empty_list;

/* preview.c */
route_handler blaxel_preview_list, blaxel_preview_create, blaxel_preview_get, blaxel_preview_put,
    blaxel_preview_delete, blaxel_preview_token_list, blaxel_preview_token_create,
    blaxel_preview_token_delete;

/* preview_serve.c */
route_handler preview_serve;

/* filesystem.c, file_tree.c */
route_handler box_file_get, box_file_put, box_file_delete, box_tree_get, box_tree_put,
    box_tree_delete;

/* file_search.c */
route_handler box_file_find, box_file_search, box_file_content_search, box_file_watch;

/* uploads.c */
route_handler box_upload_start, box_upload_part;

/* port.c */
route_handler box_port_proxy;

/* process.c, process_exec.c */
route_handler box_process_list, box_process_exec, box_process_get, box_process_stop,
    box_process_kill, box_process_logs, box_process_logs_stream;

/* health.c */
route_handler box_health;
