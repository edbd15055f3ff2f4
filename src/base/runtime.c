/* SPDX-License-Identifier: Apache-2.0 */

/* These mounts outlive a server that is killed: sandboxes go on using them. */

#include "base/runtime.h"

#include <errno.h>
#include <linux/limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/layout.h"

static const char *const folders[] = {LAYOUT_AGENTS, LAYOUT_RECORDS};

static void folder_path(char out[PATH_MAX], const char *data, const char *folder)
{
    snprintf(out, PATH_MAX, "%s/%s", data, folder);
}

static int mount_one(const char *data, const char *path, bool *made, struct error *err)
{
    struct stat above, here;
    if (mkdir(path, 0700) < 0 && errno != EEXIST)
        return error_sys(err, "making %s", path);
    if (stat(data, &above) < 0 || lstat(path, &here) < 0)
        return error_sys(err, "looking at %s", path);
    if (above.st_dev != here.st_dev)
        return 0;
    if (mount("tmpfs", path, "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC | MS_NOATIME,
              "mode=0700,size=128m") < 0)
        return error_sys(err, "mounting %s", path);
    *made = true;
    return 0;
}

int runtime_mount(const char *data, bool *ret_made, struct error *err)
{
    char path[PATH_MAX];
    bool made = false;
    for (size_t i = 0; i < ARRAY_LEN(folders); i++) {
        folder_path(path, data, folders[i]);
        if (mount_one(data, path, &made, err) < 0)
            return -1;
    }
    *ret_made = made;
    return 0;
}

void runtime_unmount(const char *data)
{
    char path[PATH_MAX];
    for (size_t i = 0; i < ARRAY_LEN(folders); i++) {
        folder_path(path, data, folders[i]);
        umount2(path, MNT_DETACH | UMOUNT_NOFOLLOW);
    }
}

bool runtime_is_mount(const char *relative)
{
    for (size_t i = 0; i < ARRAY_LEN(folders); i++)
        if (strcmp(folders[i], relative) == 0)
            return true;
    return false;
}
