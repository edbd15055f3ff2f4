/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The opposite of trusting the code above: looks at the kernel and the disk with other eyes, and
 * compares with what should be there. Every kind of thing that a start makes has a check here.
 */

#include "warden/leaks.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/layout.h"
#include "base/limits.h"
#include "base/runtime.h"
#include "warden/cgroup.h"
#include "warden/files.h"
#include "warden/ids.h"
#include "warden/loopdev.h"
#include "warden/mountinfo.h"
#include "warden/net_leaks.h"
#include "warden/plan.h"
#include "warden/record.h"
#include "warden/storage.h"

enum known { UNKNOWN, STOPPED, RUNNING };

enum { RUNTIME_MOUNTS = 2 };

struct known_sandbox {
    struct known_sandbox *next;
    char id[PLAN_ID_MAX + 1];
    enum known state;
};

struct leaks {
    const char *data;
    FILE *out;
    int count;
    bool mounted; /* the volume is */
    int runtime_mounts;
    bool router; /* is mounted */
    struct known_sandbox *known;
    const char *folder;
};

static void leak(struct leaks *leaks, const char *kind, const char *what)
{
    fprintf(leaks->out, "%s %s\n", kind, what);
    leaks->count++;
}

static enum known look_up(const struct leaks *leaks, const char *id)
{
    for (const struct known_sandbox *k = leaks->known; k != NULL; k = k->next)
        if (strcmp(k->id, id) == 0)
            return k->state;
    return UNKNOWN;
}

static int read_known(struct leaks *leaks, FILE *in, struct error *err)
{
    char line[128];
    while (fgets(line, sizeof(line), in) != NULL) {
        char id[PLAN_ID_MAX + 1], state[16];
        if (line[0] == '\n')
            continue;
        if (sscanf(line, "%32s %15s", id, state) != 2 ||
            (strcmp(state, "running") != 0 && strcmp(state, "stopped") != 0))
            return error_set(err, ERROR_INVALID_ARGUMENT, "not \"ID running\" or \"ID stopped\"");
        struct known_sandbox *known = calloc(1, sizeof(*known));
        if (known == NULL)
            return error_set(err, ERROR_LIMIT_EXCEEDED, "out of memory");
        memcpy(known->id, id, sizeof(id));
        known->state = strcmp(state, "running") == 0 ? RUNNING : STOPPED;
        known->next = leaks->known;
        leaks->known = known;
    }
    return 0;
}

/* ---- mounts and loop devices ---- */

static int check_mount(const struct mount_line *mount, void *arg)
{
    struct leaks *leaks = arg;
    size_t len = strlen(leaks->data);
    if (strncmp(mount->target, leaks->data, len) != 0 || mount->target[len] != '/')
        return 0;
    const char *relative = mount->target + len + 1;
    if (strcmp(relative, LAYOUT_VOLUME) == 0 && !leaks->mounted)
        leaks->mounted = true; /* once is right */
    else if (strcmp(relative, LAYOUT_ROUTER) == 0 && !leaks->router)
        leaks->router = true;
    else if (!runtime_is_mount(relative) || ++leaks->runtime_mounts > RUNTIME_MOUNTS)
        leak(leaks, "mount", mount->target);
    return 0;
}

struct loop_check {
    struct leaks *leaks;
    int count;
};

static int check_loop(const char *path, int fd, void *arg)
{
    struct loop_check *check = arg;
    if (++check->count > 1 || !check->leaks->mounted)
        leak(check->leaks, "loop-device", path);
    return 0;
}

static int check_mounts(struct leaks *leaks, struct error *err)
{
    char file[PATH_MAX];
    struct loop_check check = {.leaks = leaks};
    if (mountinfo_each(check_mount, leaks, err) < 0)
        return -1;
    snprintf(file, sizeof(file), "%s/" LAYOUT_VOLUME_IMG, leaks->data);
    return loopdev_each(file, check_loop, &check, err);
}

/* ---- cgroups and the processes in them ---- */

static void print_process(pid_t pid, void *arg)
{
    struct leaks *leaks = arg;
    char path[32], name[64] = "", text[128];
    snprintf(path, sizeof(path), "/proc/%d/comm", pid);
    if (file_read_at(AT_FDCWD, path, name, sizeof(name), NULL) < 0)
        return;
    name[strcspn(name, "\n")] = '\0';
    snprintf(text, sizeof(text), "%d (%s), with its namespaces", pid, name);
    leak(leaks, "process", text);
}

static int check_group(const char *tree, int parent, const char *id, void *arg)
{
    struct leaks *leaks = arg;
    char text[256];
    if (look_up(leaks, id) == RUNNING || cgroup_is_helper(id))
        return 0;
    snprintf(text, sizeof(text), "%s:%s", tree, id);
    leak(leaks, "cgroup", text);
    cgroup_each_pid(parent, id, print_process, leaks);
    return 0;
}

/* 0: no server has run here yet. */
static int read_instance(const struct leaks *leaks, char instance[INSTANCE_ID_LEN + 1],
                         struct error *err)
{
    char path[PATH_MAX];
    struct error missing;
    snprintf(path, sizeof(path), "%s/" LAYOUT_INSTANCE, leaks->data);
    if (file_read_at(AT_FDCWD, path, instance, INSTANCE_ID_LEN + 1, &missing) == 0)
        return 1;
    if (missing.sys == ENOENT)
        return 0;
    *err = missing;
    return -1;
}

static int check_cgroups(struct leaks *leaks, struct error *err)
{
    char instance[INSTANCE_ID_LEN + 1];
    struct cgroups cgroups;
    int known = read_instance(leaks, instance, err);
    if (known <= 0)
        return known;
    if (cgroups_open(&cgroups, instance, false, err) < 0)
        return -1;
    int r = cgroups_each(&cgroups, check_group, leaks, err);
    cgroups_close(&cgroups);
    return r;
}

/* ---- networks ---- */

/* By its record: the database does not know who has which interface. */
static bool has_interface(void *arg, int index)
{
    const struct leaks *leaks = arg;
    char path[PATH_MAX];
    snprintf(path, sizeof(path), "%s/" LAYOUT_RECORDS, leaks->data);
    _cleanup_fd_ int dirfd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (const struct known_sandbox *k = leaks->known; k != NULL && dirfd >= 0; k = k->next) {
        struct record record;
        struct error err;
        if (k->state == RUNNING && record_load(dirfd, k->id, &record, &err) == 0 &&
            record.net_index == index)
            return true;
    }
    return false;
}

static void network_leak(void *arg, const char *kind, const char *what)
{
    leak(arg, kind, what);
}

static int check_network(struct leaks *leaks, struct error *err)
{
    char instance[INSTANCE_ID_LEN + 1];
    int known = read_instance(leaks, instance, err);
    if (known <= 0)
        return known;
    const struct net_leaks network = {.data = leaks->data,
                                      .instance = instance,
                                      .is_running = has_interface,
                                      .leak = network_leak,
                                      .arg = leaks};
    return net_leaks_find(&network, err);
}

/* ---- processes with ids of ours that nobody holds ---- */

/* One that has ended and waits for its parent holds nothing any more. */
static bool is_zombie(int dirfd, const char *pid)
{
    char path[64], text[512];
    snprintf(path, sizeof(path), "%s/stat", pid);
    if (file_read_at(dirfd, path, text, sizeof(text), NULL) < 0)
        return true;
    const char *after_name = strrchr(text, ')');
    return after_name != NULL && strncmp(after_name, ") Z", 3) == 0;
}

static int check_process(int dirfd, const char *name, void *arg)
{
    struct leaks *leaks = arg;
    char path[64], text[128];
    unsigned inside, base, length;
    if (!isdigit((unsigned char)name[0]) || strlen(name) > 10)
        return 0;
    snprintf(path, sizeof(path), "%s/uid_map", name);
    if (file_read_at(dirfd, path, text, sizeof(text), NULL) < 0 ||
        sscanf(text, "%u %u %u", &inside, &base, &length) != 3)
        return 0;
    if (inside != 0 || length != ID_RANGE || base < ID_BASE ||
        base >= ID_BASE + (unsigned)ID_SLOTS * ID_RANGE)
        return 0;
    snprintf(path, sizeof(path), IDS_DIR "/%u", (base - ID_BASE) / ID_RANGE);
    if (readlink(path, text, sizeof(text)) >= 0 || is_zombie(dirfd, name))
        return 0;
    snprintf(text, sizeof(text), "%s, with an id range (%s) that nobody holds", name, path);
    leak(leaks, "process", text);
    return 0;
}

/* ---- names ---- */

static int check_slot(int slot, const char *id, void *arg)
{
    struct leaks *leaks = arg;
    char text[64];
    if (look_up(leaks, id) == RUNNING)
        return 0;
    snprintf(text, sizeof(text), "%d:%s", slot, id);
    leak(leaks, "id-range", text);
    return 0;
}

static int check_name(struct leaks *leaks, const char *name, enum known least)
{
    char text[NAME_MAX + 64];
    if (look_up(leaks, name) >= least)
        return 0;
    snprintf(text, sizeof(text), "%s/%s", leaks->folder, name);
    leak(leaks, "file", text);
    return 0;
}

static int check_running_name(int dirfd, const char *name, void *arg)
{
    return check_name(arg, name, RUNNING);
}

static int check_known_name(int dirfd, const char *name, void *arg)
{
    if (strcmp(name, STORAGE_CLONES) == 0) /* a folder of its own: the next row's */
        return 0;
    return check_name(arg, name, STOPPED);
}

static int check_folders(struct leaks *leaks, struct error *err)
{
    static const struct {
        const char *folder;
        dir_entry_fn check;
    } rows[] = {
        {LAYOUT_AGENTS, check_running_name},
        {LAYOUT_RECORDS, check_running_name},
        {LAYOUT_VOLUME, check_known_name},
        {LAYOUT_VOLUME "/" STORAGE_CLONES, check_known_name},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char path[PATH_MAX];
        leaks->folder = rows[i].folder;
        snprintf(path, sizeof(path), "%s/%s", leaks->data, rows[i].folder);
        if (dir_each(AT_FDCWD, path, rows[i].check, leaks, err) < 0)
            return -1;
    }
    return 0;
}

int leaks_print(const char *data, FILE *in, FILE *out, int *ret_count, struct error *err)
{
    char real[PATH_MAX];
    if (realpath(data, real) == NULL)
        return error_sys(err, "opening the data folder %s", data);
    struct leaks leaks = {.data = real, .out = out};
    struct ids ids;
    ids_init(&ids, real, "");
    int r = read_known(&leaks, in, err);
    if (r == 0)
        r = check_mounts(&leaks, err);
    if (r == 0)
        r = check_cgroups(&leaks, err);
    if (r == 0)
        r = dir_each(AT_FDCWD, "/proc", check_process, &leaks, err);
    if (r == 0)
        r = ids_each(&ids, check_slot, &leaks, err);
    if (r == 0)
        r = check_folders(&leaks, err);
    if (r == 0)
        r = check_network(&leaks, err);
    while (leaks.known != NULL) {
        struct known_sandbox *next = leaks.known->next;
        free(leaks.known);
        leaks.known = next;
    }
    if (r < 0)
        return -1;
    *ret_count = leaks.count;
    return 0;
}
