/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Birth and death of file workers, and the housekeeper: a child that puts away what dead workers
 * left in the state directory. It runs when the agent starts, when a worker was killed, and from
 * time to time while something is there that may grow old.
 */

#include "agent/files.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/agent.h"
#include "agent/file_worker.h"
#include "agent/tree_journal.h"
#include "agent/uploads.h"
#include "base/limits.h"
#include "wire/messages.h"

enum { HOUSE_EVERY_MS = 5 * 60 * 1000, HOUSE_AGAIN_MS = 1000 };

static const struct {
    unsigned max;
    const char *words;
} kinds[] = {
    [WORKER_FILES] = {FILE_WORKERS_MAX, "file operations"},
    [WORKER_WATCH] = {WATCH_WORKERS_MAX, "file watches"},
    [WORKER_HISTORY] = {HISTORY_WORKERS_MAX, "questions of history"},
};

static enum file_worker_kind kind_of(uint16_t type)
{
    return type == FILE_WATCH ? WORKER_WATCH : type >= HISTORY_LIST ? WORKER_HISTORY : WORKER_FILES;
}

static void become_child(void)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    umask(022);
    sigset_t none;
    sigemptyset(&none);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN); /* an error like any other */
    sigprocmask(SIG_SETMASK, &none, NULL);
}

static void close_between(int from, int to)
{
    if (from <= to)
        syscall(SYS_close_range, from, to, 0);
}

/* -1: there is no second one. */
static void close_all_but(int one, int other)
{
    int low = one < other || other < 0 ? one : other, high = one < other ? other : one;
    close_between(STDERR_FILENO + 1, low - 1);
    close_between(low + 1, high - 1);
    syscall(SYS_close_range, high + 1, ~0U, 0);
}

static _Noreturn void become_worker(const struct agent *agent, int fd, uint16_t type,
                                    struct slice received)
{
    /* The agent's watch on the files is set, and asked for, by who speaks of history only. */
    struct history_watch history =
        kind_of(type) == WORKER_HISTORY ? agent->history : HISTORY_WATCH_NONE;
    close_all_but(fd, history.fd);
    fcntl(fd, F_SETFL, 0); /* blocking; the agent is done with it */
    become_child();
    file_worker_run(fd, received, agent->config.state_dir, &history);
    _exit(0);
}

int files_start_worker(struct agent *agent, int fd, uint16_t type, struct slice received,
                       struct error *err)
{
    struct file_workers *workers = &agent->file_workers;
    enum file_worker_kind kind = kind_of(type);
    if (workers->of_kind[kind] == kinds[kind].max)
        return error_set(err, ERROR_LIMIT_EXCEEDED, "%u %s are under way already", kinds[kind].max,
                         kinds[kind].words);
    if (type == HISTORY_LIST)
        history_watch_prepare(&agent->history);
    pid_t pid = fork();
    if (pid < 0)
        return error_sys(err, "starting a file worker");
    if (pid == 0)
        become_worker(agent, fd, type, received);
    workers->items[workers->count++] = (struct file_worker_child){pid, kind};
    workers->of_kind[kind]++;
    if (type >= UPLOAD_START && kind == WORKER_FILES && workers->house_at == 0)
        workers->house_at = agent_monotonic_ms() + HOUSE_EVERY_MS;
    return 0;
}

/* --- housekeeping --- */

static pid_t start_housekeeper(struct agent *agent, bool starting)
{
    pid_t pid = fork();
    if (pid != 0)
        return pid;
    syscall(SYS_close_range, STDERR_FILENO + 1, ~0U, 0);
    become_child();
    tree_journals_recover(agent->config.state_dir);
    _exit(uploads_expire(agent->config.state_dir, starting) > 0);
}

static void keep_house(struct agent *agent)
{
    struct file_workers *workers = &agent->file_workers;
    workers->house_at = 0;
    if (access(agent->config.state_dir, F_OK) < 0)
        return;
    /* One at a time: what this one has passed already is for the next. */
    if (workers->housekeeper == 0)
        workers->housekeeper = start_housekeeper(agent, false);
    else
        workers->house_at = agent_monotonic_ms() + HOUSE_AGAIN_MS;
    if (workers->housekeeper < 0) { /* no process to be had now */
        workers->housekeeper = 0;
        workers->house_at = agent_monotonic_ms() + HOUSE_AGAIN_MS;
    }
}

void files_start(struct agent *agent)
{
    if (access(agent->config.state_dir, F_OK) < 0)
        return;
    /* Waited for: whoever comes first must not find half a tree. */
    pid_t pid = start_housekeeper(agent, true);
    while (pid > 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        ;
}

void files_tick(struct agent *agent, uint64_t now)
{
    if (agent->file_workers.house_at != 0 && agent->file_workers.house_at <= now)
        keep_house(agent);
}

uint64_t files_deadline(const struct agent *agent)
{
    return agent->file_workers.house_at == 0 ? UINT64_MAX : agent->file_workers.house_at;
}

/* --- ends --- */

void files_worker_reaped(struct agent *agent, pid_t pid, int status)
{
    struct file_workers *workers = &agent->file_workers;
    if (pid == workers->housekeeper) {
        workers->housekeeper = 0;
        if (WIFEXITED(status) && WEXITSTATUS(status) != 0 && workers->house_at == 0)
            workers->house_at = agent_monotonic_ms() + HOUSE_EVERY_MS;
        return;
    }
    for (unsigned i = 0; i < workers->count; i++) {
        if (workers->items[i].pid != pid)
            continue;
        workers->of_kind[workers->items[i].kind]--;
        workers->items[i] = workers->items[--workers->count];
        if (WIFSIGNALED(status))
            keep_house(agent);
        return;
    }
}

void files_end_workers(struct agent *agent)
{
    struct file_workers *workers = &agent->file_workers;
    for (unsigned i = 0; i < workers->count; i++)
        kill(workers->items[i].pid, SIGKILL);
    if (workers->housekeeper > 0)
        kill(workers->housekeeper, SIGKILL);
}
