/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Standing still. The cgroup2 tree can freeze a group whatever controllers it has, so this is the
 * same on v1 and v2. A frozen process is at the edge of the kernel: it holds no lock there, and no
 * write of its own is half done.
 */

#include "warden/cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "warden/files.h"

enum { FREEZE_PATH_MAX = 64 };

static int64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static int write_state(const struct cgroups *cgroups, const char *id, const char *state,
                       struct error *err)
{
    char path[FREEZE_PATH_MAX];
    snprintf(path, sizeof(path), "%s/cgroup.freeze", id);
    return file_write_at(cgroups->parents[CGROUP_UNIFIED], path, state, err);
}

bool cgroup_is_frozen(int events)
{
    char text[128];
    ssize_t n = pread(events, text, sizeof(text) - 1, 0);
    text[n > 0 ? n : 0] = '\0';
    return cgroup_flat_value(text, "frozen") == 1;
}

/* The file of events is polled for POLLPRI, which it gives at each change since the last read. */
static bool wait_frozen(int events, int timeout_ms)
{
    int64_t deadline = now_ms() + timeout_ms;
    while (!cgroup_is_frozen(events)) {
        int64_t left = deadline - now_ms();
        struct pollfd poll_fd = {.fd = events, .events = POLLPRI};
        if (left <= 0 || (poll(&poll_fd, 1, (int)left) < 0 && errno != EINTR))
            return cgroup_is_frozen(events);
    }
    return true;
}

int cgroup_freeze_begin(const struct cgroups *cgroups, const char *id, int *ret_events,
                        struct error *err)
{
    char path[FREEZE_PATH_MAX];
    snprintf(path, sizeof(path), "%s/cgroup.events", id);
    _cleanup_fd_ int events = openat(cgroups->parents[CGROUP_UNIFIED], path, O_RDONLY | O_CLOEXEC);
    if (events < 0 || write_state(cgroups, id, "1", NULL) < 0)
        return error_set(err, ERROR_CONFLICT, "sandbox %s has just ended", id);
    *ret_events = steal_fd(&events);
    return 0;
}

int cgroup_freeze(const struct cgroups *cgroups, const char *id, int timeout_ms, struct error *err)
{
    _cleanup_fd_ int events = -1;
    if (cgroup_freeze_begin(cgroups, id, &events, err) < 0)
        return -1;
    if (wait_frozen(events, timeout_ms))
        return 0;
    cgroup_thaw(cgroups, id);
    return cgroup_not_still(id, timeout_ms, err);
}

int cgroup_not_still(const char *id, int timeout_ms, struct error *err)
{
    return error_set(err, ERROR_TIMEOUT,
                     "the processes of sandbox %s did not stand still within %d ms", id,
                     timeout_ms);
}

void cgroup_thaw(const struct cgroups *cgroups, const char *id)
{
    write_state(cgroups, id, "0", NULL);
}
