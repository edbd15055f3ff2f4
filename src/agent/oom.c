/* SPDX-License-Identifier: Apache-2.0 */

/* Out-of-memory kills, as far as a sandbox can see its own. On cgroup v1 the counter is in a tree
 * that is not visible from inside, and a killed command is simply one ended by signal 9. */

#include "agent/oom.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/agent.h"
#include "base/cleanup.h"

bool oom_happened(struct agent *agent)
{
    if (agent->config.cgroup_fd < 0)
        return false;
    _cleanup_fd_ int fd = openat(agent->config.cgroup_fd, "memory.events", O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    char text[256];
    ssize_t n = read(fd, text, sizeof(text) - 1);
    if (n <= 0)
        return false;
    text[n] = '\0';
    const char *row = strstr(text, "oom_kill ");
    if (row == NULL)
        return false;
    unsigned long long kills = strtoull(row + strlen("oom_kill "), NULL, 10);
    if (kills <= agent->oom_kills)
        return false;
    agent->oom_kills++;
    return true;
}
