/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What is the same on v1 and v2: the cgroup2 tree with a sandbox's two groups, killing,
 * counting and removing. The backends only set limits.
 */

#include "warden/cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "warden/files.h"
#include "warden/mountinfo.h"

enum { GROUP_PATH_MAX = 64, PROCS_TEXT_MAX = 64 * 1024, STAT_TEXT_MAX = 4096 };

static const char *const tree_names[CGROUP_TREES] = {
    [CGROUP_UNIFIED] = "cgroup2", [CGROUP_MEMORY] = "memory", [CGROUP_CPU] = "cpu",
    [CGROUP_PIDS] = "pids",       [CGROUP_BLKIO] = "blkio",
};

/* ---- values ---- */

enum { PERIOD_US = 10 * 1000, QUOTA_MIN_US = 1000 };

struct cpu_quota cgroup_cpu_quota(uint64_t cpu_millis)
{
    struct cpu_quota cpu = {.quota_us = cpu_millis * (PERIOD_US / 1000), .period_us = PERIOD_US};
    if (cpu.quota_us < QUOTA_MIN_US) {
        cpu.quota_us = QUOTA_MIN_US;
        cpu.period_us = QUOTA_MIN_US * UINT64_C(1000) / (cpu_millis == 0 ? 1 : cpu_millis);
    }
    return cpu;
}

void cgroup_format_cpu_max(uint64_t cpu_millis, char *out, size_t size)
{
    struct cpu_quota cpu = cgroup_cpu_quota(cpu_millis);
    snprintf(out, size, "%" PRIu64 " %" PRIu64, cpu.quota_us, cpu.period_us);
}

uint64_t cgroup_flat_value(const char *text, const char *key)
{
    size_t len = strlen(key);
    for (const char *line = text; line != NULL && *line != '\0';) {
        if (strncmp(line, key, len) == 0 && line[len] == ' ')
            return strtoull(line + len + 1, NULL, 10);
        line = strchr(line, '\n');
        if (line != NULL)
            line++;
    }
    return 0;
}

int cgroup_write_number(int dirfd, const char *path, uint64_t value, struct error *err)
{
    char text[24];
    snprintf(text, sizeof(text), "%" PRIu64, value);
    return file_write_at(dirfd, path, text, err);
}

int cgroup_open_tasks(int dirfd, const char *path, int *ret_fd, struct error *err)
{
    int fd = openat(dirfd, path, O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return error_sys(err, "opening %s", path);
    *ret_fd = fd;
    return 0;
}

/* ---- trees ---- */

static int note_mount(const struct mount_line *mount, void *arg)
{
    struct cgroups *cgroups = arg;
    bool v1 = strcmp(mount->fstype, "cgroup") == 0;
    bool v2 = strcmp(mount->fstype, "cgroup2") == 0;
    for (int tree = 0; (v1 || v2) && tree < CGROUP_TREES; tree++) {
        bool holds =
            tree == CGROUP_UNIFIED ? v2 : v1 && option_listed(mount->options, tree_names[tree]);
        if (!holds || cgroups->mounts[tree] >= 0)
            continue;
        cgroups->mounts[tree] = open(mount->target, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    }
    return 0;
}

/* A machine with v1 alone still has a cgroup2 tree in the kernel; nobody has mounted it. */
static int mount_unified(struct cgroups *cgroups, struct error *err)
{
    _cleanup_fd_ int context = fsopen("cgroup2", FSOPEN_CLOEXEC);
    if (context < 0 || fsconfig(context, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
        return error_sys(err, "making a cgroup2 mount");
    _cleanup_fd_ int mount = fsmount(context, FSMOUNT_CLOEXEC, 0);
    if (mount < 0)
        return error_sys(err, "making a cgroup2 mount");
    /* It has to be attached for parts of it to be cloned; /sys/fs/cgroup exists for this. */
    if (move_mount(mount, "", AT_FDCWD, "/sys/fs/cgroup", MOVE_MOUNT_F_EMPTY_PATH) < 0)
        return error_sys(err, "mounting cgroup2");
    return dir_open_at(AT_FDCWD, "/sys/fs/cgroup", &cgroups->mounts[CGROUP_UNIFIED], err);
}

static bool has_all_controllers(int unified)
{
    char text[256];
    if (unified < 0 || file_read_at(unified, "cgroup.controllers", text, sizeof(text), NULL) < 0)
        return false;
    bool memory = false, cpu = false, pids = false;
    char *save = NULL;
    for (char *word = strtok_r(text, " \n", &save); word; word = strtok_r(NULL, " \n", &save)) {
        memory |= strcmp(word, "memory") == 0;
        cpu |= strcmp(word, "cpu") == 0;
        pids |= strcmp(word, "pids") == 0;
    }
    return memory && cpu && pids;
}

static int choose_backend(struct cgroups *cgroups, bool make, struct error *err)
{
    if (has_all_controllers(cgroups->mounts[CGROUP_UNIFIED])) {
        cgroups->backend = &cgroup_v2;
        return 0;
    }
    for (int tree = CGROUP_MEMORY; tree <= CGROUP_PIDS; tree++)
        if (cgroups->mounts[tree] < 0)
            return error_set(err, ERROR_UNAVAILABLE,
                             "no cgroup tree with the %s controller is mounted (neither v1 nor v2)",
                             tree_names[tree]);
    cgroups->backend = &cgroup_v1;
    if (cgroups->mounts[CGROUP_UNIFIED] < 0 && make)
        return mount_unified(cgroups, err);
    return 0;
}

int cgroups_open(struct cgroups *cgroups, const char *instance, bool make, struct error *err)
{
    struct cgroups found = {0};
    snprintf(found.parent, sizeof(found.parent), "cella-%s", instance);
    for (int tree = 0; tree < CGROUP_TREES; tree++)
        found.mounts[tree] = found.parents[tree] = found.parent_tasks[tree] = -1;
    *cgroups = found;
    if (mountinfo_each(note_mount, cgroups, err) < 0 || choose_backend(cgroups, make, err) < 0)
        return -1;
    for (const enum cgroup_tree *tree = cgroups->backend->trees; *tree != CGROUP_TREES; tree++) {
        int mount = cgroups->mounts[*tree];
        if (mount < 0)
            continue;
        if (make && dir_make_at(mount, found.parent, 0755, err) < 0)
            return error_prefix(err, "%s cgroup", tree_names[*tree]);
        if (dir_open_at(mount, found.parent, &cgroups->parents[*tree], err) < 0 && make)
            return -1;
    }
    return make ? cgroups->backend->prepare(cgroups, err) : 0;
}

void cgroups_close(struct cgroups *cgroups)
{
    for (int tree = 0; tree < CGROUP_TREES; tree++) {
        cleanup_fd(&cgroups->mounts[tree]);
        cleanup_fd(&cgroups->parents[tree]);
        cleanup_fd(&cgroups->parent_tasks[tree]);
        cgroups->mounts[tree] = cgroups->parents[tree] = cgroups->parent_tasks[tree] = -1;
    }
}

void cgroups_remove_parents(const struct cgroups *cgroups)
{
    for (const enum cgroup_tree *tree = cgroups->backend->trees; *tree != CGROUP_TREES; tree++)
        if (cgroups->mounts[*tree] >= 0)
            unlinkat(cgroups->mounts[*tree], cgroups->parent, AT_REMOVEDIR);
}

/* ---- a sandbox's groups ---- */

static void group_path(char out[GROUP_PATH_MAX], const char *id, const char *rest)
{
    snprintf(out, GROUP_PATH_MAX, "%s/%s", id, rest);
}

/* What the sandbox's root may do: make groups in the work group, and have processes born from its
 * own group into those (for which both cgroup.procs have to be its own). Nothing that sets a limit.
 */
static int delegate(const struct cgroups *cgroups, const char *id,
                    const struct cgroup_limits *limits, struct error *err)
{
    static const char *const handed_over[] = {"cgroup.procs", "work", "work/cgroup.procs"};
    int unified = cgroups->parents[CGROUP_UNIFIED];
    char path[GROUP_PATH_MAX];
    group_path(path, id, "work/cgroup.max.descendants");
    if (cgroup_write_number(unified, path, limits->pids_max, err) < 0)
        return -1;
    for (size_t i = 0; i < ARRAY_LEN(handed_over); i++) {
        group_path(path, id, handed_over[i]);
        if (fchownat(unified, path, limits->owner, limits->owner, AT_SYMLINK_NOFOLLOW) < 0)
            return error_sys(err, "handing over the cgroup %s", path);
    }
    return 0;
}

static int open_groups(const struct cgroups *cgroups, const char *id, struct cgroup_set *set,
                       struct error *err)
{
    int unified = cgroups->parents[CGROUP_UNIFIED];
    char path[GROUP_PATH_MAX];
    if (dir_open_at(unified, id, &set->group, err) < 0)
        return -1;
    group_path(path, id, "work");
    set->work = open_tree(unified, path, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_SYMLINK_NOFOLLOW);
    if (set->work < 0)
        return error_sys(err, "cloning the work cgroup's mount");
    return 0;
}

int cgroup_make(const struct cgroups *cgroups, const char *id, const struct cgroup_limits *limits,
                struct cgroup_set *ret_set, struct error *err)
{
    int unified = cgroups->parents[CGROUP_UNIFIED];
    char work[GROUP_PATH_MAX];
    struct cgroup_set set = CGROUP_SET_INIT;
    group_path(work, id, "work");
    if (mkdirat(unified, id, 0755) < 0 || mkdirat(unified, work, 0755) < 0)
        return error_sys(err, "making the cgroup %s", id);
    if (open_groups(cgroups, id, &set, err) < 0 ||
        cgroups->backend->limit(cgroups, id, limits, &set, err) < 0 ||
        delegate(cgroups, id, limits, err) < 0) {
        cgroup_set_release(&set);
        return -1;
    }
    *ret_set = set;
    return 0;
}

void cgroup_set_release(struct cgroup_set *set)
{
    for (size_t i = 0; i < set->enter_count; i++)
        close(set->enter[i]);
    cleanup_fd(&set->group);
    cleanup_fd(&set->work);
    *set = (struct cgroup_set)CGROUP_SET_INIT;
}

/* ---- what goes on in them ---- */

void cgroup_kill(const struct cgroups *cgroups, const char *id)
{
    char path[GROUP_PATH_MAX];
    group_path(path, id, "cgroup.kill");
    file_write_at(cgroups->parents[CGROUP_UNIFIED], path, "1", NULL);
}

struct pid_walk {
    cgroup_pid_fn fn;
    void *arg;
};

static int visit_group(int dirfd, const char *name, void *arg)
{
    struct stat st;
    if (fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode)) {
        const struct pid_walk *walk = arg;
        cgroup_each_pid(dirfd, name, walk->fn, walk->arg);
    }
    return 0;
}

void cgroup_each_pid(int parent, const char *name, cgroup_pid_fn fn, void *arg)
{
    char path[NAME_MAX + sizeof("/cgroup.procs")];
    snprintf(path, sizeof(path), "%s/cgroup.procs", name);
    _cleanup_free_ char *text = malloc(PROCS_TEXT_MAX);
    if (text != NULL && file_read_at(parent, path, text, PROCS_TEXT_MAX, NULL) == 0) {
        char *save = NULL;
        for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
            fn((pid_t)strtol(line, NULL, 10), arg);
    }
    struct pid_walk walk = {.fn = fn, .arg = arg};
    dir_each(parent, name, visit_group, &walk, NULL);
}

static void send_signal(pid_t pid, void *arg)
{
    if (pid > 1)
        kill(pid, *(const int *)arg);
}

void cgroup_signal_work(const struct cgroups *cgroups, const char *id, int signal)
{
    char path[GROUP_PATH_MAX];
    group_path(path, id, "work");
    cgroup_each_pid(cgroups->parents[CGROUP_UNIFIED], path, send_signal, &signal);
}

bool cgroup_work_busy(const struct cgroups *cgroups, const char *id)
{
    char path[GROUP_PATH_MAX], text[128];
    group_path(path, id, "work/cgroup.events");
    if (file_read_at(cgroups->parents[CGROUP_UNIFIED], path, text, sizeof(text), NULL) < 0)
        return false;
    return cgroup_flat_value(text, "populated") != 0;
}

uint64_t cgroup_oom_kills(const struct cgroups *cgroups, const char *id)
{
    char path[GROUP_PATH_MAX], text[512];
    group_path(path, id, cgroups->backend->oom_file);
    int parent = cgroups->parents[cgroups->backend->memory_tree];
    if (file_read_at(parent, path, text, sizeof(text), NULL) < 0)
        return 0;
    return cgroup_flat_value(text, "oom_kill");
}

/* ---- what they use ---- */

static bool read_group(int parent, const char *id, const char *file, char *text, size_t size)
{
    char path[GROUP_PATH_MAX];
    group_path(path, id, file);
    return file_read_at(parent, path, text, size, NULL) == 0;
}

static uint64_t working_set(int parent, const char *id, const char *inactive_line, uint64_t charged)
{
    char text[STAT_TEXT_MAX];
    if (!read_group(parent, id, "memory.stat", text, sizeof(text)))
        return charged;
    uint64_t inactive = cgroup_flat_value(text, inactive_line);
    return inactive < charged ? charged - inactive : 0;
}

void cgroup_sample(const struct cgroups *cgroups, const char *id, struct warden_sample *sample)
{
    const struct cgroup_backend *backend = cgroups->backend;
    int memory = cgroups->parents[backend->memory_tree];
    struct timespec now;
    char text[512];
    clock_gettime(CLOCK_MONOTONIC, &now);
    if (read_group(cgroups->parents[CGROUP_UNIFIED], id, "cpu.stat", text, sizeof(text))) {
        sample->time_usec = (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
        sample->cpu_usec = cgroup_flat_value(text, "usage_usec");
        sample->known |= SAMPLE_CPU;
    }
    if (read_group(memory, id, backend->memory_file, text, sizeof(text))) {
        sample->memory_bytes =
            working_set(memory, id, backend->inactive_line, strtoull(text, NULL, 10));
        sample->known |= SAMPLE_MEMORY;
    }
    if (read_group(cgroups->parents[backend->pids_tree], id, "pids.current", text, sizeof(text))) {
        uint64_t tasks = strtoull(text, NULL, 10);
        sample->tasks = tasks > backend->pids_of_agent ? tasks - backend->pids_of_agent : 0;
    }
    sample->oom_kills = cgroup_oom_kills(cgroups, id);
}

/* ---- removal ---- */

struct group_removal {
    bool busy;
    struct error *err;
};

static int remove_group(int dirfd, const char *name, void *arg)
{
    struct group_removal *removal = arg;
    if (unlinkat(dirfd, name, AT_REMOVEDIR) == 0 || errno == ENOENT || errno == ENOTDIR)
        return 0;
    /* EBUSY says either: it has a process, or it has child groups. */
    int r = dir_each_dir(dirfd, name, remove_group, arg, removal->err);
    if (r != 0)
        return r;
    if (unlinkat(dirfd, name, AT_REMOVEDIR) == 0 || errno == ENOENT)
        return 0;
    if (errno != EBUSY)
        return error_sys(removal->err, "removing the cgroup %s", name);
    removal->busy = true;
    return 0;
}

int cgroup_remove(const struct cgroups *cgroups, const char *id, struct error *err)
{
    struct group_removal removal = {.err = err};
    for (const enum cgroup_tree *tree = cgroups->backend->trees; *tree != CGROUP_TREES; tree++)
        if (remove_group(cgroups->parents[*tree], id, &removal) < 0)
            return -1;
    return removal.busy ? 0 : 1;
}

struct group_walk {
    const char *tree;
    cgroup_fn fn;
    void *arg;
};

static int visit_sandbox(int dirfd, const char *name, void *arg)
{
    const struct group_walk *walk = arg;
    struct stat st;
    if (fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISDIR(st.st_mode))
        return 0;
    return walk->fn(walk->tree, dirfd, name, walk->arg);
}

int cgroups_each(const struct cgroups *cgroups, cgroup_fn fn, void *arg, struct error *err)
{
    for (const enum cgroup_tree *tree = cgroups->backend->trees; *tree != CGROUP_TREES; tree++) {
        if (cgroups->mounts[*tree] < 0)
            continue;
        struct group_walk walk = {.tree = tree_names[*tree], .fn = fn, .arg = arg};
        int r = dir_each(cgroups->mounts[*tree], cgroups->parent, visit_sandbox, &walk, err);
        if (r != 0)
            return r;
    }
    return 0;
}
