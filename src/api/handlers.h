/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The handlers that the rows of routes.c name. Their ctx is a struct api_call (api/call.h). */

#include "http/router.h"

/* ops/health.c, ops/ready.c, ops/metrics.c */
route_handler ops_health, ops_ready, ops_metrics;

/* ops/docs.c */
route_handler ops_openapi, ops_docs, ops_docs_part;

/* v0/keys.c, v0/oauth.c */
route_handler v0_key_list, v0_key_create, v0_key_get, v0_key_delete, v0_whoami, v0_oauth_token;

/* v0/limits.c, v0/audit.c */
route_handler v0_limits, v0_audit, v0_audit_head;

/* v0/secrets.c */
route_handler v0_secret_list, v0_secret_create, v0_secret_get, v0_secret_put, v0_secret_delete;

/* v0/sandbox_ca.c */
route_handler v0_sandbox_ca_get, v0_sandbox_ca_put, v0_sandbox_ca_delete;

/* v0/workspaces.c */
route_handler v0_workspace_list, v0_workspace_create, v0_workspace_get, v0_workspace_delete;
route_handler v0_workspace_limits_get, v0_workspace_limits_put, v0_workspace_limits_delete;

/* v0/groups.c */
route_handler v0_group_list, v0_group_create, v0_group_get, v0_group_patch, v0_group_start,
    v0_group_stop, v0_group_end, v0_group_resize;

/* v0/group_stats.c */
route_handler v0_group_stats;

/* v0/sandbox_list.c */
route_handler v0_sandbox_list, v0_sandbox_create;

/* v0/sandbox.c */
route_handler v0_sandbox_get, v0_sandbox_delete, v0_sandbox_start, v0_sandbox_stop,
    v0_sandbox_resume, v0_sandbox_pause, v0_sandbox_release, v0_sandbox_health;

/* v0/pools.c */
route_handler v0_pool_list, v0_pool_create, v0_pool_get, v0_pool_update, v0_pool_delete;

/* v0/sandbox_change.c */
route_handler v0_sandbox_clone, v0_sandbox_update, v0_sandbox_patch;

/* v0/logs.c */
route_handler v0_sandbox_logs;

/* v0/metrics.c */
route_handler v0_sandbox_metrics, v0_metrics, v0_machine, v0_sandbox_resize;
route_handler v0_sandbox_token_create, v0_sandbox_token_revoke;

/* v0/filesystem.c */
route_handler v0_file_get, v0_file_put, v0_file_delete;

/* v0/port.c */
route_handler v0_port_proxy, v0_port_tunnel;

/* v0/ports.c */
route_handler v0_port_publish, v0_port_list, v0_port_get, v0_port_change, v0_port_unpublish,
    v0_port_token, v0_port_revoke;

/* v0/file_tree.c */
route_handler v0_tree_get, v0_tree_put, v0_tree_delete;

/* v0/file_search.c, v0/file_watch.c */
route_handler v0_file_find, v0_file_search, v0_file_content_search, v0_file_watch;

/* v0/uploads.c */
route_handler v0_upload_start, v0_upload_part, v0_upload_complete, v0_upload_abort, v0_upload_parts,
    v0_upload_list;

/* v0/process.c, v0/process_logs.c, v0/process_stream.c, v0/process_stdin.c */
route_handler v0_process_list, v0_process_exec, v0_process_get, v0_process_stop, v0_process_kill,
    v0_process_logs, v0_process_logs_stream, v0_process_stdin, v0_process_stdin_end;

/* v0/code.c */
route_handler v0_code_run, v0_code_follow, v0_code_context_list, v0_code_context_create,
    v0_code_context_get, v0_code_context_restart, v0_code_context_interrupt, v0_code_context_delete;

/* v0/sandbox_network.c */
route_handler v0_network_get, v0_network_put, v0_network_patch;
/* v0/history.c */
route_handler v0_history_list, v0_history_diff, v0_history_diff_get, v0_history_rollback;

/* v0/network_log.c */
route_handler v0_network_log;

/* v0/network.c */
route_handler v0_process_ports, v0_process_monitor, v0_process_monitor_stop;

/* v0/exec_ws.c */
route_handler v0_exec_ws;

/* v0/terminal.c, v0/terminal_page.c, v0/terminal_ws.c */
route_handler v0_terminal_list, v0_terminal_create, v0_terminal_close, v0_terminal_page,
    v0_terminal_ws;
