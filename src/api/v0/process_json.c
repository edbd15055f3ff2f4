/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The shapes of processes. Output is whatever bytes a program wrote, and JSON holds only text: so
 * the text is for reading, and where it could not be exact the bytes stand beside it.
 */

#include "api/v0/process_json.h"

#include <inttypes.h>
#include <string.h>

#include "api/call.h"
#include "base/cleanup.h"

/* What a shell sees of a command that was ended. It may have ended by itself a moment before. */
enum {
    EXIT_CODE_TIMEOUT = 124, /* as timeout(1) says it */
    EXIT_CODE_KILLED = 128 + 9,
};

/* An ended process's status when its exit code does not matter. */
static const char *const status_names[] = {
    [PROCESS_RUNNING] = "running",     [PROCESS_EXITED] = NULL,
    [PROCESS_STOPPED] = "stopped",     [PROCESS_KILLED] = "killed",
    [PROCESS_TIMED_OUT] = "timeout",   [PROCESS_OUT_OF_MEMORY] = "failed",
    [PROCESS_MEMORY_LIMIT] = "failed", [PROCESS_PROCESS_LIMIT] = "failed",
    [PROCESS_OUTPUT_LIMIT] = "failed",
};

const char *process_status(const struct agent_process *process)
{
    const char *name = NULL;
    if (process->state < ARRAY_LEN(status_names))
        name = status_names[process->state];
    if (name != NULL)
        return name;
    return process->exit_code == 0 ? "completed" : "failed";
}

static void add_exit_code(yyjson_mut_doc *doc, yyjson_mut_val *object,
                          const struct agent_process *process)
{
    if (process->state == PROCESS_RUNNING)
        yyjson_mut_obj_add_null(doc, object, "exitCode");
    else if (process->state == PROCESS_TIMED_OUT)
        yyjson_mut_obj_add_uint(doc, object, "exitCode", EXIT_CODE_TIMEOUT);
    else if (process_reason(process) != NULL)
        yyjson_mut_obj_add_uint(doc, object, "exitCode", EXIT_CODE_KILLED);
    else
        yyjson_mut_obj_add_uint(doc, object, "exitCode", process->exit_code);
}

static void add_reason(yyjson_mut_doc *doc, yyjson_mut_val *object,
                       const struct agent_process *process)
{
    const char *reason = process_reason(process);
    if (reason == NULL)
        yyjson_mut_obj_add_null(doc, object, "reason");
    else
        yyjson_mut_obj_add_str(doc, object, "reason", reason);
}

void process_json(struct arena *arena, yyjson_mut_doc *doc, yyjson_mut_val *object,
                  const struct agent_process *process)
{
    yyjson_mut_obj_add_uint(doc, object, "pid", process->pid);
    api_add_text(arena, doc, object, "command", "commandBase64", slice_of(process->command));
    yyjson_mut_obj_add_str(doc, object, "status", process_status(process));
    api_add_http_time(doc, object, "startedAt", process->started_ms);
    if (process->state != PROCESS_RUNNING)
        api_add_http_time(doc, object, "completedAt", process->ended_ms);
    api_add_text(arena, doc, object, "workingDir", "workingDirBase64", slice_of(process->cwd));
    add_exit_code(doc, object, process);
    add_reason(doc, object, process);
    if (process->state == PROCESS_OUT_OF_MEMORY)
        yyjson_mut_obj_add_bool(doc, object, "outOfMemory", true);
    /* A name that is no UTF-8 was never given: what comes from the agent may be anything. */
    json_add_lossy(doc, object, "name", slice_of(process->name != NULL ? process->name : ""));
    if (process->execution != NULL)
        json_add_lossy(doc, object, "executionId", slice_of(process->execution));
    yyjson_mut_obj_add_bool(doc, object, "keepAlive", process->flags & EXEC_KEEP_ALIVE);
    yyjson_mut_obj_add_bool(doc, object, "stdin", process->flags & EXEC_STDIN);
    bool restarts = process->flags & EXEC_RESTART;
    yyjson_mut_obj_add_bool(doc, object, "restartOnFailure", restarts);
    if (restarts && process->max_restarts == RESTARTS_UNLIMITED)
        yyjson_mut_obj_add_int(doc, object, "maxRestarts", -1);
    else
        yyjson_mut_obj_add_uint(doc, object, "maxRestarts", restarts ? process->max_restarts : 0);
    yyjson_mut_obj_add_uint(doc, object, "restartCount", process->restarts);
}

static void add_stream(struct arena *arena, yyjson_mut_doc *doc, yyjson_mut_val *object,
                       const char *key, const char *exact_key, const struct process_log *log)
{
    struct slice text = log->data;
    if (log->dropped > 0) {
        const char *marker =
            arena_printf(arena, "[%" PRIu64 " earlier bytes dropped]\n", log->dropped);
        char *marked = arena_alloc(arena, strlen(marker) + text.len + 1);
        memcpy(marked, marker, strlen(marker));
        if (text.len > 0)
            memcpy(marked + strlen(marker), text.data, text.len);
        text = (struct slice){marked, strlen(marker) + text.len};
    }
    if (!json_add_lossy(doc, object, key, text))
        return;
    struct slice exact = json_base64_encode(arena, log->data);
    yyjson_mut_obj_add_strn(doc, object, exact_key, exact.data, exact.len);
}

void process_output_json(struct arena *arena, yyjson_mut_doc *doc, yyjson_mut_val *object,
                         const struct process_log *out, const struct process_log *errors,
                         const struct process_log *both)
{
    const struct {
        const char *key, *exact_key;
        const struct process_log *log;
    } rows[] = {{"stdout", "stdoutBase64", out},
                {"stderr", "stderrBase64", errors},
                {"logs", "logsBase64", both}};
    bool dropped = false;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (rows[i].log != NULL) {
            add_stream(arena, doc, object, rows[i].key, rows[i].exact_key, rows[i].log);
            dropped = dropped || rows[i].log->dropped > 0;
        }
    if (!dropped)
        return;
    yyjson_mut_val *counts = yyjson_mut_obj_add_obj(doc, object, "dropped");
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (rows[i].log != NULL)
            yyjson_mut_obj_add_uint(doc, counts, rows[i].key, rows[i].log->dropped);
}
