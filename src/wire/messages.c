/* SPDX-License-Identifier: Apache-2.0 */

/* The tables behind messages.h: which fields each message has. Tags are never reused. */

#include "wire/messages.h"

#include <string.h>

#include "base/cleanup.h"
#include "base/limits.h"

#define U64(tag_, type, member)                                                                    \
    {                                                                                              \
        .tag = (tag_), .kind = WIRE_U64, .offset = offsetof(type, member), .name = #member         \
    }
#define STR(tag_, type, member, max_)                                                              \
    {                                                                                              \
        .tag = (tag_), .kind = WIRE_STR, .offset = offsetof(type, member), .max = (max_) + 1,      \
        .name = #member                                                                            \
    }
#define STR_REQUIRED(tag_, type, member, max_)                                                     \
    {                                                                                              \
        .tag = (tag_), .kind = WIRE_STR, .required = true, .offset = offsetof(type, member),       \
        .max = (max_) + 1, .name = #member                                                         \
    }
#define BYTES(tag_, type, member, max_)                                                            \
    {                                                                                              \
        .tag = (tag_), .kind = WIRE_BYTES, .offset = offsetof(type, member), .max = (max_),        \
        .name = #member                                                                            \
    }
#define STRV(tag_, type, member, max_)                                                             \
    {                                                                                              \
        .tag = (tag_), .kind = WIRE_STRV, .offset = offsetof(type, member), .max = (max_),         \
        .name = #member                                                                            \
    }

#define SCHEMA(var, type_, struct_, rows)                                                          \
    const struct wire_schema var = {.type = (type_),                                               \
                                    .name = #type_,                                                \
                                    .size = sizeof(struct_),                                       \
                                    .fields = (rows),                                              \
                                    .count = ARRAY_LEN(rows)}
#define SCHEMA_EMPTY(var, type_) const struct wire_schema var = {.type = (type_), .name = #type_}

enum { ID_MAX = 32, TEXT_MAX = 256, NAME_BYTES_MAX = 255, ADDRESS_TEXT_MAX = 45 };

static const struct wire_field error_fields[] = {
    U64(1, struct wire_error, code),
    U64(2, struct wire_error, sys),
    STR_REQUIRED(3, struct wire_error, message, ERROR_MESSAGE_MAX),
};
SCHEMA_EMPTY(wire_ok_schema, WIRE_OK);
SCHEMA(wire_error_schema, WIRE_ERROR, struct wire_error, error_fields);

static const struct wire_field warden_hello_fields[] = {
    U64(1, struct warden_hello, epoch),
};
SCHEMA(warden_hello_schema, WARDEN_HELLO, struct warden_hello, warden_hello_fields);

static const struct wire_field about_fields[] = {
    U64(1, struct warden_about, version),
    STR_REQUIRED(2, struct warden_about, instance, ID_MAX),
    STR(3, struct warden_about, storage, TEXT_MAX),
    STR(4, struct warden_about, cgroups, TEXT_MAX),
    STR(5, struct warden_about, network, TEXT_MAX),
    STR(6, struct warden_about, gateway, TEXT_MAX),
    U64(7, struct warden_about, agent_version),
};
SCHEMA(warden_about_schema, WARDEN_ABOUT, struct warden_about, about_fields);

static const struct wire_field plan_fields[] = {
    STR_REQUIRED(1, struct plan, id, ID_MAX),
    STR_REQUIRED(2, struct plan, hostname, NAME_MAX_LEN),
    STR_REQUIRED(3, struct plan, image, TEXT_MAX),
    U64(4, struct plan, memory_bytes),
    U64(5, struct plan, cpu_millis),
    U64(6, struct plan, pids_max),
    U64(7, struct plan, disk_bytes),
    U64(8, struct plan, shm_bytes),
    U64(9, struct plan, flags),
    U64(10, struct plan, scratch_bytes),
    U64(20, struct plan, disk_read_bytes),
    U64(21, struct plan, disk_write_bytes),
    U64(22, struct plan, disk_read_ops),
    U64(23, struct plan, disk_write_ops),
    U64(24, struct plan, memory_bandwidth),
    U64(40, struct plan, spare),
    U64(50, struct plan, network),
    U64(51, struct plan, network_flags),
    U64(52, struct plan, network_in_bytes),
    U64(53, struct plan, network_out_bytes),
    BYTES(54, struct plan, network_rules, PLAN_NET_RULES_MAX * sizeof(struct plan_net_rule)),
};
SCHEMA(warden_start_schema, WARDEN_START, struct plan, plan_fields);
SCHEMA(warden_claim_schema, WARDEN_CLAIM, struct plan, plan_fields);

static const struct wire_field machine_fields[] = {
    U64(1, struct warden_machine, flags),
    U64(2, struct warden_machine, disk_total),
    U64(3, struct warden_machine, disk_used),
    U64(4, struct warden_machine, disk_free),
    STR(5, struct warden_machine, disk_io, TEXT_MAX),
    STR(6, struct warden_machine, memory_bandwidth, TEXT_MAX),
    STR(7, struct warden_machine, ipv6, TEXT_MAX),
    U64(8, struct warden_machine, disk_below),
    U64(9, struct warden_machine, disk_reserve),
    U64(10, struct warden_machine, volume_size),
};
SCHEMA_EMPTY(warden_machine_ask_schema, WARDEN_MACHINE_ASK);
SCHEMA(warden_machine_schema, WARDEN_MACHINE, struct warden_machine, machine_fields);

static const struct wire_field started_fields[] = {
    U64(1, struct warden_started, pid),
    U64(2, struct warden_started, start_time),
    U64(3, struct warden_started, fresh),
    STR(4, struct warden_started, address, ADDRESS_TEXT_MAX),
    STR(5, struct warden_started, address6, ADDRESS_TEXT_MAX),
    U64(6, struct warden_started, joined),
};
SCHEMA(warden_started_schema, WARDEN_STARTED, struct warden_started, started_fields);

static const struct wire_field warden_stop_fields[] = {
    STR_REQUIRED(1, struct warden_stop, id, ID_MAX),
    U64(2, struct warden_stop, grace_ms),
};
SCHEMA(warden_stop_schema, WARDEN_STOP, struct warden_stop, warden_stop_fields);

static const struct wire_field warden_ref_fields[] = {
    STR_REQUIRED(1, struct warden_ref, id, ID_MAX),
};
SCHEMA(warden_remove_schema, WARDEN_REMOVE, struct warden_ref, warden_ref_fields);
SCHEMA(warden_pause_schema, WARDEN_PAUSE, struct warden_ref, warden_ref_fields);
SCHEMA(warden_resume_schema, WARDEN_RESUME, struct warden_ref, warden_ref_fields);

static const struct wire_field warden_entry_fields[] = {
    STR_REQUIRED(1, struct warden_entry, id, ID_MAX),
    U64(2, struct warden_entry, running),
    U64(3, struct warden_entry, pid),
    U64(4, struct warden_entry, start_time),
    STR(5, struct warden_entry, address, ADDRESS_TEXT_MAX),
    STR(6, struct warden_entry, address6, ADDRESS_TEXT_MAX),
    U64(7, struct warden_entry, paused),
};
SCHEMA_EMPTY(warden_list_schema, WARDEN_LIST);
SCHEMA(warden_entry_schema, WARDEN_ENTRY, struct warden_entry, warden_entry_fields);

static const struct wire_field exited_fields[] = {
    STR_REQUIRED(1, struct warden_exited, id, ID_MAX),
    U64(2, struct warden_exited, oom),
};
SCHEMA(warden_exited_schema, WARDEN_EXITED, struct warden_exited, exited_fields);

static const struct wire_field stats_fields[] = {
    STRV(1, struct warden_stats, ids, STATS_IDS_MAX *(ID_MAX + 1)),
};
SCHEMA(warden_stats_schema, WARDEN_STATS, struct warden_stats, stats_fields);

static const struct wire_field sample_fields[] = {
    STR_REQUIRED(1, struct warden_sample, id, ID_MAX),
    U64(2, struct warden_sample, known),
    U64(3, struct warden_sample, cpu_usec),
    U64(4, struct warden_sample, memory_bytes),
    U64(5, struct warden_sample, disk_bytes),
    U64(6, struct warden_sample, tasks),
    U64(7, struct warden_sample, oom_kills),
    U64(8, struct warden_sample, time_usec),
    U64(9, struct warden_sample, network_in_bytes),
    U64(10, struct warden_sample, network_out_bytes),
    U64(11, struct warden_sample, network_in_packets),
    U64(12, struct warden_sample, network_out_packets),
};
SCHEMA(warden_sample_schema, WARDEN_SAMPLE, struct warden_sample, sample_fields);
static const struct wire_field warden_socket_fields[] = {
    STR_REQUIRED(1, struct warden_socket, id, ID_MAX),
    U64(2, struct warden_socket, family),
};
SCHEMA(warden_socket_schema, WARDEN_SOCKET, struct warden_socket, warden_socket_fields);
static const struct wire_field warden_helper_fields[] = {
    U64(1, struct warden_helper, group),
    U64(2, struct warden_helper, part),
};
SCHEMA(warden_helper_schema, WARDEN_HELPER, struct warden_helper, warden_helper_fields);

static const struct wire_field warden_net_set_fields[] = {
    STR_REQUIRED(1, struct warden_net_set, id, ID_MAX),
    U64(2, struct warden_net_set, network),
    U64(3, struct warden_net_set, network_flags),
    U64(4, struct warden_net_set, network_in_bytes),
    U64(5, struct warden_net_set, network_out_bytes),
    BYTES(6, struct warden_net_set, network_rules,
          PLAN_NET_RULES_MAX * sizeof(struct plan_net_rule)),
};
SCHEMA(warden_net_set_schema, WARDEN_NET_SET, struct warden_net_set, warden_net_set_fields);

static const struct wire_field warden_net_admit_fields[] = {
    BYTES(1, struct warden_net_admit, sandbox, 16),
    BYTES(2, struct warden_net_admit, address, 16),
    U64(3, struct warden_net_admit, protocol),
    U64(4, struct warden_net_admit, port),
    U64(5, struct warden_net_admit, ttl_s),
    U64(6, struct warden_net_admit, last_port),
    STR_REQUIRED(7, struct warden_net_admit, id, ID_MAX),
};
SCHEMA(warden_net_admit_schema, WARDEN_NET_ADMIT, struct warden_net_admit, warden_net_admit_fields);

static const struct wire_field warden_net_listen_fields[] = {
    U64(1, struct warden_net_listen, which),
};
SCHEMA(warden_net_listen_schema, WARDEN_NET_LISTEN, struct warden_net_listen,
       warden_net_listen_fields);

static const struct wire_field warden_net_count_fields[] = {
    BYTES(1, struct warden_net_count, sandbox, 16), BYTES(2, struct warden_net_count, address, 16),
    U64(3, struct warden_net_count, protocol),      U64(4, struct warden_net_count, sandbox_port),
    U64(5, struct warden_net_count, port),
};
SCHEMA(warden_net_count_schema, WARDEN_NET_COUNT, struct warden_net_count, warden_net_count_fields);

static const struct wire_field warden_net_counted_fields[] = {
    U64(1, struct warden_net_counted, in_bytes),
    U64(2, struct warden_net_counted, out_bytes),
};
SCHEMA(warden_net_counted_schema, WARDEN_NET_COUNTED, struct warden_net_counted,
       warden_net_counted_fields);

static const struct wire_field warden_delegate_fields[] = {
    STR_REQUIRED(1, struct warden_delegate, id, ID_MAX),
    U64(2, struct warden_delegate, controller),
};
SCHEMA(warden_delegate_schema, WARDEN_DELEGATE, struct warden_delegate, warden_delegate_fields);

static const struct wire_field warden_clone_fields[] = {
    STR_REQUIRED(1, struct warden_clone, id, ID_MAX),
    STR_REQUIRED(2, struct warden_clone, source, ID_MAX),
    STR_REQUIRED(3, struct warden_clone, hostname, NAME_MAX_LEN),
    U64(4, struct warden_clone, disk_bytes),
};
SCHEMA(warden_clone_schema, WARDEN_CLONE, struct warden_clone, warden_clone_fields);

static const struct wire_field warden_update_fields[] = {
    STR_REQUIRED(1, struct warden_update, id, ID_MAX),
    U64(2, struct warden_update, memory_bytes),
    U64(3, struct warden_update, cpu_millis),
    U64(4, struct warden_update, pids_max),
    U64(5, struct warden_update, disk_bytes),
    U64(6, struct warden_update, disk_read_bytes),
    U64(7, struct warden_update, disk_write_bytes),
    U64(8, struct warden_update, disk_read_ops),
    U64(9, struct warden_update, disk_write_ops),
    U64(10, struct warden_update, memory_bandwidth),
};
SCHEMA(warden_update_schema, WARDEN_UPDATE, struct warden_update, warden_update_fields);

static const struct wire_field warden_fits_fields[] = {
    STR_REQUIRED(1, struct warden_fits, id, ID_MAX),
    U64(2, struct warden_fits, disk_bytes),
};
SCHEMA(warden_fits_schema, WARDEN_FITS, struct warden_fits, warden_fits_fields);

static const struct wire_field agent_about_fields[] = {
    U64(1, struct agent_about, version),
    U64(2, struct agent_about, started_ms),
};
SCHEMA_EMPTY(agent_hello_schema, AGENT_HELLO);
SCHEMA(agent_about_schema, AGENT_ABOUT, struct agent_about, agent_about_fields);

static const struct wire_field exec_fields[] = {
    STR(1, struct agent_exec, command, COMMAND_MAX),
    STRV(2, struct agent_exec, argv, 4 * COMMAND_MAX),
    STR(3, struct agent_exec, cwd, PATH_BYTES_MAX),
    STRV(4, struct agent_exec, env, 2 * ENV_BYTES_MAX),
    STR(5, struct agent_exec, user, NAME_BYTES_MAX),
    U64(6, struct agent_exec, timeout_ms),
    U64(7, struct agent_exec, log_max),
    U64(8, struct agent_exec, flags),
    STR(9, struct agent_exec, name, PROCESS_NAME_MAX),
    BYTES(10, struct agent_exec, stdin_data, PROCESS_INPUT_CHUNK),
    U64(11, struct agent_exec, max_restarts),
    U64(12, struct agent_exec, limits.memory_bytes),
    U64(13, struct agent_exec, limits.time_ms),
    U64(14, struct agent_exec, limits.processes),
    U64(15, struct agent_exec, limits.output_bytes),
    U64(16, struct agent_exec, limits.open_files),
    STR(17, struct agent_exec, execution, EXECUTION_ID_MAX),
};
SCHEMA(agent_exec_schema, AGENT_EXEC, struct agent_exec, exec_fields);

static const struct wire_field agent_ref_fields[] = {
    U64(1, struct agent_ref, pid),
    STR(2, struct agent_ref, name, PROCESS_NAME_MAX),
    STR(3, struct agent_ref, execution, EXECUTION_ID_MAX),
};
SCHEMA(agent_wait_schema, AGENT_WAIT, struct agent_ref, agent_ref_fields);
SCHEMA(agent_get_schema, AGENT_GET, struct agent_ref, agent_ref_fields);
SCHEMA_EMPTY(agent_list_schema, AGENT_LIST);

static const struct wire_field process_fields[] = {
    U64(1, struct agent_process, pid),
    U64(2, struct agent_process, state),
    U64(3, struct agent_process, exit_code),
    U64(4, struct agent_process, signal),
    U64(5, struct agent_process, started_ms),
    U64(6, struct agent_process, ended_ms),
    STR_REQUIRED(7, struct agent_process, command, 4 * COMMAND_MAX),
    STR_REQUIRED(8, struct agent_process, cwd, PATH_BYTES_MAX),
    STR_REQUIRED(9, struct agent_process, user, NAME_BYTES_MAX),
    U64(10, struct agent_process, stdout_total),
    U64(11, struct agent_process, stderr_total),
    BYTES(12, struct agent_process, stdout_data, PROCESS_INLINE_MAX),
    BYTES(13, struct agent_process, stderr_data, PROCESS_INLINE_MAX),
    STR(14, struct agent_process, name, PROCESS_NAME_MAX),
    U64(15, struct agent_process, flags),
    U64(16, struct agent_process, restarts),
    U64(17, struct agent_process, max_restarts),
    U64(18, struct agent_process, clean),
    STR(19, struct agent_process, execution, EXECUTION_ID_MAX),
};
SCHEMA(agent_process_schema, AGENT_PROCESS, struct agent_process, process_fields);

static const struct wire_field clean_fields[] = {
    U64(1, struct agent_clean, clean),
};
SCHEMA_EMPTY(agent_clean_ask_schema, AGENT_CLEAN_ASK);
SCHEMA(agent_clean_schema, AGENT_CLEAN, struct agent_clean, clean_fields);

static const struct wire_field agent_stop_fields[] = {
    U64(1, struct agent_stop, pid),
    U64(2, struct agent_stop, grace_ms),
    STR(3, struct agent_stop, name, PROCESS_NAME_MAX),
};
SCHEMA(agent_stop_schema, AGENT_STOP, struct agent_stop, agent_stop_fields);

static const struct wire_field agent_signal_fields[] = {
    U64(1, struct agent_signal, pid),
    STR(2, struct agent_signal, name, PROCESS_NAME_MAX),
    U64(3, struct agent_signal, signal),
};
SCHEMA(agent_signal_schema, AGENT_SIGNAL, struct agent_signal, agent_signal_fields);

static const struct wire_field log_read_fields[] = {
    U64(1, struct agent_log_read, pid),
    U64(2, struct agent_log_read, stream),
    U64(3, struct agent_log_read, offset),
    U64(4, struct agent_log_read, max),
    STR(5, struct agent_log_read, name, PROCESS_NAME_MAX),
};
SCHEMA(agent_log_read_schema, AGENT_LOG_READ, struct agent_log_read, log_read_fields);

static const struct wire_field log_fields[] = {
    U64(1, struct agent_log, offset),
    U64(2, struct agent_log, total),
    U64(3, struct agent_log, open),
    BYTES(4, struct agent_log, data, WIRE_DATA_CHUNK),
};
SCHEMA(agent_log_schema, AGENT_LOG, struct agent_log, log_fields);

static const struct wire_field follow_fields[] = {
    U64(1, struct agent_follow, pid),
    STR(2, struct agent_follow, name, PROCESS_NAME_MAX),
    U64(3, struct agent_follow, offset),
    U64(4, struct agent_follow, flags),
};
SCHEMA_EMPTY(agent_cancel_schema, AGENT_CANCEL);
SCHEMA(agent_follow_schema, AGENT_FOLLOW, struct agent_follow, follow_fields);

static const struct wire_field gap_fields[] = {
    U64(1, struct agent_gap, bytes),
};
SCHEMA(agent_gap_schema, AGENT_GAP, struct agent_gap, gap_fields);

static const struct wire_field stdin_fields[] = {
    U64(1, struct agent_stdin, pid),
    STR(2, struct agent_stdin, name, PROCESS_NAME_MAX),
    BYTES(3, struct agent_stdin, data, PROCESS_INPUT_CHUNK),
};
SCHEMA(agent_stdin_schema, AGENT_STDIN, struct agent_stdin, stdin_fields);
SCHEMA(agent_stdin_end_schema, AGENT_STDIN_END, struct agent_ref, agent_ref_fields);

static const struct wire_field port_fields[] = {
    U64(1, struct agent_port, port),
    U64(2, struct agent_port, protocol),
    BYTES(3, struct agent_port, address, 16),
};
SCHEMA(agent_ports_schema, AGENT_PORTS, struct agent_ref, agent_ref_fields);
SCHEMA(agent_port_schema, AGENT_PORT, struct agent_port, port_fields);
SCHEMA_EMPTY(agent_limits_schema, AGENT_LIMITS);

static const struct wire_field terminal_open_fields[] = {
    STR_REQUIRED(1, struct agent_terminal_open, session, TERMINAL_SESSION_MAX),
    STR(2, struct agent_terminal_open, command, COMMAND_MAX),
    STR(3, struct agent_terminal_open, shell, PATH_BYTES_MAX),
    STR(4, struct agent_terminal_open, cwd, PATH_BYTES_MAX),
    STRV(5, struct agent_terminal_open, env, 2 * ENV_BYTES_MAX),
    STR(6, struct agent_terminal_open, user, NAME_BYTES_MAX),
    U64(7, struct agent_terminal_open, cols),
    U64(8, struct agent_terminal_open, rows),
    U64(9, struct agent_terminal_open, idle_ms),
    U64(10, struct agent_terminal_open, flags),
    U64(11, struct agent_terminal_open, timeout_ms),
};
SCHEMA(agent_terminal_open_schema, AGENT_TERMINAL_OPEN, struct agent_terminal_open,
       terminal_open_fields);

static const struct wire_field terminal_fields[] = {
    STR_REQUIRED(1, struct agent_terminal, session, TERMINAL_SESSION_MAX),
    U64(2, struct agent_terminal, pid),
    STR_REQUIRED(3, struct agent_terminal, command, COMMAND_MAX),
    STR_REQUIRED(4, struct agent_terminal, cwd, PATH_BYTES_MAX),
    STR_REQUIRED(5, struct agent_terminal, user, NAME_BYTES_MAX),
    U64(6, struct agent_terminal, cols),
    U64(7, struct agent_terminal, rows),
    U64(8, struct agent_terminal, started_ms),
    U64(9, struct agent_terminal, attached),
    U64(10, struct agent_terminal, ended),
    U64(11, struct agent_terminal, created),
    U64(12, struct agent_terminal, start),
    U64(13, struct agent_terminal, total),
    U64(14, struct agent_terminal, taken),
};
SCHEMA(agent_terminal_schema, AGENT_TERMINAL, struct agent_terminal, terminal_fields);
SCHEMA_EMPTY(agent_terminal_list_schema, AGENT_TERMINAL_LIST);

static const struct wire_field terminal_attach_fields[] = {
    STR_REQUIRED(1, struct agent_terminal_attach, session, TERMINAL_SESSION_MAX),
    U64(2, struct agent_terminal_attach, offset),
    U64(3, struct agent_terminal_attach, cols),
    U64(4, struct agent_terminal_attach, rows),
    STR(5, struct agent_terminal_attach, client, TERMINAL_SESSION_MAX),
};
SCHEMA(agent_terminal_attach_schema, AGENT_TERMINAL_ATTACH, struct agent_terminal_attach,
       terminal_attach_fields);

static const struct wire_field terminal_output_fields[] = {
    U64(1, struct agent_terminal_output, offset),
    BYTES(2, struct agent_terminal_output, data, TERMINAL_CHUNK_MAX),
};
SCHEMA(agent_terminal_output_schema, AGENT_TERMINAL_OUTPUT, struct agent_terminal_output,
       terminal_output_fields);

static const struct wire_field terminal_exit_fields[] = {
    U64(1, struct agent_terminal_exit, exit_code),
    U64(2, struct agent_terminal_exit, signal),
    U64(3, struct agent_terminal_exit, reason),
    U64(4, struct agent_terminal_exit, total),
};
SCHEMA(agent_terminal_exit_schema, AGENT_TERMINAL_EXIT, struct agent_terminal_exit,
       terminal_exit_fields);

static const struct wire_field terminal_input_fields[] = {
    STR(1, struct agent_terminal_input, session, TERMINAL_SESSION_MAX),
    BYTES(2, struct agent_terminal_input, data, TERMINAL_CHUNK_MAX),
};
SCHEMA(agent_terminal_input_schema, AGENT_TERMINAL_INPUT, struct agent_terminal_input,
       terminal_input_fields);

static const struct wire_field terminal_taken_fields[] = {
    U64(1, struct agent_terminal_taken, taken),
};
SCHEMA(agent_terminal_taken_schema, AGENT_TERMINAL_TAKEN, struct agent_terminal_taken,
       terminal_taken_fields);

static const struct wire_field terminal_resize_fields[] = {
    STR(1, struct agent_terminal_resize, session, TERMINAL_SESSION_MAX),
    U64(2, struct agent_terminal_resize, cols),
    U64(3, struct agent_terminal_resize, rows),
};
SCHEMA(agent_terminal_resize_schema, AGENT_TERMINAL_RESIZE, struct agent_terminal_resize,
       terminal_resize_fields);

static const struct wire_field terminal_ref_fields[] = {
    STR_REQUIRED(1, struct agent_terminal_ref, session, TERMINAL_SESSION_MAX),
};
SCHEMA(agent_terminal_close_schema, AGENT_TERMINAL_CLOSE, struct agent_terminal_ref,
       terminal_ref_fields);
SCHEMA_EMPTY(agent_terminal_hang_up_schema, AGENT_TERMINAL_HANG_UP);

static const struct wire_field changes_fields[] = {
    U64(1, struct agent_changes, after),
};
SCHEMA(agent_changes_schema, AGENT_CHANGES, struct agent_changes, changes_fields);

static const struct wire_field change_fields[] = {
    U64(1, struct agent_change, change),       U64(2, struct agent_change, sequence),
    U64(3, struct agent_change, pid),          STR(4, struct agent_change, name, NAME_BYTES_MAX),
    U64(5, struct agent_change, stdout_total), U64(6, struct agent_change, stderr_total),
};
SCHEMA(agent_change_schema, AGENT_CHANGE, struct agent_change, change_fields);

static const struct wire_field timed_read_fields[] = {
    U64(1, struct agent_timed_read, sequence),
    U64(2, struct agent_timed_read, stream),
    U64(3, struct agent_timed_read, offset),
    U64(4, struct agent_timed_read, max),
};
SCHEMA(agent_timed_read_schema, AGENT_TIMED_READ, struct agent_timed_read, timed_read_fields);

static const struct wire_field timed_fields[] = {
    U64(1, struct agent_timed, offset),
    U64(2, struct agent_timed, total),
    U64(3, struct agent_timed, open),
    BYTES(4, struct agent_timed, data, WIRE_DATA_CHUNK),
    BYTES(5, struct agent_timed, times, OUTPUT_TIMES_MAX),
};
SCHEMA(agent_timed_schema, AGENT_TIMED, struct agent_timed, timed_fields);

static const struct wire_field file_ref_fields[] = {
    STR_REQUIRED(1, struct file_ref, path, PATH_BYTES_MAX),
    U64(2, struct file_ref, flags),
    STR(3, struct file_ref, attributes, NAME_BYTES_MAX),
};
SCHEMA(file_stat_schema, FILE_STAT, struct file_ref, file_ref_fields);
SCHEMA(file_list_schema, FILE_LIST, struct file_ref, file_ref_fields);

static const struct wire_field file_read_fields[] = {
    STR_REQUIRED(1, struct file_read, path, PATH_BYTES_MAX),
    U64(2, struct file_read, offset),
    U64(3, struct file_read, length),
};
SCHEMA(file_read_schema, FILE_READ, struct file_read, file_read_fields);

static const struct wire_field file_write_fields[] = {
    STR_REQUIRED(1, struct file_write, path, PATH_BYTES_MAX),
    U64(2, struct file_write, mode),
    STR(3, struct file_write, user, NAME_BYTES_MAX),
    STRV(4, struct file_write, attributes, FILE_ATTRIBUTES_MAX),
};
SCHEMA(file_write_schema, FILE_WRITE, struct file_write, file_write_fields);

static const struct wire_field file_mkdir_fields[] = {
    STR_REQUIRED(1, struct file_mkdir, path, PATH_BYTES_MAX),
    U64(2, struct file_mkdir, mode),
    STR(3, struct file_mkdir, user, NAME_BYTES_MAX),
    U64(4, struct file_mkdir, flags),
};
SCHEMA(file_mkdir_schema, FILE_MKDIR, struct file_mkdir, file_mkdir_fields);

static const struct wire_field file_move_fields[] = {
    STR_REQUIRED(1, struct file_move, path, PATH_BYTES_MAX),
    STR_REQUIRED(2, struct file_move, destination, PATH_BYTES_MAX),
    STR(3, struct file_move, user, NAME_BYTES_MAX),
};
SCHEMA(file_move_schema, FILE_MOVE, struct file_move, file_move_fields);

static const struct wire_field file_remove_fields[] = {
    STR_REQUIRED(1, struct file_remove, path, PATH_BYTES_MAX),
    U64(2, struct file_remove, recursive),
};
SCHEMA(file_remove_schema, FILE_REMOVE, struct file_remove, file_remove_fields);

static const struct wire_field file_entry_fields[] = {
    STR_REQUIRED(1, struct file_entry, path, PATH_BYTES_MAX),
    U64(2, struct file_entry, type),
    U64(3, struct file_entry, mode),
    U64(4, struct file_entry, size),
    U64(5, struct file_entry, mtime_ms),
    U64(6, struct file_entry, uid),
    U64(7, struct file_entry, gid),
    STR_REQUIRED(8, struct file_entry, owner, NAME_BYTES_MAX),
    STR_REQUIRED(9, struct file_entry, group, NAME_BYTES_MAX),
    STR(10, struct file_entry, target, PATH_BYTES_MAX),
    U64(11, struct file_entry, inode),
    STRV(12, struct file_entry, attributes, FILE_ATTRIBUTES_MAX),
    U64(13, struct file_entry, sorted),
};
SCHEMA(file_entry_schema, FILE_ENTRY, struct file_entry, file_entry_fields);
SCHEMA_EMPTY(file_end_schema, FILE_END);

static const struct wire_field file_tree_fields[] = {
    STR_REQUIRED(1, struct file_tree_get, path, PATH_BYTES_MAX),
    U64(2, struct file_tree_get, depth),
    U64(3, struct file_tree_get, entries_max),
    STR(4, struct file_tree_get, attributes, NAME_BYTES_MAX),
};
SCHEMA(file_tree_schema, FILE_TREE, struct file_tree_get, file_tree_fields);

static const struct wire_field file_tree_end_fields[] = {
    U64(1, struct file_tree_end, cut),
};
SCHEMA(file_tree_end_schema, FILE_TREE_END, struct file_tree_end, file_tree_end_fields);

static const struct wire_field file_tree_begin_fields[] = {
    STR_REQUIRED(1, struct file_tree_begin, path, PATH_BYTES_MAX),
    STR(4, struct file_tree_begin, user, NAME_BYTES_MAX),
};
SCHEMA(file_tree_put_schema, FILE_TREE_PUT, struct file_tree_begin, file_tree_begin_fields);

static const struct wire_field file_tree_item_fields[] = {
    STR_REQUIRED(1, struct file_tree_item, path, PATH_BYTES_MAX),
    U64(2, struct file_tree_item, mode),
    U64(3, struct file_tree_item, is_directory),
};
SCHEMA(file_tree_item_schema, FILE_TREE_ITEM, struct file_tree_item, file_tree_item_fields);

static const struct wire_field file_watch_fields[] = {
    STR_REQUIRED(1, struct file_watch, path, PATH_BYTES_MAX),
    U64(2, struct file_watch, recursive),
    STRV(3, struct file_watch, ignore, PATTERNS_BYTES_MAX),
};
SCHEMA(file_watch_schema, FILE_WATCH, struct file_watch, file_watch_fields);

static const struct wire_field file_event_fields[] = {
    U64(1, struct file_event, op),
    STR_REQUIRED(2, struct file_event, dir, PATH_BYTES_MAX),
    STR(3, struct file_event, name, NAME_BYTES_MAX),
    STR(4, struct file_event, text, TEXT_MAX),
};
SCHEMA(file_event_schema, FILE_EVENT, struct file_event, file_event_fields);

static const struct wire_field file_find_fields[] = {
    STR_REQUIRED(1, struct file_find, path, PATH_BYTES_MAX),
    U64(2, struct file_find, mode),
    U64(3, struct file_find, flags),
    STR(4, struct file_find, query, FIND_QUERY_MAX),
    STRV(5, struct file_find, patterns, PATTERNS_BYTES_MAX),
    STRV(6, struct file_find, exclude, PATTERNS_BYTES_MAX),
    U64(7, struct file_find, results_max),
    U64(8, struct file_find, time_ms),
};
SCHEMA(file_find_schema, FILE_FIND, struct file_find, file_find_fields);

static const struct wire_field file_match_fields[] = {
    STR_REQUIRED(1, struct file_match, path, PATH_BYTES_MAX),
    U64(2, struct file_match, type),
    U64(3, struct file_match, score),
    U64(4, struct file_match, line),
    U64(5, struct file_match, column),
    BYTES(6, struct file_match, text, FIND_TEXT_MAX),
};
SCHEMA(file_match_schema, FILE_MATCH, struct file_match, file_match_fields);

static const struct wire_field file_found_fields[] = {
    U64(1, struct file_found, total),
    U64(2, struct file_found, cut),
};
SCHEMA(file_found_schema, FILE_FOUND, struct file_found, file_found_fields);

SCHEMA(upload_start_schema, UPLOAD_START, struct file_write, file_write_fields);

static const struct wire_field history_list_fields[] = {
    STRV(1, struct history_list, roots, HISTORY_ROOTS_BYTES_MAX),
    STRV(2, struct history_list, ignore, PATTERNS_BYTES_MAX),
    U64(3, struct history_list, entries_max),
};
SCHEMA(history_list_schema, HISTORY_LIST, struct history_list, history_list_fields);

static const struct wire_field history_entry_fields[] = {
    STR_REQUIRED(1, struct history_entry, path, PATH_BYTES_MAX),
    U64(2, struct history_entry, type),
    U64(3, struct history_entry, mode),
    U64(4, struct history_entry, uid),
    U64(5, struct history_entry, gid),
    U64(6, struct history_entry, size),
    U64(7, struct history_entry, mtime_ns),
    U64(8, struct history_entry, ctime_ns),
    U64(9, struct history_entry, inode),
    STR(10, struct history_entry, target, PATH_BYTES_MAX),
    U64(11, struct history_entry, flags),
};
SCHEMA(history_entry_schema, HISTORY_ENTRY, struct history_entry, history_entry_fields);

static const struct wire_field history_listed_fields[] = {
    U64(1, struct history_listed, entries),  U64(2, struct history_listed, left_out),
    U64(3, struct history_listed, cut),      U64(4, struct history_listed, watched),
    U64(5, struct history_listed, compares),
};
SCHEMA(history_listed_schema, HISTORY_LISTED, struct history_listed, history_listed_fields);

static const struct wire_field history_read_fields[] = {
    STRV(1, struct history_read, roots, HISTORY_ROOTS_BYTES_MAX),
    STRV(2, struct history_read, paths, HISTORY_READ_BYTES_MAX),
    U64(3, struct history_read, size_max),
};
static const struct wire_field history_read_end_fields[] = {
    U64(1, struct history_read_end, torn),
};
SCHEMA(history_read_schema, HISTORY_READ, struct history_read, history_read_fields);
SCHEMA(history_read_end_schema, HISTORY_READ_END, struct history_read_end, history_read_end_fields);

static const struct wire_field history_apply_fields[] = {
    STRV(1, struct history_apply, roots, HISTORY_ROOTS_BYTES_MAX),
};
static const struct wire_field history_item_fields[] = {
    U64(1, struct history_item, op),
    STR_REQUIRED(2, struct history_item, path, PATH_BYTES_MAX),
    U64(3, struct history_item, mode),
    U64(4, struct history_item, uid),
    U64(5, struct history_item, gid),
    U64(6, struct history_item, size),
    STR(7, struct history_item, target, PATH_BYTES_MAX),
    U64(8, struct history_item, only_new),
    U64(9, struct history_item, was_inode),
    U64(10, struct history_item, was_ctime_ns),
};
static const struct wire_field history_applied_fields[] = {
    U64(1, struct history_applied, done),
    U64(2, struct history_applied, failed),
    STR(3, struct history_applied, failure, ERROR_MESSAGE_MAX),
    STRV(4, struct history_applied, left, HISTORY_LEFT_BYTES_MAX),
};
SCHEMA(history_apply_schema, HISTORY_APPLY, struct history_apply, history_apply_fields);
SCHEMA(history_item_schema, HISTORY_ITEM, struct history_item, history_item_fields);
SCHEMA(history_applied_schema, HISTORY_APPLIED, struct history_applied, history_applied_fields);
SCHEMA_EMPTY(history_watch_schema, HISTORY_WATCH);

static const struct wire_field upload_part_fields[] = {
    STR_REQUIRED(1, struct upload_part, id, ID_MAX),
    U64(2, struct upload_part, number),
};
SCHEMA(upload_part_schema, UPLOAD_PART, struct upload_part, upload_part_fields);

static const struct wire_field upload_complete_fields[] = {
    STR_REQUIRED(1, struct upload_complete, id, ID_MAX),
    STRV(2, struct upload_complete, parts, 64 * UPLOAD_PARTS_MAX),
};
SCHEMA(upload_complete_schema, UPLOAD_COMPLETE, struct upload_complete, upload_complete_fields);

static const struct wire_field upload_ref_fields[] = {
    STR_REQUIRED(1, struct upload_ref, id, ID_MAX),
};
SCHEMA(upload_abort_schema, UPLOAD_ABORT, struct upload_ref, upload_ref_fields);
SCHEMA(upload_parts_schema, UPLOAD_PARTS, struct upload_ref, upload_ref_fields);
SCHEMA_EMPTY(upload_list_schema, UPLOAD_LIST);

static const struct wire_field upload_about_fields[] = {
    STR_REQUIRED(1, struct upload_about, id, ID_MAX),
    STR_REQUIRED(2, struct upload_about, path, PATH_BYTES_MAX),
    U64(3, struct upload_about, mode),
    U64(4, struct upload_about, started_ms),
};
SCHEMA(upload_about_schema, UPLOAD_ABOUT, struct upload_about, upload_about_fields);

static const struct wire_field upload_part_about_fields[] = {
    U64(1, struct upload_part_about, number),
    U64(2, struct upload_part_about, size),
    STR_REQUIRED(3, struct upload_part_about, etag, ID_MAX),
};
SCHEMA(upload_part_about_schema, UPLOAD_PART_ABOUT, struct upload_part_about,
       upload_part_about_fields);

static const struct wire_field egress_hello_fields[] = {
    U64(1, struct egress_hello, epoch),
};
SCHEMA(egress_hello_schema, EGRESS_HELLO, struct egress_hello, egress_hello_fields);

static const struct wire_field egress_about_fields[] = {
    U64(1, struct egress_about, version),
    U64(2, struct egress_about, started_ms),
    STR(3, struct egress_about, resolvers, TEXT_MAX),
    U64(4, struct egress_about, sandboxes),
    U64(5, struct egress_about, connections),
};
SCHEMA(egress_about_schema, EGRESS_ABOUT, struct egress_about, egress_about_fields);

static const struct wire_field egress_set_fields[] = {
    STR_REQUIRED(1, struct egress_set, id, ID_MAX),
    STR_REQUIRED(2, struct egress_set, address, TEXT_MAX),
    STR(3, struct egress_set, address6, TEXT_MAX),
    STRV(4, struct egress_set, policy, EGRESS_POLICY_MAX),
    STR(5, struct egress_set, workspace, NAME_BYTES_MAX),
    U64(8, struct egress_set, log_after),
};
SCHEMA(egress_set_schema, EGRESS_SET, struct egress_set, egress_set_fields);

static const struct wire_field egress_secrets_fields[] = {
    STR_REQUIRED(1, struct egress_secrets, id, ID_MAX),
    STRV(2, struct egress_secrets, headers, EGRESS_SECRETS_MAX),
    STR(3, struct egress_secrets, ca_certificate, EGRESS_CA_MAX),
    BYTES(4, struct egress_secrets, ca_key, EGRESS_CA_MAX),
};
SCHEMA(egress_secrets_schema, EGRESS_SECRETS, struct egress_secrets, egress_secrets_fields);

static const struct wire_field egress_ref_fields[] = {
    STR_REQUIRED(1, struct egress_ref, id, ID_MAX),
};
SCHEMA(egress_drop_schema, EGRESS_DROP, struct egress_ref, egress_ref_fields);

static const struct wire_field egress_keep_fields[] = {
    STRV(1, struct egress_keep, ids, WIRE_DATA_CHUNK),
};
SCHEMA(egress_keep_schema, EGRESS_KEEP, struct egress_keep, egress_keep_fields);

static const struct wire_field egress_log_read_fields[] = {
    STR_REQUIRED(1, struct egress_log_read, id, ID_MAX),
    U64(2, struct egress_log_read, after),
    U64(3, struct egress_log_read, max),
};
SCHEMA(egress_log_read_schema, EGRESS_LOG_READ, struct egress_log_read, egress_log_read_fields);

static const struct wire_field egress_log_pull_fields[] = {
    U64(1, struct egress_log_pull, after),
};
SCHEMA(egress_log_pull_schema, EGRESS_LOG_PULL, struct egress_log_pull, egress_log_pull_fields);

static const struct wire_field egress_log_entry_fields[] = {
    U64(1, struct egress_log_entry, sequence),
    U64(2, struct egress_log_entry, first_ms),
    U64(3, struct egress_log_entry, last_ms),
    U64(4, struct egress_log_entry, kind),
    U64(5, struct egress_log_entry, verdict),
    STR(6, struct egress_log_entry, name, TEXT_MAX),
    STR(7, struct egress_log_entry, address, TEXT_MAX),
    U64(8, struct egress_log_entry, port),
    U64(9, struct egress_log_entry, type),
    U64(10, struct egress_log_entry, bytes_in),
    U64(11, struct egress_log_entry, bytes_out),
    U64(12, struct egress_log_entry, count),
    U64(13, struct egress_log_entry, open),
    STR(14, struct egress_log_entry, detail, TEXT_MAX),
    U64(15, struct egress_log_entry, protocol),
    STR(16, struct egress_log_entry, id, ID_MAX),
    U64(17, struct egress_log_entry, change),
};
SCHEMA(egress_log_entry_schema, EGRESS_LOG_ENTRY, struct egress_log_entry, egress_log_entry_fields);

/* clang-format off: one per line, so that additions do not meet */
const struct wire_schema *const wire_schemas[] = {
    &wire_ok_schema,
    &wire_error_schema,
    &warden_hello_schema,
    &warden_about_schema,
    &warden_start_schema,
    &warden_started_schema,
    &warden_stop_schema,
    &warden_remove_schema,
    &warden_pause_schema,
    &warden_resume_schema,
    &warden_list_schema,
    &warden_entry_schema,
    &warden_exited_schema,
    &warden_fits_schema,
    &warden_claim_schema,
    &warden_update_schema,
    &warden_clone_schema,
    &warden_machine_ask_schema,
    &warden_machine_schema,
    &warden_stats_schema,
    &warden_sample_schema,
    &warden_socket_schema,
    &warden_helper_schema,
    &warden_delegate_schema,
    &warden_net_set_schema,
    &warden_net_admit_schema,
    &warden_net_listen_schema,
    &warden_net_count_schema,
    &warden_net_counted_schema,
    &agent_hello_schema,
    &agent_about_schema,
    &agent_exec_schema,
    &agent_wait_schema,
    &agent_get_schema,
    &agent_list_schema,
    &agent_process_schema,
    &agent_stop_schema,
    &agent_signal_schema,
    &agent_clean_ask_schema,
    &agent_clean_schema,
    &agent_log_read_schema,
    &agent_log_schema,
    &agent_cancel_schema,
    &agent_follow_schema,
    &agent_gap_schema,
    &agent_stdin_schema,
    &agent_stdin_end_schema,
    &agent_ports_schema,
    &agent_port_schema,
    &agent_limits_schema,
    &agent_terminal_open_schema,
    &agent_terminal_schema,
    &agent_terminal_list_schema,
    &agent_terminal_attach_schema,
    &agent_terminal_output_schema,
    &agent_terminal_exit_schema,
    &agent_terminal_input_schema,
    &agent_terminal_taken_schema,
    &agent_terminal_resize_schema,
    &agent_terminal_close_schema,
    &agent_terminal_hang_up_schema,
    &agent_changes_schema,
    &agent_change_schema,
    &agent_timed_read_schema,
    &agent_timed_schema,
    &file_stat_schema,
    &file_list_schema,
    &file_read_schema,
    &file_write_schema,
    &file_mkdir_schema,
    &file_remove_schema,
    &file_move_schema,
    &file_entry_schema,
    &file_end_schema,
    &file_tree_schema,
    &file_tree_end_schema,
    &file_tree_put_schema,
    &file_tree_item_schema,
    &file_watch_schema,
    &file_event_schema,
    &file_find_schema,
    &file_match_schema,
    &file_found_schema,
    &history_list_schema,
    &history_entry_schema,
    &history_listed_schema,
    &history_read_schema,
    &history_read_end_schema,
    &history_apply_schema,
    &history_item_schema,
    &history_applied_schema,
    &history_watch_schema,
    &upload_start_schema,
    &upload_part_schema,
    &upload_complete_schema,
    &upload_abort_schema,
    &upload_parts_schema,
    &upload_list_schema,
    &upload_about_schema,
    &upload_part_about_schema,
    &egress_hello_schema,
    &egress_about_schema,
    &egress_set_schema,
    &egress_drop_schema,
    &egress_keep_schema,
    &egress_log_read_schema,
    &egress_log_entry_schema,
    &egress_log_pull_schema,
    &egress_secrets_schema,
    NULL,
};
/* clang-format on */

void wire_encode_error(struct buf *out, uint32_t id, const struct error *err)
{
    struct wire_error msg = {.code = err->code, .sys = (uint64_t)err->sys, .message = err->message};
    wire_encode(out, &wire_error_schema, id, &msg);
}

int wire_take_error(struct slice payload, struct error *err)
{
    struct wire_error msg;
    if (wire_decode(&wire_error_schema, payload, &msg, err) < 0)
        return -1;
    if (!error_known(msg.code))
        msg.code = ERROR_INTERNAL;
    error_set(err, (enum error_code)msg.code, "%s", msg.message);
    if (err != NULL)
        err->sys = (int)msg.sys;
    return -1;
}
