/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Reading what somebody wants to run. Everything that can be wrong about it without looking into
 * the sandbox is said here, before a sandbox is woken for it.
 */

#include "api/v0/process_exec.h"

#include <string.h>

#include "api/v0/env.h"
#include "base/cleanup.h"
#include "base/limits.h"
#include "base/names.h"

struct exec_request {
    const char *command;
    const char *working_dir;
    yyjson_val *env;
    bool wait;
    int64_t timeout_s;
    yyjson_val *ports;
};

static const struct json_field exec_fields[] = {
    {"command", JSON_STRING, true, offsetof(struct exec_request, command)},
    {"workingDir", JSON_STRING, .offset = offsetof(struct exec_request, working_dir)},
    {"env", JSON_OBJECT, .offset = offsetof(struct exec_request, env)},
    {"waitForCompletion", JSON_BOOL, .offset = offsetof(struct exec_request, wait)},
    {"timeout", JSON_INT, .offset = offsetof(struct exec_request, timeout_s), .max = INT32_MAX},
    {"waitForPorts", JSON_ARRAY, .offset = offsetof(struct exec_request, ports)},
};

static int check_command(const char *command, struct error *err)
{
    size_t len = strlen(command);
    if (len == 0)
        return error_set(err, ERROR_INVALID_ARGUMENT, "command must not be empty");
    if (len > COMMAND_MAX)
        return error_set(err, ERROR_INVALID_ARGUMENT, "command is larger than %d bytes",
                         COMMAND_MAX);
    return 0;
}

/* Relative to what would be anybody's guess, so it has to be absolute. */
static int read_working_dir(struct arena *arena, const char *given, const char **ret_path,
                            struct error *err)
{
    char *path = NULL;
    if (given != NULL) {
        if (given[0] != '/')
            return error_set(err, ERROR_INVALID_PATH, "workingDir: \"%.80s\" is not absolute",
                             given);
        path = arena_alloc(arena, PATH_BYTES_MAX + 1);
        if (path_normalize(given, strlen(given), path, err) < 0)
            return error_prefix(err, "workingDir");
    }
    *ret_path = path;
    return 0;
}

int process_exec_from_json(struct arena *arena, yyjson_val *body, struct agent_exec *ret_exec,
                           struct error *err)
{
    struct exec_request request = {0};
    struct agent_exec exec = {0};

    if (body == NULL)
        return error_set(err, ERROR_INVALID_ARGUMENT, "command is required");
    if (json_read(arena, body, "", exec_fields, ARRAY_LEN(exec_fields), &request, err) < 0 ||
        check_command(request.command, err) < 0 ||
        read_working_dir(arena, request.working_dir, &exec.cwd, err) < 0 ||
        env_from_json(arena, request.env, "env", &exec.env, err) < 0)
        return -1;
    if (yyjson_arr_size(request.ports) > 0)
        return error_set(err, ERROR_UNKNOWN_FIELD, "waitForPorts is not supported yet");
    exec.command = request.command;
    exec.timeout_ms = (uint64_t)request.timeout_s * 1000;
    exec.flags = request.wait ? EXEC_WAIT : 0;
    *ret_exec = exec;
    return 0;
}
