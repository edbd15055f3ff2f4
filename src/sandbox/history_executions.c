/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Which execution ended where, sandbox by sandbox. The list is not synced: it survives the death of
 * this process, and a power cut may cost the newest of them. Those that made a commit are named in
 * it, too.
 */

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/limits.h"
#include "sandbox/history.h"
#include "sandbox/history_import.h"
#include "sandbox/history_repo.h"

static const char none[] = "----------------------------------------";
_Static_assert(sizeof(none) == GIT_NAME_SIZE && sizeof(EXECUTION_PENDING) == GIT_NAME_SIZE,
               "as long as a name");

static int read_file(int folder_fd, struct buf *data)
{
    _cleanup_fd_ int fd = openat(folder_fd, "executions", O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    for (ssize_t n = 1; fd >= 0 && n > 0;) {
        char *to = buf_reserve(data, 64 * 1024);
        n = to == NULL ? -1 : read(fd, to, 64 * 1024);
        if (n < 0)
            return -1;
        buf_commit(data, (size_t)n);
    }
    return fd < 0 && errno != ENOENT ? -1 : 0;
}

/* The newer half stays. */
static int shorten(int folder_fd)
{
    _cleanup_buf_ struct buf data = BUF_INIT(4 * HISTORY_EXECUTIONS_BYTES);
    if (read_file(folder_fd, &data) < 0)
        return -1;
    const char *from = memchr(data.data + data.len / 2, '\n', data.len - data.len / 2);
    if (from == NULL)
        return -1;
    size_t len = data.len - (size_t)(++from - data.data);
    _cleanup_fd_ int fd = openat(folder_fd, "executions.new",
                                 O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0 || write(fd, from, len) != (ssize_t)len)
        return -1;
    return renameat(folder_fd, "executions.new", folder_fd, "executions");
}

/* The first one of a sandbox finds no folder. */
static int open_to_append(int histories_fd, const char *id)
{
    enum { FLAGS = O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW };
    char path[NAME_MAX + sizeof("/executions")];
    snprintf(path, sizeof(path), "%s/executions", id);
    int fd = openat(histories_fd, path, FLAGS | O_CLOEXEC, 0600);
    if (fd < 0 && errno == ENOENT && (mkdirat(histories_fd, id, 0700) == 0 || errno == EEXIST))
        fd = openat(histories_fd, path, FLAGS | O_CLOEXEC, 0600);
    return fd;
}

size_t execution_line(char out[EXECUTION_LINE_SIZE], const char *execution, const char *commit,
                      int64_t time_ms)
{
    return (size_t)snprintf(out, EXECUTION_LINE_SIZE, "%s %s %lld\n", execution,
                            commit[0] == '\0' ? none : commit, (long long)time_ms);
}

bool execution_line_valid(struct slice line)
{
    char id[EXECUTION_ID_SIZE];
    const char *space = memchr(line.data, ' ', line.len);
    size_t id_len = space == NULL ? 0 : (size_t)(space - line.data);
    if (id_len == 0 || id_len >= sizeof(id) || line.len > EXECUTION_LINE_SIZE ||
        line.len < id_len + GIT_NAME_LEN + 4)
        return false;
    memcpy(id, line.data, id_len);
    id[id_len] = '\0';
    const char *time = space + GIT_NAME_LEN + 2, *end = line.data + line.len - 1;
    size_t digits = 0;
    while (time + digits < end && time[digits] >= '0' && time[digits] <= '9')
        digits++;
    return strncmp(id, "exec_", 5) == 0 && memchr(space + 1, '\0', GIT_NAME_LEN) == NULL &&
           time[-1] == ' ' && digits > 0 && time + digits == end && *end == '\n';
}

int executions_append(int histories_fd, const char *id, struct slice lines, struct error *err)
{
    _cleanup_fd_ int fd = open_to_append(histories_fd, id);
    ssize_t n = fd < 0 ? -1 : write(fd, lines.data, lines.len);
    off_t end = fd < 0 ? 0 : lseek(fd, 0, SEEK_CUR);
    if (n != (ssize_t)lines.len) {
        if (n > 0) { /* the next line must not become the end of this one */
            (void)!ftruncate(fd, end - n);
            errno = ENOSPC;
        }
        return error_sys(err, "writing down executions");
    }
    if (end <= HISTORY_EXECUTIONS_BYTES)
        return 0;
    _cleanup_fd_ int folder_fd = openat(histories_fd, id, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder_fd < 0 || shorten(folder_fd) < 0)
        return error_sys(err, "shortening the list of executions");
    return 0;
}

/* ---- finding one ---- */

int execution_normalize(const char *text, char *out, struct error *err)
{
    static const char *const prefixes[] = {"exec_", "python_run_"};
    if (strcmp(text, HISTORY_FIRST_ID) == 0) {
        snprintf(out, EXECUTION_ID_SIZE, "%s", text);
        return 0;
    }
    for (size_t i = 0; i < ARRAY_LEN(prefixes); i++) {
        size_t len = strlen(prefixes[i]);
        if (strncmp(text, prefixes[i], len) == 0 && strlen(text + len) == 8 &&
            strspn(text + len, "0123456789abcdef") == 8) {
            snprintf(out, EXECUTION_ID_SIZE, "exec_%s", text + len);
            return 0;
        }
    }
    return error_set(err, ERROR_INVALID_ARGUMENT,
                     "\"%.40s\" is no id of an execution: one looks like exec_7683de5a, and the "
                     "first state is " HISTORY_FIRST_ID,
                     text);
}

struct search {
    int folder_fd;
    const char *execution;
    char commit[GIT_NAME_SIZE]; /* ""; not found */
    int64_t time_ms;
    char last[EXECUTION_ID_SIZE]; /* the newest one, when its end is to come */
    bool failed;
};

/* Its newest line counts, and of two that are as new the last: "exec_7683de5a <commit> <ms>"; and
 * any that tells its end before one that does not, whatever was done to the clock. One that was not
 * written to its end is no line; but it may stand behind half a line, which a power cut has left.
 */
void executions_find(struct slice list, const char *execution, char ret_commit[GIT_NAME_SIZE],
                     int64_t *ret_time_ms)
{
    size_t id = strlen(execution);
    const char *end = list.data + list.len, *at = list.data;
    ret_commit[0] = '\0';
    *ret_time_ms = 0;
    for (; at < end && (at = memmem(at, (size_t)(end - at), execution, id)) != NULL; at++) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        size_t len = stop == NULL ? 0 : (size_t)(stop - at);
        if (len <= id + GIT_NAME_LEN + 2 || at[id] != ' ' || at[id + 1 + GIT_NAME_LEN] != ' ')
            continue;
        int64_t time_ms = strtoll(at + id + 2 + GIT_NAME_LEN, NULL, 10);
        bool told = strcmp(ret_commit, EXECUTION_PENDING) != 0 && ret_commit[0] != '\0';
        bool tells = memcmp(at + id + 1, EXECUTION_PENDING, GIT_NAME_LEN) != 0;
        if (tells != told ? tells : time_ms >= *ret_time_ms) {
            memcpy(ret_commit, at + id + 1, GIT_NAME_LEN);
            ret_commit[GIT_NAME_LEN] = '\0';
            *ret_time_ms = time_ms;
        }
    }
}

static void search_on_worker(void *arg)
{
    struct search *s = arg;
    _cleanup_buf_ struct buf data = BUF_INIT(4 * HISTORY_EXECUTIONS_BYTES);
    s->failed = read_file(s->folder_fd, &data) < 0;
    executions_find((struct slice){data.data, data.len}, s->execution, s->commit, &s->time_ms);
}

/* "exec_7683de5a .... <ms>": the newest line of all, and of two that are as new the last. */
static void pending_on_worker(void *arg)
{
    struct search *s = arg;
    _cleanup_buf_ struct buf data = BUF_INIT(4 * HISTORY_EXECUTIONS_BYTES);
    s->failed = read_file(s->folder_fd, &data) < 0;
    const char *end = data.data + data.len, *stop;
    for (const char *at = data.data; at < end; at = stop + 1) {
        stop = memchr(at, '\n', (size_t)(end - at));
        if (stop == NULL)
            return;
        const char *blank = memchr(at, ' ', (size_t)(stop - at));
        size_t id = blank == NULL ? EXECUTION_ID_SIZE : (size_t)(blank - at);
        if (id >= EXECUTION_ID_SIZE || (size_t)(stop - at) <= id + 2 + GIT_NAME_LEN ||
            blank[1 + GIT_NAME_LEN] != ' ')
            continue;
        int64_t time_ms = strtoll(blank + 2 + GIT_NAME_LEN, NULL, 10);
        if (time_ms < s->time_ms)
            continue;
        s->time_ms = time_ms;
        bool pending = memcmp(blank + 1, EXECUTION_PENDING, GIT_NAME_LEN) == 0;
        snprintf(s->last, sizeof(s->last), "%.*s", pending ? (int)id : 0, at);
    }
}

void executions_pending(struct repository *r, char *out)
{
    struct search search = {.folder_fd = r->folder_fd};
    workers_run(r->git->workers, pending_on_worker, &search);
    if (execution_normalize(search.last, out, NULL) < 0)
        out[0] = '\0';
}

/* The last line of what a command says. */
static int last_line(struct repository *r, const char *const argv[], char out[GIT_NAME_SIZE],
                     struct error *err)
{
    _cleanup_git_ struct git git = {0};
    struct slice line;
    int got;
    out[0] = '\0';
    if (git_start(r->git, r->fd, argv, &git, err) < 0 || git_close_input(&git, err) < 0)
        return -1;
    while ((got = git_until(&git, '\n', GIT_NAME_LEN, &line, err)) > 0)
        if (line.len == GIT_NAME_LEN) {
            memcpy(out, line.data, GIT_NAME_LEN);
            out[GIT_NAME_LEN] = '\0';
        }
    if (got < 0 || git_finish(&git, err) < 0)
        return -1;
    return 0;
}

static int first_commit(struct repository *r, char out[GIT_NAME_SIZE], struct error *err)
{
    const char *const argv[] = {"rev-list", "--max-parents=0", r->head, "--", NULL};
    return last_line(r, argv, out, err);
}

/* The first commit from then on, or, if there is none, the newest. Commits have whole seconds:
 * rather one that is too late than one from before it. Never the initial one while there is
 * another: it has what the image brought, and may be made late, after a crash, when commands have
 * run. */
static int commit_from(struct repository *r, int64_t time_ms, char out[GIT_NAME_SIZE],
                       struct error *err)
{
    char since[48];
    snprintf(since, sizeof(since), "--since=@%lld", (long long)((time_ms + 999) / 1000));
    const char *const argv[] = {"rev-list", "--min-parents=1", since, r->head, "--", NULL};
    if (last_line(r, argv, out, err) < 0)
        return -1;
    if (out[0] == '\0')
        memcpy(out, r->head, GIT_NAME_SIZE);
    return 0;
}

static int named_commit(struct repository *r, const char *execution, char out[GIT_NAME_SIZE],
                        struct error *err)
{
    /* The whole line: others have names of the sandbox's files in them. */
    char grep[32 + EXECUTION_ID_SIZE];
    snprintf(grep, sizeof(grep), "--grep=^Execution-Id: %s$", execution);
    const char *const argv[] = {"rev-list", "--max-count=1", "--basic-regexp", grep, r->head, "--",
                                NULL};
    return last_line(r, argv, out, err);
}

/* A history that grew too large has lost its oldest commits, one that was torn all of them. */
static int was_dropped(struct repository *r, const char *commit, struct error *err)
{
    char line[64];
    struct error why = {0};
    const char *const argv[] = {"cat-file", "-e", commit, NULL};
    if (git_line(r->git, r->fd, argv, line, sizeof(line), &why) == 0)
        return 0;
    if (why.code == ERROR_INTERNAL)
        return 1;
    *err = why;
    return -1;
}

static int not_found(const char *execution, struct error *err)
{
    return error_set(err, ERROR_EXECUTION_NOT_FOUND,
                     "there is no execution \"%s\" in this sandbox's history", execution);
}

/* Where there is no commit yet, all that there was is to end at the first one. */
static int resolve_early(const struct search *search, char ret_commit[GIT_NAME_SIZE],
                         struct error *err)
{
    if (strcmp(search->execution, HISTORY_FIRST_ID) != 0 &&
        (search->commit[0] == '\0' || git_name_valid(search->commit)))
        return not_found(search->execution, err);
    ret_commit[0] = '\0';
    return 0;
}

int repository_resolve(struct repository *r, const char *execution, char ret_commit[GIT_NAME_SIZE],
                       struct error *err)
{
    struct search search = {.folder_fd = r->folder_fd, .execution = execution};
    char commit[GIT_NAME_SIZE] = "";
    int rc = 0;
    if (r->head[0] == '\0') {
        workers_run(r->git->workers, search_on_worker, &search);
        return resolve_early(&search, ret_commit, err);
    }
    if (strcmp(execution, HISTORY_FIRST_ID) == 0) {
        rc = first_commit(r, commit, err);
    } else {
        workers_run(r->git->workers, search_on_worker, &search);
        if (search.commit[0] == '\0')
            rc = named_commit(r, execution, commit, err);
        else if (strcmp(search.commit, none) == 0)
            rc = first_commit(r, commit, err);
        else if (strcmp(search.commit, EXECUTION_PENDING) == 0)
            rc = commit_from(r, search.time_ms, commit, err);
        else
            memcpy(commit, search.commit, GIT_NAME_SIZE);
    }
    int dropped = rc < 0 ? -1 : !git_name_valid(commit) ? 1 : was_dropped(r, commit, err);
    if (dropped < 0)
        return -1;
    if (dropped > 0)
        return not_found(execution, err);
    memcpy(ret_commit, commit, GIT_NAME_SIZE);
    return 0;
}
