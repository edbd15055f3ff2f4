/* SPDX-License-Identifier: Apache-2.0 */

/* What the kernel has to offer: namespaces, file systems, seccomp, cgroups. */

#include "cli/doctor.h"

#include <errno.h>
#include <mntent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "confine/landlock.h"

/* Overlays over idmapped layers came with 5.19; 6.1 is the oldest that was tried. */
enum { KERNEL_MAJOR = 6, KERNEL_MINOR = 1 };

static void check_version(const char *data, struct finding *f)
{
    struct utsname name;
    uname(&name);
    char *rest;
    long major = strtol(name.release, &rest, 10);
    long minor = *rest == '.' ? strtol(rest + 1, NULL, 10) : 0;
    finding_set(f, FINDING_OK, "Linux %s", name.release);
    if (major > KERNEL_MAJOR || (major == KERNEL_MAJOR && minor >= KERNEL_MINOR))
        return;
    finding_set(f, FINDING_MISSING, "Linux %s is too old", name.release);
    finding_fix(f, "a kernel from %d.%d on: Debian 12 and Ubuntu 24.04 have one", KERNEL_MAJOR,
                KERNEL_MINOR);
}

static void check_namespaces(const char *data, struct finding *f)
{
    static const char *const kinds[] = {"user", "mnt", "pid", "uts", "ipc", "net", "cgroup"};
    char missing[FINDING_TEXT_MAX] = "";
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
        char path[64];
        snprintf(path, sizeof(path), "/proc/self/ns/%s", kinds[i]);
        size_t used = strlen(missing);
        if (access(path, F_OK) < 0)
            snprintf(missing + used, sizeof(missing) - used, " %s", kinds[i]);
    }
    if (missing[0] != '\0') {
        finding_set(f, FINDING_MISSING, "the kernel has none of these:%s", missing);
        finding_fix(f, "a kernel with CONFIG_NAMESPACES and all kinds of them");
        return;
    }
    long long most = doctor_number("/proc/sys/user/max_user_namespaces");
    if (most == 0) {
        finding_set(f, FINDING_MISSING, "user namespaces are switched off");
        finding_fix(f, "sysctl -w user.max_user_namespaces=100000");
        return;
    }
    finding_set(f, FINDING_OK, "user, mount, pid, uts, ipc, net, cgroup");
}

/* Whether a file system is there, or is a module that a mount would load. */
enum fs_state { FS_MISSING, FS_LOADABLE, FS_THERE };

static bool module_exists(const char *module)
{
    struct utsname name;
    char path[256], wanted[64], line[4096];
    uname(&name);
    snprintf(path, sizeof(path), "/lib/modules/%s/modules.dep", name.release);
    snprintf(wanted, sizeof(wanted), "/%s.ko", module);
    FILE *file = fopen(path, "re");
    bool found = false;
    while (file != NULL && !found && fgets(line, sizeof(line), file) != NULL) {
        line[strcspn(line, ":")] = '\0';
        found = strstr(line, wanted) != NULL;
    }
    if (file != NULL)
        fclose(file);
    return found;
}

static enum fs_state file_system(const char *name)
{
    char text[16 * 1024], line[64];
    snprintf(line, sizeof(line), "\t%s\n", name);
    if (doctor_read("/proc/filesystems", text, sizeof(text)) && strstr(text, line) != NULL)
        return FS_THERE;
    return module_exists(name) ? FS_LOADABLE : FS_MISSING;
}

static void check_overlay(const char *data, struct finding *f)
{
    static const char *const texts[] = {[FS_MISSING] = "the kernel has no overlay file system",
                                        [FS_LOADABLE] = "a module that is loaded when needed",
                                        [FS_THERE] = "there"};
    enum fs_state state = file_system("overlay");
    finding_set(f, state == FS_MISSING ? FINDING_MISSING : FINDING_OK, "%s", texts[state]);
    if (state == FS_MISSING)
        finding_fix(f, "a kernel with CONFIG_OVERLAY_FS, or the package with its modules");
}

static void check_btrfs(const char *data, struct finding *f)
{
    static const char *const texts[] = {
        [FS_MISSING] = "the kernel has none: no disk quotas, and clones that copy",
        [FS_LOADABLE] = "a module that is loaded when needed",
        [FS_THERE] = "there"};
    enum fs_state state = file_system("btrfs");
    finding_set(f, state == FS_MISSING ? FINDING_WARNING : FINDING_OK, "%s", texts[state]);
    if (state == FS_MISSING)
        finding_fix(f, "a kernel with CONFIG_BTRFS_FS, or `cella server --storage plain`");
}

static void check_loop(const char *data, struct finding *f)
{
    if (access("/dev/loop-control", F_OK) == 0 || module_exists("loop")) {
        finding_set(f, FINDING_OK, "there");
        return;
    }
    finding_set(f, FINDING_WARNING, "no /dev/loop-control: no volume can be made in a file");
    finding_fix(f, "modprobe loop; or a data folder on btrfs; or `cella server --storage plain`");
}

static void check_idmap(const char *data, struct finding *f)
{
    /* Without arguments it can only fail; how it does tells whether the kernel knows the call. */
    long result = syscall(SYS_mount_setattr, -1, "", 0, NULL, 0);
    if (result == 0 || errno != ENOSYS) {
        finding_set(f, FINDING_OK, "the kernel knows mount_setattr");
        return;
    }
    finding_set(f, FINDING_MISSING, "the kernel does not know mount_setattr");
    finding_fix(f, "a kernel from %d.%d on", KERNEL_MAJOR, KERNEL_MINOR);
}

static void check_seccomp(const char *data, struct finding *f)
{
    if (access("/proc/sys/kernel/seccomp/actions_avail", F_OK) == 0) {
        finding_set(f, FINDING_OK, "filters");
        return;
    }
    finding_set(f, FINDING_MISSING, "the kernel has no seccomp filters");
    finding_fix(f, "a kernel with CONFIG_SECCOMP_FILTER");
}

/* Of the server's own processes: filters and views of the file system are there anyway. */
static void check_confinement(const char *data, struct finding *f)
{
    int abi = landlock_abi();
    if (abi >= LANDLOCK_ABI_MIN) {
        finding_set(f, FINDING_OK,
                    "cellad, egress and git: system call filters and Landlock, version %d", abi);
        return;
    }
    finding_set(f, FINDING_WARNING,
                "cellad, egress and git: system call filters, but the kernel has no Landlock");
    finding_fix(f, "a kernel with CONFIG_SECURITY_LANDLOCK, and landlock in its list lsm=");
}

/* --- cgroups --- */

enum controller { MEMORY, CPU, PIDS, CONTROLLERS };
static const char *const controller_names[] = {"memory", "cpu", "pids"};

struct cgroup_view {
    char unified[256]; /* mount point of the cgroup2 tree */
    bool v1[CONTROLLERS], v2[CONTROLLERS];
};

static void look_at_mount(struct cgroup_view *view, const struct mntent *mount)
{
    if (strcmp(mount->mnt_type, "cgroup2") == 0 && view->unified[0] == '\0')
        snprintf(view->unified, sizeof(view->unified), "%s", mount->mnt_dir);
    for (size_t i = 0; strcmp(mount->mnt_type, "cgroup") == 0 && i < CONTROLLERS; i++)
        if (hasmntopt(mount, controller_names[i]) != NULL)
            view->v1[i] = true;
}

static void look_at_cgroups(struct cgroup_view *view)
{
    char line[8192], path[300], controllers[512];
    struct mntent mount;
    FILE *mounts = setmntent("/proc/self/mounts", "re");
    while (mounts != NULL && getmntent_r(mounts, &mount, line, sizeof(line)) != NULL)
        look_at_mount(view, &mount);
    if (mounts != NULL)
        endmntent(mounts);
    snprintf(path, sizeof(path), "%s/cgroup.controllers", view->unified);
    if (view->unified[0] == '\0' || !doctor_read(path, controllers, sizeof(controllers)))
        return;
    for (size_t i = 0; i < CONTROLLERS; i++) {
        char padded[sizeof(controllers) + 2], wanted[16];
        controllers[strcspn(controllers, "\n")] = '\0';
        snprintf(padded, sizeof(padded), " %s ", controllers);
        snprintf(wanted, sizeof(wanted), " %s ", controller_names[i]);
        view->v2[i] = strstr(padded, wanted) != NULL;
    }
}

static bool all_of(const bool controllers[CONTROLLERS])
{
    return controllers[MEMORY] && controllers[CPU] && controllers[PIDS];
}

static void check_cgroups(const char *data, struct finding *f)
{
    struct cgroup_view view = {0};
    look_at_cgroups(&view);
    bool unified = view.unified[0] != '\0';
    if (all_of(view.v2)) {
        finding_set(f, FINDING_OK, "v2 with memory, cpu, pids at %s", view.unified);
        return;
    }
    if (all_of(view.v1)) {
        finding_set(f, FINDING_OK, "v1 with memory, cpu, pids; a v2 tree %s%s",
                    unified ? "at " : "that the server mounts for itself", view.unified);
        return;
    }
    char missing[64] = "";
    for (size_t i = 0; i < CONTROLLERS; i++) {
        size_t used = strlen(missing);
        if (!view.v1[i] && !view.v2[i])
            snprintf(missing + used, sizeof(missing) - used, " %s", controller_names[i]);
    }
    finding_set(f, FINDING_MISSING, "controllers are missing:%s",
                missing[0] == '\0' ? " some are v1's, some v2's" : missing);
    finding_fix(f, "mount -t cgroup2 none /sys/fs/cgroup; for memory boot with "
                   "cgroup_enable=memory");
}

const struct check_row doctor_kernel_checks[] = {
    {"kernel", check_version},
    {"namespaces", check_namespaces},
    {"overlay file system", check_overlay},
    {"idmapped mounts", check_idmap},
    {"seccomp", check_seccomp},
    {"confinement", check_confinement},
    {"cgroups", check_cgroups},
    {"btrfs", check_btrfs},
    {"loop devices", check_loop},
    {NULL, NULL},
};
