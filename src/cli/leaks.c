/* SPDX-License-Identifier: Apache-2.0 */

/*
 * `cella doctor --leaks`: what is on the machine in the name of a data folder, without a sandbox
 * that it belongs to. The warden knows what it makes and where; the database knows which sandboxes
 * there are. So the list goes from here into the warden's program, which compares.
 */

#include "cli/doctor.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/layout.h"
#include "base/program.h"
#include "cli/output.h"
#include "cli/settings.h"
#include "store/store.h"

enum { LIST_MAX = 16 << 20 };

/* What may be there of a sandbox with this status: "running" allows everything. One that is being
 * deleted is on no list: its remains are leaks once nobody works on them any more. */
static const struct {
    const char *status, *allowed;
} status_rows[] = {
    {"running", "running"},  {"creating", "running"}, {"starting", "running"},
    {"stopping", "running"}, {"pausing", "running"},  {"paused", "running"},
    {"resuming", "running"}, {"deleting", NULL},
};

static const char *allowed_for(const char *status)
{
    for (size_t i = 0; i < ARRAY_LEN(status_rows); i++)
        if (strcmp(status_rows[i].status, status) == 0)
            return status_rows[i].allowed;
    return "stopped";
}

static int add_sandbox(void *ctx, const struct store_sandbox *row, struct error *err)
{
    const char *allowed = allowed_for(row->status);
    if (allowed != NULL)
        buf_addf(ctx, "%s %s\n", row->id, allowed);
    return 0;
}

/* Made ahead by a pool: as good as running. */
static int add_spare(void *ctx, const char *id, struct error *err)
{
    buf_addf(ctx, "%s running\n", id);
    return 0;
}

static int skip_event(void *ctx, const char *sandbox_id, const struct store_event *event,
                      struct error *err)
{
    return 0;
}

static void cleanup_store(struct store **store)
{
    if (*store != NULL)
        store_close(*store);
}

/* A folder without a database has no sandboxes; anything that is there of them is a leak. */
static int list_sandboxes(const char *data, struct buf *list, struct error *err)
{
    char path[SETTINGS_PATH_MAX];
    struct stat st;
    if (stat(data, &st) < 0)
        return error_sys(err, "%s", data);
    if (snprintf(path, sizeof(path), "%s/" LAYOUT_DB, data) >= (int)sizeof(path))
        return error_set(err, ERROR_INVALID_PATH, "the path of the data folder is too long");
    if (stat(path, &st) < 0)
        return errno == ENOENT ? 0 : error_sys(err, "%s", path);
    _cleanup_(cleanup_store) struct store *store = NULL;
    struct store_load load = {.sandbox = add_sandbox, .event = skip_event, .ctx = list};
    /* Spares first: one that becomes a sandbox in between is found among those. */
    if (store_open(NULL, path, true, &store, err) < 0 ||
        store_load_spares(store, add_spare, list, err) < 0 || store_load_all(store, &load, err) < 0)
        return -1;
    return buf_check(list, "the list of sandboxes", err);
}

/* In the child: stdin is the list, output goes where ours does. */
static _Noreturn void become_warden(const char *program, const char *data, int list_fd)
{
    char name[] = "cella-warden", leaks[] = "--leaks", option[] = "--data";
    char *argv[] = {name, leaks, option, (char *)data, NULL};
    if (dup2(list_fd, STDIN_FILENO) >= 0)
        execv(program, argv);
    _exit(127);
}

/* Gives the warden its list, without dying of a warden that does not read it. */
static int feed(int fd, const struct buf *list, struct error *err)
{
    struct sigaction ignore = {.sa_handler = SIG_IGN}, before;
    sigaction(SIGPIPE, &ignore, &before);
    size_t done = 0;
    int result = 0;
    while (done < list->len && result == 0) {
        ssize_t n = write(fd, list->data + done, list->len - done);
        if (n > 0)
            done += (size_t)n;
        else if (errno != EINTR)
            result = error_sys_as(err, ERROR_INTERNAL, "telling the warden of the sandboxes");
    }
    sigaction(SIGPIPE, &before, NULL);
    return result;
}

static int run_warden(const char *data, const struct buf *list, int *ret_status, struct error *err)
{
    char program[SETTINGS_PATH_MAX];
    int ends[2];
    if (program_path("cella-warden", program, sizeof(program), err) < 0)
        return -1;
    if (pipe2(ends, O_CLOEXEC) < 0)
        return error_sys(err, "making a pipe");
    _cleanup_fd_ int read_end = ends[0], write_end = ends[1];
    pid_t pid = fork();
    if (pid < 0)
        return error_sys(err, "starting %s", program);
    if (pid == 0)
        become_warden(program, data, read_end);
    struct error why;
    int fed = feed(write_end, list, &why), status = 0;
    close(steal_fd(&write_end));
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return error_sys(err, "waiting for %s", program);
    *ret_status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    if (*ret_status == 127)
        return error_set(err, ERROR_INTERNAL, "%s cannot be run", program);
    if (fed < 0 && *ret_status == 0) {
        *err = why;
        return -1;
    }
    return 0;
}

int doctor_leaks(const char *data, int *ret_status, struct error *err)
{
    _cleanup_buf_ struct buf list = BUF_INIT(LIST_MAX);
    if (list_sandboxes(data, &list, err) < 0 || run_warden(data, &list, ret_status, err) < 0)
        return -1;
    return *ret_status == 0 ? output_bytes(STDOUT_FILENO, "no leaks\n", 9, err) : 0;
}
