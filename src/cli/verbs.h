/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What the rows of commands.c call. One file per group of verbs. */

#include "cli/command.h"

/* sandbox.c, sandbox_life.c */
verb_function verb_sandbox_list, verb_sandbox_get, verb_sandbox_create, verb_sandbox_clone,
    verb_sandbox_update, verb_sandbox_start, verb_sandbox_resume, verb_sandbox_pause,
    verb_sandbox_stop, verb_sandbox_delete, verb_sandbox_release, verb_sandbox_wait;

/* group.c */
verb_function verb_group_list, verb_group_get, verb_group_create, verb_group_start, verb_group_stop,
    verb_group_end, verb_group_stats, verb_group_resize;

/* logs.c */
verb_function verb_sandbox_logs;

/* metrics.c */
verb_function verb_sandbox_metrics;

/* top.c */
verb_function verb_top;

/* machine.c */
verb_function verb_machine, verb_sandbox_resize;

/* env.c */
verb_function verb_env;

/* backup.c */
verb_function verb_backup, verb_restore;

/* tls.c */
verb_function verb_tls_ca;

/* audit.c */
verb_function verb_audit_list, verb_audit_tail, verb_audit_verify;

/* file.c */
verb_function verb_file_read, verb_file_ls, verb_file_write, verb_file_rm;

/* file_look.c */
verb_function verb_file_tree, verb_file_watch, verb_file_find, verb_file_search;

/* cp.c */
verb_function verb_cp;

/* process.c */
verb_function verb_process_list, verb_process_exec, verb_process_attach, verb_process_logs,
    verb_process_ports, verb_process_stop, verb_process_kill;

/* code.c */
verb_function verb_code_run, verb_code;

/* shell.c */
verb_function verb_shell, verb_terminal_list, verb_terminal_close;

/* sandbox_token.c */
verb_function verb_sandbox_token, verb_sandbox_revoke;

/* port.c */
verb_function verb_port_list, verb_port_publish, verb_port_update, verb_port_unpublish,
    verb_port_token, verb_port_revoke;

/* port_forward.c */
verb_function verb_port_forward;

/* workspace.c */
verb_function verb_workspace_get;
verb_function verb_workspace_list, verb_workspace_create, verb_workspace_delete,
    verb_workspace_limits, verb_key_list, verb_key_create, verb_key_delete;

/* secret.c */
verb_function verb_secret_list, verb_secret_set, verb_secret_delete, verb_secret_trust;

/* network.c */
verb_function verb_network_get, verb_network_set;

/* network_log.c */
verb_function verb_network_log;

/* sandbox_history.c */
verb_function verb_history, verb_diff, verb_rollback;

/* pool.c */
verb_function verb_pool_list, verb_pool_get, verb_pool_create, verb_pool_update, verb_pool_delete;

/* account.c */
verb_function verb_login, verb_logout, verb_whoami, verb_token;

/* server.c */
verb_function verb_server;

/* doctor.c */
verb_function verb_doctor;

/* completion.c, names.c */
verb_function verb_completion, verb_complete, verb_names;

/* help.c, man.c */
verb_function verb_help, verb_version, verb_man;
