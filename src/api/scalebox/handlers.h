/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The handlers that the rows of scalebox/routes.c name. Their ctx is a struct api_call
 * (api/call.h).
 */

#include "http/router.h"

/* sandbox.c */
route_handler scalebox_sandbox_create, scalebox_sandbox_get, scalebox_sandbox_list,
    scalebox_sandbox_kill;

/* sandbox_life.c */
route_handler scalebox_sandbox_connect, scalebox_sandbox_timeout, scalebox_sandbox_pause,
    scalebox_sandbox_resume, scalebox_sandbox_metrics;

/* box.c: inside a sandbox */
route_handler scalebox_health, scalebox_filesystem, scalebox_process, scalebox_download,
    scalebox_upload;

/* contexts.c */
route_handler scalebox_context, scalebox_context_create, scalebox_context_get,
    scalebox_context_delete;

/* code.c */
route_handler scalebox_execution, scalebox_execute;

/* ports.c */
route_handler scalebox_port_list, scalebox_port_add, scalebox_port_remove;

/* templates.c */
route_handler scalebox_template_create;
