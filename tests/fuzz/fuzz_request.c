/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Bodies of requests that make a sandbox or start a command: whatever they hold, no crash; what is
 * refused says why, and what is accepted obeys the headers. A caller without the scope for it never
 * gets more than a trust level allows.
 */

#include <stdlib.h>
#include <string.h>

#include "api/v0/process_exec.h"
#include "api/v0/sandbox_create.h"
#include "base/limits.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool truth)
{
    if (!truth)
        abort();
}

static void check_refusal(const struct error *err)
{
    require(err->code != ERROR_NONE && err->message[0] != '\0');
}

static void check_security(const struct trust_request *request)
{
    struct trust_options options, plain;
    struct error err = {0};
    const struct trust_request level = {.level = request->level};
    if (trust_resolve(request, NULL, &options, &err) < 0) {
        check_refusal(&err);
        return;
    }
    require(trust_resolve(&level, NULL, &plain, &err) == 0);
    require(options.allow_network_tools <= plain.allow_network_tools);
    require(options.network_most == plain.network_most);
    require(options.allow_subprocess || options.no_new_privs);
    require(options.allow_shell <= plain.allow_shell);
    require(options.allow_subprocess <= plain.allow_subprocess);
    require(options.read_only_root >= plain.read_only_root);
    require(options.no_new_privs >= plain.no_new_privs);
    require(plain.memory_limit_mb == 0 ||
            (options.memory_limit_mb > 0 && options.memory_limit_mb <= plain.memory_limit_mb));
}

static void check_exec(const struct agent_exec *exec)
{
    require((exec->command != NULL) == (exec->argv.len == 0));
    if (exec->command != NULL)
        require(exec->command[0] != '\0' && strlen(exec->command) <= COMMAND_MAX);
    else
        require(exec->argv.data[0] != '\0' && exec->argv.data[exec->argv.len - 1] == '\0' &&
                exec->argv.len <= COMMAND_MAX);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena *arena = arena_new();
    struct error err = {0};
    struct sandbox_create create = {0};
    struct process_request process;
    yyjson_val *root;
    if (json_parse(arena, (struct slice){(const char *)data, size}, &root, &err) == 0) {
        if (sandbox_create_from_json(arena, root, &create, &err) == 0)
            check_security(&create.security);
        else
            check_refusal(&err);
        if (process_exec_from_json(arena, root, &process, &err) == 0)
            check_exec(&process.exec);
        else
            check_refusal(&err);
    }
    arena_free(arena);
    return 0;
}
