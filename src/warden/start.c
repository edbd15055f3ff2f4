/* SPDX-License-Identifier: Apache-2.0 */

/*
 * From a plan to a sandbox: a list of steps. In the middle its first process is born, which goes on
 * by itself (child.c) while its root is made here. No step cleans up after itself or another:
 * whatever fails, sandbox_end() takes down what there is, the same way as for a sandbox that ran
 * for a year.
 */

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "warden/child.h"
#include "warden/creds.h"
#include "warden/fault.h"
#include "warden/files.h"
#include "warden/layers.h"
#include "warden/names.h"
#include "warden/warden.h"

enum { MAKING_TIMEOUT_MS = 15 * 1000, LISTEN_BACKLOG = 128 };

/* What a start holds while it goes on; the sandbox keeps what lasts. */
struct start {
    struct warden *warden;
    struct sandbox *sandbox;
    struct birth birth;
    int pidfd;
    int userns;
    struct layers layers;
    struct net_pair network;
};

static void start_release(struct start *start)
{
    cgroup_set_release(&start->birth.cgroups);
    cleanup_fd(&start->birth.listener);
    cleanup_fd(&start->birth.channel[0]);
    cleanup_fd(&start->birth.channel[1]);
    cleanup_fd(&start->pidfd);
    cleanup_fd(&start->userns);
    layers_release(&start->layers);
    pair_release(&start->network);
}

static int save_record(const struct sandbox *sandbox, enum record_state state, struct error *err)
{
    struct record record = {.state = state,
                            .pid = sandbox->pid,
                            .start_time = sandbox->start_time,
                            .slot = sandbox->slot,
                            .fresh = sandbox->fresh,
                            .net_index = sandbox->net.index,
                            .net_mark = sandbox->net.mark,
                            .net_ruled = sandbox->net.ruled};
    memcpy(record.boot_id, sandbox->warden->boot_id, sizeof(record.boot_id));
    return record_save(sandbox->warden->records_fd, sandbox->id, &record, err);
}

int sandbox_save_running(const struct sandbox *sandbox, struct error *err)
{
    return save_record(sandbox, sandbox->paused ? RECORD_PAUSED : RECORD_RUNNING, err);
}

/* ---- steps ---- */

static int step_slot(struct start *start, struct error *err)
{
    struct sandbox *sandbox = start->sandbox;
    if (ids_take(&start->warden->ids, sandbox->id, &sandbox->slot, err) < 0)
        return -1;
    start->birth.base = ids_base(sandbox->slot);
    return 0;
}

/* A network that is there already, or is made now; without its rules nothing passes. */
static int step_network(struct start *start, struct error *err)
{
    const struct net_wish wish = net_wish_of_plan(start->birth.plan);
    if (wish.mode == PLAN_NETWORK_NONE)
        return 0;
    return net_take(start->warden, start->sandbox, &wish, &start->network, err);
}

static int step_rules(struct start *start, struct error *err)
{
    const struct net_wish wish = net_wish_of_plan(start->birth.plan);
    if (wish.mode == PLAN_NETWORK_NONE)
        return 0;
    return net_attach(start->warden, start->sandbox, &wish, &start->network, err);
}

/* Before anything else that lasts. `fresh` is a promise here: if there is a layer already, it was
 * not made by this start. */
static int step_record(struct start *start, struct error *err)
{
    struct sandbox *sandbox = start->sandbox;
    sandbox->fresh = !storage_exists(&start->warden->storage, sandbox->id);
    return save_record(sandbox, RECORD_MAKING, err);
}

static int step_storage(struct start *start, struct error *err)
{
    bool fresh;
    return storage_create(&start->warden->storage, start->sandbox->id,
                          start->birth.plan->disk_bytes, &fresh, err);
}

/* Whichever server a program asks, the answer comes from this one; but it has to ask one. */
static int name_resolver(const struct start *start, int etc, struct error *err)
{
    char text[NAMES_TEXT_MAX];
    names_resolver(start->warden->net.router.gateway, text);
    return file_replace_at(etc, "resolv.conf", text, 0644, err);
}

/* Of a sandbox that had no network before. It may have put anything in the place: then that is what
 * it wants. No link is followed, and nobody is there who could put one in between. */
static int name_resolver_again(const struct start *start, struct error *err)
{
    char path[PLAN_ID_MAX + 32];
    struct stat st;
    const struct open_how how = {.flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC,
                                 .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS};
    snprintf(path, sizeof(path), "%s/root/upper/etc", start->sandbox->id);
    _cleanup_fd_ int etc =
        (int)syscall(SYS_openat2, start->warden->storage.fd, path, &how, sizeof(how));
    if (etc < 0 || fstatat(etc, "resolv.conf", &st, AT_SYMLINK_NOFOLLOW) == 0 || errno != ENOENT)
        return 0;
    return name_resolver(start, etc, err);
}

/* The names of this one sandbox. Only in a layer that nobody has used yet: in any other, etc may
 * be a link to wherever the sandbox likes. */
static int step_names(struct start *start, struct error *err)
{
    char path[PLAN_ID_MAX + 32], text[NAMES_TEXT_MAX];
    if (!start->sandbox->fresh)
        return start->sandbox->net.index < 0 ? 0 : name_resolver_again(start, err);
    const char *hostname = start->birth.plan->hostname;
    snprintf(path, sizeof(path), "%s/root/upper/etc", start->sandbox->id);
    _cleanup_fd_ int etc = -1;
    if (dir_make_at(start->warden->storage.fd, path, 0755, err) < 0 ||
        dir_open_at(start->warden->storage.fd, path, &etc, err) < 0)
        return -1;
    names_hostname(hostname, text);
    if (file_replace_at(etc, "hostname", text, 0644, err) < 0)
        return -1;
    names_hosts(hostname, text);
    if (file_replace_at(etc, "hosts", text, 0644, err) < 0)
        return -1;
    return start->sandbox->net.index < 0 ? 0 : name_resolver(start, etc, err);
}

struct cgroup_limits sandbox_limits(const struct plan *plan, uid_t base)
{
    return (struct cgroup_limits){.memory_bytes = plan->memory_bytes,
                                  .cpu_millis = plan->cpu_millis,
                                  .pids_max = plan->pids_max,
                                  .io = {.read_bytes = plan->disk_read_bytes,
                                         .write_bytes = plan->disk_write_bytes,
                                         .read_ops = plan->disk_read_ops,
                                         .write_ops = plan->disk_write_ops},
                                  .owner = base};
}

static int step_cgroups(struct start *start, struct error *err)
{
    const struct cgroup_limits limits = sandbox_limits(start->birth.plan, start->birth.base);
    return cgroup_make(&start->warden->cgroups, start->sandbox->id, &limits, &start->birth.cgroups,
                       err);
}

/* Bound through /proc, since a unix socket's path is short and the data folder's may be long. */
static int step_socket(struct start *start, struct error *err)
{
    const struct warden *warden = start->warden;
    const char *id = start->sandbox->id;
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof(address.sun_path), "/proc/self/fd/%d/%s", warden->agents_fd,
             id);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    start->birth.listener = fd;
    unlinkat(warden->agents_fd, id, 0);
    mode_t mask = umask(0177);
    int r = fd < 0 ? -1 : bind(fd, (struct sockaddr *)&address, sizeof(address));
    umask(mask);
    if (r < 0 ||
        fchownat(warden->agents_fd, id, warden->options.user, warden->options.group,
                 AT_SYMLINK_NOFOLLOW) < 0 ||
        listen(fd, LISTEN_BACKLOG) < 0)
        return error_sys(err, "making the agent's socket");
    return 0;
}

static pid_t clone_child(struct start *start)
{
    struct clone_args args = {
        /* The network namespace, which takes longest, the child makes itself meanwhile. */
        .flags = CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWUTS | CLONE_NEWIPC |
                 CLONE_PIDFD | CLONE_INTO_CGROUP,
        .pidfd = (uintptr_t)&start->pidfd,
        .exit_signal = SIGCHLD,
        .cgroup = (uint64_t)start->birth.cgroups.group,
    };
    pid_t pid = (pid_t)syscall(SYS_clone3, &args, sizeof(args));
    if (pid == 0)
        child_main(&start->birth);
    return pid;
}

/* A process has to be born in a network namespace that its user namespace does not own: it could
 * not enter it afterwards. */
static pid_t clone_in_network(struct start *start)
{
    if (start->network.network_namespace < 0)
        return clone_child(start);
    if (setns(start->network.network_namespace, CLONE_NEWNET) < 0)
        return -1;
    pid_t pid = clone_child(start);
    int saved = errno;
    if (setns(start->warden->net.router.home, CLONE_NEWNET) < 0) {
        log_error("the way back to the machine's network is gone: %m");
        abort(); /* the next warden adopts everything */
    }
    errno = saved;
    return pid;
}

/* SOCK_SEQPACKET would tell the two messages of a child apart, but a stream ends in EOF just as
 * well, and the message in front of it has a fixed size. */
static int step_clone(struct start *start, struct error *err)
{
    struct creds creds;
    struct sandbox *sandbox = start->sandbox;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, start->birth.channel) < 0)
        return error_sys(err, "making a channel");
    if (creds_enter(&creds, start->birth.base, err) < 0)
        return -1;
    pid_t pid = clone_in_network(start);
    int saved = errno;
    creds_leave(&creds);
    if (pid < 0) {
        errno = saved;
        return error_sys(err, "making the first process");
    }
    sandbox->pid = pid;
    sandbox->ours = true;
    sandbox->start_time = process_start_time(pid);
    struct error unlimited; /* the hardware has few groups */
    if (resctrl_limit(&start->warden->resctrl, sandbox->id, start->birth.plan->memory_bandwidth,
                      pid, &unlimited) < 0)
        log_warn("sandbox %s: its memory bandwidth is not limited: %s", sandbox->id,
                 unlimited.message);
    close(start->birth.channel[1]);
    start->birth.channel[1] = -1;
    return 0;
}

static int step_maps(struct start *start, struct error *err)
{
    char path[48], map[48];
    pid_t pid = start->sandbox->pid;
    snprintf(map, sizeof(map), "0 %u %d", start->birth.base, ID_RANGE);
    snprintf(path, sizeof(path), "/proc/%d/uid_map", pid);
    if (file_write_at(AT_FDCWD, path, map, err) < 0)
        return -1;
    snprintf(path, sizeof(path), "/proc/%d/gid_map", pid);
    if (file_write_at(AT_FDCWD, path, map, err) < 0)
        return -1;
    snprintf(path, sizeof(path), "/proc/%d/ns/user", pid);
    start->userns = open(path, O_RDONLY | O_CLOEXEC);
    if (start->userns < 0)
        return error_sys(err, "opening the user namespace");
    return child_send_go(start->birth.channel[0], err);
}

static int step_layers(struct start *start, struct error *err)
{
    const struct layers_request request = {
        .image = &start->warden->host,
        .volume = start->warden->storage.fd,
        .id = start->sandbox->id,
        .userns = start->userns,
        .base = start->birth.base,
        .read_only = (start->birth.plan->flags & PLAN_READ_ONLY_ROOT) != 0,
    };
    return layers_make(&start->warden->stage, &request, &start->layers, err);
}

static int step_send(struct start *start, struct error *err)
{
    return child_send_layers(start->birth.channel[0], &start->layers, err);
}

static const struct step {
    const char *name;
    int (*run)(struct start *start, struct error *err);
} steps[] = {
    {"slot", step_slot},   {"network", step_network}, {"record", step_record},
    {"rules", step_rules}, {"cgroups", step_cgroups}, {"socket", step_socket},
    {"clone", step_clone}, {"maps", step_maps},       {"storage", step_storage},
    {"names", step_names}, {"layers", step_layers},   {"send", step_send},
};

const char *const sandbox_step_names[] = {
    "slot", "network", "record", "rules",  "cgroups", "socket",  "clone",
    "maps", "storage", "names",  "layers", "send",    "running", NULL,
};

_Static_assert(ARRAY_LEN(sandbox_step_names) == ARRAY_LEN(steps) + 2, "running and NULL on top");

/* ---- the child's answer ---- */

static void child_started(struct sandbox *sandbox)
{
    struct error err;
    int r = 0;
    if (sandbox->pid == 0)
        r = error_set(&err, ERROR_INTERNAL, "the agent died at once");
    if (r < 0 || fault_check(sandbox->warden->options.fail_at, "running", &err) < 0 ||
        save_record(sandbox, RECORD_RUNNING, &err) < 0) {
        sandbox_fail(sandbox, &err);
        return;
    }
    sandbox->state = SANDBOX_RUNNING;
    sandbox_set_deadline(sandbox, 0);
    answer_started(sandbox);
}

/* The end of the channel: the agent runs, or the child has said why not, or it died wordless. */
static void channel_ended(struct sandbox *sandbox)
{
    struct error err;
    const char *text = sandbox->received;
    size_t len = sandbox->received_len;
    source_close(&sandbox->channel);
    if (len > 0 && text[0] == CHILD_READY && len == 1) {
        child_started(sandbox);
        return;
    }
    if (len > 0 && text[0] == CHILD_READY && len == sizeof(err) + 1) { /* exec itself failed */
        text++;
        len--;
    }
    if (len == sizeof(err)) {
        memcpy(&err, text, sizeof(err));
        err.message[sizeof(err.message) - 1] = '\0';
    } else {
        error_set(&err, ERROR_INTERNAL, "the sandbox's first process died while it was made");
    }
    sandbox_fail(sandbox, &err);
}

static void channel_ready(struct source *source, uint32_t events)
{
    struct sandbox *sandbox = container_of(source, struct sandbox, channel);
    size_t room = sizeof(sandbox->received) - sandbox->received_len;
    ssize_t n = room == 0 ? 0 : read(source->fd, sandbox->received + sandbox->received_len, room);
    if (n < 0 && (errno == EINTR || errno == EAGAIN))
        return;
    if (n > 0)
        sandbox->received_len += (size_t)n;
    else
        channel_ended(sandbox);
}

static void pid_ready(struct source *source, uint32_t events)
{
    sandbox_died(container_of(source, struct sandbox, pidfd));
}

/* ---- start ---- */

/* A child that failed by itself says why; that its warden then found nobody to go on with says
 * nothing. */
static void prefer_childs_word(const struct start *start, struct error *err)
{
    struct error said;
    if (start->birth.channel[0] < 0)
        return;
    if (recv(start->birth.channel[0], &said, sizeof(said), MSG_DONTWAIT) != sizeof(said))
        return;
    said.message[sizeof(said.message) - 1] = '\0';
    *err = said;
}

static int run_steps(struct start *start, struct error *err)
{
    for (size_t i = 0; i < ARRAY_LEN(steps); i++)
        if (fault_check(start->warden->options.fail_at, steps[i].name, err) < 0 ||
            steps[i].run(start, err) < 0)
            return -1;
    return 0;
}

static int watch(struct start *start, struct error *err)
{
    struct sandbox *sandbox = start->sandbox;
    int epoll_fd = start->warden->epoll_fd;
    if (source_watch(epoll_fd, &sandbox->pidfd, steal_fd(&start->pidfd), EPOLLIN, pid_ready, err) <
        0)
        return -1;
    return source_watch(epoll_fd, &sandbox->channel, steal_fd(&start->birth.channel[0]), EPOLLIN,
                        channel_ready, err);
}

static int check_request(struct warden *warden, const struct plan *plan, struct error *err)
{
    if (plan_check(plan, err) < 0)
        return -1;
    if (strcmp(plan->image, IMAGE_HOST) != 0)
        return error_set(err, ERROR_IMAGE_NOT_FOUND, "there is no image \"%s\"", plan->image);
    const struct sandbox *other = sandbox_find(warden, plan->id);
    if (other != NULL && other->state == SANDBOX_ENDING)
        return error_set(err, ERROR_CONFLICT, "sandbox %s is being stopped", plan->id);
    if (other != NULL && other->state == SANDBOX_RUNNING)
        return error_set(err, ERROR_ALREADY_RUNNING, "sandbox %s runs already", plan->id);
    if (copy_blocks_start(warden, plan->id))
        return error_set(err, ERROR_CONFLICT, "the files of sandbox %s are being copied", plan->id);
    return 0;
}

/* Whoever asked first may be a cellad that was killed. The next one waits for the same end. */
static int join(struct sandbox *sandbox, struct waiter from, struct error *err)
{
    from.joined = true;
    struct waiter *waiter = waiter_new(from);
    if (waiter == NULL)
        return error_set(err, ERROR_LIMIT_EXCEEDED, "out of memory");
    waiter->next = sandbox->starters;
    sandbox->starters = waiter;
    return 0;
}

int sandbox_start(struct warden *warden, const struct plan *plan, struct waiter from,
                  struct error *err)
{
    if (check_request(warden, plan, err) < 0)
        return -1;
    struct sandbox *sandbox = sandbox_find(warden, plan->id);
    if (sandbox != NULL)
        return join(sandbox, from, err);
    sandbox = sandbox_new(warden, plan->id);
    struct waiter *waiter = waiter_new(from);
    if (sandbox == NULL || waiter == NULL) {
        if (sandbox != NULL)
            sandbox_free(sandbox);
        free(waiter);
        return error_set(err, ERROR_LIMIT_EXCEEDED, "out of memory");
    }
    sandbox->starters = waiter;
    sandbox->spare = plan->spare != 0;
    sandbox_set_deadline(sandbox, warden_now_ms() + MAKING_TIMEOUT_MS);

    _cleanup_(start_release) struct start start = {
        .warden = warden,
        .sandbox = sandbox,
        .birth = {.plan = plan,
                  .cgroups = CGROUP_SET_INIT,
                  .listener = -1,
                  .agent = warden->agent_fd,
                  .channel = {-1, -1},
                  .fail_at = warden->options.fail_at},
        .pidfd = -1,
        .userns = -1,
        .layers = LAYERS_INIT,
        .network = NET_PAIR_INIT,
    };
    struct error failure;
    int r = run_steps(&start, &failure);
    if (r < 0)
        prefer_childs_word(&start, &failure);
    /* A child that was born is watched in any case: its death is part of clearing up. */
    if (start.pidfd >= 0 && watch(&start, r < 0 ? &(struct error){0} : &failure) < 0)
        r = -1;
    if (r < 0)
        sandbox_fail(sandbox, &failure);
    return 0;
}
