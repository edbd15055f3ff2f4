/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The agent as a program: what the warden left (wire/birth.h) becomes a configuration. From here on
 * nothing ends it but the warden.
 */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "agent/agent.h"
#include "base/prompt.h"
#include "wire/birth.h"

static int usage(void)
{
    fputs("usage: cella-agent JOIN_COUNT|none [STATE_DIR [RULES]]  (started by the warden, see "
          "wire/birth.h)\n",
          stderr);
    return 2;
}

/* 0, 1 and 2 have to be something: the next fds to be opened would take their places. */
static void fill_stdio(void)
{
    for (int fd = 0; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0)
            (void)!open("/dev/null",
                        O_RDWR | O_CLOEXEC); /* takes the lowest free number: this one */
}

/* A rule that is not known must not be taken for one that is kept. */
static bool read_rules(const char *rules, struct confinement *confinement)
{
    for (; *rules != '\0'; rules++)
        switch (*rules) {
        case AGENT_RULE_NO_SUBPROCESS:
            confinement->no_subprocess = true;
            break;
        case AGENT_RULE_NO_CAPABILITIES:
            confinement->no_capabilities = true;
            break;
        default:
            return false;
        }
    return true;
}

int main(int argc, char **argv)
{
    if (argc < 2 || argc > 4)
        return usage();
    struct agent_config config = {
        .listen_fd = AGENT_FD_LISTEN,
        .cgroup_fd = -1,
        .join_fd = AGENT_FD_JOIN,
        .ends_on_sigterm = getpid() != 1,
        .state_dir = argc > 2 ? argv[2] : AGENT_STATE_DIR,
    };
    if (argc > 3 && !read_rules(argv[3], &config.confinement))
        return usage();
    if (strcmp(argv[1], "none") != 0) {
        char *end;
        errno = 0;
        unsigned long count = strtoul(argv[1], &end, 10);
        if (errno != 0 || end == argv[1] || *end != '\0' || count > AGENT_JOIN_MAX)
            return usage();
        config.join_count = (unsigned)count;
        config.cgroup_fd = AGENT_FD_CGROUP;
    }
    fill_stdio();
    int last = AGENT_FD_LISTEN;
    if (config.cgroup_fd >= 0)
        last = AGENT_FD_JOIN + (int)config.join_count - 1;
    for (int fd = AGENT_FD_LISTEN; fd <= last; fd++)
        if (fcntl(fd, F_SETFD, FD_CLOEXEC) < 0) {
            perror("cella-agent: an inherited fd is missing");
            return 1;
        }
    /* Whatever else was left open is not for us, and would keep things outside alive. */
    syscall(SYS_close_range, last + 1, ~0U, 0);
    umask(022);
    prctl(PR_SET_DUMPABLE, 0);
    prompt_turns();

    struct error err;
    if (agent_run(&config, &err) < 0) {
        fprintf(stderr, "cella-agent: %s\n", err.message);
        return 1;
    }
    return 0;
}
