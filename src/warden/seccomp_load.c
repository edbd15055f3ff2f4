/* SPDX-License-Identifier: Apache-2.0 */

/* The filter is data here: which calls are in it is said in seccomp_table.h. */

#include "warden/seccomp_load.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "seccomp_program.h"

int seccomp_load_sandbox(struct error *err)
{
    const struct sock_fprog program = {
        .len = ARRAY_LEN(seccomp_program),
        .filter = (struct sock_filter *)seccomp_program,
    };
    if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) < 0)
        return error_sys(err, "loading the system call filter");
    return 0;
}
