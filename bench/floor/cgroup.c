/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The same limits that the product sets: pid 1 is inside the memory limit from its birth and
 * outside those on cpu and pids, which each command joins.
 *
 * Nobody ever writes to a cgroup.procs file. That takes the lock against which every fork on the
 * machine is a reader, and when it was not taken lately it waits for an RCU grace period: 10 ms and
 * more. A single thread that moves itself (v1: "0" to `tasks`) and a child that is born where it
 * belongs (v2: CLONE_INTO_CGROUP) need no such lock.
 */
#include "floor/cgroup.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"

struct limit {
    const char *file;
    const char *value;
};

enum { LIMITS_MAX = 3 };

struct hierarchy {
    const char *root;
    const char *join; /* the file whose "0" moves the writer */
    bool at_birth;
    struct limit limits[LIMITS_MAX];
};

static const struct hierarchy v1[] = {
    {"/sys/fs/cgroup/memory", "tasks", true, {{"memory.limit_in_bytes", "536870912"}}},
    {"/sys/fs/cgroup/cpu", "tasks", false, {{"cpu.cfs_quota_us", "100000"}}},
    {"/sys/fs/cgroup/pids", "tasks", false, {{"pids.max", "512"}}},
    {"/sys/fs/cgroup/unified", NULL, true, {{NULL, NULL}}},
};

static const struct hierarchy v2[] = {
    {"/sys/fs/cgroup",
     NULL,
     true,
     {{"memory.max", "536870912"}, {"cpu.max", "100000 100000"}, {"pids.max", "512"}}},
};

static bool is_v2(void)
{
    return access("/sys/fs/cgroup/cgroup.controllers", F_OK) == 0;
}

static const struct hierarchy *hierarchies(void)
{
    return is_v2() ? v2 : v1;
}

static int write_at(int dir, const char *file, const char *value, struct error *err)
{
    _cleanup_fd_ int fd = openat(dir, file, O_WRONLY | O_CLOEXEC);
    if (fd < 0 || write(fd, value, strlen(value)) < 0)
        return error_sys(err, "write %s to %s", value, file);
    return 0;
}

bool cgroup_joined_at_birth(const struct cgroup_tree *tree, int i)
{
    return hierarchies()[i].at_birth;
}

int cgroup_tree_open(struct cgroup_tree *tree, struct error *err)
{
    static const char controllers[] = "+memory +cpu +pids";
    const struct hierarchy *rows = hierarchies();
    int count = is_v2() ? (int)ARRAY_LEN(v2) : (int)ARRAY_LEN(v1);
    snprintf(tree->name, sizeof(tree->name), "cella-bench-floor-%d", (int)getpid());
    for (int i = 0; i < count; i++) {
        _cleanup_fd_ int root = open(rows[i].root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (root < 0 || mkdirat(root, tree->name, 0755) < 0)
            return error_sys(err, "make a cgroup in %s", rows[i].root);
        if (is_v2() && write_at(root, "cgroup.subtree_control", controllers, err) < 0)
            return -1;
        tree->parent_fd[i] = openat(root, tree->name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        tree->count = i + 1;
        if (tree->parent_fd[i] < 0)
            return error_sys(err, "open cgroup %s/%s", rows[i].root, tree->name);
        if (is_v2() && write_at(tree->parent_fd[i], "cgroup.subtree_control", controllers, err) < 0)
            return -1;
    }
    return 0;
}

void cgroup_tree_release(struct cgroup_tree *tree)
{
    for (int i = 0; i < tree->count; i++) {
        close(tree->parent_fd[i]);
        char path[160];
        snprintf(path, sizeof(path), "%s/%s", hierarchies()[i].root, tree->name);
        if (rmdir(path) < 0)
            fprintf(stderr, "floor: rmdir %s: %s\n", path, strerror(errno));
    }
    tree->count = 0;
}

/* The sandbox's root makes children and moves commands there: it needs the directory, and the
 * procs file of what is the common ancestor of both ends. */
static int delegate(int dir, uid_t owner, struct error *err)
{
    if (fchown(dir, owner, owner) < 0 || fchownat(dir, "cgroup.procs", owner, owner, 0) < 0)
        return error_sys(err, "give the cgroup to %d", (int)owner);
    return 0;
}

static int place_in(const struct hierarchy *row, int parent, struct cgroup_place *place,
                    uid_t owner, bool last, struct error *err)
{
    if (mkdirat(parent, place->name, 0755) < 0)
        return error_sys(err, "make cgroup %s in %s", place->name, row->root);
    place->join_fd[place->count++] = -1;
    _cleanup_fd_ int dir = openat(parent, place->name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0)
        return error_sys(err, "open cgroup %s in %s", place->name, row->root);
    for (int i = 0; i < LIMITS_MAX && row->limits[i].file != NULL; i++)
        if (write_at(dir, row->limits[i].file, row->limits[i].value, err) < 0)
            return -1;
    if (!last) {
        int join = openat(dir, row->join, O_WRONLY | O_CLOEXEC);
        if (join < 0)
            return error_sys(err, "open %s in %s", row->join, row->root);
        place->join_fd[place->count - 1] = join;
        return 0;
    }
    place->unified_fd = steal_fd(&dir);
    return delegate(place->unified_fd, owner, err);
}

int cgroup_place_make(const struct cgroup_tree *tree, const char *name, uid_t owner,
                      struct cgroup_place *ret_place, struct error *err)
{
    struct cgroup_place place = {.unified_fd = -1};
    snprintf(place.name, sizeof(place.name), "%s", name);
    for (int i = 0; i < tree->count; i++) {
        bool last = i == tree->count - 1;
        if (place_in(&hierarchies()[i], tree->parent_fd[i], &place, owner, last, err) < 0) {
            cgroup_place_remove(tree, &place);
            return -1;
        }
    }
    *ret_place = place;
    return 0;
}

int cgroup_place_kill(const struct cgroup_place *place, struct error *err)
{
    return write_at(place->unified_fd, "cgroup.kill", "1", err);
}

/* Children that commands left behind. */
static void remove_children(int dir_fd)
{
    int copy = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    _cleanup_dir_ DIR *dir = copy < 0 ? NULL : fdopendir(copy);
    if (dir == NULL)
        return;
    for (struct dirent *entry; (entry = readdir(dir)) != NULL;)
        if (entry->d_type == DT_DIR && entry->d_name[0] != '.')
            unlinkat(dir_fd, entry->d_name, AT_REMOVEDIR);
}

void cgroup_place_remove(const struct cgroup_tree *tree, struct cgroup_place *place)
{
    for (int i = 0; i < place->count; i++) {
        if (place->join_fd[i] >= 0)
            close(place->join_fd[i]);
        if (unlinkat(tree->parent_fd[i], place->name, AT_REMOVEDIR) == 0)
            continue;
        if (i == place->count - 1 && place->unified_fd >= 0) {
            remove_children(place->unified_fd);
            if (unlinkat(tree->parent_fd[i], place->name, AT_REMOVEDIR) == 0)
                continue;
        }
        fprintf(stderr, "floor: rmdir of cgroup %s: %s\n", place->name, strerror(errno));
    }
    if (place->unified_fd >= 0)
        close(place->unified_fd);
    *place = (struct cgroup_place){.unified_fd = -1};
}
