/* SPDX-License-Identifier: Apache-2.0 */

/*
 * From a request to exec. Everything that takes thought (the user, the environment, where the
 * program may be) is done by the agent, into a plan; the child is a row of system calls. Their
 * order matters: the sandbox's limits first, the user's rights last, so that the working directory
 * and the program are looked at with them.
 */

#include "agent/exec.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "agent/shell_words.h"
#include "agent/spawn.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/limits.h"

#define DEFAULT_PATH "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
#define SHELL        "/bin/sh"

enum {
    EXIT_NOT_FOUND = 127,
    EXIT_NOT_EXECUTABLE = 126,
    ENV_COUNT_MAX = 2 * ENV_VARS_MAX,
    PATH_ENTRIES_MAX = 256,
};

enum exec_step {
    STEP_SESSION = 1,
    STEP_LIMITS,
    STEP_TREE,
    STEP_STDIO,
    STEP_USER,
    STEP_CONFINE,
    STEP_CWD,
    STEP_EXEC
};

int exec_check(const struct agent_exec *exec, struct error *err)
{
    bool has_argv = exec->argv.len > 0;
    if ((exec->command != NULL) == has_argv)
        return error_set(err, ERROR_INVALID_ARGUMENT,
                         "exactly one of command and argv has to be given");
    if (has_argv && exec->argv.data[0] == '\0')
        return error_set(err, ERROR_INVALID_ARGUMENT, "argv: the program's name is empty");
    if (exec->cwd != NULL && exec->cwd[0] != '/')
        return error_set(err, ERROR_INVALID_PATH, "workingDir %.200s: is not absolute", exec->cwd);
    size_t count = 0;
    strv_each (item, exec->env) {
        const char *equals = strchr(item, '=');
        if (equals == NULL || equals == item)
            return error_set(err, ERROR_INVALID_ARGUMENT, "env: %.100s: is not NAME=value", item);
        if (++count > ENV_COUNT_MAX)
            return error_set(err, ERROR_INVALID_ARGUMENT, "env: more than %d variables",
                             ENV_COUNT_MAX);
    }
    return 0;
}

/* --- the environment --- */

static size_t name_len(const char *item)
{
    return (size_t)(strchr(item, '=') - item);
}

/* Over the defaults, and over an earlier variable of the same name. */
static void env_put(char **env, size_t *count, char *item)
{
    size_t len = name_len(item) + 1;
    for (size_t i = 0; i < *count; i++)
        if (strncmp(env[i], item, len) == 0) {
            env[i] = item;
            return;
        }
    env[(*count)++] = item;
}

static char **make_env(struct exec_plan *plan, struct error *err)
{
    const struct {
        const char *name;
        const char *value;
    } rows[EXEC_DEFAULTS] = {
        {"PATH", DEFAULT_PATH},       {"HOME", plan->user.home},   {"USER", plan->user.name},
        {"LOGNAME", plan->user.name}, {"SHELL", plan->user.shell}, {"LANG", "C.UTF-8"},
        {"PWD", plan->cwd},
    };
    size_t most = EXEC_DEFAULTS + 1;
    strv_each (item, plan->exec.env)
        most++;
    char **env = calloc(most, sizeof(*env));
    if (env == NULL) {
        error_sys(err, "the environment");
        return NULL;
    }
    size_t count = 0;
    for (size_t i = 0; i < EXEC_DEFAULTS; i++) {
        struct buf item = BUF_INIT(PATH_BYTES_MAX + 64);
        buf_addf(&item, "%s=%s", rows[i].name, rows[i].value);
        env[count++] = plan->defaults[i] = buf_steal(&item);
    }
    strv_each (item, plan->exec.env)
        env_put(env, &count, (char *)(uintptr_t)item);
    return env;
}

static const char *env_get(char **env, const char *name)
{
    size_t len = strlen(name);
    for (; *env != NULL; env++)
        if (strncmp(*env, name, len) == 0 && (*env)[len] == '=')
            return *env + len + 1;
    return NULL;
}

/* --- the program --- */

static char **split_argv(struct slice argv)
{
    size_t count = 0;
    strv_each (item, argv)
        count++;
    char **words = calloc(count + 1, sizeof(*words));
    if (words == NULL)
        return NULL;
    count = 0;
    strv_each (item, argv)
        words[count++] = (char *)(uintptr_t)item;
    return words;
}

/* As execvp() would look, with the PATH of the environment that the program gets. */
static int find_programs(struct exec_plan *plan, struct error *err)
{
    const char *file = plan->words[0];
    const char *path = strchr(file, '/') != NULL ? NULL : env_get(plan->env, "PATH");
    struct buf text = BUF_INIT(PATH_ENTRIES_MAX * (PATH_BYTES_MAX + 1));
    size_t count = 0;
    if (strchr(file, '/') != NULL) {
        buf_add(&text, file, strlen(file) + 1);
        count = 1;
    }
    while (path != NULL && count < PATH_ENTRIES_MAX) {
        const char *colon = strchr(path, ':');
        int len = colon == NULL ? (int)strlen(path) : (int)(colon - path);
        if ((size_t)len + strlen(file) + 2 <= PATH_BYTES_MAX) {
            buf_addf(&text, "%.*s%s%s", len, path, len > 0 ? "/" : "", file);
            buf_addc(&text, '\0');
            count++;
        }
        path = colon == NULL ? NULL : colon + 1;
    }
    plan->programs = calloc(count + 1, sizeof(*plan->programs));
    if (text.failed || plan->programs == NULL) {
        buf_release(&text);
        return error_set(err, ERROR_LIMIT_EXCEEDED, "no memory to look for %.100s", file);
    }
    plan->programs_text = buf_steal(&text);
    char *at = plan->programs_text;
    for (size_t i = 0; i < count; i++, at += strlen(at) + 1)
        plan->programs[i] = at;
    return 0;
}

/* --- the plan --- */

static int fill(struct exec_plan *plan, size_t payload_len, struct user_memo *memo,
                struct error *err)
{
    const struct agent_exec *exec = &plan->exec;
    if (wire_decode(&agent_exec_schema, (struct slice){plan->payload, payload_len}, &plan->exec,
                    err) < 0 ||
        exec_check(exec, err) < 0)
        return -1;
    plan->cwd = exec->cwd == NULL ? "/" : exec->cwd;
    const char *user = exec->user == NULL || *exec->user == '\0' ? "root" : exec->user;
    if (users_find_again("/etc", user, memo, &plan->user, err) < 0)
        return -1;
    /* Not root, as in a test or somebody else's container: only what is true already works. */
    plan->change_ids = geteuid() == 0 || geteuid() != plan->user.uid;
    plan->env = make_env(plan, err);
    if (plan->env == NULL)
        return -1;
    if (exec->command != NULL) {
        plan->shell[0] = (char *)(uintptr_t) "sh";
        plan->shell[1] = (char *)(uintptr_t) "-c";
        plan->shell[2] = (char *)(uintptr_t)exec->command;
        plan->words = shell_words_split(exec->command);
        return plan->words == NULL ? 0 : find_programs(plan, err);
    }
    plan->words = split_argv(exec->argv);
    if (plan->words == NULL)
        return error_sys(err, "the arguments");
    return find_programs(plan, err);
}

struct exec_plan *exec_plan_new(struct slice payload, struct user_memo *memo, struct error *err)
{
    struct exec_plan *plan = calloc(1, sizeof(*plan));
    char *copy = malloc(payload.len + 1);
    if (plan == NULL || copy == NULL) {
        error_sys(err, "a new process");
        free(plan);
        free(copy);
        return NULL;
    }
    memcpy(copy, payload.data, payload.len);
    plan->payload = copy;
    if (fill(plan, payload.len, memo, err) < 0) {
        exec_plan_free(plan);
        return NULL;
    }
    return plan;
}

void exec_plan_free(struct exec_plan *plan)
{
    if (plan == NULL)
        return;
    for (size_t i = 0; i < EXEC_DEFAULTS; i++)
        free(plan->defaults[i]);
    free(plan->env);
    free(plan->words);
    free(plan->programs);
    free(plan->programs_text);
    free(plan->payload);
    free(plan);
}

int exec_explain(const struct exec_plan *plan, struct exec_failure failure, char *text, size_t size,
                 struct error *err)
{
    static const char *const steps[] = {
        [STEP_SESSION] = "making a session",
        [STEP_LIMITS] = "joining the sandbox's limits",
        [STEP_TREE] = "joining the command's cgroup",
        [STEP_STDIO] = "setting up stdin, stdout and stderr",
        [STEP_CONFINE] = "confining the command",
    };
    errno = failure.sys;
    switch (failure.step) {
    case STEP_EXEC: {
        const char *what = plan->shell[0] != NULL ? SHELL : plan->words[0];
        bool missing = failure.sys == ENOENT || failure.sys == ENOTDIR;
        snprintf(text, size, "%s: %s\n", what, missing ? "not found" : strerror(failure.sys));
        return 0;
    }
    case STEP_CWD:
        return error_sys(err, "workingDir %.200s", plan->cwd);
    case STEP_USER:
        return error_sys(err, "becoming user %s", plan->user.name);
    default:
        return error_sys_as(err, ERROR_INTERNAL, "%s",
                            failure.step < ARRAY_LEN(steps) && steps[failure.step] != NULL
                                ? steps[failure.step]
                                : "starting a command");
    }
}

/* --- the child: raw system calls only --- */

#define RAW(number, ...) spawn_call(number, __VA_ARGS__)

SPAWN_CODE static void fail(const struct exec_plan *plan, enum exec_step step, long result,
                            int code)
{
    struct exec_failure failure = {.step = step, .sys = (int32_t)-result};
    RAW(SYS_write, plan->birth.status_fd, (long)&failure, sizeof(failure), 0);
    for (;;)
        RAW(SYS_exit_group, code, 0, 0, 0);
}

SPAWN_CODE static void join(const struct exec_plan *plan)
{
    const struct exec_birth *birth = &plan->birth;
    for (unsigned i = 0; i < birth->join_count; i++) {
        long result = RAW(SYS_write, birth->join_fds[i], (long)"0", 1, 0);
        if (result < 0)
            fail(plan, STEP_LIMITS, result, EXIT_NOT_FOUND);
    }
    if (birth->tree_fd < 0 || birth->in_tree)
        return;
    long fd = RAW(SYS_openat, birth->tree_fd, (long)"cgroup.procs", O_WRONLY | O_CLOEXEC, 0);
    long result = fd < 0 ? fd : RAW(SYS_write, fd, (long)"0", 1, 0);
    if (result < 0)
        fail(plan, STEP_TREE, result, EXIT_NOT_FOUND);
}

/* Nothing but these three outlives exec, whatever the agent was left with. */
SPAWN_CODE static void take_stdio(const struct exec_plan *plan)
{
    long in = plan->birth.tty_fd >= 0 ? plan->birth.tty_fd : plan->birth.stdin_fd;
    if (in < 0)
        in = RAW(SYS_openat, AT_FDCWD, (long)"/dev/null", O_RDWR | O_CLOEXEC, 0);
    long result = in < 0 ? in : RAW(SYS_dup3, in, STDIN_FILENO, 0, 0);
    if (result >= 0)
        result = RAW(SYS_dup3, plan->birth.stdout_fd, STDOUT_FILENO, 0, 0);
    if (result >= 0)
        result = RAW(SYS_dup3, plan->birth.stderr_fd, STDERR_FILENO, 0, 0);
    if (result >= 0)
        result = RAW(SYS_close_range, STDERR_FILENO + 1, ~0U, CLOSE_RANGE_CLOEXEC, 0);
    if (result >= 0 && plan->birth.tty_fd >= 0)
        result = RAW(SYS_ioctl, STDIN_FILENO, TIOCSCTTY, 0, 0);
    if (result < 0)
        fail(plan, STEP_STDIO, result, EXIT_NOT_FOUND);
}

SPAWN_CODE static void become(const struct exec_plan *plan)
{
    const struct user *user = &plan->user;
    if (!plan->change_ids)
        return;
    long result = RAW(SYS_setgroups, (long)user->group_count, (long)user->groups, 0, 0);
    if (result >= 0)
        result = RAW(SYS_setresgid, user->gid, user->gid, user->gid, 0);
    if (result >= 0)
        result = RAW(SYS_setresuid, user->uid, user->uid, user->uid, 0);
    if (result < 0)
        fail(plan, STEP_USER, result, EXIT_NOT_FOUND);
}

/* Returns the error that says most. */
SPAWN_CODE static long exec_programs(const struct exec_plan *plan)
{
    long seen = -ENOENT;
    for (char **program = plan->programs; program != NULL && *program != NULL; program++) {
        long result = RAW(SYS_execve, (long)*program, (long)plan->words, (long)plan->env, 0);
        if (result != -ENOENT && result != -ENOTDIR && result != -EACCES)
            return result;
        if (result == -EACCES)
            seen = result; /* go on, but tell if nothing better is found */
    }
    return seen;
}

SPAWN_CODE void exec_child(void *arg)
{
    const struct exec_plan *plan = arg;
    const unsigned char no_signals[NSIG / 8] = {0};
    /* The session first: a leader's number is the fallback name of its tree. */
    long result = RAW(SYS_setsid, 0, 0, 0, 0);
    if (result < 0)
        fail(plan, STEP_SESSION, result, EXIT_NOT_FOUND);
    take_stdio(plan);
    RAW(SYS_umask, 022, 0, 0, 0);
    join(plan);
    /* After the last descriptor was opened: it may be fewer than the agent has. */
    RAW(SYS_prlimit64, 0, RLIMIT_NOFILE, (long)&plan->birth.nofile, 0);
    become(plan);
    result = confine(&plan->birth.confinement);
    if (result < 0)
        fail(plan, STEP_CONFINE, result, EXIT_NOT_FOUND);
    result = RAW(SYS_chdir, (long)plan->cwd, 0, 0, 0);
    if (result < 0)
        fail(plan, STEP_CWD, result, EXIT_NOT_FOUND);
    RAW(SYS_rt_sigprocmask, SIG_SETMASK, (long)no_signals, 0, NSIG / 8);
    result = exec_programs(plan);
    /* Whatever was wrong with the direct way, the shell says it in the words people know. */
    if (plan->shell[0] != NULL)
        result = RAW(SYS_execve, (long)SHELL, (long)plan->shell, (long)plan->env, 0);
    bool missing = result == -ENOENT || result == -ENOTDIR;
    fail(plan, STEP_EXEC, result, missing ? EXIT_NOT_FOUND : EXIT_NOT_EXECUTABLE);
}
