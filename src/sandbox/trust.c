/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Two tables: what each level allows, and what each option is. Everything else walks them. One more
 * option is a row here, a member of struct trust_options, and whoever enforces it.
 */

#include "sandbox/trust.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "wire/messages.h"

#define MIB (UINT64_C(1) << 20)

static const struct trust_options levels[TRUST_LEVEL_COUNT] = {
    [TRUST_STANDARD] =
        {
            .level = TRUST_STANDARD,
            .allow_shell = true,
            .allow_subprocess = true,
            .network_most = NET_FULL,
        },
    [TRUST_TRUSTED] =
        {
            .level = TRUST_TRUSTED,
            .network_enabled = true,
            .allow_shell = true,
            .allow_subprocess = true,
            .allow_network_tools = true,
            .memory_limit_mb = 2048,
            .network = NET_FULL,
            .network_most = NET_FULL,
        },
    [TRUST_SANDBOXED] =
        {
            .level = TRUST_SANDBOXED,
            .network_enabled = true, /* of allowed_hosts */
            .allow_network_tools = true,
            .read_only_root = true,
            .log_all_commands = true,
            .memory_limit_mb = 512,
            .cpu_limit_millis = 1000,
            .timeout_seconds = 300,
            .no_new_privs = true,
            .network = NET_ALLOWLIST,
            .network_most = NET_ALLOWLIST,
        },
    [TRUST_UNTRUSTED] =
        {
            .level = TRUST_UNTRUSTED,
            .read_only_root = true,
            .log_all_commands = true,
            .memory_limit_mb = 256,
            .cpu_limit_millis = 500,
            .timeout_seconds = 60,
            .no_new_privs = true,
            .no_capabilities = true,
            .strict_calls = true,
        },
};

#define AT(member) offsetof(struct trust_options, member)

const struct trust_row trust_rows[TRUST_OPTION_COUNT] = {
    [TRUST_NETWORK_ENABLED] = {"network_enabled", TRUST_BOOL, AT(network_enabled), true},
    [TRUST_ALLOWED_HOSTS] = {"allowed_hosts", TRUST_HOSTS},
    [TRUST_ALLOW_SHELL] = {"allow_shell", TRUST_BOOL, AT(allow_shell), true},
    [TRUST_ALLOW_SUBPROCESS] = {"allow_subprocess", TRUST_BOOL, AT(allow_subprocess), true},
    [TRUST_ALLOW_NETWORK_TOOLS] = {"allow_network_tools", TRUST_BOOL, AT(allow_network_tools),
                                   true},
    [TRUST_MEMORY_LIMIT_MB] = {"memory_limit_mb", TRUST_NUMBER, AT(memory_limit_mb), .min = 16,
                               .max = 1 << 24},
    [TRUST_CPU_LIMIT] = {"cpu_limit", TRUST_MILLIS, AT(cpu_limit_millis), .min = 10,
                         .max = 1024000},
    [TRUST_TIMEOUT_SECONDS] = {"timeout_seconds", TRUST_NUMBER, AT(timeout_seconds), .min = 1,
                               .max = INT32_MAX},
    [TRUST_READ_ONLY_ROOT] = {"read_only_root", TRUST_BOOL, AT(read_only_root), false},
    [TRUST_LOG_ALL_COMMANDS] = {"log_all_commands", TRUST_BOOL, AT(log_all_commands), false},
    [TRUST_NO_NEW_PRIVS] = {"no_new_privs", TRUST_BOOL, AT(no_new_privs), false},
};

static const char *const level_texts[] = {
#define X(name, text) [TRUST_##name] = text,
    TRUST_LEVELS(X)
#undef X
};

const char *trust_level_text(enum trust_level level)
{
    return level_texts[level];
}

int trust_level_parse(const char *text, enum trust_level *ret_level, struct error *err)
{
    enum trust_level level = TRUST_STANDARD;
    while (text != NULL && level < TRUST_LEVEL_COUNT && strcmp(level_texts[level], text) != 0)
        level++;
    if (level == TRUST_LEVEL_COUNT) {
        _cleanup_buf_ struct buf known = BUF_INIT(128);
        for (int i = 0; i < TRUST_LEVEL_COUNT; i++)
            buf_addf(&known, "%s%s", i > 0 ? ", " : "", level_texts[i]);
        return error_set(err, ERROR_INVALID_ARGUMENT, "spec.trustLevel: \"%.40s\" is none of %s",
                         text, known.data);
    }
    *ret_level = level;
    return 0;
}

/* ---- one option ---- */

uint64_t trust_get(const struct trust_options *options, enum trust_option option)
{
    const struct trust_row *row = &trust_rows[option];
    const char *at = (const char *)options + row->offset;
    if (row->kind == TRUST_HOSTS)
        return 0;
    if (row->kind == TRUST_BOOL)
        return *(const bool *)at;
    uint64_t value;
    memcpy(&value, at, sizeof(value));
    return value;
}

void trust_set(struct trust_options *options, enum trust_option option, uint64_t value)
{
    const struct trust_row *row = &trust_rows[option];
    char *at = (char *)options + row->offset;
    if (row->kind == TRUST_BOOL)
        *(bool *)at = value != 0;
    else if (row->kind != TRUST_HOSTS)
        memcpy(at, &value, sizeof(value));
}

enum trust_option trust_find(const char *name)
{
    enum trust_option option = 0;
    while (option < TRUST_OPTION_COUNT && strcmp(trust_rows[option].name, name) != 0)
        option++;
    return option;
}

static bool is_looser(enum trust_option option, uint64_t value, uint64_t than)
{
    if (value == than)
        return false;
    if (trust_rows[option].kind == TRUST_BOOL)
        return (value != 0) == trust_rows[option].loose;
    return than != 0 && (value == 0 || value > than);
}

bool trust_same(const struct trust_options *a, const struct trust_options *b)
{
    for (enum trust_option option = 0; option < TRUST_OPTION_COUNT; option++)
        if (option != TRUST_NETWORK_ENABLED && trust_get(a, option) != trust_get(b, option))
            return false;
    return a->level == b->level;
}

/* ---- what a request comes to ---- */

static int check_bounds(enum trust_option option, uint64_t value, struct error *err)
{
    const struct trust_row *row = &trust_rows[option];
    uint64_t unit = row->kind == TRUST_MILLIS ? 1000 : 1;
    if (row->kind == TRUST_BOOL || row->kind == TRUST_HOSTS || value == 0 ||
        (value >= row->min && value <= row->max))
        return 0;
    return error_set(err, ERROR_INVALID_ARGUMENT,
                     "spec.security.%s: must be from %g to %" PRIu64 ", or 0 for none", row->name,
                     (double)row->min / (double)unit, row->max / unit);
}

static int refuse_looser(const char *what, enum trust_level level, struct error *err)
{
    return error_set(err, ERROR_FORBIDDEN,
                     "spec.%s: that is looser than the trust level \"%s\" or the sandbox it comes "
                     "from has it, which takes a key with the scope admin",
                     what, trust_level_text(level));
}

static int check_tighter(const struct trust_options *options, const struct trust_options *than,
                         struct error *err)
{
    char what[64];
    for (enum trust_option option = 0; option < TRUST_OPTION_COUNT; option++)
        if (option != TRUST_NETWORK_ENABLED && /* its mode tells more */
            is_looser(option, trust_get(options, option), trust_get(than, option))) {
            snprintf(what, sizeof(what), "security.%s", trust_rows[option].name);
            return refuse_looser(what, than->level, err);
        }
    if ((than->no_capabilities && !options->no_capabilities) ||
        (than->strict_calls && !options->strict_calls))
        return refuse_looser("trustLevel", than->level, err);
    return 0;
}

/* Where it begins: the level that it names, or what its base has. */
static int begin(const struct trust_request *request, const struct trust_options *base,
                 struct trust_options *ret_options, struct error *err)
{
    enum trust_level level;
    if (trust_level_parse(request->level, &level, err) < 0)
        return -1;
    *ret_options = request->level == NULL && base != NULL ? *base : levels[level];
    return 0;
}

int trust_resolve(const struct trust_request *request, const struct trust_options *base,
                  struct trust_options *ret_options, struct error *err)
{
    struct trust_options options;
    if (begin(request, base, &options, err) < 0)
        return -1;
    const struct trust_options than = base != NULL ? *base : options;
    for (enum trust_option option = 0; option < TRUST_OPTION_COUNT; option++) {
        if (!(request->given & 1U << option))
            continue;
        uint64_t value = trust_get(&request->wanted, option);
        if (check_bounds(option, value, err) < 0)
            return -1;
        trust_set(&options, option, value);
    }
    /* The filter that it is can be loaded only so. */
    options.no_new_privs |= !options.allow_subprocess;
    if (!request->may_loosen && check_tighter(&options, &than, err) < 0)
        return -1;
    *ret_options = options;
    return 0;
}

/* ---- resources ---- */

static int check_limit(const struct trust_request *request, enum trust_option option,
                       uint64_t asked, const char *resource, struct trust_options *options,
                       struct error *err)
{
    char what[96];
    uint64_t most = trust_get(options, option);
    if (most == 0 || asked <= most)
        return 0;
    snprintf(what, sizeof(what), "resources.%s", resource);
    if (request->given & 1U << option)
        return error_set(err, ERROR_INVALID_ARGUMENT, "spec.%s: is more than spec.security.%s",
                         what, trust_rows[option].name);
    if (!request->may_loosen)
        return refuse_looser(what, options->level, err);
    trust_set(options, option, asked);
    return 0;
}

int trust_check_limits(const struct trust_request *request, uint64_t memory_bytes,
                       uint64_t cpu_millis, struct trust_options *options, struct error *err)
{
    uint64_t memory_mb = (memory_bytes + MIB - 1) / MIB;
    if (check_limit(request, TRUST_MEMORY_LIMIT_MB, memory_mb, "memory", options, err) < 0)
        return -1;
    return check_limit(request, TRUST_CPU_LIMIT, cpu_millis, "cpu", options, err);
}

const char *trust_memory(const struct trust_options *options, struct arena *arena)
{
    uint64_t mb = options->memory_limit_mb;
    if (mb == 0)
        return NULL;
    return mb % 1024 == 0 ? arena_printf(arena, "%" PRIu64 "Gi", mb / 1024)
                          : arena_printf(arena, "%" PRIu64 "Mi", mb);
}

const char *trust_cpu(const struct trust_options *options, struct arena *arena)
{
    if (options->cpu_limit_millis == 0)
        return NULL;
    return arena_printf(arena, "%" PRIu64 "m", options->cpu_limit_millis);
}

/* ---- commands ---- */

static int refuse_shell(const char *what, const char *verb, struct error *err)
{
    return error_set(err, ERROR_SHELL_NOT_ALLOWED,
                     "%s %s a shell, which this sandbox does not allow "
                     "(spec.security.allow_shell); a program and its arguments work, as "
                     "\"command\": [\"python3\", \"-c\", \"print(1)\"]",
                     what, verb);
}

int trust_check_shell(const struct trust_options *options, const char *what, struct error *err)
{
    return options->allow_shell ? 0 : refuse_shell(what, "needs", err);
}

/* "pip3.11" is a pip: the name, and a version. */
static bool is_version_of(const char *name, const char *of)
{
    size_t len = strlen(of);
    return strncmp(name, of, len) == 0 && strspn(name + len, "0123456789.") == strlen(name + len);
}

/* pip by its name, or as a module: python3 -I -m pip. */
static bool is_pip(const char *name, struct slice argv)
{
    bool module = false, first = true;
    if (is_version_of(name, "pip"))
        return true;
    if (!is_version_of(name, "python"))
        return false;
    strv_each (item, argv) {
        if (module || strcmp(item, "-mpip") == 0)
            return !module || strcmp(item, "pip") == 0;
        module = strcmp(item, "-m") == 0;
        if (!first && (item[0] != '-' || strcmp(item, "-c") == 0))
            return false;
        first = false;
    }
    return false;
}

int trust_check_program(const struct trust_options *options, struct slice argv, struct error *err)
{
    static const char *const shells[] = {"sh",  "bash", "dash", "ash",  "zsh",     "ksh",
                                         "csh", "tcsh", "fish", "mksh", "busybox", "rbash"};
    if (options->allow_shell || argv.len == 0)
        return 0;
    const char *slash = strrchr(argv.data, '/');
    const char *name = slash == NULL ? argv.data : slash + 1;
    for (size_t i = 0; i < ARRAY_LEN(shells); i++)
        if (strcmp(name, shells[i]) == 0)
            return refuse_shell(name, "is", err);
    if (is_pip(name, argv))
        return error_set(err, ERROR_SHELL_NOT_ALLOWED,
                         "pip starts what packages bring along, which this sandbox does not allow "
                         "(spec.security.allow_shell): use an image that has them");
    return 0;
}

uint64_t trust_timeout_ms(const struct trust_options *options, uint64_t asked_ms)
{
    uint64_t most = options->timeout_seconds * 1000;
    return most != 0 && (asked_ms == 0 || asked_ms > most) ? most : asked_ms;
}

/* ---- what is in force ---- */

const char *trust_enforcement(const struct trust_options *options, enum trust_option option)
{
    if (option == TRUST_NETWORK_ENABLED && !options->network_enabled &&
        levels[options->level].network_enabled)
        return "the level has a network; this sandbox goes without, because somebody said so or "
               "because the machine had none to give";
    if (option == TRUST_ALLOW_NETWORK_TOOLS && options->allow_network_tools)
        return "nothing to allow yet: the server has no tools that use a network";
    return NULL;
}

void trust_plan(const struct trust_options *options, struct plan *plan)
{
    if (options->no_new_privs)
        plan->flags |= PLAN_NO_NEW_PRIVS;
    if (options->no_capabilities)
        plan->flags |= PLAN_NO_CAPABILITIES;
    if (options->strict_calls)
        plan->flags |= PLAN_STRICT_CALLS;
    if (!options->allow_subprocess)
        plan->flags |= PLAN_NO_SUBPROCESS;
    if (!options->read_only_root)
        return;
    /* Two of them, and /dev/shm: filled to the brim they leave a quarter of the memory. */
    plan->flags |= PLAN_READ_ONLY_ROOT;
    plan->scratch_bytes = plan->memory_bytes / 4;
    if (plan->shm_bytes > plan->memory_bytes / 4)
        plan->shm_bytes = plan->memory_bytes / 4;
}

/* ---- the store's ---- */

char *trust_text(const struct trust_options *options, struct arena *arena)
{
    _cleanup_buf_ struct buf text = BUF_INIT(1024);
    for (enum trust_option option = 0; option < TRUST_OPTION_COUNT; option++)
        if (trust_rows[option].kind != TRUST_HOSTS)
            buf_addf(&text, "%s=%" PRIu64 "\n", trust_rows[option].name,
                     trust_get(options, option));
    return arena_dup(arena, text.data, text.len);
}

static int read_line(const char *line, size_t len, struct trust_options *options, struct error *err)
{
    char name[32], *end;
    const char *equals = memchr(line, '=', len);
    size_t name_len = equals == NULL ? 0 : (size_t)(equals - line);
    enum trust_option option = TRUST_OPTION_COUNT;
    if (name_len < sizeof(name)) {
        memcpy(name, line, name_len);
        name[name_len] = '\0';
        option = trust_find(name);
    }
    if (option == TRUST_OPTION_COUNT)
        return error_set(err, ERROR_CONFLICT, "its security options: \"%.*s\" is none", (int)len,
                         line);
    uint64_t value = strtoull(equals + 1, &end, 10);
    if (end == equals + 1 || end != line + len)
        return error_set(err, ERROR_CONFLICT, "its security options: \"%.*s\" has no number",
                         (int)len, line);
    trust_set(options, option, value);
    return 0;
}

int trust_from_text(const char *level, const char *text, struct trust_options *ret_options,
                    struct error *err)
{
    struct trust_options options;
    enum trust_level known;
    if (trust_level_parse(level, &known, err) < 0)
        return -1;
    options = levels[known];
    for (const char *line = text; line != NULL && *line != '\0';) {
        size_t len = strcspn(line, "\n");
        if (read_line(line, len, &options, err) < 0)
            return -1;
        line += len + (line[len] == '\n');
    }
    options.no_new_privs |= !options.allow_subprocess;
    *ret_options = options;
    return 0;
}
