/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Two things have to be told apart that look alike from inside: a command that has hit its own
 * limit, and one that suffers from the sandbox's.
 *
 * Memory: with v2 `oom` in memory.events counts what began in this group or below. With v1 an
 * eventfd is told of what began here or above; a second one, at the folder of all groups, is told
 * only of what began above. Processes: a fork that was refused is counted where it was tried, by
 * whichever limit (on v1, and before Linux 6.11); but only who had as many as he may have can have
 * hit his own.
 */

#include "agent/limits.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/agent.h"
#include "agent/connection.h"
#include "agent/exec.h"
#include "base/cleanup.h"
#include "wire/birth.h"

enum { FOLDER_MEMORY, FOLDER_PIDS, NAME_SIZE = 16, PATH_SIZE = 48 };

struct limit_group {
    bool v1;
    bool removed;
    unsigned number;
    struct command_limits limits;
    int join_fds[LIMIT_FDS]; /* v1: until it is born */
    int memory_file;         /* v1: memory.oom_control, v2: memory.events; -1: not limited */
    int pids_file;           /* pids.events */
    int peak_file;           /* pids.peak; -1: an older kernel */
    struct watch memory;
    struct watch pids;
    uint64_t ooms;        /* v1: told by the eventfd so far … */
    uint64_t ooms_before; /* … and those of the sandbox before it */
    uint64_t kills;       /* accounted for */
    limit_reached *reached;
    void *owner;
};

/* --- files --- */

static int write_text(int dirfd, const char *path, const char *text)
{
    _cleanup_fd_ int fd = openat(dirfd, path, O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return -1;
    return write(fd, text, strlen(text)) < 0 ? -1 : 0;
}

static int write_number(int dirfd, const char *path, uint64_t value)
{
    char text[24];
    snprintf(text, sizeof(text), "%" PRIu64, value);
    return write_text(dirfd, path, text);
}

/* The number on the line "<key> N"; key "": of the first line. 0 when there is none. */
static uint64_t read_value(int fd, const char *key)
{
    char text[512];
    size_t len = strlen(key);
    ssize_t n = fd < 0 ? -1 : pread(fd, text, sizeof(text) - 1, 0);
    if (n <= 0)
        return 0;
    text[n] = '\0';
    for (const char *line = text; line != NULL && *line != '\0';) {
        if (len == 0 || (strncmp(line, key, len) == 0 && line[len] == ' '))
            return strtoull(line + len, NULL, 10);
        line = strchr(line, '\n');
        line = line == NULL ? NULL : line + 1;
    }
    return 0;
}

/* An eventfd that is told when the group `path` runs out of memory, with those above it. */
static int watch_ooms(int dirfd, const char *path)
{
    char file[PATH_SIZE], text[32];
    _cleanup_fd_ int event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    snprintf(file, sizeof(file), "%s/memory.oom_control", path);
    _cleanup_fd_ int control = openat(dirfd, file, O_RDONLY | O_CLOEXEC);
    if (event < 0 || control < 0)
        return -1;
    snprintf(file, sizeof(file), "%s/cgroup.event_control", path);
    snprintf(text, sizeof(text), "%d %d", event, control);
    return write_text(dirfd, file, text) < 0 ? -1 : steal_fd(&event);
}

static void add_events(int fd, uint64_t *count)
{
    uint64_t more = 0;
    if (fd >= 0 && read(fd, &more, sizeof(more)) == sizeof(more))
        *count += more;
}

/* --- what was handed over --- */

void limit_folders_init(struct limit_folders *folders)
{
    *folders = (struct limit_folders){.fds = {-1, -1}, .oom_fd = -1};
}

void limit_folders_release(struct limit_folders *folders)
{
    for (int i = 0; i < LIMIT_FDS; i++)
        cleanup_fd(&folders->fds[i]);
    cleanup_fd(&folders->oom_fd);
    limit_folders_init(folders);
}

/* 0: nothing has come yet. -1: what came is not what was announced. */
static int receive_fds(int socket, int fds[LIMIT_FDS])
{
    union {
        char bytes[CMSG_SPACE(sizeof(int) * LIMIT_FDS)];
        struct cmsghdr align;
    } control;
    char byte;
    struct iovec iov = {.iov_base = &byte, .iov_len = 1};
    struct msghdr message = {.msg_iov = &iov,
                             .msg_iovlen = 1,
                             .msg_control = control.bytes,
                             .msg_controllen = sizeof(control.bytes)};
    ssize_t n = recvmsg(socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    const struct cmsghdr *rights = n == 1 ? CMSG_FIRSTHDR(&message) : NULL;
    if (rights == NULL || rights->cmsg_level != SOL_SOCKET || rights->cmsg_type != SCM_RIGHTS)
        return -1;
    size_t count = (rights->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    memcpy(fds, CMSG_DATA(rights), count * sizeof(int));
    if (count == LIMIT_FDS && !(message.msg_flags & MSG_CTRUNC))
        return 1;
    for (size_t i = 0; i < count; i++)
        close(fds[i]);
    return -1;
}

void limit_folders_receive(struct agent *agent, struct connection *connection)
{
    struct limit_folders *folders = &agent->limit_folders;
    int fds[LIMIT_FDS];
    int got = receive_fds(connection->watch.fd, fds);
    if (got < 0)
        connection->broken = true;
    if (got <= 0)
        return;
    uint64_t ooms = folders->ooms;
    limit_folders_release(folders); /* they were others of the same, if there were any */
    memcpy(folders->fds, fds, sizeof(fds));
    folders->oom_fd = watch_ooms(fds[FOLDER_MEMORY], ".");
    folders->ooms = ooms;
    connection->brings_limits = false;
    connection_answer(agent, connection, &wire_ok_schema, connection->limits_id, NULL);
}

/* --- making --- */

bool limits_need_group(const struct command_limits *limits)
{
    return limits->memory_bytes != 0 || limits->processes != 0;
}

static void group_name(const struct limit_group *group, char name[NAME_SIZE])
{
    snprintf(name, NAME_SIZE, "e%u", group->number);
}

static int open_below(int dirfd, const char *name, const char *file, int flags)
{
    char path[PATH_SIZE];
    snprintf(path, sizeof(path), "%s/%s", name, file);
    return openat(dirfd, path, flags | O_CLOEXEC);
}

static int set_below(int dirfd, const char *name, const char *file, uint64_t value)
{
    char path[PATH_SIZE];
    snprintf(path, sizeof(path), "%s/%s", name, file);
    return write_number(dirfd, path, value);
}

/* One that is there already was left by a command that is gone. */
static int make_folder(int dirfd, const char *name)
{
    if (mkdirat(dirfd, name, 0755) == 0)
        return 0;
    if (errno != EEXIST || unlinkat(dirfd, name, AT_REMOVEDIR) < 0)
        return -1;
    return mkdirat(dirfd, name, 0755);
}

static int limit_memory_v1(struct agent *agent, struct limit_group *group, const char *name)
{
    int folder = agent->limit_folders.fds[FOLDER_MEMORY];
    uint64_t bytes = group->limits.memory_bytes;
    if (make_folder(folder, name) < 0 ||
        set_below(folder, name, "memory.limit_in_bytes", bytes) < 0)
        return -1;
    /* Memory and swap together; not in every kernel. */
    if (set_below(folder, name, "memory.memsw.limit_in_bytes", bytes) < 0 && errno != ENOENT)
        return -1;
    /* Buffers of its connections are counted apart, and only where that has a limit; the sandbox's
     * own does not count for groups below it that have none (warden/cgroup_v1.c). */
    if (set_below(folder, name, "memory.kmem.tcp.limit_in_bytes", bytes / AGENT_SOCKETS_SHARE) <
            0 &&
        errno != ENOENT)
        return -1;
    add_events(agent->limit_folders.oom_fd, &agent->limit_folders.ooms);
    group->ooms_before = agent->limit_folders.ooms;
    group->memory.fd = watch_ooms(folder, name);
    group->memory_file = open_below(folder, name, "memory.oom_control", O_RDONLY);
    group->join_fds[FOLDER_MEMORY] = open_below(folder, name, "tasks", O_WRONLY);
    return group->join_fds[FOLDER_MEMORY] < 0 ? -1 : 0;
}

static int limit_pids_v1(struct agent *agent, struct limit_group *group, const char *name)
{
    int folder = agent->limit_folders.fds[FOLDER_PIDS];
    if (make_folder(folder, name) < 0 ||
        set_below(folder, name, "pids.max", group->limits.processes) < 0)
        return -1;
    group->pids_file = open_below(folder, name, "pids.events", O_RDONLY);
    group->peak_file = open_below(folder, name, "pids.peak", O_RDONLY);
    group->join_fds[FOLDER_PIDS] = open_below(folder, name, "tasks", O_WRONLY);
    return group->join_fds[FOLDER_PIDS] < 0 ? -1 : 0;
}

static int limit_v1(struct agent *agent, struct limit_group *group, struct error *err)
{
    char name[NAME_SIZE];
    group_name(group, name);
    if (group->limits.memory_bytes != 0 && limit_memory_v1(agent, group, name) < 0)
        return error_sys(err, "limiting the command's memory");
    if (group->limits.processes != 0 && limit_pids_v1(agent, group, name) < 0)
        return error_sys(err, "limiting the command's processes");
    return 0;
}

static int limit_v2(struct limit_group *group, int dirfd, struct error *err)
{
    bool memory = group->limits.memory_bytes != 0, pids = group->limits.processes != 0;
    if (faccessat(dirfd, "memory.max", F_OK, 0) < 0)
        return error_set(err, ERROR_UNAVAILABLE,
                         "limits of single commands were not handed over to this sandbox");
    if (memory && write_number(dirfd, "memory.max", group->limits.memory_bytes) < 0)
        return error_sys(err, "limiting the command's memory");
    if (memory) {
        write_text(dirfd, "memory.swap.max", "0");
        write_text(dirfd, "memory.oom.group", "1");
        group->memory_file = openat(dirfd, "memory.events", O_RDONLY | O_CLOEXEC);
        group->memory.fd = openat(dirfd, "memory.events", O_RDONLY | O_CLOEXEC);
    }
    if (pids && write_number(dirfd, "pids.max", group->limits.processes) < 0)
        return error_sys(err, "limiting the command's processes");
    if (pids) {
        group->pids_file = openat(dirfd, "pids.events", O_RDONLY | O_CLOEXEC);
        group->pids.fd = openat(dirfd, "pids.events", O_RDONLY | O_CLOEXEC);
        group->peak_file = openat(dirfd, "pids.peak", O_RDONLY | O_CLOEXEC);
    }
    return 0;
}

int limit_group_make(struct agent *agent, const struct command_limits *limits,
                     const struct tree *tree, struct limit_group **ret_group, struct error *err)
{
    if (tree->fd < 0)
        return error_set(err, ERROR_NOT_IMPLEMENTED,
                         "limits of memory and processes need cgroups, which there are none of");
    struct limit_group *group = malloc(sizeof(*group));
    if (group == NULL)
        return error_sys(err, "a new process");
    *group = (struct limit_group){
        .v1 = agent->limit_folders.fds[FOLDER_MEMORY] >= 0,
        .number = tree->number,
        .limits = *limits,
        .join_fds = {-1, -1},
        .memory_file = -1,
        .pids_file = -1,
        .peak_file = -1,
        .memory = {.fd = -1},
        .pids = {.fd = -1},
    };
    int rc = group->v1 ? limit_v1(agent, group, err) : limit_v2(group, tree->fd, err);
    if (rc < 0) {
        limit_group_remove(agent, group);
        limit_group_free(agent, group);
        return -1;
    }
    *ret_group = group;
    return 0;
}

void limit_group_join(const struct limit_group *group, struct exec_birth *birth)
{
    for (int i = 0; i < LIMIT_FDS; i++)
        if (group->join_fds[i] >= 0)
            birth->join_fds[birth->join_count++] = group->join_fds[i];
}

void limit_group_born(struct limit_group *group)
{
    for (int i = 0; i < LIMIT_FDS; i++) {
        cleanup_fd(&group->join_fds[i]);
        group->join_fds[i] = -1;
    }
}

/* --- noticing --- */

static void memory_ready(struct agent *agent, struct watch *watch, uint32_t events)
{
    struct limit_group *group = container_of(watch, struct limit_group, memory);
    if (!group->v1)
        read_value(watch->fd, ""); /* the kernel tells again once it was read */
    group->reached(agent, group->owner);
}

static void pids_ready(struct agent *agent, struct watch *watch, uint32_t events)
{
    struct limit_group *group = container_of(watch, struct limit_group, pids);
    read_value(watch->fd, "");
    group->reached(agent, group->owner);
}

/* Who cannot be watched (no memory) is still found out at the command's end. */
static void watch_file(struct agent *agent, struct watch *watch, uint32_t events,
                       watch_ready *ready)
{
    int fd = watch->fd;
    if (fd >= 0 && watch_start(agent, watch, fd, events, ready, NULL) < 0) {
        close(fd);
        watch->fd = -1;
    }
}

void limit_group_watch(struct agent *agent, struct limit_group *group, limit_reached *reached,
                       void *owner, bool *ret_look)
{
    group->reached = reached;
    group->owner = owner;
    watch_file(agent, &group->memory, group->v1 ? EPOLLIN : EPOLLPRI, memory_ready);
    watch_file(agent, &group->pids, EPOLLPRI, pids_ready);
    /* v1 has the file, but since Linux 6.11 nobody is told when it changes. */
    *ret_look = group->v1 && group->limits.processes != 0;
}

static bool memory_was_hit(struct agent *agent, struct limit_group *group)
{
    if (group->limits.memory_bytes == 0)
        return false;
    if (!group->v1)
        return read_value(group->memory_file, "oom") > 0;
    /* In this order: one of the sandbox that comes in between is not taken for the command's. */
    add_events(group->memory.fd, &group->ooms);
    add_events(agent->limit_folders.oom_fd, &agent->limit_folders.ooms);
    return group->ooms > agent->limit_folders.ooms - group->ooms_before;
}

static bool processes_were_hit(const struct limit_group *group)
{
    if (group->limits.processes == 0 || read_value(group->pids_file, "max") == 0)
        return false;
    return group->peak_file < 0 || read_value(group->peak_file, "") >= group->limits.processes;
}

enum process_state limit_group_hit(struct agent *agent, struct limit_group *group)
{
    if (memory_was_hit(agent, group))
        return PROCESS_MEMORY_LIMIT;
    return processes_were_hit(group) ? PROCESS_PROCESS_LIMIT : PROCESS_RUNNING;
}

bool limit_group_oom_killed(struct agent *agent, struct limit_group *group)
{
    uint64_t kills = read_value(group->memory_file, "oom_kill");
    if (!group->v1 && kills > group->kills) { /* they show in the sandbox's counter as well */
        agent->oom_kills += kills - group->kills;
        group->kills = kills;
    }
    return kills > 0;
}

/* --- the end --- */

static void close_group(struct agent *agent, struct limit_group *group)
{
    int *files[] = {&group->memory_file, &group->pids_file, &group->peak_file};
    limit_group_born(group);
    for (size_t i = 0; i < ARRAY_LEN(files); i++) {
        cleanup_fd(files[i]);
        *files[i] = -1;
    }
    watch_stop(agent, &group->memory);
    watch_stop(agent, &group->pids);
}

bool limit_group_remove(struct agent *agent, struct limit_group *group)
{
    char name[NAME_SIZE];
    if (group == NULL || group->removed)
        return true;
    group_name(group, name);
    for (int i = 0; group->v1 && i < LIMIT_FDS; i++)
        if (unlinkat(agent->limit_folders.fds[i], name, AT_REMOVEDIR) < 0 && errno != ENOENT)
            return false;
    close_group(agent, group);
    group->removed = true;
    return true;
}

void limit_group_free(struct agent *agent, struct limit_group *group)
{
    if (group == NULL)
        return;
    close_group(agent, group);
    free(group);
}
