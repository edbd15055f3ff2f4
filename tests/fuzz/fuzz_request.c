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
#include "sandbox/history_rules.h"

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

/* What is taken for rules can be read as such, and shown. */
static void check_spec(const struct sandbox_create *create)
{
    struct history_rules *rules;
    struct error err = {0};
    check_security(&create->security);
    if (history_rules_check(create->history, &err) < 0) {
        check_refusal(&err);
        return;
    }
    require(history_rules_read(create->history, &rules, &err) == 0);
    require(rules->file_max >= 1 && rules->file_max <= HISTORY_FILE_MAX);
    require(strv_valid(rules->ignore) && rules->ignore.len <= PATTERNS_BYTES_MAX);
    free(rules);
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
            check_spec(&create);
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
