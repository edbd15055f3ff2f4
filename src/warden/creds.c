/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Raw system calls: libc's wrappers would do the same for every thread, of which there is one.
 * The real and saved ids stay root's, so permitted capabilities survive and can be made
 * effective again.
 */

#include "warden/creds.h"

#include <linux/capability.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/log.h"

static int raise_capabilities(void)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[2];
    if (syscall(SYS_capget, &header, data) < 0)
        return -1;
    data[0].effective = data[0].permitted;
    data[1].effective = data[1].permitted;
    return (int)syscall(SYS_capset, &header, data);
}

static void remember(struct creds *creds)
{
    creds->death_signal = 0;
    prctl(PR_GET_PDEATHSIG, &creds->death_signal);
    creds->parent = getppid();
}

static void restore(const struct creds *creds, long result)
{
    if (result < 0 || raise_capabilities() < 0) {
        log_error("cannot become root again: giving up");
        abort();
    }
    if (creds->death_signal == 0)
        return;
    prctl(PR_SET_PDEATHSIG, creds->death_signal);
    if (getppid() != creds->parent) /* it died while nobody would have told us */
        raise(creds->death_signal);
}

int creds_enter(struct creds *creds, uid_t id, struct error *err)
{
    remember(creds);
    if (syscall(SYS_setresgid, -1, id, -1) < 0)
        return error_sys(err, "becoming the sandbox's root");
    if (syscall(SYS_setresuid, -1, id, -1) < 0 || raise_capabilities() < 0) {
        error_sys(err, "becoming the sandbox's root");
        creds_leave(creds);
        return -1;
    }
    return 0;
}

void creds_leave(const struct creds *creds)
{
    long result = syscall(SYS_setresuid, -1, 0, -1);
    if (syscall(SYS_setresgid, -1, 0, -1) < 0)
        result = -1;
    restore(creds, result);
}

int creds_enter_fs(struct creds *creds, uid_t id, struct error *err)
{
    remember(creds);
    /* These two return the id of before, whatever happens: ask again to see. */
    syscall(SYS_setfsgid, id);
    syscall(SYS_setfsuid, id);
    if (syscall(SYS_setfsgid, -1) != (long)id || syscall(SYS_setfsuid, -1) != (long)id ||
        raise_capabilities() < 0) {
        error_sys(err, "taking the sandbox's file ids");
        creds_leave_fs(creds);
        return -1;
    }
    return 0;
}

void creds_leave_fs(const struct creds *creds)
{
    syscall(SYS_setfsuid, 0);
    syscall(SYS_setfsgid, 0);
    bool back = syscall(SYS_setfsuid, -1) == 0 && syscall(SYS_setfsgid, -1) == 0;
    restore(creds, back ? 0 : -1);
}
