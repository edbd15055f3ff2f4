/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Reading what somebody wants to run. Everything that can be wrong about it without looking into
 * the sandbox is said here, before a sandbox is woken for it.
 */

#include "api/v0/process_exec.h"

#include <string.h>

#include "api/v0/env.h"
#include "api/v0/limits_json.h"
#include "base/cleanup.h"
#include "base/limits.h"
#include "base/names.h"
#include "sandbox/processes.h"

struct exec_request {
    const char *name;
    yyjson_val *command;
    const char *working_dir;
    yyjson_val *env;
    bool wait;
    int64_t timeout_s;
    yyjson_val *ports;
    bool restart;
    int64_t max_restarts;
    bool keep_alive;
    yyjson_val *input;
    yyjson_val *limits;
};

static const struct json_field exec_fields[] = {
    {"command", JSON_ANY, true, offsetof(struct exec_request, command)},
    {"workingDir", JSON_STRING, .offset = offsetof(struct exec_request, working_dir)},
    {"env", JSON_OBJECT, .offset = offsetof(struct exec_request, env)},
    {"waitForCompletion", JSON_BOOL, .offset = offsetof(struct exec_request, wait)},
    {"timeout", JSON_INT, .offset = offsetof(struct exec_request, timeout_s), .max = INT32_MAX},
    {"waitForPorts", JSON_ARRAY, .offset = offsetof(struct exec_request, ports)},
    {"name", JSON_STRING, .offset = offsetof(struct exec_request, name)},
    {"restartOnFailure", JSON_BOOL, .offset = offsetof(struct exec_request, restart)},
    {"maxRestarts", JSON_INT, .offset = offsetof(struct exec_request, max_restarts), .min = -1,
     .max = INT32_MAX},
    {"keepAlive", JSON_BOOL, .offset = offsetof(struct exec_request, keep_alive)},
    {"stdin", JSON_ANY, .offset = offsetof(struct exec_request, input)},
    {"limits", JSON_OBJECT, .offset = offsetof(struct exec_request, limits)},
    /* Only in a message, and read by api/v0/exec_message.c: */
    {"type", JSON_IGNORED},
    {"id", JSON_IGNORED},
    {"encoding", JSON_IGNORED},
    {"tty", JSON_IGNORED},
};
enum { MESSAGE_FIELDS = 4 }; /* of these, at the end */

static int check_length(size_t len, struct error *err)
{
    if (len > COMMAND_MAX)
        return error_set(err, ERROR_INVALID_ARGUMENT, "command is larger than %d bytes",
                         COMMAND_MAX);
    return 0;
}

static int refuse_command(struct error *err)
{
    return error_set(err, ERROR_INVALID_ARGUMENT,
                     "command must be a string, or an array of strings (a program and its "
                     "arguments), none of them with NUL characters");
}

static bool has_nul(yyjson_val *text)
{
    return memchr(yyjson_get_str(text), '\0', yyjson_get_len(text)) != NULL;
}

/* A program and its arguments, which no shell looks at. */
static int read_arguments(struct arena *arena, yyjson_val *given, struct slice *ret_argv,
                          struct error *err)
{
    size_t size = 0, used = 0, i, count;
    yyjson_val *word;
    yyjson_arr_foreach(given, i, count, word)
    {
        if (!yyjson_is_str(word) || has_nul(word))
            return refuse_command(err);
        size += yyjson_get_len(word) + 1;
    }
    if (size == 0 || yyjson_get_len(yyjson_arr_get_first(given)) == 0)
        return error_set(err, ERROR_INVALID_ARGUMENT, "command: the program must not be empty");
    if (check_length(size, err) < 0)
        return -1;
    char *argv = arena_alloc(arena, size);
    yyjson_arr_foreach(given, i, count, word)
    {
        memcpy(argv + used, yyjson_get_str(word), yyjson_get_len(word) + 1);
        used += yyjson_get_len(word) + 1;
    }
    *ret_argv = (struct slice){argv, size};
    return 0;
}

int process_command_from_json(struct arena *arena, yyjson_val *given, struct agent_exec *exec,
                              struct error *err)
{
    if (yyjson_is_arr(given))
        return read_arguments(arena, given, &exec->argv, err);
    if (!yyjson_is_str(given) || has_nul(given))
        return refuse_command(err);
    if (yyjson_get_len(given) == 0)
        return error_set(err, ERROR_INVALID_ARGUMENT, "command must not be empty");
    exec->command = yyjson_get_str(given);
    return check_length(yyjson_get_len(given), err);
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

static int read_ports(struct arena *arena, yyjson_val *given, struct process_request *request,
                      struct error *err)
{
    size_t count = yyjson_arr_size(given), i, n;
    if (count > WAIT_PORTS_MAX)
        return error_set(err, ERROR_INVALID_ARGUMENT, "waitForPorts: more than %d ports",
                         WAIT_PORTS_MAX);
    uint16_t *ports = arena_alloc(arena, (count + 1) * sizeof(*ports));
    yyjson_val *port;
    yyjson_arr_foreach(given, i, n, port)
    {
        if (!yyjson_is_uint(port) || yyjson_get_uint(port) == 0 ||
            yyjson_get_uint(port) > UINT16_MAX)
            return error_set(err, ERROR_INVALID_ARGUMENT,
                             "waitForPorts[%zu]: must be a whole number from 1 to 65535", i);
        ports[i] = (uint16_t)yyjson_get_uint(port);
    }
    request->ports = ports;
    request->port_count = count;
    return 0;
}

static int read_input(yyjson_val *given, struct agent_exec *exec, struct error *err)
{
    if (given == NULL || yyjson_is_false(given))
        return 0;
    exec->flags |= EXEC_STDIN;
    if (yyjson_is_true(given))
        return 0;
    if (!yyjson_is_str(given))
        return error_set(err, ERROR_INVALID_ARGUMENT, "stdin: must be true, false or a text");
    exec->stdin_data = (struct slice){yyjson_get_str(given), yyjson_get_len(given)};
    if (exec->flags & EXEC_WAIT)
        exec->flags |= EXEC_STDIN_ONCE;
    if (exec->stdin_data.len > PROCESS_INPUT_CHUNK)
        return error_set(
            err, ERROR_PAYLOAD_TOO_LARGE,
            "stdin: is larger than %d bytes; start it with \"stdin\": true and send them "
            "to /process/{pid}/stdin",
            PROCESS_INPUT_CHUNK);
    return 0;
}

static uint64_t exec_flags(const struct exec_request *request)
{
    return (request->wait ? EXEC_WAIT : 0) | (request->restart ? EXEC_RESTART : 0) |
           (request->keep_alive ? EXEC_KEEP_ALIVE : 0);
}

static int read_request(struct arena *arena, yyjson_val *body, size_t field_count,
                        struct process_request *ret_request, struct error *err)
{
    struct exec_request request = {.max_restarts = -1};
    struct process_request result = {0};
    struct agent_exec *exec = &result.exec;

    if (body == NULL)
        return error_set(err, ERROR_INVALID_ARGUMENT, "command is required");
    if (json_read(arena, body, "", exec_fields, field_count, &request, err) < 0 ||
        process_command_from_json(arena, request.command, exec, err) < 0 ||
        read_working_dir(arena, request.working_dir, &exec->cwd, err) < 0 ||
        env_from_json(arena, request.env, "env", &exec->env, err) < 0 ||
        (request.name != NULL && process_name_check(request.name, err) < 0) ||
        command_limits_from_json(arena, request.limits, "limits", &exec->limits, err) < 0 ||
        read_ports(arena, request.ports, &result, err) < 0)
        return -1;
    exec->flags = exec_flags(&request);
    if (read_input(request.input, exec, err) < 0)
        return -1;
    exec->name = request.name;
    exec->timeout_ms = (uint64_t)request.timeout_s * 1000;
    if (request.restart)
        exec->max_restarts =
            request.max_restarts < 0 ? RESTARTS_UNLIMITED : (uint64_t)request.max_restarts;
    *ret_request = result;
    return 0;
}

int process_exec_from_json(struct arena *arena, yyjson_val *body,
                           struct process_request *ret_request, struct error *err)
{
    return read_request(arena, body, ARRAY_LEN(exec_fields) - MESSAGE_FIELDS, ret_request, err);
}

int process_exec_from_message(struct arena *arena, yyjson_val *message,
                              struct process_request *ret_request, struct error *err)
{
    return read_request(arena, message, ARRAY_LEN(exec_fields), ret_request, err);
}
