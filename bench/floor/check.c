/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What must be true inside, as scripts and their output.
 */
#include "floor/check.h"

#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"

static const struct {
    const char *script;
    const char *output;
} checks[] = {
    {"id -u; hostname; pwd", "0\nfloor\n/\n"},
    {"touch /x /usr/x /tmp/x && chown 1000:1000 /x && stat -c %u:%g /x", "1000:1000\n"},
    {"test -x /usr/bin/env && test ! -e /boot && echo ok", "ok\n"},
    {"head -c 1 /proc/kcore 2>/dev/null | wc -c; ls /sys/firmware | wc -l", "0\n0\n"},
    {"echo 1 2>/dev/null >/proc/sys/kernel/panic || echo no", "no\n"},
    {"touch 2>/dev/null /dev/x || echo no; echo 2>/dev/null >/dev/null && echo ok", "no\nok\n"},
    {"ls /sys/class/net; ping -c 1 -W 1 127.0.0.1 >/dev/null && echo up", "lo\nup\n"},
    {"sed -n 's/^CapBnd:.//p; s/^CapEff:.//p; s/^Seccomp:.//p' /proc/self/status",
     "00000000a80425fb\n00000000a80425fb\n2\n"},
    {"unshare -U true 2>/dev/null || echo no; mount -t tmpfs x /mnt 2>/dev/null || echo no",
     "no\nno\n"},
    {"cat /proc/sys/user/max_user_namespaces", "0\n"},
    {"set -- /proc/[0-9]*; echo $#", "2\n"}, /* pid 1 and this shell */
    {"grep -c memory:/$ /proc/self/cgroup; grep -c ^0::/e /proc/self/cgroup", "1\n1\n"},
};

int check_sandbox(struct sandbox *sandbox, const char *shell, struct error *err)
{
    for (size_t i = 0; i < ARRAY_LEN(checks); i++) {
        char argv[400];
        int len = snprintf(argv, sizeof(argv), "%s%csh%c-c%c%s", shell, 0, 0, 0, checks[i].script);
        if (sandbox_exec(sandbox, EXEC_OWN_CGROUP, argv, (size_t)len + 1, checks[i].output, err) <
            0)
            return error_prefix(err, "%s", checks[i].script);
    }
    return 0;
}
