/* SPDX-License-Identifier: Apache-2.0 */

/* A pipe tells the end: empty when all went well and the child said so by its exit status, else
 * with the error in it, which is a plain value. */

#include "warden/job.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "warden/warden.h"

/* Standard error and what the work needs. The rest would keep things open that the warden closes,
 * or that close with it: cellad sees that a warden is gone by its connection. */
enum { KEPT_MAX = CGROUP_TREES + 5 };

static int compare_fds(const void *a, const void *b)
{
    return *(const int *)a - *(const int *)b;
}

static void close_others(const struct warden *warden, int report)
{
    int kept[KEPT_MAX] = {0, 1, 2, report, warden->storage.fd};
    for (int tree = 0; tree < CGROUP_TREES; tree++)
        kept[5 + tree] = warden->cgroups.parents[tree];
    qsort(kept, KEPT_MAX, sizeof(kept[0]), compare_fds);
    int next = 0;
    for (int i = 0; i < KEPT_MAX; i++) {
        if (kept[i] > next)
            syscall(SYS_close_range, (unsigned)next, (unsigned)kept[i] - 1, 0);
        if (kept[i] >= next)
            next = kept[i] + 1;
    }
    syscall(SYS_close_range, (unsigned)next, ~0u, 0);
}

static _Noreturn void child(struct job *job, const char *name, job_run run, int report)
{
    struct error err = {0};
    close_others(job->warden, report);
    prctl(PR_SET_NAME, name);
    if (run(job, &err) == 0)
        _exit(0);
    ssize_t n = write(report, &err, sizeof(err));
    _exit(n == sizeof(err) ? 1 : 2);
}

static void finish(struct job *job)
{
    struct error failure;
    int status = 0;
    source_close(&job->report);
    while (waitpid(job->pid, &status, 0) < 0 && errno == EINTR)
        ;
    job->pid = 0;
    bool good = WIFEXITED(status) && WEXITSTATUS(status) == 0;
    if (job->received_len == sizeof(failure)) {
        memcpy(&failure, job->received, sizeof(failure));
        failure.message[sizeof(failure.message) - 1] = '\0';
    } else if (!good) {
        error_set(&failure, ERROR_INTERNAL, "the process that did the work was killed");
    }
    job->done(job, good ? NULL : &failure);
}

static void report_ready(struct source *source, uint32_t events)
{
    struct job *job = container_of(source, struct job, report);
    size_t room = sizeof(job->received) - job->received_len;
    ssize_t n = room == 0 ? 0 : read(source->fd, job->received + job->received_len, room);
    if (n < 0 && (errno == EINTR || errno == EAGAIN))
        return;
    if (n > 0)
        job->received_len += (size_t)n;
    else
        finish(job);
}

int job_start(struct job *job, struct warden *warden, const char *name, job_run run, job_done done,
              struct error *err)
{
    int ends[2];
    *job = (struct job){.warden = warden, .parent = getpid(), .done = done, .report = SOURCE_INIT};
    if (pipe2(ends, O_CLOEXEC) < 0)
        return error_sys(err, "making a pipe");
    pid_t pid = fork();
    if (pid == 0)
        child(job, name, run, ends[1]);
    int saved = errno;
    close(ends[1]);
    if (pid < 0) {
        close(ends[0]);
        errno = saved;
        return error_sys(err, "starting a child");
    }
    if (source_watch(warden->epoll_fd, &job->report, ends[0], EPOLLIN, report_ready, err) < 0) {
        kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);
        return -1;
    }
    job->pid = pid;
    return 0;
}

void job_kill(struct job *job)
{
    if (job->pid > 0)
        kill(job->pid, SIGKILL);
}

bool job_orphaned(const struct job *job)
{
    return getppid() != job->parent;
}
