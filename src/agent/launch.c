/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The agent's side of starting a command.
 *
 * When the sandbox's memory runs out, commands are to go before the agent. What the kernel goes by
 * is inherited at birth and can be lowered again to where it was: so the agent raises its own while
 * children are on their way to exec. (A child cannot do it for itself: it cannot be dumped, so its
 * /proc/self is not its own. And the kernel keeps processes that share their memory at one value,
 * which is why the agent waits until they do not.)
 */

#include "agent/launch.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "agent/agent.h"
#include "agent/exec.h"
#include "agent/limits.h"
#include "agent/spawn.h"
#include "base/cleanup.h"

#define OOM_COMMANDS "200"
#define OOM_AGENT    "0"

struct ends {
    int status[2];
    int out[2];
    int err[2];
    int in[2]; /* none, unless asked for */
};

/* --- the pad --- */

void launch_init(struct agent *agent)
{
    int dumpable = prctl(PR_GET_DUMPABLE);
    prctl(PR_SET_DUMPABLE, 1);
    agent->launch.oom_fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
    if (dumpable == 0)
        prctl(PR_SET_DUMPABLE, 0);
}

void launch_end(struct agent *agent)
{
    struct launch_pad *pad = &agent->launch;
    tree_pool_release(&pad->trees, agent->config.cgroup_fd);
    if (pad->idle_stack != NULL)
        munmap(pad->idle_stack, SPAWN_STACK_SIZE);
    cleanup_fd(&pad->oom_fd);
}

static char *take_stack(struct launch_pad *pad)
{
    char *stack = pad->idle_stack;
    if (stack != NULL) {
        pad->idle_stack = NULL;
        return stack;
    }
    stack =
        mmap(NULL, SPAWN_STACK_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return stack == MAP_FAILED ? NULL : stack;
}

static void give_stack(struct launch_pad *pad, char *stack)
{
    if (stack != NULL && pad->idle_stack != NULL)
        munmap(stack, SPAWN_STACK_SIZE);
    else if (stack != NULL)
        pad->idle_stack = stack;
}

static void set_oom(const struct launch_pad *pad, const char *value)
{
    if (pad->oom_fd >= 0)
        (void)!pwrite(pad->oom_fd, value, strlen(value), 0);
}

/* --- pipes --- */

static void ends_release(struct ends *ends)
{
    for (int i = 0; i < 2; i++) {
        cleanup_fd(&ends->status[i]);
        cleanup_fd(&ends->out[i]);
        cleanup_fd(&ends->err[i]);
        cleanup_fd(&ends->in[i]);
    }
}

/* Our end only: O_NONBLOCK belongs to each end of a pipe, and the command's stay blocking. */
static int make_pipe(int pipe[2], struct error *err)
{
    if (pipe2(pipe, O_CLOEXEC) < 0 || fcntl(pipe[0], F_SETFL, O_NONBLOCK) < 0)
        return error_sys(err, "making the command's pipes");
    return 0;
}

static int ends_make(struct ends *ends, bool with_output, bool with_input, struct error *err)
{
    if (make_pipe(ends->status, err) < 0)
        return -1;
    if (with_input &&
        (pipe2(ends->in, O_CLOEXEC) < 0 || fcntl(ends->in[1], F_SETFL, O_NONBLOCK) < 0))
        return error_sys(err, "making the command's stdin");
    if (!with_output)
        return 0;
    return make_pipe(ends->out, err) < 0 ? -1 : make_pipe(ends->err, err);
}

/* --- the birth --- */

static pid_t give_birth(struct agent *agent, struct exec_plan *plan, const struct ends *ends,
                        const struct tree *tree, struct limit_group *group, int tty_fd,
                        struct error *err)
{
    struct launch_pad *pad = &agent->launch;
    struct exec_birth *birth = &plan->birth;
    *birth = (struct exec_birth){
        .tree_fd = tree->fd,
        .tty_fd = tty_fd,
        .stdin_fd = ends->in[0],
        .stdout_fd = tty_fd >= 0 ? tty_fd : ends->out[1],
        .stderr_fd = tty_fd >= 0 ? tty_fd : ends->err[1],
        .status_fd = ends->status[1],
        .nofile = agent->nofile,
        .confinement = agent->config.confinement,
    };
    for (unsigned i = 0; tree->fd >= 0 && i < agent->config.join_count; i++)
        birth->join_fds[birth->join_count++] = agent->config.join_fd + (int)i;
    if (group != NULL)
        limit_group_join(group, birth);
    if (plan->exec.limits.open_files != 0)
        birth->nofile = (struct rlimit){plan->exec.limits.open_files, plan->exec.limits.open_files};
    plan->stack = take_stack(pad);
    if (plan->stack == NULL) {
        error_sys(err, "a stack for the command's start");
        return -1;
    }
    if (pad->under_way++ == 0)
        set_oom(pad, OOM_COMMANDS);
    pid_t pid = spawn(exec_child, plan, plan->stack, tree->fd, &birth->in_tree);
    if (group != NULL)
        limit_group_born(group);
    if (pid < 0)
        error_sys(err, "starting a process");
    return pid;
}

static int check_open_files(const struct agent *agent, const struct command_limits *limits,
                            struct error *err)
{
    if (limits->open_files > agent->nofile.rlim_max)
        return error_set(err, ERROR_INVALID_ARGUMENT,
                         "limits.openFiles: %llu is more than the %llu that the sandbox allows",
                         (unsigned long long)limits->open_files,
                         (unsigned long long)agent->nofile.rlim_max);
    return 0;
}

static int make_groups(struct agent *agent, const struct command_limits *limits, struct tree *tree,
                       struct limit_group **ret_group, struct error *err)
{
    bool limited = limits_need_group(limits);
    if (tree_make(tree, agent->config.cgroup_fd, &agent->launch.trees, limited, err) < 0)
        return -1;
    if (!limited || limit_group_make(agent, limits, tree, ret_group, err) == 0)
        return 0;
    tree_remove(tree);
    tree_release(agent, tree);
    return -1;
}

int launch_start_on(struct agent *agent, struct slice payload, int tty_fd,
                    struct launch *ret_launch, struct error *err)
{
    _cleanup_(ends_release) struct ends ends = {{-1, -1}, {-1, -1}, {-1, -1}, {-1, -1}};
    struct tree tree;
    struct limit_group *group = NULL;
    struct exec_plan *plan = exec_plan_new(payload, &agent->launch.memo, err);
    if (plan == NULL)
        return -1;
    bool with_input = (plan->exec.flags & EXEC_STDIN) != 0;
    if (check_open_files(agent, &plan->exec.limits, err) < 0 ||
        ends_make(&ends, tty_fd < 0, tty_fd < 0 && with_input, err) < 0 ||
        make_groups(agent, &plan->exec.limits, &tree, &group, err) < 0) {
        exec_plan_free(plan);
        return -1;
    }
    pid_t pid = give_birth(agent, plan, &ends, &tree, group, tty_fd, err);
    if (pid < 0) {
        launch_begun(agent, plan);
        tree_remove(&tree);
        tree_release(agent, &tree);
        limit_group_remove(agent, group);
        limit_group_free(agent, group);
        return -1;
    }
    tree.leader = pid;
    *ret_launch = (struct launch){
        .pid = pid,
        .status_fd = steal_fd(&ends.status[0]),
        .stdout_fd = steal_fd(&ends.out[0]),
        .stderr_fd = steal_fd(&ends.err[0]),
        .stdin_fd = steal_fd(&ends.in[1]),
        .tree = tree,
        .group = group,
        .plan = plan,
    };
    return 0;
}

int launch_start(struct agent *agent, struct slice payload, struct launch *ret_launch,
                 struct error *err)
{
    return launch_start_on(agent, payload, -1, ret_launch, err);
}

void launch_begun(struct agent *agent, struct exec_plan *plan)
{
    struct launch_pad *pad = &agent->launch;
    if (plan == NULL)
        return;
    if (plan->stack != NULL) {
        give_stack(pad, plan->stack);
        if (--pad->under_way == 0)
            set_oom(pad, OOM_AGENT);
    }
    exec_plan_free(plan);
}

void launch_release(struct agent *agent, struct launch *launch)
{
    cleanup_fd(&launch->status_fd);
    cleanup_fd(&launch->stdout_fd);
    cleanup_fd(&launch->stderr_fd);
    cleanup_fd(&launch->stdin_fd);
    tree_release(agent, &launch->tree);
}
