/* SPDX-License-Identifier: Apache-2.0 */

/* Birth and death of file workers. */

#include "agent/files.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "agent/agent.h"
#include "agent/file_worker.h"
#include "base/limits.h"

static _Noreturn void become_worker(int fd, struct slice received)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (fd > STDERR_FILENO + 1)
        syscall(SYS_close_range, STDERR_FILENO + 1, fd - 1, 0);
    syscall(SYS_close_range, fd + 1, ~0U, 0);
    fcntl(fd, F_SETFL, 0); /* blocking; the agent is done with it */
    umask(022);
    sigset_t none;
    sigemptyset(&none);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN); /* an error like any other */
    sigprocmask(SIG_SETMASK, &none, NULL);
    file_worker_run(fd, received);
    _exit(0);
}

int files_start_worker(struct agent *agent, int fd, struct slice received, struct error *err)
{
    if (agent->file_worker_count == FILE_WORKERS_MAX)
        return error_set(err, ERROR_LIMIT_EXCEEDED, "%d file operations are under way already",
                         FILE_WORKERS_MAX);
    pid_t pid = fork();
    if (pid < 0)
        return error_sys(err, "starting a file worker");
    if (pid == 0)
        become_worker(fd, received);
    agent->file_workers[agent->file_worker_count++] = pid;
    return 0;
}

void files_worker_reaped(struct agent *agent, pid_t pid)
{
    for (unsigned i = 0; i < agent->file_worker_count; i++)
        if (agent->file_workers[i] == pid) {
            agent->file_workers[i] = agent->file_workers[--agent->file_worker_count];
            return;
        }
}

void files_end_workers(struct agent *agent)
{
    for (unsigned i = 0; i < agent->file_worker_count; i++)
        kill(agent->file_workers[i], SIGKILL);
}
