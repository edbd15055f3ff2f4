/* SPDX-License-Identifier: Apache-2.0 */

/* Loads a filter. The filters are data here: which calls they allow is said in the tables. */

#include "confine/filter.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "seccomp_programs.h"

#define PROGRAM(code)                                                                              \
    {                                                                                              \
        .len = ARRAY_LEN(code), .filter = (struct sock_filter *)(code)                             \
    }

static const struct sock_fprog programs[] = {
    [FILTER_SANDBOX] = PROGRAM(seccomp_sandbox),
    [FILTER_SANDBOX_STRICT] = PROGRAM(seccomp_sandbox_strict),
    [FILTER_CELLAD] = PROGRAM(seccomp_cellad),
    [FILTER_EGRESS] = PROGRAM(seccomp_egress),
    [FILTER_GIT] = PROGRAM(seccomp_git),
};

int filter_load(enum filter_name name, struct error *err)
{
    if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &programs[name]) < 0)
        return error_sys(err, "loading the system call filter");
    return 0;
}

int filter_load_server(enum filter_name name)
{
    static const struct sock_fprog absent = PROGRAM(seccomp_server_absent);
    if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_LOG, &programs[name]) <
            0 ||
        syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &absent) < 0)
        return errno;
    return 0;
}
