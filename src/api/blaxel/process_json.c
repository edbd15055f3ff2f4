/* SPDX-License-Identifier: Apache-2.0 */

/* The shape of a process. Output is any bytes; where text cannot hold them they stand beside it. */

#include "api/blaxel/process_json.h"

#include <inttypes.h>

#include "api/call.h"
#include "base/cleanup.h"

/* An ended process's status when its exit code does not matter. */
static const char *const statuses[] = {
    [PROCESS_RUNNING] = "running",     [PROCESS_EXITED] = NULL,
    [PROCESS_STOPPED] = "stopped",     [PROCESS_KILLED] = "killed",
    [PROCESS_TIMED_OUT] = "killed",    [PROCESS_OUT_OF_MEMORY] = "failed",
    [PROCESS_MEMORY_LIMIT] = "failed", [PROCESS_PROCESS_LIMIT] = "failed",
    [PROCESS_OUTPUT_LIMIT] = "failed",
};

const char *box_process_status(const struct agent_process *process)
{
    const char *status = process->state < ARRAY_LEN(statuses) ? statuses[process->state] : NULL;
    if (status != NULL)
        return status;
    return process->exit_code == 0 ? "completed" : "failed";
}

void box_output_json(struct arena *arena, yyjson_mut_doc *doc, yyjson_mut_val *object,
                     const struct box_output *output)
{
    api_add_text(arena, doc, object, "logs", "logsBase64", output->logs);
    api_add_text(arena, doc, object, "stdout", "stdoutBase64", output->out);
    api_add_text(arena, doc, object, "stderr", "stderrBase64", output->errors);
}

void box_process_json(struct arena *arena, yyjson_mut_doc *doc, yyjson_mut_val *object,
                      const struct agent_process *process, const struct box_output *output)
{
    static const struct box_output nothing = {{"", 0}, {"", 0}, {"", 0}};
    bool running = process->state == PROCESS_RUNNING;
    bool restarts = (process->flags & EXEC_RESTART) != 0;
    yyjson_mut_obj_add_str(doc, object, "pid", arena_printf(arena, "%" PRIu64, process->pid));
    json_add_lossy(doc, object, "name", slice_of(process->name));
    if (process->execution != NULL) /* history's, which Blaxel's clients do not know */
        json_add_lossy(doc, object, "executionId", slice_of(process->execution));
    api_add_text(arena, doc, object, "command", "commandBase64", slice_of(process->command));
    yyjson_mut_obj_add_str(doc, object, "status", box_process_status(process));
    api_add_http_time(doc, object, "startedAt", process->started_ms);
    if (running)
        yyjson_mut_obj_add_str(doc, object, "completedAt", "");
    else
        api_add_http_time(doc, object, "completedAt", process->ended_ms);
    yyjson_mut_obj_add_uint(doc, object, "exitCode", running ? 0 : process->exit_code);
    api_add_text(arena, doc, object, "workingDir", "workingDirBase64", slice_of(process->cwd));
    box_output_json(arena, doc, object, output == NULL ? &nothing : output);
    yyjson_mut_obj_add_bool(doc, object, "restartOnFailure", restarts);
    yyjson_mut_obj_add_int(doc, object, "maxRestarts",
                           !restarts ? 0
                           : process->max_restarts == RESTARTS_UNLIMITED
                               ? -1
                               : (int64_t)process->max_restarts);
    yyjson_mut_obj_add_uint(doc, object, "restartCount", process->restarts);
    yyjson_mut_obj_add_bool(doc, object, "keepAlive", (process->flags & EXEC_KEEP_ALIVE) != 0);
    yyjson_mut_obj_add_bool(doc, object, "stdin", (process->flags & EXEC_STDIN) != 0);
}
