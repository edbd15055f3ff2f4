/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Inside a sandbox before there is one. A list of steps, each of which takes something away from
 * this process; any that fails ends it (fail closed), and the warden clears up. The order matters:
 *
 *   cgroups   first, so that everything afterwards is charged to the sandbox
 *   network   a namespace that takes long to make: while the warden maps the ids
 *   ids       root of the user namespace; before, it is nobody
 *   cgroupns  while it is in the sandbox's groups, which become the namespace's roots; then out of
 *             those whose limits are for commands only
 *   mounts    need the capabilities that go in the end
 *   seccomp   before capabilities drop: with CAP_SYS_ADMIN it needs no no_new_privs
 *   caps      after which nothing here is possible any more
 */

#include "warden/child.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/close_range.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/prompt.h"
#include "confine/filter.h"
#include "warden/fault.h"
#include "warden/mounts.h"
#include "wire/birth.h"

enum { LAYER_FDS = 4, HIGH_FD = 64, WAIT_SECONDS = 10, SOFT_NOFILE = 1024, AGENT_RULES_SIZE = 4 };

/* Docker's default set. */
static const int kept_capabilities[] = {
    CAP_CHOWN,   CAP_DAC_OVERRIDE, CAP_FSETID,           CAP_FOWNER,
    CAP_MKNOD,   CAP_NET_RAW,      CAP_SETGID,           CAP_SETUID,
    CAP_SETFCAP, CAP_SETPCAP,      CAP_NET_BIND_SERVICE, CAP_SYS_CHROOT,
    CAP_KILL,    CAP_AUDIT_WRITE,
};

/* What the agent's own work takes, where commands have none: files of any owner, other users, and
 * ending what they run. */
static const int agent_capabilities[] = {
    CAP_CHOWN, CAP_DAC_OVERRIDE, CAP_FSETID, CAP_FOWNER, CAP_SETGID, CAP_SETUID, CAP_KILL,
};

struct life {
    const struct birth *birth;
    struct mounts mounts;
    struct layers layers;
};

/* ---- the channel ---- */

int child_send_go(int channel, struct error *err)
{
    if (send(channel, "", 1, MSG_NOSIGNAL) != 1)
        return error_sys(err, "telling the child that its ids are mapped");
    return 0;
}

int child_send_layers(int channel, const struct layers *layers, struct error *err)
{
    const int fds[LAYER_FDS] = {layers->root, layers->usr, layers->dev, layers->sys};
    union {
        struct cmsghdr header;
        char space[CMSG_SPACE(sizeof(fds))];
    } control = {0};
    char byte = 0;
    struct iovec iov = {.iov_base = &byte, .iov_len = 1};
    struct msghdr message = {.msg_iov = &iov,
                             .msg_iovlen = 1,
                             .msg_control = &control,
                             .msg_controllen = sizeof(control)};
    struct cmsghdr *cmsg = CMSG_FIRSTHDR(&message);
    cmsg->cmsg_level = SOL_SOCKET;
    cmsg->cmsg_type = SCM_RIGHTS;
    cmsg->cmsg_len = CMSG_LEN(sizeof(fds));
    memcpy(CMSG_DATA(cmsg), fds, sizeof(fds));
    if (sendmsg(channel, &message, MSG_NOSIGNAL) != 1)
        return error_sys(err, "handing the mounts over");
    return 0;
}

static int await_go(struct life *life, struct error *err)
{
    const struct timeval limit = {.tv_sec = WAIT_SECONDS};
    int channel = life->birth->channel[1];
    char byte;
    setsockopt(channel, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
    ssize_t n = recv(channel, &byte, 1, 0);
    if (n < 0)
        return error_sys(err, "waiting for the warden");
    return n == 1 ? 0 : error_set(err, ERROR_INTERNAL, "the warden went away");
}

static int receive_layers(struct life *life, struct error *err)
{
    int fds[LAYER_FDS];
    union {
        struct cmsghdr header;
        char space[CMSG_SPACE(sizeof(fds))];
    } control;
    char byte;
    struct iovec iov = {.iov_base = &byte, .iov_len = 1};
    struct msghdr message = {.msg_iov = &iov,
                             .msg_iovlen = 1,
                             .msg_control = &control,
                             .msg_controllen = sizeof(control)};
    ssize_t n = recvmsg(life->birth->channel[1], &message, MSG_CMSG_CLOEXEC);
    if (n < 0)
        return error_sys(err, "waiting for the mounts");
    const struct cmsghdr *cmsg = n == 1 ? CMSG_FIRSTHDR(&message) : NULL;
    if (cmsg == NULL || cmsg->cmsg_type != SCM_RIGHTS || cmsg->cmsg_len != CMSG_LEN(sizeof(fds)))
        return error_set(err, ERROR_INTERNAL, "the warden went away");
    memcpy(fds, CMSG_DATA(cmsg), sizeof(fds));
    life->layers = (struct layers){.root = fds[0], .usr = fds[1], .dev = fds[2], .sys = fds[3]};
    return 0;
}

/* ---- steps ---- */

static int join_all(const int *fds, size_t count, struct error *err)
{
    for (size_t i = 0; i < count; i++)
        if (write(fds[i], "0", 1) != 1)
            return error_sys(err, "joining a cgroup");
    return 0;
}

static int step_cgroups(struct life *life, struct error *err)
{
    const struct cgroup_set *set = &life->birth->cgroups;
    return join_all(set->enter, set->enter_count, err);
}

/* Owned by the user namespace that this process was born in. */
static int step_network(struct life *life, struct error *err)
{
    struct ifreq request = {.ifr_name = "lo", .ifr_flags = IFF_UP};
    if (life->birth->plan->network != PLAN_NETWORK_NONE)
        return 0; /* it was born in one that is the machine's (net_pair.h) */
    if (unshare(CLONE_NEWNET) < 0)
        return error_sys(err, "making a network namespace");
    _cleanup_fd_ int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || ioctl(fd, SIOCSIFFLAGS, &request) < 0)
        return error_sys(err, "bringing lo up");
    return 0;
}

static int step_ids(struct life *life, struct error *err)
{
    if (syscall(SYS_setresgid, 0, 0, 0) < 0 || syscall(SYS_setresuid, 0, 0, 0) < 0 ||
        syscall(SYS_setgroups, 0, NULL) < 0)
        return error_sys(err, "becoming root of the sandbox");
    return 0;
}

static int step_cgroup_namespace(struct life *life, struct error *err)
{
    const struct cgroup_set *set = &life->birth->cgroups;
    if (unshare(CLONE_NEWCGROUP) < 0)
        return error_sys(err, "making a cgroup namespace");
    return join_all(set->leave, set->leave_count, err);
}

static int step_prepare(struct life *life, struct error *err)
{
    return mounts_prepare(life->birth->plan, &life->mounts, err);
}

static int step_mounts(struct life *life, struct error *err)
{
    return mounts_enter(life->birth->plan, &life->layers, &life->mounts, err);
}

static int step_process(struct life *life, struct error *err)
{
    const char *hostname = life->birth->plan->hostname;
    if (sethostname(hostname, strlen(hostname)) < 0)
        return error_sys(err, "setting the hostname");
    sigset_t none;
    sigemptyset(&none);
    for (int signal = 1; signal < NSIG; signal++)
        (void)sigaction(signal, &(struct sigaction){.sa_handler = SIG_DFL}, NULL);
    /* No session: the warden's has no terminal, and one of its own would be a scheduling group of
     * its own to the kernel, with something for every processor, of no use below a cgroup. */
    if (sigprocmask(SIG_SETMASK, &none, NULL) < 0 || setpgid(0, 0) < 0)
        return error_sys(err, "starting a process group");
    umask(022);
    return 0;
}

/* The sandbox's own /dev/null: what it writes is not for the machine's log. */
static int step_stdio(struct life *life, struct error *err)
{
    int null = open("/dev/null", O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    if (null < 0)
        return error_sys(err, "opening /dev/null");
    for (int fd = 0; fd <= STDERR_FILENO; fd++)
        if (dup2(null, fd) < 0)
            return error_sys(err, "opening /dev/null");
    return 0;
}

static int step_seccomp(struct life *life, struct error *err)
{
    uint64_t flags = life->birth->plan->flags;
    if ((flags & PLAN_NO_NEW_PRIVS) && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        return error_sys(err, "setting no_new_privs");
    return filter_load(flags & PLAN_STRICT_CALLS ? FILTER_SANDBOX_STRICT : FILTER_SANDBOX, err);
}

static uint64_t capability_set(const int *capabilities, size_t count)
{
    uint64_t set = 0;
    for (size_t i = 0; i < count; i++)
        set |= UINT64_C(1) << capabilities[i];
    return set;
}

/* effective is permitted */
static int set_capabilities(uint64_t permitted, uint64_t inheritable, struct error *err)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[2];
    for (int half = 0; half < 2; half++) {
        data[half].effective = data[half].permitted = (uint32_t)(permitted >> (32 * half));
        data[half].inheritable = (uint32_t)(inheritable >> (32 * half));
    }
    if (syscall(SYS_capset, &header, data) < 0)
        return error_sys(err, "dropping capabilities");
    return 0;
}

/*
 * What root gets at exec is the bounding set and what is inheritable. So with an empty bounding set
 * the agent's own come to it as inheritable ones (which have to be set while the bounding set still
 * has them), and a command that gives those up is left with nothing.
 */
static int step_capabilities(struct life *life, struct error *err)
{
    bool none = (life->birth->plan->flags & PLAN_NO_CAPABILITIES) != 0;
    uint64_t bound = capability_set(kept_capabilities, none ? 0 : ARRAY_LEN(kept_capabilities));
    uint64_t agent = capability_set(agent_capabilities, ARRAY_LEN(agent_capabilities));
    if (none && set_capabilities(agent | UINT64_C(1) << CAP_SETPCAP, agent, err) < 0)
        return -1;
    /* Beyond the last one that this kernel has, the answer is EINVAL. */
    for (int cap = 0; cap < 64; cap++)
        if (!(bound & UINT64_C(1) << cap) && prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) < 0 &&
            errno != EINVAL)
            return error_sys(err, "dropping capabilities");
    if (set_capabilities(none ? agent : bound, none ? agent : 0, err) < 0)
        return -1;
    if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0)
        return error_sys(err, "dropping ambient capabilities");
    return 0;
}

static const struct step {
    const char *name;
    int (*run)(struct life *life, struct error *err);
} steps[] = {
    {"child-cgroups", step_cgroups},
    {"child-network", step_network},
    {"child-go", await_go},
    {"child-ids", step_ids},
    {"child-cgroupns", step_cgroup_namespace},
    {"child-prepare", step_prepare},
    {"child-process", step_process},
    {"child-receive", receive_layers},
    {"child-mounts", step_mounts},
    {"child-stdio", step_stdio},
    {"child-seccomp", step_seccomp},
    {"child-capabilities", step_capabilities},
};

const char *const child_step_names[] = {
    "child-cgroups", "child-network",      "child-go",      "child-ids",    "child-cgroupns",
    "child-prepare", "child-process",      "child-receive", "child-mounts", "child-stdio",
    "child-seccomp", "child-capabilities", "child-exec",    NULL,
};

_Static_assert(ARRAY_LEN(child_step_names) == ARRAY_LEN(steps) + 2, "exec and NULL come on top");

/* ---- exec ---- */

static int move_high(int *fd)
{
    int high = fcntl(*fd, F_DUPFD_CLOEXEC, HIGH_FD);
    if (high < 0)
        return -1;
    *fd = high;
    return 0;
}

/* Puts the agent's fds where birth.h says. All are moved out of the way first, since any of them
 * may sit on another's place. */
static int arrange_fds(const struct birth *birth, int *agent, int *channel, struct error *err)
{
    int fds[2 + AGENT_JOIN_MAX] = {birth->listener, birth->cgroups.work};
    const struct cgroup_set *set = &birth->cgroups;
    size_t count = 2;
    for (size_t i = set->enter_count - set->join_count; i < set->enter_count; i++)
        fds[count++] = set->enter[i];
    if (move_high(agent) < 0 || move_high(channel) < 0)
        return error_sys(err, "arranging fds");
    for (size_t i = 0; i < count; i++)
        if (move_high(&fds[i]) < 0)
            return error_sys(err, "arranging fds");
    for (size_t i = 0; i < count; i++)
        if (dup2(fds[i], AGENT_FD_LISTEN + (int)i) < 0)
            return error_sys(err, "arranging fds");
    if (close_range(AGENT_FD_LISTEN + (unsigned)count, ~0u, CLOSE_RANGE_CLOEXEC) < 0)
        return error_sys(err, "arranging fds");
    return 0;
}

/* The last thing before exec: until then the child has all of the warden's descriptors, and a
 * busy warden has more of them than a command should. One byte of core is none; unlike zero it also
 * keeps a program from being started that the machine has its cores piped to, as root (core(5)). */
static int set_limits(struct error *err)
{
    struct rlimit files, no_core = {1, 1};
    if (getrlimit(RLIMIT_NOFILE, &files) < 0)
        return error_sys(err, "reading the limit of open files");
    if (files.rlim_cur > SOFT_NOFILE)
        files.rlim_cur = SOFT_NOFILE;
    if (setrlimit(RLIMIT_NOFILE, &files) < 0 || setrlimit(RLIMIT_CORE, &no_core) < 0)
        return error_sys(err, "setting limits");
    return 0;
}

static const char *agent_state_dir(const struct plan *plan)
{
    return plan->flags & PLAN_READ_ONLY_ROOT ? AGENT_STATE_DIR_SCRATCH : AGENT_STATE_DIR;
}

static const char *agent_rules(const struct plan *plan, char rules[AGENT_RULES_SIZE])
{
    size_t len = 0;
    if (plan->flags & PLAN_NO_SUBPROCESS)
        rules[len++] = AGENT_RULE_NO_SUBPROCESS;
    if (plan->flags & PLAN_NO_CAPABILITIES)
        rules[len++] = AGENT_RULE_NO_CAPABILITIES;
    rules[len] = '\0';
    return rules;
}

static int exec_agent(const struct birth *birth, int *channel, struct error *err)
{
    char count[8];
    const char ready = CHILD_READY;
    int agent = birth->agent;
    snprintf(count, sizeof(count), "%zu", birth->cgroups.join_count);
    if (arrange_fds(birth, &agent, channel, err) < 0 || set_limits(err) < 0 ||
        fault_check(birth->fail_at, "child-exec", err) < 0)
        return -1;
    if (write(*channel, &ready, 1) != 1)
        return error_sys(err, "telling the warden");
    char rules[AGENT_RULES_SIZE];
    const char *const argv[] = {"cella-agent", count, agent_state_dir(birth->plan),
                                agent_rules(birth->plan, rules), NULL};
    const char *const envp[] = {NULL};
    syscall(SYS_execveat, agent, "", argv, envp, AT_EMPTY_PATH);
    return error_sys(err, "starting the agent");
}

static int run_steps(struct life *life, struct error *err)
{
    for (size_t i = 0; i < ARRAY_LEN(steps); i++)
        if (fault_check(life->birth->fail_at, steps[i].name, err) < 0 ||
            steps[i].run(life, err) < 0)
            return -1;
    return 0;
}

_Noreturn void child_main(const struct birth *birth)
{
    struct life life = {.birth = birth, .layers = LAYERS_INIT};
    struct error err = {0};
    int channel = birth->channel[1];
    close(birth->channel[0]); /* or the warden's death would go unnoticed */
    prompt_turns();
    if (run_steps(&life, &err) == 0)
        exec_agent(birth, &channel, &err);
    (void)!write(channel, &err, sizeof(err));
    _exit(1);
}
