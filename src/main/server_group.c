/* SPDX-License-Identifier: Apache-2.0 */

/* Memory cgroups for cellad and the egress process. */

#include "main/server_group.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"

enum { PATH_SIZE = 128, LINE_SIZE = 4096, REMOVE_TRIES = 20, REMOVE_PAUSE_MS = 50 };

/* What the two versions call their files. A limit on swap is not on every machine. */
static const struct tree {
    const char *fstype, *limit, *limit_with_swap;
} trees[] = {
    {"cgroup", "memory.limit_in_bytes", "memory.memsw.limit_in_bytes"},
    {"cgroup2", "memory.max", NULL},
};

/* "… / /sys/fs/cgroup/memory rw,… - cgroup cgroup rw,memory": the mount point and what is behind
 * the dash. */
static bool split_mount(char *line, const char **ret_target, const char **ret_type,
                        const char **ret_options)
{
    char *dash = strstr(line, " - "), *save = NULL;
    if (dash == NULL)
        return false;
    *dash = '\0';
    const char *field = strtok_r(line, " ", &save);
    for (int i = 0; i < 4 && field != NULL; i++)
        field = strtok_r(NULL, " ", &save);
    *ret_target = field;
    *ret_type = strtok_r(dash + strlen(" - "), " \n", &save);
    strtok_r(NULL, " \n", &save); /* the source */
    *ret_options = strtok_r(NULL, " \n", &save);
    return field != NULL && *ret_type != NULL && *ret_options != NULL;
}

static bool has_word(const char *list, const char *word)
{
    size_t len = strlen(word);
    for (const char *at = list; (at = strstr(at, word)) != NULL; at += len)
        if ((at == list || at[-1] == ',' || at[-1] == ' ') &&
            (at[len] == '\0' || at[len] == ',' || at[len] == ' ' || at[len] == '\n'))
            return true;
    return false;
}

static int write_text(int dir, const char *path, const char *text)
{
    _cleanup_fd_ int fd = openat(dir, path, O_WRONLY | O_CLOEXEC);
    size_t len = strlen(text);
    return fd >= 0 && write(fd, text, len) == (ssize_t)len ? 0 : -1;
}

/* Whether groups of this cgroup2 tree get a memory controller; it is asked for. */
static bool unified_has_memory(int mount)
{
    char text[256] = "";
    _cleanup_fd_ int fd = openat(mount, "cgroup.controllers", O_RDONLY | O_CLOEXEC);
    if (fd < 0 || read(fd, text, sizeof(text) - 1) <= 0 || !has_word(text, "memory"))
        return false;
    write_text(mount, "cgroup.subtree_control", "+memory");
    return true;
}

/* The root of the tree with the memory controller; -1: there is none. */
static int open_tree_with_memory(const struct tree **ret_tree)
{
    FILE *file = fopen("/proc/self/mountinfo", "re");
    char line[LINE_SIZE];
    int found = -1;
    while (file != NULL && found < 0 && fgets(line, sizeof(line), file) != NULL) {
        const char *target, *type, *options;
        if (!split_mount(line, &target, &type, &options))
            continue;
        bool v1 = strcmp(type, "cgroup") == 0 && has_word(options, "memory");
        if (!v1 && strcmp(type, "cgroup2") != 0)
            continue;
        _cleanup_fd_ int mount = open(target, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (mount < 0 || (!v1 && !unified_has_memory(mount)))
            continue;
        found = steal_fd(&mount);
        *ret_tree = &trees[v1 ? 0 : 1];
    }
    if (file != NULL)
        fclose(file);
    return found;
}

static int set_limit(int mount, const char *name, const struct tree *tree, uint64_t bytes,
                     struct error *err)
{
    char path[PATH_SIZE], text[24];
    snprintf(text, sizeof(text), "%" PRIu64, bytes);
    if (tree->limit_with_swap != NULL) { /* it may never be less than the other one */
        snprintf(path, sizeof(path), "%s/%s", name, tree->limit_with_swap);
        write_text(mount, path, "-1");
    }
    snprintf(path, sizeof(path), "%s/%s", name, tree->limit);
    if (write_text(mount, path, text) < 0)
        return error_sys(err, "setting %s", path);
    if (tree->limit_with_swap != NULL) {
        snprintf(path, sizeof(path), "%s/%s", name, tree->limit_with_swap);
        write_text(mount, path, text);
    }
    return 0;
}

int server_group_make(struct server_group *group, const char *instance, const char *what,
                      uint64_t memory_bytes, struct error *err)
{
    char name[sizeof(group->name)], procs[PATH_SIZE];
    const struct tree *tree = NULL;
    _cleanup_fd_ int mount = open_tree_with_memory(&tree);
    if (mount < 0)
        return error_set(err, ERROR_UNAVAILABLE,
                         "no cgroup tree with the memory controller is "
                         "mounted (neither v1 nor v2)");
    snprintf(name, sizeof(name), "cella-%s-%s", instance, what);
    if (mkdirat(mount, name, 0755) < 0 && errno != EEXIST)
        return error_sys(err, "making the cgroup %s", name);
    snprintf(procs, sizeof(procs), "%s/cgroup.procs", name);
    _cleanup_fd_ int fd = openat(mount, procs, O_WRONLY | O_CLOEXEC);
    int rc = fd < 0 ? error_sys(err, "opening %s", procs)
                    : set_limit(mount, name, tree, memory_bytes, err);
    if (rc < 0) {
        unlinkat(mount, name, AT_REMOVEDIR);
        return -1;
    }
    group->mount = steal_fd(&mount);
    group->procs = steal_fd(&fd);
    snprintf(group->name, sizeof(group->name), "%s", name);
    return 0;
}

int server_group_enter(const struct server_group *group)
{
    return group->procs < 0 || write(group->procs, "0", 1) == 1 ? 0 : -1;
}

void server_group_remove(struct server_group *group)
{
    const struct timespec pause = {.tv_nsec = REMOVE_PAUSE_MS * 1000000L};
    if (group->mount < 0)
        return;
    for (int i = 0; i < REMOVE_TRIES; i++) {
        if (unlinkat(group->mount, group->name, AT_REMOVEDIR) == 0 || errno != EBUSY)
            break;
        nanosleep(&pause, NULL); /* what cellad has started may take a moment to end */
    }
    close(steal_fd(&group->mount));
    close(steal_fd(&group->procs));
}
