/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Children that the loop does not wait for. Starting one takes the calling thread as long as exec
 * does, so a worker thread does it, by vfork, as posix_spawn() would, which cannot confine a child;
 * its end is a pidfd that becomes readable. Its messages go to a memfd: a pipe would have to be
 * read meanwhile.
 */

#include "sandbox/history_git.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "confine/confine.h"
#include "loop/co.h"
#include "loop/net.h"

enum {
    PATIENCE_MS = 120 * 1000, /* without a byte moving, on a busy machine */
    CHUNK = 64 * 1024,
    BUFFER_MAX = 9 << 20, /* a line of the longest text that git takes for one, and a piece */
    ARGS_MAX = 64,
    CANNOT_RUN = 126, /* the status of what was to be a program */
    NOT_FOUND = 127,
};

int git_program_find(char out[256], struct error *err)
{
    static const char *const folders[] = {"/usr/bin", "/usr/local/bin", "/bin"};
    for (size_t i = 0; i < ARRAY_LEN(folders); i++) {
        snprintf(out, 256, "%s/git", folders[i]);
        if (access(out, X_OK) == 0)
            return 0;
    }
    return error_set(err, ERROR_FILE_NOT_FOUND,
                     "there is no git program on this machine: install the package git");
}

/* Settings that no repository's own may change. Packs rather than loose objects: fast-import would
 * start another program for those, and a pack is synced to the disk by default. */
static const char *const settings[] = {
    "-c", "core.hooksPath=/dev/null",
    "-c", "core.attributesFile=/dev/null",
    "-c", "fastimport.unpackLimit=0",
    "-c", "core.protectHFS=false",
    "-c", "core.protectNTFS=false",
    "-c", "core.quotePath=false",
    "-c", "gc.auto=0",
    "-c", "maintenance.auto=false",
    "-c", "pack.threads=1",
    "-c", "core.logAllRefUpdates=false",
    "-c", "core.bigFileThreshold=8m",
    "-c", "diff.suppressBlankEmpty=false",
};

static const char *const environment[] = {
    "PATH=/usr/local/bin:/usr/bin:/bin",
    "LC_ALL=C",
    "TZ=UTC",
    "GIT_DIR=.",
    "GIT_CONFIG_NOSYSTEM=1",
    "GIT_CONFIG_GLOBAL=/dev/null",
    "GIT_ATTR_NOSYSTEM=1",
    "GIT_NO_REPLACE_OBJECTS=1",
    "GIT_TERMINAL_PROMPT=0",
    "GIT_OPTIONAL_LOCKS=0",
    "GIT_CEILING_DIRECTORIES=/",
    "GIT_ADVICE=0",
    NULL,
};

struct start {
    const char *path;
    int repository_fd;
    const char *argv[ARGS_MAX];
    int fds[3];
    const int *groups;
    size_t group_count;
    int rules; /* of Landlock; -1: none */
    bool unconfined;
    pid_t pid;
    int rc;
};

/* The control groups of its workspace, before it is given any work. A group that cannot be joined
 * is no reason to go without a history. "0" stands for the process that writes it. */
static void join_groups(const struct start *s)
{
    for (size_t i = 0; i < s->group_count; i++)
        (void)!write(s->groups[i], "0", 1);
}

/* git and cellad may share a memory cgroup: when that is full, git is to be ended, not cellad. */
static void become_oom_victim(void)
{
    int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
    if (fd >= 0)
        (void)!write(fd, "500", 3);
}

/* Between vfork and exec, in the parent's memory: only system calls. All signals are blocked, as in
 * every worker thread. */
static _Noreturn void become_git(struct start *s)
{
    static const int standard[] = {SIGPIPE, SIGTERM, SIGHUP};
    sigset_t blocked;
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGXFSZ); /* a write past a limit is an error that git tells of */
    join_groups(s);
    become_oom_victim();
    /* A process group of its own, so that what it starts can be killed with it. */
    bool placed = setpgid(0, 0) == 0 && fchdir(s->repository_fd) == 0;
    for (int i = 0; i < 3; i++)
        placed = placed && dup2(s->fds[i], i) >= 0;
    placed = placed && close_range(3, ~0u, CLOSE_RANGE_CLOEXEC) == 0;
    for (size_t i = 0; i < ARRAY_LEN(standard); i++)
        sigaction(standard[i], &(struct sigaction){.sa_handler = SIG_DFL}, NULL);
    s->rc = !placed ? errno : s->unconfined ? 0 : confine_git(s->rules);
    if (s->rc == 0) {
        sigprocmask(SIG_SETMASK, &blocked, NULL);
        execve(s->path, (char *const *)s->argv, (char *const *)environment);
        s->rc = errno;
    }
    _exit(CANNOT_RUN);
}

/* On a worker thread. */
static void start_child(void *arg)
{
    struct start *s = arg;
    struct error err;
    _cleanup_fd_ int rules = -1;
    if (!s->unconfined && confine_git_prepare(s->path, s->repository_fd, &rules, &err) < 0) {
        s->rc = err.sys != 0 ? err.sys : EIO;
        return;
    }
    s->rules = rules;
    pid_t pid = vfork(); /* NOLINT(clang-analyzer-security.insecureAPI.vfork): as above */
    if (pid == 0)
        become_git(s);
    if (pid < 0)
        s->rc = errno;
    else if (s->rc != 0)
        waitpid(pid, NULL, 0);
    else
        s->pid = pid;
}

static int fill_arguments(struct start *s, const char *const argv[], struct error *err)
{
    size_t n = 0;
    s->argv[n++] = "git";
    for (size_t i = 0; i < ARRAY_LEN(settings); i++)
        s->argv[n++] = settings[i];
    for (; *argv != NULL && n < ARGS_MAX - 1; argv++)
        s->argv[n++] = *argv;
    s->argv[n] = NULL;
    return *argv == NULL ? 0 : error_set(err, ERROR_INTERNAL, "too many arguments for git");
}

/* Descriptors 0 to 2 of the child must not be among those that it is given for them. */
static int above_standard(int *fd)
{
    if (*fd > 2)
        return 0;
    int moved = fcntl(*fd, F_DUPFD_CLOEXEC, 3);
    if (moved < 0)
        return -1;
    close(*fd);
    *fd = moved;
    return 0;
}

static int open_pipes(int in[2], int out[2], int *messages, struct error *err)
{
    /* A socket for its input: who writes to one that is gone gets an error, not a signal. */
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, in) < 0 || pipe2(out, O_CLOEXEC) < 0)
        return error_sys_as(err, ERROR_UNAVAILABLE, "starting git");
    *messages = memfd_create("git", MFD_CLOEXEC);
    if (*messages < 0)
        return error_sys_as(err, ERROR_UNAVAILABLE, "starting git");
    int *all[] = {&in[0], &in[1], &out[0], &out[1], messages};
    for (size_t i = 0; i < ARRAY_LEN(all); i++)
        if (above_standard(all[i]) < 0)
            return error_sys_as(err, ERROR_UNAVAILABLE, "starting git");
    if (fcntl(in[1], F_SETFL, O_NONBLOCK) < 0 || fcntl(out[0], F_SETFL, O_NONBLOCK) < 0)
        return error_sys_as(err, ERROR_UNAVAILABLE, "starting git");
    return 0;
}

int git_start(struct git_program *program, int repository_fd, const char *const argv[],
              struct git *ret_git, struct error *err)
{
    int in[2] = {-1, -1}, out[2] = {-1, -1}, messages = -1;
    struct start start = {.path = program->path,
                          .repository_fd = repository_fd,
                          .unconfined = program->unconfined,
                          .groups = program->groups,
                          .group_count = program->group_count};
    int rc = fill_arguments(&start, argv, err);
    if (rc == 0)
        rc = open_pipes(in, out, &messages, err);
    if (rc == 0) {
        start.fds[0] = in[0], start.fds[1] = out[1], start.fds[2] = messages;
        workers_run(program->workers, start_child, &start);
        if (start.rc != 0) {
            errno = start.rc;
            rc = error_sys_as(err, ERROR_UNAVAILABLE, "starting %s", program->path);
        }
    }
    cleanup_fd(&in[0]);
    cleanup_fd(&out[1]);
    if (rc < 0) {
        cleanup_fd(&in[1]);
        cleanup_fd(&out[0]);
        cleanup_fd(&messages);
        return -1;
    }
    *ret_git = (struct git){.loop = program->loop,
                            .workers = program->workers,
                            .patience_ms = PATIENCE_MS,
                            .started_ms = loop_now(program->loop),
                            .pid = start.pid,
                            .in = in[1],
                            .out = out[0],
                            .messages = messages,
                            .pidfd = pidfd_open(start.pid, 0)};
    git_allow(ret_git, program->deadline_ms > 0 ? program->deadline_ms : GIT_QUESTION_MS);
    buf_init(&ret_git->pending, BUFFER_MAX);
    buf_init(&ret_git->received, BUFFER_MAX);
    return 0;
}

/* ---- its deadline ---- */

void git_allow(struct git *git, int64_t deadline_ms)
{
    git->deadline_ms = git->started_ms + deadline_ms;
}

void git_limit_files(struct git *git, uint64_t bytes)
{
    const struct rlimit limit = {bytes, bytes};
    (void)prlimit(git->pid, RLIMIT_FSIZE, &limit, NULL);
}

/* How long one more wait may take. */
static int64_t time_left(const struct git *git)
{
    int64_t left = git->deadline_ms - loop_now(git->loop);
    left = left > 0 ? left : 0;
    return left < git->patience_ms ? left : git->patience_ms;
}

static void kill_group(const struct git *git)
{
    if (git->pid <= 0)
        return;
    kill(-git->pid, SIGKILL);
    kill(git->pid, SIGKILL);
}

/* A wait has failed: what is over its deadline is ended, and the caller is told so. */
static int waited_in_vain(struct git *git, struct error *why, struct error *err)
{
    if (why->code == ERROR_TIMEOUT) {
        int64_t ms = loop_now(git->loop) - git->started_ms;
        kill_group(git);
        return error_set(err, ERROR_TIMEOUT,
                         "git was ended: it was not done after %lld s, which is too much for one "
                         "request",
                         (long long)((ms + 999) / 1000));
    }
    if (err != NULL)
        *err = *why;
    return -1;
}

/* ---- its input ---- */

/* Whoever reads no more has said why, and is asked for it. */
static int write_all(struct git *git, const void *data, size_t len, struct error *err)
{
    struct error why = {0}, words = {0};
    if (git->in < 0)
        return error_set(err, ERROR_INTERNAL, "git: its input was closed");
    if (net_write(git->loop, git->in, data, len, time_left(git), &why) == 0)
        return 0;
    if (why.sys == EPIPE || why.sys == ECONNRESET) {
        cleanup_fd(&git->in);
        git->in = -1;
        if (git_finish(git, &words) < 0)
            why = words;
    }
    return waited_in_vain(git, &why, err);
}

int git_flush(struct git *git, struct error *err)
{
    if (git->pending.len == 0)
        return 0;
    if (write_all(git, git->pending.data, git->pending.len, err) < 0)
        return -1;
    buf_clear(&git->pending);
    return 0;
}

int git_put(struct git *git, const void *data, size_t len, struct error *err)
{
    if (git->pending.len + len > CHUNK && git_flush(git, err) < 0)
        return -1;
    if (len > CHUNK)
        return write_all(git, data, len, err);
    buf_add(&git->pending, data, len);
    return buf_check(&git->pending, "what git is told", err);
}

int git_puts(struct git *git, const char *text, struct error *err)
{
    return git_put(git, text, strlen(text), err);
}

int git_close_input(struct git *git, struct error *err)
{
    if (git_flush(git, err) < 0)
        return -1;
    cleanup_fd(&git->in);
    git->in = -1;
    return 0;
}

/* ---- its output ---- */

static int receive(struct git *git, struct error *err)
{
    buf_consume(&git->received, git->taken);
    git->taken = 0;
    char *to = buf_reserve(&git->received, CHUNK);
    if (to == NULL)
        return buf_check(&git->received, "what git says", err);
    struct error why = {0};
    if (loop_now(git->loop) >= git->deadline_ms) { /* it may go on talking for ever */
        error_set(&why, ERROR_TIMEOUT, "its deadline");
        return waited_in_vain(git, &why, err);
    }
    ssize_t n = net_read(git->loop, git->out, to, CHUNK, time_left(git), &why);
    if (n < 0)
        return waited_in_vain(git, &why, err);
    buf_commit(&git->received, (size_t)n);
    git->ended = n == 0;
    return 0;
}

int git_until(struct git *git, char mark, size_t max, struct slice *ret_text, struct error *err)
{
    size_t looked = 0;
    for (;;) {
        const char *from = git->received.data + git->taken;
        size_t have = git->received.len - git->taken;
        const char *end = have > looked ? memchr(from + looked, mark, have - looked) : NULL;
        if (end != NULL) {
            *ret_text = (struct slice){from, (size_t)(end - from)};
            git->taken += ret_text->len + 1;
            return 1;
        }
        looked = have;
        if (git->ended && have == 0)
            return 0;
        if (git->ended)
            return error_set(err, ERROR_INTERNAL, "git stopped in the middle of its answer");
        if (have > max)
            return error_set(err, ERROR_PAYLOAD_TOO_LARGE, "git says more than %zu bytes at once",
                             max);
        if (receive(git, err) < 0)
            return -1;
    }
}

int git_some(struct git *git, size_t max, struct slice *ret_data, struct error *err)
{
    if (git->received.len == git->taken && !git->ended && receive(git, err) < 0)
        return -1;
    size_t have = git->received.len - git->taken;
    *ret_data = (struct slice){git->received.data + git->taken, have < max ? have : max};
    git->taken += ret_data->len;
    return 0;
}

/* ---- its end ---- */

static void release(struct git *git)
{
    cleanup_fd(&git->in);
    cleanup_fd(&git->out);
    cleanup_fd(&git->messages);
    cleanup_fd(&git->pidfd);
    buf_release(&git->pending);
    buf_release(&git->received);
    *git = (struct git){.in = -1, .out = -1, .messages = -1, .pidfd = -1};
}

/* Whether it failed for what is short now, could not run, or was killed: that says nothing about
 * the repository. (A signal of its own making, as of a pack that is too short, may.) */
static bool is_passing(const char *text, int status)
{
    static const int codes[] = {ENOMEM, EMFILE, ENFILE, EAGAIN, ENOBUFS};
    for (size_t i = 0; i < ARRAY_LEN(codes); i++)
        if (strstr(text, strerror(codes[i])) != NULL)
            return true;
    int signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    int code = WIFEXITED(status) ? WEXITSTATUS(status) : 0;
    /* The loader's words, not git's: a package is being replaced. */
    if (code == CANNOT_RUN || code == NOT_FOUND ||
        (code == 1 && strstr(text, "not found (required by ") != NULL))
        return true;
    return strcasestr(text, "out of memory") != NULL || signal == SIGKILL || signal == SIGTERM ||
           signal == SIGINT || signal == SIGHUP;
}

/* What it said last, in one line. */
static int complain(const struct git *git, int status, struct error *err)
{
    char text[ERROR_MESSAGE_MAX / 2];
    ssize_t n = pread(git->messages, text, sizeof(text) - 1, 0);
    text[n > 0 ? n : 0] = '\0';
    bool full = strstr(text, strerror(ENOSPC)) != NULL || strstr(text, strerror(EDQUOT)) != NULL ||
                strstr(text, strerror(EFBIG)) != NULL ||
                strstr(text, "Out of diskspace") != NULL; /* what it says of a short write */
    enum error_code code = full                       ? ERROR_QUOTA_EXCEEDED
                           : is_passing(text, status) ? ERROR_UNAVAILABLE
                                                      : ERROR_INTERNAL;
    text[strcspn(text, "\n")] = '\0';
    if (text[0] == '\0')
        snprintf(text, sizeof(text), "ended with %s %d", WIFSIGNALED(status) ? "signal" : "status",
                 WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
    return error_set(err, code, "git: %s", text);
}

int git_finish(struct git *git, struct error *err)
{
    struct slice dropped;
    if (git->in >= 0 && git_close_input(git, err) < 0)
        return -1;
    do
        if (git_some(git, CHUNK, &dropped, err) < 0)
            return -1;
    while (dropped.len > 0);
    /* Without a pidfd (an old kernel) its closed output has to do: nothing of it is left to do. */
    struct error why = {0};
    if (git->pidfd >= 0 && co_wait_fd(git->loop, git->pidfd, EPOLLIN, time_left(git), &why) < 0)
        return waited_in_vain(git, &why, err);
    int status = 0;
    while (waitpid(git->pid, &status, 0) < 0 && errno == EINTR)
        ;
    git->pid = 0;
    int rc = WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : complain(git, status, err);
    release(git);
    return rc;
}

static void reap_on_worker(void *arg)
{
    const pid_t *pid = arg;
    while (waitpid(*pid, NULL, 0) < 0 && errno == EINTR)
        ;
}

void git_end(struct git *git)
{
    if (git->loop == NULL)
        return;
    if (git->pid > 0) {
        kill_group(git);
        /* One that is in the middle of writing to a slow disk takes its time to die. */
        workers_run(git->workers, reap_on_worker, &git->pid);
    }
    release(git);
}

int git_line(struct git_program *program, int repository_fd, const char *const argv[],
             char *ret_line, size_t size, struct error *err)
{
    _cleanup_git_ struct git git = {0};
    struct slice line = {"", 0};
    if (git_start(program, repository_fd, argv, &git, err) < 0 || git_close_input(&git, err) < 0 ||
        git_until(&git, '\n', size - 1, &line, err) < 0)
        return -1;
    if (line.len >= size)
        return error_set(err, ERROR_INTERNAL, "git: a line of %zu bytes", line.len);
    memcpy(ret_line, line.data, line.len);
    ret_line[line.len] = '\0';
    return git_finish(&git, err);
}
