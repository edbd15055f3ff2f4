/* SPDX-License-Identifier: Apache-2.0 */

/* Process trees by cgroup v2, or by process group where there are no cgroups. */

#include "agent/tree.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"

enum { NAME_SIZE = 16, TRIES_MAX = 10 * 1000 };

static void group_name(unsigned number, char name[NAME_SIZE])
{
    snprintf(name, NAME_SIZE, "e%u", number);
}

static int make_group(int parent_fd, struct tree_pool *pool, struct kept_tree *ret_group,
                      struct error *err)
{
    struct kept_tree group;
    char name[NAME_SIZE];
    for (int tries = 0;; tries++) {
        group.number = pool->next_number++;
        group_name(group.number, name);
        if (mkdirat(parent_fd, name, 0755) == 0)
            break;
        if (errno != EEXIST || tries == TRIES_MAX)
            return error_sys(err, "making the command's cgroup %s", name);
    }
    group.fd = openat(parent_fd, name, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (group.fd < 0) {
        error_sys(err, "opening the command's cgroup %s", name);
        unlinkat(parent_fd, name, AT_REMOVEDIR);
        return -1;
    }
    group.events_fd = openat(group.fd, "cgroup.events", O_RDONLY | O_CLOEXEC);
    *ret_group = group;
    return 0;
}

int tree_make(struct tree *ret_tree, int parent_fd, struct tree_pool *pool, bool once,
              struct error *err)
{
    struct tree tree = {.parent_fd = parent_fd,
                        .fd = -1,
                        .events_fd = -1,
                        .once = once,
                        .changes = {.fd = -1},
                        .pool = pool};
    if (parent_fd >= 0) {
        struct kept_tree group = {.fd = -1, .events_fd = -1};
        if (pool->count > 0 && !once)
            group = pool->kept[--pool->count];
        else if (make_group(parent_fd, pool, &group, err) < 0)
            return -1;
        tree.fd = group.fd;
        tree.events_fd = group.events_fd;
        tree.number = group.number;
    }
    *ret_tree = tree;
    return 0;
}

void tree_pool_release(struct tree_pool *pool, int parent_fd)
{
    while (pool->count > 0) {
        struct kept_tree *group = &pool->kept[--pool->count];
        char name[NAME_SIZE];
        group_name(group->number, name);
        unlinkat(parent_fd, name, AT_REMOVEDIR);
        cleanup_fd(&group->fd);
        cleanup_fd(&group->events_fd);
    }
}

static void close_group(struct tree *tree)
{
    cleanup_fd(&tree->fd);
    cleanup_fd(&tree->events_fd);
    tree->fd = tree->events_fd = -1;
}

void tree_release(struct agent *agent, struct tree *tree)
{
    watch_stop(agent, &tree->changes);
    close_group(tree);
}

/* Signals what cgroup.procs lists: at most what was there at this moment. */
static void signal_members(const struct tree *tree, int signal)
{
    _cleanup_fd_ int fd = openat(tree->fd, "cgroup.procs", O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return;
    char text[512];
    pid_t pid = 0;
    for (;;) {
        ssize_t n = read(fd, text, sizeof(text));
        if (n <= 0)
            return;
        for (ssize_t i = 0; i < n; i++) {
            if (text[i] >= '0' && text[i] <= '9') {
                pid = pid * 10 + (text[i] - '0');
                continue;
            }
            if (pid > 1) /* 0: in another pid namespace; 1: never us */
                kill(pid, signal);
            pid = 0;
        }
    }
}

void tree_signal(struct tree *tree, int signal)
{
    if (tree->parent_fd < 0) {
        kill(-tree->leader, signal);
        return;
    }
    if (tree->fd < 0)
        return;
    if (signal == SIGKILL) {
        tree->killed = true;
        _cleanup_fd_ int fd = openat(tree->fd, "cgroup.kill", O_WRONLY | O_CLOEXEC);
        if (fd >= 0 && write(fd, "1", 1) == 1)
            return;
    }
    signal_members(tree, signal);
}

static bool is_empty(const struct tree *tree)
{
    char text[128];
    ssize_t n = tree->events_fd < 0 ? -1 : pread(tree->events_fd, text, sizeof(text) - 1, 0);
    if (n <= 0)
        return false;
    text[n] = '\0';
    return strstr(text, "populated 0") != NULL;
}

static bool keep_group(struct tree *tree)
{
    struct tree_pool *pool = tree->pool;
    if (tree->killed || tree->once || pool->count == TREES_KEPT || !is_empty(tree))
        return false;
    pool->kept[pool->count++] = (struct kept_tree){
        .fd = steal_fd(&tree->fd), .events_fd = steal_fd(&tree->events_fd), .number = tree->number};
    return true;
}

bool tree_remove(struct tree *tree)
{
    if (tree->parent_fd < 0)
        return kill(-tree->leader, 0) < 0 && errno == ESRCH;
    if (tree->fd < 0 || keep_group(tree))
        return true;
    char name[NAME_SIZE];
    group_name(tree->number, name);
    if (unlinkat(tree->parent_fd, name, AT_REMOVEDIR) < 0 && errno != ENOENT)
        return false;
    close_group(tree);
    return true;
}

void tree_watch(struct agent *agent, struct tree *tree, watch_ready *ready)
{
    if (tree->fd < 0 || tree->changes.fd >= 0)
        return;
    int fd = openat(tree->fd, "cgroup.events", O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return;
    if (watch_start(agent, &tree->changes, fd, EPOLLPRI, ready, NULL) < 0) {
        close(fd);
        return;
    }
    tree_acknowledge(tree);
}

void tree_acknowledge(struct tree *tree)
{
    char text[128];
    (void)!pread(tree->changes.fd, text, sizeof(text), 0);
}
