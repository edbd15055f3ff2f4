/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What a warden finds when it starts. Sandboxes outlive the warden that made them; a pid with its
 * start time names a process for the whole uptime, so a record of this boot says for certain
 * whether a sandbox still runs. Everything else that bears this instance's name and belongs to no
 * running sandbox goes the ordinary way out (sandbox_end).
 */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "warden/files.h"
#include "warden/warden.h"

uint64_t process_start_time(pid_t pid)
{
    char path[32], text[1024];
    snprintf(path, sizeof(path), "/proc/%d/stat", pid);
    if (file_read_at(AT_FDCWD, path, text, sizeof(text), NULL) < 0)
        return 0;
    const char *at = strrchr(text, ')'); /* the name before it may hold anything */
    for (int field = 2; at != NULL && field < 22; field++)
        at = strchr(at + 1, ' ');
    return at == NULL ? 0 : strtoull(at + 1, NULL, 10);
}

static void pid_ready(struct source *source, uint32_t events)
{
    sandbox_died(container_of(source, struct sandbox, pidfd));
}

/* The pidfd first, then the look at the start time: in this order it cannot be somebody else's. */
static int open_process(const struct warden *warden, const struct record *record)
{
    if (record->pid <= 1 || strcmp(record->boot_id, warden->boot_id) != 0)
        return -1;
    int fd = (int)syscall(SYS_pidfd_open, record->pid, 0);
    if (fd >= 0 && process_start_time(record->pid) != record->start_time) {
        close(fd);
        fd = -1;
    }
    return fd;
}

static void take_over(struct warden *warden, const char *id, const struct record *record)
{
    struct error err = {0};
    struct sandbox *sandbox = sandbox_new(warden, id);
    if (sandbox == NULL)
        return;
    sandbox->slot = record->slot;
    sandbox->start_time = record->start_time;
    sandbox->net = (struct sandbox_net){.index = record->net_index,
                                        .mark = record->net_mark,
                                        .ruled = record->net_ruled,
                                        .limited = true};
    int fd = open_process(warden, record);
    if (fd >= 0 &&
        source_watch(warden->epoll_fd, &sandbox->pidfd, fd, EPOLLIN, pid_ready, &err) == 0)
        sandbox->pid = record->pid;
    if (record->state != RECORD_MAKING && sandbox->pid != 0) {
        sandbox->state = SANDBOX_RUNNING;
        if (record->state == RECORD_PAUSED)
            pause_adopt(sandbox);
        else
            cgroup_thaw(&warden->cgroups, id); /* somebody may have been killed while copying it */
        log_info("adopted sandbox %s (pid %d%s)", id, sandbox->pid,
                 sandbox->paused ? ", paused" : "");
        return;
    }
    log_info("clearing sandbox %s, which %s", id,
             record->state == RECORD_MAKING ? "was not made to the end" : "no longer runs");
    sandbox->remove = record->state == RECORD_MAKING && record->fresh;
    sandbox_end(sandbox, 0);
}

static int adopt_record(int dirfd, const char *name, void *arg)
{
    struct warden *warden = arg;
    struct error err;
    struct record record = {.state = RECORD_RUNNING, .slot = -1, .net_index = -1};
    if (!plan_id_valid(name)) {
        unlinkat(dirfd, name, 0);
        return 0;
    }
    if (record_load(dirfd, name, &record, &err) < 0)
        log_warn("%s", err.message); /* its kernel objects go, its files stay */
    take_over(warden, name, &record);
    return 0;
}

static int clear_group(const char *tree, int parent, const char *id, void *arg)
{
    struct warden *warden = arg;
    if (!plan_id_valid(id) || sandbox_find(warden, id) != NULL)
        return 0;
    struct sandbox *sandbox = sandbox_new(warden, id);
    if (sandbox != NULL) {
        log_info("clearing the %s cgroup of sandbox %s", tree, id);
        sandbox_end(sandbox, 0);
    }
    return 0;
}

static int clear_socket(int dirfd, const char *name, void *arg)
{
    if (sandbox_find(arg, name) == NULL)
        unlinkat(dirfd, name, 0);
    return 0;
}

static int clear_slot(int slot, const char *id, void *arg)
{
    struct warden *warden = arg;
    const struct sandbox *sandbox = sandbox_find(warden, id);
    if (sandbox == NULL || sandbox->slot != slot)
        ids_give(&warden->ids, id, slot);
    return 0;
}

int sandbox_adopt_all(struct warden *warden, struct error *err)
{
    if (dir_each(warden->records_fd, ".", adopt_record, warden, err) < 0 ||
        cgroups_each(&warden->cgroups, clear_group, warden, err) < 0 ||
        dir_each(warden->agents_fd, ".", clear_socket, warden, err) < 0)
        return -1;
    net_clear_strangers(warden);
    return ids_each(&warden->ids, clear_slot, warden, err);
}
