/* SPDX-License-Identifier: Apache-2.0 */

/* Asking the kernel what there is, and reading what the operator says there is. */

#include "sandbox/machine.h"

#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "sandbox/spec.h"

#define MB UINT64_C(1000000)

enum { PID_MAX_DEFAULT = 32768, ITEM_MAX = 64, NUMBER_MAX = 32 };

/* What an ordinary server of today can move: a solid-state disk, ten gigabits, two channels of
 * memory. The order of magnitude is what counts, and it is said that they are assumed. */
static const uint64_t assumed[RESOURCE_COUNT] = {
    [RESOURCE_DISK_READ] = 1000 * MB,         [RESOURCE_DISK_WRITE] = 1000 * MB,
    [RESOURCE_DISK_READ_OPS] = 100000,        [RESOURCE_DISK_WRITE_OPS] = 100000,
    [RESOURCE_NETWORK_IN] = 1250 * MB,        [RESOURCE_NETWORK_OUT] = 1250 * MB,
    [RESOURCE_MEMORY_BANDWIDTH] = 20000 * MB,
};

const char *capacity_source_text(enum capacity_source source)
{
    static const char *const texts[] = {
        [CAPACITY_DETECTED] = "detected",
        [CAPACITY_ASSUMED] = "assumed",
        [CAPACITY_CONFIGURED] = "configured",
    };
    return texts[source];
}

static uint64_t count_cores(void)
{
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof(set), &set) == 0 && CPU_COUNT(&set) > 0)
        return (uint64_t)CPU_COUNT(&set);
    long online = sysconf(_SC_NPROCESSORS_ONLN); /* more than fit into the set */
    return online > 0 ? (uint64_t)online : 1;
}

static uint64_t read_pid_max(void)
{
    char text[NUMBER_MAX] = "";
    _cleanup_fd_ int fd = open("/proc/sys/kernel/pid_max", O_RDONLY | O_CLOEXEC);
    if (fd < 0 || read(fd, text, sizeof(text) - 1) <= 0)
        return PID_MAX_DEFAULT;
    uint64_t value = strtoull(text, NULL, 10);
    return value > 0 ? value : PID_MAX_DEFAULT;
}

void machine_detect(struct machine *machine, int data_dir_fd)
{
    struct statvfs fs;
    long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    *machine = (struct machine){0};
    for (int i = 0; i < RESOURCE_COUNT; i++) {
        machine->total[i] = assumed[i];
        machine->source[i] = assumed[i] != 0 ? CAPACITY_ASSUMED : CAPACITY_DETECTED;
    }
    machine->total[RESOURCE_CPU] = count_cores() * 1000;
    if (pages > 0 && page > 0)
        machine->total[RESOURCE_MEMORY] = (uint64_t)pages * (uint64_t)page;
    if (fstatvfs(data_dir_fd, &fs) == 0)
        machine->total[RESOURCE_DISK] = fs.f_bavail * fs.f_frsize;
    machine->total[RESOURCE_PIDS] = read_pid_max();
}

void machine_set_disk(struct machine *machine, uint64_t bytes)
{
    if (machine->source[RESOURCE_DISK] != CAPACITY_CONFIGURED)
        machine->total[RESOURCE_DISK] = bytes;
    if (machine->disk_most < machine->total[RESOURCE_DISK])
        machine->disk_most = machine->total[RESOURCE_DISK];
}

int machine_configure(struct machine *machine, const char *text, struct error *err)
{
    struct machine changed = *machine;
    for (const char *at = text; *at != '\0';) {
        size_t len = strcspn(at, ",");
        char item[ITEM_MAX];
        if (len >= sizeof(item))
            return error_set(err, ERROR_INVALID_ARGUMENT, "\"%.60s\" is too long", at);
        memcpy(item, at, len);
        item[len] = '\0';
        const char *eq = strchr(item, '=');
        enum resource found =
            eq == NULL ? RESOURCE_COUNT : resource_find(item, (size_t)(eq - item));
        if (found == RESOURCE_COUNT)
            return error_set(err, ERROR_INVALID_ARGUMENT,
                             "\"%s\" is not RESOURCE=QUANTITY, as memory=8Gi", item);
        if (spec_quantity(found, eq + 1, &changed.total[found], err) < 0)
            return error_prefix(err, "%s", resource_name(found));
        changed.source[found] = CAPACITY_CONFIGURED;
        at += len + (at[len] == ',');
    }
    *machine = changed;
    return 0;
}
