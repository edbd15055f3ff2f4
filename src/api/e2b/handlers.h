/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The handlers that the rows of e2b/routes.c name. Their ctx is a struct api_call (api/call.h). */

#include "http/router.h"

/* sandbox.c */
route_handler e2b_sandbox_create, e2b_sandbox_get, e2b_sandbox_kill;

/* sandbox_list.c */
route_handler e2b_sandbox_list, e2b_sandbox_list_running;

/* sandbox_life.c */
route_handler e2b_sandbox_connect, e2b_sandbox_timeout, e2b_sandbox_pause, e2b_sandbox_resume,
    e2b_sandbox_refresh;

/* sandbox_network.c, secrets.c */
route_handler e2b_sandbox_network, e2b_secret_list, e2b_secret_create, e2b_secret_update,
    e2b_secret_get, e2b_secret_delete;

/* snapshots.c */
route_handler e2b_snapshot_create, e2b_snapshot_list, e2b_snapshot_delete, e2b_sandbox_fork;

/* metrics.c, logs.c */
route_handler e2b_sandbox_metrics, e2b_sandboxes_metrics, e2b_sandbox_logs, e2b_sandbox_logs_v2;

/* templates.c */
route_handler e2b_template_list, e2b_template_alias, e2b_template_build, e2b_template_status,
    e2b_template_tag, e2b_template_untag, e2b_template_tags;

/* volumes.c */
route_handler e2b_volume_list, e2b_volume_create, e2b_volume_find;

/* envd.c: inside a sandbox */
route_handler e2b_health, e2b_filesystem, e2b_process, e2b_envs;

/* code.c */
route_handler e2b_execute, e2b_context_list, e2b_context_create, e2b_context_restart,
    e2b_context_delete;

/* files.c */
route_handler e2b_file_get, e2b_file_post;
