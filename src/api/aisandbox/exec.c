/* SPDX-License-Identifier: Apache-2.0 */

/*
 * POST /api/sandbox/exec: files, then a command, then what came of it.
 *
 * A command that fails is no failure of the request: the answer has the same members, with
 * "status": "error" and, beside the output, the error that an envelope of its own would hold. So
 * whoever looks at `status` alone, and whoever looks at `error.code`, finds what he needs.
 */

#include <inttypes.h>
#include <string.h>

#include "api/aisandbox/door.h"
#include "api/aisandbox/errors.h"
#include "api/aisandbox/handlers.h"
#include "api/e2b/spec.h"
#include "api/v0/exec_ws.h"
#include "api/v0/filesystem.h"
#include "api/v0/process_exec.h"
#include "api/v0/process_json.h"
#include "base/cleanup.h"
#include "sandbox/file_tree.h"
#include "sandbox/history.h"
#include "sandbox/metrics.h"

struct body {
    const char *container;
    yyjson_val *files;
    yyjson_val *command;
};

static const struct json_field body_fields[] = {
    {"containerId", JSON_STRING, true, offsetof(struct body, container)},
    {"files", JSON_OBJECT, .offset = offsetof(struct body, files)},
    {"command", JSON_ANY, true, offsetof(struct body, command)},
};

struct run {
    struct sandboxes *sandboxes;
    const char *workspace;
    struct sandbox_info info;
    struct file_tree_put *files;
    size_t file_count;
    struct agent_exec exec;
    uint64_t kills_before; /* for want of memory, in the container */
};

enum { EXIT_CODE_KILLED = 128 + 9 };

/* All that can be wrong about it is said before a file is written. */
static int read_run(struct http_exchange *x, const struct api_call *call, struct run *ret_run,
                    struct error *err)
{
    struct arena *arena = http_arena(x);
    struct run run = {.sandboxes = call->api->sandboxes, .workspace = call->workspace};
    struct body body = {0};
    struct e2b_spec spec;
    yyjson_val *given;
    if (api_json_body(x, &given, err) < 0)
        return -1;
    if (given == NULL)
        return error_set(err, ERROR_INVALID_ARGUMENT, "containerId is required");
    if (json_read(arena, given, "", body_fields, ARRAY_LEN(body_fields), &body, err) < 0 ||
        process_command_from_json(arena, body.command, &run.exec, err) < 0 ||
        tree_files_from_json(arena, body.files, AISANDBOX_DIR, &run.files, &run.file_count, err) <
            0 ||
        aisandbox_find(x, call, body.container, &run.info, err) < 0)
        return -1;
    e2b_spec_read(arena, run.info.metadata.e2b_spec, &spec);
    run.exec.flags = EXEC_WAIT;
    run.exec.cwd = AISANDBOX_DIR;
    run.exec.user = AISANDBOX_USER;
    run.exec.timeout_ms =
        spec.exec_timeout_ms > 0 ? (uint64_t)spec.exec_timeout_ms : AISANDBOX_TIMEOUT_MS;
    *ret_run = run;
    return 0;
}

/* --- what came of it --- */

/* The newest PROCESS_INLINE_MAX bytes came with its end; when there are more, the agent has them.
 */
static int read_output(struct http_exchange *x, const struct run *run,
                       const struct agent_process *process, unsigned stream,
                       struct process_log *ret_log, struct error *err)
{
    bool out = stream == LOG_STDOUT;
    struct process_log log = {.data = out ? process->stdout_data : process->stderr_data};
    uint64_t total = out ? process->stdout_total : process->stderr_total;
    const char *pid = arena_printf(http_arena(x), "%" PRIu64, process->pid);
    if (total > log.data.len && sandbox_process_log(run->sandboxes, run->workspace, run->info.id,
                                                    pid, stream, http_arena(x), &log, err) < 0)
        return -1;
    if (log.data.len > 0 && log.data.data[log.data.len - 1] == '\n')
        log.data.len--;
    *ret_log = log;
    return 0;
}

/* Where the agent cannot see the sandbox's memory group (cgroup v1), a command that ran out of
 * memory looks like any that was killed; so does, everywhere, a shell whose command it was. The
 * warden sees it. */
static bool is_out_of_memory(const struct run *run, const struct agent_process *process)
{
    return process->exit_code == EXIT_CODE_KILLED &&
           sandbox_memory_kills(run->sandboxes, run->workspace, run->info.id, true) >
               run->kills_before;
}

/* ERROR_NONE: it went well. */
static enum error_code failure_of(const struct run *run, const struct agent_process *process)
{
    switch (process->state) {
    case PROCESS_TIMED_OUT:
        return ERROR_EXECUTION_TIMEOUT;
    case PROCESS_OUT_OF_MEMORY:
    case PROCESS_MEMORY_LIMIT:
        return ERROR_EXECUTION_OUT_OF_MEMORY;
    case PROCESS_EXITED:
        if (process->exit_code == 0)
            return ERROR_NONE;
        return is_out_of_memory(run, process) ? ERROR_EXECUTION_OUT_OF_MEMORY
                                              : ERROR_EXECUTION_FAILED;
    default: /* somebody ended it */
        return ERROR_EXECUTION_FAILED;
    }
}

static const char *message_of(struct arena *arena, const struct run *run,
                              const struct agent_process *process, enum error_code failure)
{
    if (failure == ERROR_EXECUTION_TIMEOUT)
        return arena_printf(arena, "Execution timed out after %" PRIu64 " ms",
                            run->exec.timeout_ms);
    if (failure == ERROR_EXECUTION_OUT_OF_MEMORY)
        return "Execution ran out of memory";
    if (process->signal != 0)
        return arena_printf(arena, "Command was ended by signal %" PRIu64, process->signal);
    return arena_printf(arena, "Command exited with code %" PRIu64, process->exit_code);
}

static void add_failure(struct arena *arena, yyjson_mut_doc *doc, yyjson_mut_val *object,
                        const struct run *run, const struct agent_process *process,
                        enum error_code failure)
{
    yyjson_mut_val *details =
        aisandbox_add_error(doc, object, failure, message_of(arena, run, process, failure));
    if (failure == ERROR_EXECUTION_TIMEOUT)
        yyjson_mut_obj_add_uint(doc, details, "timeout", run->exec.timeout_ms);
    else
        yyjson_mut_obj_add_uint(doc, details, "exitCode", process->exit_code);
    if (failure == ERROR_EXECUTION_FAILED && process->signal != 0)
        yyjson_mut_obj_add_uint(doc, details, "signal", process->signal);
}

static int reply(struct http_exchange *x, const struct run *run,
                 const struct agent_process *process, const char *id, struct error *err)
{
    struct arena *arena = http_arena(x);
    struct process_log out, errors;
    enum error_code failure = failure_of(run, process);
    if (read_output(x, run, process, LOG_STDOUT, &out, err) < 0 ||
        read_output(x, run, process, LOG_STDERR, &errors, err) < 0)
        return -1;
    yyjson_mut_val *root;
    yyjson_mut_doc *doc = api_json_new(arena, &root);
    yyjson_mut_obj_add_str(doc, root, "id", id);
    yyjson_mut_obj_add_str(doc, root, "status", failure == ERROR_NONE ? "success" : "error");
    yyjson_mut_obj_add_uint(
        doc, root, "duration",
        process->ended_ms > process->started_ms ? process->ended_ms - process->started_ms : 0);
    process_output_json(arena, doc, root, &out, &errors, NULL);
    if (failure != ERROR_NONE)
        add_failure(arena, doc, root, run, process, failure);
    return api_reply_json(x, 200, doc, err);
}

int aisandbox_exec(struct http_exchange *x, const struct route_params *params, void *ctx,
                   struct error *err)
{
    const struct api_call *call = ctx;
    struct arena *arena = http_arena(x);
    struct agent_process process;
    struct run run;
    char id[EXECUTION_ID_SIZE];
    if (read_run(x, call, &run, err) < 0 ||
        sandbox_exec_check(run.sandboxes, run.workspace, run.info.id, &run.exec, err) < 0)
        return -1;
    if (run.file_count > 0 &&
        sandbox_tree_put_as(run.sandboxes, run.workspace, run.info.id, AISANDBOX_DIR,
                            AISANDBOX_USER, run.files, run.file_count, arena, err) < 0)
        return -1;
    history_run_begin(id);
    run.exec.execution = id;
    run.kills_before = sandbox_memory_kills(run.sandboxes, run.workspace, run.info.id, false);
    if (sandbox_exec(run.sandboxes, run.workspace, run.info.id, call->principal.name, &run.exec, -1,
                     arena, &process, err) < 0)
        return -1;
    return reply(x, &run, &process, id, err);
}

int aisandbox_ws(struct http_exchange *x, const struct route_params *params, void *ctx,
                 struct error *err)
{
    const struct api_call *call = ctx;
    struct sandbox_info info;
    if (aisandbox_find(x, call, route_param(params, "name"), &info, err) < 0)
        return -1;
    return exec_ws_serve(x, call, info.id, AISANDBOX_USER, err);
}
