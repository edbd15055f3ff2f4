/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Starting up, the loop, and shutting down.
 *
 * epoll hands out one event at a time: handling one may free what another points to, and the
 * warden is not so busy that a system call per event would show.
 */

#include "warden/warden.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/sendfile.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/layout.h"
#include "base/log.h"
#include "base/runtime.h"
#include "warden/files.h"
#include "wire/farewell.h"

#ifndef MFD_EXEC
#define MFD_EXEC 0x0010U /* Linux 6.3 */
#endif

uint64_t warden_now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* ---- sandboxes ---- */

struct sandbox *sandbox_find(struct warden *warden, const char *id)
{
    struct sandbox *sandbox;
    HASH_FIND(by_id, warden->sandboxes, id, strlen(id), sandbox);
    return sandbox;
}

struct sandbox *sandbox_new(struct warden *warden, const char *id)
{
    struct sandbox *sandbox = calloc(1, sizeof(*sandbox));
    if (sandbox == NULL)
        return NULL;
    sandbox->warden = warden;
    snprintf(sandbox->id, sizeof(sandbox->id), "%s", id);
    sandbox->slot = sandbox->mount_namespace = sandbox->net.index = -1;
    sandbox->pidfd.fd = sandbox->channel.fd = sandbox->freezing.fd = -1;
    HASH_ADD_KEYPTR(by_id, warden->sandboxes, sandbox->id, strlen(sandbox->id), sandbox);
    volume_keeper_wake(warden);
    return sandbox;
}

void sandbox_set_deadline(struct sandbox *sandbox, uint64_t time_ms)
{
    struct sandbox **at = &sandbox->warden->pressing;
    if (sandbox->deadline_ms == 0 && time_ms != 0) {
        sandbox->next_pressing = *at;
        *at = sandbox;
    } else if (sandbox->deadline_ms != 0 && time_ms == 0) {
        while (*at != sandbox)
            at = &(*at)->next_pressing;
        *at = sandbox->next_pressing;
    }
    sandbox->deadline_ms = time_ms;
}

void sandbox_free(struct sandbox *sandbox)
{
    sandbox_set_deadline(sandbox, 0);
    HASH_DELETE(by_id, sandbox->warden->sandboxes, sandbox);
    volume_keeper_wake(sandbox->warden);
    source_close(&sandbox->pidfd);
    source_close(&sandbox->channel);
    source_close(&sandbox->freezing);
    if (sandbox->mount_namespace >= 0)
        undertaker_close(&sandbox->warden->undertaker, sandbox->mount_namespace);
    free(sandbox);
}

/* ---- starting up ---- */

/* Made here only if the server has not made it: eight characters that nobody else has. */
static int load_instance(struct warden *warden, struct error *err)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz234567";
    struct error missing;
    if (file_read_at(warden->data_fd, LAYOUT_INSTANCE, warden->instance, sizeof(warden->instance),
                     &missing) < 0) {
        unsigned char random[INSTANCE_ID_LEN];
        if (missing.sys != ENOENT) {
            *err = missing;
            return -1;
        }
        if (getrandom(random, sizeof(random), 0) != sizeof(random))
            return error_sys(err, "making an instance id");
        for (int i = 0; i < INSTANCE_ID_LEN; i++)
            warden->instance[i] = letters[random[i] % 32];
        if (file_replace_at(warden->data_fd, LAYOUT_INSTANCE, warden->instance, 0644, err) < 0)
            return -1;
    }
    if (strlen(warden->instance) != INSTANCE_ID_LEN || !plan_id_valid(warden->instance))
        return error_set(err, ERROR_INTERNAL, "%s/" LAYOUT_INSTANCE " is damaged", warden->data);
    return 0;
}

static int load_boot_id(struct warden *warden, struct error *err)
{
    return file_read_at(AT_FDCWD, "/proc/sys/kernel/random/boot_id", warden->boot_id,
                        sizeof(warden->boot_id), err);
}

/*
 * The agent's program, copied into memory that nobody can write to, with a mode that lets a
 * sandbox execute but not read it: the kernel then treats the process as not dumpable from its
 * first instruction, and as belonging to the machine's user namespace, so that root in the sandbox
 * cannot trace it.
 */
static int load_agent(struct warden *warden, struct error *err)
{
    const char *path = warden->options.agent;
    if (path == NULL) /* only to clean up */
        return 0;
    _cleanup_fd_ int from = open(path, O_RDONLY | O_CLOEXEC);
    struct stat st;
    if (from < 0 || fstat(from, &st) < 0)
        return error_sys(err, "opening the agent %s", path);
    _cleanup_fd_ int to = memfd_create("cella-agent", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_EXEC);
    if (to < 0 && errno == EINVAL)
        to = memfd_create("cella-agent", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (to < 0)
        return error_sys(err, "copying the agent");
    for (off_t left = st.st_size; left > 0;) {
        ssize_t n = sendfile(to, from, NULL, (size_t)left);
        if (n <= 0)
            return error_sys(err, "copying the agent");
        left -= n;
    }
    if (fchmod(to, 0111) < 0 ||
        fcntl(to, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL) < 0)
        return error_sys(err, "sealing the agent");
    warden->agent_fd = steal_fd(&to);
    return 0;
}

/* Everything that the warden believes is below this folder. */
static int check_owner(const struct warden *warden, struct error *err)
{
    struct stat st;
    if (fstat(warden->data_fd, &st) < 0)
        return error_sys(err, "looking at %s", warden->data);
    if (st.st_uid != 0 || (st.st_mode & (S_IWGRP | S_IWOTH)) != 0)
        return error_set(err, ERROR_PERMISSION_DENIED,
                         "%s has to belong to root, and be writable by nobody else", warden->data);
    return 0;
}

static int make_folders(struct warden *warden, struct error *err)
{
    const struct {
        const char *path;
        mode_t mode;
        bool shared; /* cellad's group may enter */
        int *ret_fd;
    } folders[] = {
        {LAYOUT_RUN, 0750, true, NULL},
        {LAYOUT_AGENTS, 0750, true, &warden->agents_fd},
        {LAYOUT_RECORDS, 0700, false, &warden->records_fd},
        {LAYOUT_IMAGES, 0700, false, &warden->images_fd},
    };
    for (size_t i = 0; i < ARRAY_LEN(folders); i++) {
        _cleanup_fd_ int fd = -1;
        if (dir_make_at(warden->data_fd, folders[i].path, folders[i].mode, err) < 0 ||
            dir_open_at(warden->data_fd, folders[i].path, &fd, err) < 0)
            return -1;
        if (folders[i].shared &&
            (fchown(fd, 0, warden->options.group) < 0 || fchmod(fd, folders[i].mode) < 0))
            return error_sys(err, "handing out %s", folders[i].path);
        if (folders[i].ret_fd != NULL)
            *folders[i].ret_fd = steal_fd(&fd);
    }
    return 0;
}

/* Layers, the file below their volume, and what the host's image is made of. */
static void find_disks(struct warden *warden)
{
    const char *const paths[] = {warden->data, "/usr", "/"};
    char volume[PATH_MAX];
    if (snprintf(volume, sizeof(volume), "%s/" LAYOUT_VOLUME, warden->data) < (int)sizeof(volume))
        io_devices_add(&warden->cgroups.devices, volume);
    for (size_t i = 0; i < ARRAY_LEN(paths); i++)
        io_devices_add(&warden->cgroups.devices, paths[i]);
}

/* In this order: the volume and the run folders are mounted where everybody sees them, everything
 * else is opened in the warden's own mount namespace, so that parts of it can be cloned. */
static int open_parts(struct warden *warden, struct error *err)
{
    const struct warden_options *options = &warden->options;
    char stage[PATH_MAX];
    if (realpath(options->data, warden->data) == NULL)
        return error_sys(err, "opening the data folder %s", options->data);
    if (snprintf(stage, sizeof(stage), "%s/" LAYOUT_RUN "/stage", warden->data) >=
        (int)sizeof(stage))
        return error_set(err, ERROR_INVALID_PATH, "the data folder's path is too long");
    if (dir_open_at(AT_FDCWD, warden->data, &warden->data_fd, err) < 0 ||
        check_owner(warden, err) < 0 || dir_make_at(warden->data_fd, LAYOUT_RUN, 0750, err) < 0 ||
        runtime_mount(warden->data, &(bool){false}, err) < 0)
        return -1;
    net_mount(&warden->net, warden->data, &options->net);
    if (storage_mount(&warden->storage, warden->data, options->storage, options->volume_size, err) <
            0 ||
        stage_enter(&warden->stage, warden->data, stage, err) < 0)
        return -1;
    close(warden->data_fd);
    warden->data_fd = -1;
    if (dir_open_at(AT_FDCWD, warden->data, &warden->data_fd, err) < 0 ||
        load_instance(warden, err) < 0 || load_boot_id(warden, err) < 0 ||
        make_folders(warden, err) < 0 || load_agent(warden, err) < 0)
        return -1;
    ids_init(&warden->ids, warden->data, warden->instance);
    if (storage_open(&warden->storage, err) < 0)
        return -1;
    volume_keeper_open(warden);
    if (cgroups_open(&warden->cgroups, warden->instance, true, err) < 0)
        return -1;
    find_disks(warden);
    net_open(&warden->net, warden->data, warden->instance, &options->net);
    resctrl_open(&warden->resctrl, "/sys/fs/resctrl", warden->instance);
    return 0;
}

/* ---- events ---- */

static void listener_ready(struct source *source, uint32_t events)
{
    struct warden *warden = container_of(source, struct warden, listener);
    connection_accept_all(warden, source->fd, false);
}

static void egress_listener_ready(struct source *source, uint32_t events)
{
    struct warden *warden = container_of(source, struct warden, egress_listener);
    connection_accept_all(warden, source->fd, true);
}

/* Sandboxes are reaped through their pidfds; what else dies here are removals and the meter. */
static void reap_removals(struct warden *warden)
{
    for (struct removal **at = &warden->removals; *at != NULL;) {
        struct removal *removal = *at;
        int status;
        if (waitpid(removal->pid, &status, WNOHANG) != removal->pid) {
            at = &removal->next;
            continue;
        }
        struct error err;
        bool good = WIFEXITED(status) && WEXITSTATUS(status) == 0;
        if (!good)
            error_set(&err, ERROR_INTERNAL, "not all files could be removed");
        *at = removal->next;
        answer_waiters(warden, &removal->waiters, good ? NULL : &err);
        free(removal);
    }
}

static void end_all(struct warden *warden)
{
    warden->stopping = true;
    copy_cancel_all(warden);
    for (struct sandbox *s = warden->sandboxes, *next; s != NULL; s = next) {
        next = s->by_id.next;
        sandbox_end(s, 0);
    }
}

/* Ends as if killed, if anybody needs what an end in order would take away. What is half made or
 * half gone is the next one's to clear, as ever. */
static void leave(struct warden *warden)
{
    for (const struct sandbox *s = warden->sandboxes; s != NULL; s = s->by_id.next)
        if (s->state == SANDBOX_RUNNING) {
            log_info("leaving: sandboxes go on");
            _exit(0);
        }
    end_all(warden);
}

static void signal_ready(struct source *source, uint32_t events)
{
    struct warden *warden = container_of(source, struct warden, signals);
    struct signalfd_siginfo info;
    while (read(source->fd, &info, sizeof(info)) == sizeof(info)) {
        if (info.ssi_signo == SIGCHLD) {
            reap_removals(warden);
            meter_reap(&warden->meter);
        } else if (info.ssi_signo == WARDEN_LEAVE) {
            leave(warden);
        } else {
            end_all(warden);
        }
    }
}

static int open_loop(struct warden *warden, struct error *err)
{
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, WARDEN_LEAVE);
    sigaddset(&signals, SIGCHLD);
    if (sigprocmask(SIG_BLOCK, &signals, NULL) < 0)
        return error_sys(err, "blocking signals");
    signal(SIGPIPE, SIG_IGN);
    warden->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (warden->epoll_fd < 0)
        return error_sys(err, "making an epoll fd");
    int fd = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
    if (fd < 0)
        return error_sys(err, "making a signal fd");
    return source_watch(warden->epoll_fd, &warden->signals, fd, EPOLLIN, signal_ready, err);
}

static int open_listener(struct warden *warden, int fd, struct source *listener,
                         void (*ready)(struct source *source, uint32_t events), struct error *err)
{
    if (fd < 0)
        return 0;
    if (fcntl(fd, F_SETFD, FD_CLOEXEC) < 0 || fcntl(fd, F_SETFL, O_NONBLOCK) < 0)
        return error_sys(err, "taking over the listening socket");
    return source_watch(warden->epoll_fd, listener, fd, EPOLLIN, ready, err);
}

int warden_init(struct warden *warden, const struct warden_options *options, struct error *err)
{
    *warden = (struct warden){
        .options = *options,
        .data_fd = -1,
        .agents_fd = -1,
        .records_fd = -1,
        .images_fd = -1,
        .agent_fd = -1,
        .stage = {.outside = -1, .fd = -1, .network = -1},
        .storage = {.fd = -1},
        .host = {-1, -1, -1},
        .undertaker = {.channel = -1},
        .epoll_fd = -1,
        .listener = SOURCE_INIT,
        .egress_listener = SOURCE_INIT,
        .net = NET_INIT,
        .signals = SOURCE_INIT,
        .meter = {.channel = SOURCE_INIT},
        .volume = {.job = {.report = SOURCE_INIT}},
    };
    umask(022);
    /* Sandboxes are born into this session: it must not have a terminal, which they could reach. */
    if (getsid(0) != getpid() && setsid() < 0)
        return error_sys(err, "leaving the terminal's session");
    if (open_loop(warden, err) < 0 || open_parts(warden, err) < 0 ||
        undertaker_start(&warden->undertaker, err) < 0 || sandbox_adopt_all(warden, err) < 0 ||
        image_host_open(&warden->host, warden->images_fd, warden->sandboxes == NULL, err) < 0)
        return -1;
    if (open_listener(warden, options->net.listen_fd, &warden->egress_listener,
                      egress_listener_ready, err) < 0)
        return -1;
    return open_listener(warden, options->listen_fd, &warden->listener, listener_ready, err);
}

/* ---- the loop ---- */

static struct sandbox *first_pressing(const struct warden *warden)
{
    struct sandbox *first = warden->pressing;
    for (struct sandbox *s = first; s != NULL; s = s->next_pressing)
        if (s->deadline_ms < first->deadline_ms)
            first = s;
    return first;
}

static int next_timeout(const struct warden *warden)
{
    const struct sandbox *first = first_pressing(warden);
    uint64_t now = warden_now_ms(), at = warden->stopping ? 0 : warden->volume.look_ms;
    if (first != NULL && (at == 0 || first->deadline_ms < at))
        at = first->deadline_ms;
    if (at == 0)
        return -1;
    return at <= now ? 0 : (int)(at - now);
}

static void run_timers(struct warden *warden)
{
    uint64_t now = warden_now_ms();
    struct sandbox *first;
    while ((first = first_pressing(warden)) != NULL && first->deadline_ms <= now)
        sandbox_timer(first);
    volume_keeper_timer(warden);
}

int warden_run(struct warden *warden, struct error *err)
{
    while (!warden->stopping || warden->sandboxes != NULL || warden->removals != NULL ||
           warden->copies != NULL || warden->resizes != NULL) {
        struct epoll_event event;
        int n = epoll_wait(warden->epoll_fd, &event, 1, next_timeout(warden));
        if (n < 0 && errno != EINTR)
            return error_sys(err, "waiting for events");
        if (n > 0) {
            struct source *source = event.data.ptr;
            source->ready(source, event.events);
        }
        run_timers(warden);
    }
    return 0;
}

/* ---- shutting down ---- */

int warden_shutdown(struct warden *warden, struct error *err)
{
    end_all(warden);
    if (warden_run(warden, err) < 0)
        return -1;
    while (warden->connections != NULL)
        connection_close(warden->connections);
    source_close(&warden->listener);
    source_close(&warden->egress_listener);
    net_close(&warden->net);
    meter_stop(&warden->meter);
    cgroup_remove_helpers(&warden->cgroups);
    volume_keeper_close(warden);
    cgroups_remove_parents(&warden->cgroups);
    cgroups_close(&warden->cgroups);
    resctrl_close(&warden->resctrl);
    image_close(&warden->host);
    storage_close(&warden->storage);
    int *const fds[] = {&warden->agents_fd, &warden->records_fd, &warden->images_fd,
                        &warden->data_fd, &warden->agent_fd};
    for (size_t i = 0; i < ARRAY_LEN(fds); i++) {
        cleanup_fd(fds[i]);
        *fds[i] = -1;
    }
    ids_tidy(&warden->ids);
    if (stage_leave(&warden->stage, err) < 0)
        return -1;
    undertaker_stop(&warden->undertaker); /* which keeps the namespace that was just left */
    net_remove(warden->data, warden->instance);
    runtime_unmount(warden->data);
    int r = storage_unmount(&warden->storage, err);
    source_close(&warden->signals);
    cleanup_fd(&warden->epoll_fd);
    warden->epoll_fd = -1;
    return r;
}
