/* SPDX-License-Identifier: Apache-2.0 */

/* The folder of a history, and its manifest. */

#include "sandbox/history_repo.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/limits.h"
#include "loop/co.h"
#include "sandbox/history_import.h"
#include "sandbox/history_pack.h"
#include "sandbox/history_rules.h"

enum {
    MANIFEST_MAX = 256 << 20,
    READ_SIZE = 1 << 20,
    ATTRIBUTES_MAX = 64 << 20,
    TURN_LINES = 4096, /* of a tree that are read before others have their turn */
};

static const char repository_name[] = "repository";
static const char new_name[] = "repository.new";
static const char torn_name[] = "repository.torn";

/* ---- opening ---- */

static int open_folder(int dir_fd, const char *name)
{
    return openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
}

/* A ref is a file of one line, as long as nobody packs refs, which nobody does. */
int repository_read_head(int fd, char ret_head[GIT_NAME_SIZE], struct error *err)
{
    char text[GIT_NAME_SIZE + 1] = "";
    _cleanup_fd_ int file = openat(fd, HISTORY_BRANCH, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    ssize_t n = file < 0 ? (errno == ENOENT ? 0 : -1) : read(file, text, GIT_NAME_SIZE);
    if (n < 0)
        return error_sys_as(err, ERROR_UNAVAILABLE, "reading where a history stands");
    text[n == GIT_NAME_SIZE && text[GIT_NAME_LEN] == '\n' ? GIT_NAME_LEN : 0] = '\0';
    memcpy(ret_head, git_name_valid(text) ? text : "", git_name_valid(text) ? GIT_NAME_SIZE : 1);
    return 0;
}

static void remove_matching(int fd, const char *folder, const char *begin, const char *end)
{
    int sub = open_folder(fd, folder);
    _cleanup_dir_ DIR *dir = sub < 0 ? NULL : fdopendir(sub);
    if (dir == NULL && sub >= 0)
        close(sub);
    const struct dirent *entry;
    while (dir != NULL && (entry = readdir(dir)) != NULL) {
        size_t len = strlen(entry->d_name), tail = strlen(end);
        if (strncmp(entry->d_name, begin, strlen(begin)) == 0 && len >= tail &&
            strcmp(entry->d_name + len - tail, end) == 0 && strcmp(entry->d_name, ".") != 0 &&
            strcmp(entry->d_name, "..") != 0)
            unlinkat(dirfd(dir), entry->d_name, 0);
    }
}

/* What a git that was killed leaves: locks that would keep the next one out, and half files. */
static void tidy_up(int fd)
{
    remove_matching(fd, "refs/heads", "", ".lock");
    remove_matching(fd, ".", "", ".lock");
    remove_matching(fd, ".", "fast_import_crash_", "");
    remove_matching(fd, "objects/pack", "tmp_", "");
    remove_matching(fd, "objects/pack", ".tmp", "");
}

struct opening {
    struct repository *r;
    int histories_fd;
    const char *id;
    bool make, tidy;
    struct error *err;
    int rc;
};

static void open_on_worker(void *arg)
{
    struct opening *o = arg;
    struct repository *r = o->r;
    if (o->make && mkdirat(o->histories_fd, o->id, 0700) < 0 && errno != EEXIST) {
        o->rc = error_sys(o->err, "making the history of %s", o->id);
        return;
    }
    r->folder_fd = open_folder(o->histories_fd, o->id);
    if (r->folder_fd < 0) {
        o->rc = error_sys(o->err, "opening the history of %s", o->id);
        return;
    }
    r->fd = open_folder(r->folder_fd, repository_name);
    if (r->fd < 0 && errno != ENOENT) {
        o->rc = error_sys(o->err, "opening the history of %s", o->id);
        return;
    }
    if (r->fd >= 0 && o->tidy)
        tidy_up(r->fd);
    if (r->fd >= 0) {
        o->rc = repository_read_head(r->fd, r->head, o->err);
        r->packs = packs_count(r->fd, &r->bytes);
    }
}

int repository_open(struct git_program *git, int histories_fd, const char *id, bool make, bool tidy,
                    struct repository *ret_repository, struct error *err)
{
    struct repository r = {.git = git, .folder_fd = -1, .fd = -1};
    struct opening opening = {&r, histories_fd, id, make, tidy, err, 0};
    workers_run(git->workers, open_on_worker, &opening);
    if (opening.rc < 0) {
        repository_close(&r);
        return -1;
    }
    *ret_repository = r;
    return 0;
}

void repository_close(struct repository *r)
{
    if (r->git == NULL)
        return;
    cleanup_fd(&r->folder_fd);
    cleanup_fd(&r->fd);
    *r = (struct repository){.folder_fd = -1, .fd = -1};
}

/* ---- making ---- */

static int write_file(int dir_fd, const char *name, const char *text)
{
    _cleanup_fd_ int fd =
        openat(dir_fd, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    size_t len = strlen(text);
    return fd >= 0 && write(fd, text, len) == (ssize_t)len ? 0 : -1;
}

/* What `git init --bare` would make, without what nobody needs: no hooks, no description. */
static int make_files(int fd)
{
    static const char *const folders[] = {"objects", "objects/pack", "objects/info", "refs",
                                          "refs/heads"};
    for (size_t i = 0; i < ARRAY_LEN(folders); i++)
        if (mkdirat(fd, folders[i], 0700) < 0 && errno != EEXIST)
            return -1;
    if (write_file(fd, "HEAD", "ref: " HISTORY_BRANCH "\n") < 0)
        return -1;
    return write_file(fd, "config", "[core]\n\trepositoryformatversion = 0\n\tbare = true\n");
}

static void make_on_worker(void *arg)
{
    struct opening *o = arg;
    struct repository *r = o->r;
    if (mkdirat(r->folder_fd, new_name, 0700) < 0 && errno != EEXIST) {
        o->rc = error_sys(o->err, "making a repository");
        return;
    }
    _cleanup_fd_ int fd = open_folder(r->folder_fd, new_name);
    if (fd < 0 || make_files(fd) < 0 ||
        renameat(r->folder_fd, new_name, r->folder_fd, repository_name) < 0) {
        o->rc = error_sys(o->err, "making a repository");
        return;
    }
    r->fd = steal_fd(&fd);
    r->head[0] = '\0';
}

int repository_make(struct repository *r, struct error *err)
{
    struct opening opening = {.r = r, .err = err};
    if (r->fd >= 0)
        return 0;
    workers_run(r->git->workers, make_on_worker, &opening);
    return opening.rc;
}

/* ---- checking ---- */

/* Whether there is more to be saved in the one that was set aside before: then that stays. One with
 * a branch was a history, which is newer; one without was perhaps never committed to. */
static bool is_less(const struct repository *r)
{
    uint64_t own = 0, other = 0;
    _cleanup_fd_ int fd = open_folder(r->folder_fd, torn_name);
    if (fd >= 0)
        packs_count(fd, &other);
    packs_count(r->fd, &own);
    return own < other && (own == 0 || r->head[0] == '\0');
}

static void set_aside_on_worker(void *arg)
{
    struct repository *r = arg;
    if (renameat(r->folder_fd, repository_name, r->folder_fd, torn_name) == 0)
        return;
    bool less = is_less(r);
    history_folder_unlink(r->folder_fd, less ? repository_name : torn_name);
    if (!less)
        renameat(r->folder_fd, repository_name, r->folder_fd, torn_name);
}

/* ---- the manifest ---- */

struct manifest_file {
    int folder_fd;
    struct manifest *m;
    struct buf data;
    struct error *err;
    int rc;
};

static int read_all(int fd, struct buf *data)
{
    for (;;) {
        char *to = buf_reserve(data, READ_SIZE);
        ssize_t n = to == NULL ? -1 : read(fd, to, READ_SIZE);
        if (n <= 0)
            return n < 0 ? -1 : 0;
        buf_commit(data, (size_t)n);
    }
}

static void load_on_worker(void *arg)
{
    struct manifest_file *f = arg;
    _cleanup_fd_ int fd = openat(f->folder_fd, "manifest", O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    f->rc = fd >= 0 && read_all(fd, &f->data) == 0
                ? history_manifest_decode((struct slice){f->data.data, f->data.len}, f->m, f->err)
                : error_sys(f->err, "reading the list of files");
}

static void save_on_worker(void *arg)
{
    struct manifest_file *f = arg;
    history_manifest_encode(f->m, &f->data);
    f->rc = buf_check(&f->data, "the list of files", f->err);
    if (f->rc < 0)
        return;
    _cleanup_fd_ int fd = openat(f->folder_fd, "manifest.new",
                                 O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    size_t done = 0;
    ssize_t n = 0;
    for (; fd >= 0 && done < f->data.len; done += (size_t)n)
        if ((n = write(fd, f->data.data + done, f->data.len - done)) <= 0)
            break;
    if (fd < 0 || done < f->data.len ||
        renameat(f->folder_fd, "manifest.new", f->folder_fd, "manifest") < 0)
        f->rc = error_sys(f->err, "writing the list of files");
    if (f->rc < 0)
        unlinkat(f->folder_fd, "manifest.new", 0);
}

static int load_file(struct repository *r, struct manifest *m, struct error *err)
{
    struct manifest_file file = {.folder_fd = r->folder_fd, .m = m, .err = err};
    buf_init(&file.data, MANIFEST_MAX);
    workers_run(r->git->workers, load_on_worker, &file);
    buf_release(&file.data);
    return file.rc;
}

int repository_save_manifest(struct repository *r, const struct manifest *m, struct error *err)
{
    struct manifest_file file = {.folder_fd = r->folder_fd, .m = (struct manifest *)m, .err = err};
    buf_init(&file.data, MANIFEST_MAX);
    workers_run(r->git->workers, save_on_worker, &file);
    buf_release(&file.data);
    return file.rc;
}

/* When it is not there, or not whole, is_torn(why). */
static bool has_commit(struct repository *r, const char *commit, struct error *why)
{
    *why = (struct error){0};
    char line[64];
    const char *const argv[] = {"rev-list", "--objects", "--quiet", "--max-count=1",
                                commit,     "--",        NULL};
    return git_name_valid(commit) && git_line(r->git, r->fd, argv, line, sizeof(line), why) == 0;
}

/* A ref that was never written to the disk: the manifest knows where it stood. */
static bool restore_head(struct repository *r, struct error *why)
{
    _cleanup_manifest_ struct manifest m;
    history_manifest_init(&m);
    char line[64];
    const char *const argv[] = {"update-ref", HISTORY_BRANCH, m.commit, NULL};
    if (load_file(r, &m, why) < 0 || !has_commit(r, m.commit, why) ||
        (unlinkat(r->fd, HISTORY_BRANCH, 0) < 0 && errno != ENOENT) ||
        git_line(r->git, r->fd, argv, line, sizeof(line), why) < 0)
        return false;
    memcpy(r->head, m.commit, GIT_NAME_SIZE);
    return true;
}

/* git's own verdict, or a list of files that is missing or torn. A call that failed, a git that
 * could not be started or was killed: that may have passed the next time, and is no reason to give
 * a history up. */
static bool is_torn(const struct error *why)
{
    return (why->sys == 0 || why->sys == ENOENT) &&
           (why->code == ERROR_NONE || why->code == ERROR_INTERNAL ||
            why->code == ERROR_FILE_NOT_FOUND || why->code == ERROR_INVALID_ARGUMENT);
}

int repository_check(struct repository *r, struct error *err)
{
    struct error why = {0};
    /* One that was made, and in which nothing has been written since, is whole. */
    if (r->fd >= 0 && r->head[0] == '\0' && r->packs == 0)
        return 0;
    if (r->fd < 0 || has_commit(r, r->head, &why) || (r->head[0] == '\0' && restore_head(r, &why)))
        return 0;
    if (!is_torn(&why)) {
        if (err != NULL)
            *err = why;
        return -1;
    }
    workers_run(r->git->workers, set_aside_on_worker, r);
    cleanup_fd(&r->fd);
    r->fd = -1;
    r->head[0] = '\0';
    r->packs = 0;
    r->bytes = 0;
    return 1;
}

int repository_manifest(struct repository *r, uint64_t rules, struct manifest *ret_manifest,
                        struct error *err)
{
    struct error why;
    if (r->head[0] == '\0')
        return 0;
    if (load_file(r, ret_manifest, &why) == 0 && strcmp(ret_manifest->commit, r->head) == 0 &&
        ret_manifest->rules == rules)
        return 0;
    history_manifest_release(ret_manifest);
    history_manifest_init(ret_manifest);
    return repository_tree(r, r->head, ret_manifest, err);
}

/* ---- the state of a commit ---- */

#define OURS ".cella/" /* what begins so is no file of the sandbox's */

/* "100644 blob 1f7a…\tworkspace/index.js" */
static int add_line(struct manifest *m, struct slice line, bool *ret_rules, struct error *err)
{
    enum { MODE = 6, KIND = 5, NAME_AT = MODE + 1 + KIND, PATH_AT = NAME_AT + GIT_NAME_LEN + 1 };
    char path[PATH_BYTES_MAX + 1];
    struct tracked item = {.type = FILE_REGULAR, .mode = 0644, .has_blob = true};
    if (line.len <= PATH_AT || line.len - PATH_AT > PATH_BYTES_MAX ||
        blob_name_parse(line.data + NAME_AT, item.blob) < 0)
        return error_set(err, ERROR_INTERNAL, "git: a line that makes no sense in a tree");
    memcpy(path, line.data + PATH_AT, line.len - PATH_AT);
    path[line.len - PATH_AT] = '\0';
    if (strcmp(path, IGNORE_PATH) == 0)
        *ret_rules = true;
    if (strchr(path, '/') == NULL || strncmp(path, OURS, sizeof(OURS) - 1) == 0)
        return 0; /* README.md, and what belongs to us */
    if (memcmp(line.data, "120000", MODE) == 0)
        item.type = FILE_SYMLINK, item.mode = 0777;
    else if (memcmp(line.data, "100755", MODE) == 0)
        item.mode = 0755;
    item.path = path;
    return history_manifest_add(m, &item, err);
}

static int read_tree(struct repository *r, const char *commit, struct manifest *m, bool *ret_rules,
                     struct error *err)
{
    _cleanup_git_ struct git git = {0};
    const char *const argv[] = {"ls-tree", "-r", "-z", "--full-tree", commit, NULL};
    struct slice line;
    int got;
    if (git_start(r->git, r->fd, argv, &git, err) < 0 || git_close_input(&git, err) < 0)
        return -1;
    while ((got = git_until(&git, '\0', 2 * PATH_BYTES_MAX, &line, err)) > 0)
        if (m->count >= HISTORY_ENTRIES_MAX)
            return error_set(err, ERROR_LIMIT_EXCEEDED, "a commit with too many files");
        else if (add_line(m, line, ret_rules, err) < 0 ||
                 (m->count % TURN_LINES == 0 && co_sleep(r->git->loop, 0, err) < 0))
            return -1;
    return got < 0 ? -1 : git_finish(&git, err);
}

static int read_ours(struct repository *r, const char *commit, const char *path, struct buf *text,
                     struct error *err)
{
    _cleanup_git_ struct git git = {0};
    char name[GIT_NAME_SIZE + sizeof(ATTRIBUTES_PATH)];
    snprintf(name, sizeof(name), "%s:%s", commit, path);
    const char *const argv[] = {"cat-file", "blob", name, NULL};
    struct slice data;
    if (git_start(r->git, r->fd, argv, &git, err) < 0 || git_close_input(&git, err) < 0)
        return -1;
    do {
        if (git_some(&git, READ_SIZE, &data, err) < 0)
            return -1;
        buf_add(text, data.data, data.len);
    } while (data.len > 0);
    if (git_finish(&git, err) < 0)
        return -1;
    return buf_check(text, path, err);
}

struct state {
    struct manifest *m;
    struct slice attributes, ignore;
    bool rules; /* ignore is */
    struct error *err;
    int rc;
};

/* Two hundred thousand files take a while to be put in order. */
static void put_together_on_worker(void *arg)
{
    struct state *s = arg;
    history_manifest_sort(s->m);
    s->rc = attributes_apply(s->m, s->attributes, s->err);
    if (s->rc < 0)
        return;
    s->m->ignore =
        s->rules ? history_ignore_read(s->ignore, s->m->arena) : history_rules_usual.ignore;
    s->m->committed = history_ignore_mark(s->m->ignore);
}

int repository_tree(struct repository *r, const char *commit, struct manifest *ret_manifest,
                    struct error *err)
{
    _cleanup_buf_ struct buf text = BUF_INIT(ATTRIBUTES_MAX), ignore = BUF_INIT(ATTRIBUTES_MAX);
    bool rules = false;
    if (read_tree(r, commit, ret_manifest, &rules, err) < 0 ||
        read_ours(r, commit, ATTRIBUTES_PATH, &text, err) < 0 ||
        (rules && read_ours(r, commit, IGNORE_PATH, &ignore, err) < 0))
        return -1;
    struct state state = {.m = ret_manifest,
                          .attributes = {text.data, text.len},
                          .ignore = {ignore.data, ignore.len},
                          .rules = rules,
                          .err = err};
    workers_run(r->git->workers, put_together_on_worker, &state);
    if (state.rc < 0)
        return -1;
    memcpy(ret_manifest->commit, commit, strlen(commit) + 1);
    return 0;
}
