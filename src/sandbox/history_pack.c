/* SPDX-License-Identifier: Apache-2.0 */

/* Making packs one, and forgetting what is too much. */

#include "sandbox/history_pack.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"

enum {
    LARGE = 256 << 20, /* bytes of a repository */
};

static const char packs_folder[] = "objects/pack";

static DIR *open_packs(int repository_fd)
{
    int fd = openat(repository_fd, packs_folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    if (dir == NULL && fd >= 0)
        close(fd);
    return dir;
}

/* Not those that are being written. */
unsigned packs_count(int repository_fd, uint64_t *bytes)
{
    unsigned count = 0;
    _cleanup_dir_ DIR *dir = open_packs(repository_fd);
    const struct dirent *entry;
    while (dir != NULL && (entry = readdir(dir)) != NULL) {
        struct stat st;
        const char *dot = strrchr(entry->d_name, '.');
        if (entry->d_name[0] == '.' || strncmp(entry->d_name, "tmp_", 4) == 0)
            continue;
        count += dot != NULL && strcmp(dot, ".pack") == 0;
        if (bytes != NULL && fstatat(dirfd(dir), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
            S_ISREG(st.st_mode))
            *bytes += (uint64_t)st.st_size;
    }
    return count;
}

struct measuring {
    int fd;
    uint64_t bytes;
};

static void measure_on_worker(void *arg)
{
    struct measuring *m = arg;
    packs_count(m->fd, &m->bytes);
}

uint64_t repository_size(struct repository *r)
{
    struct measuring m = {r->fd, 0};
    workers_run(r->git->workers, measure_on_worker, &m);
    return m.bytes;
}

/* ---- making them one ---- */

void packing_release(struct packing *packing)
{
    buf_release(&packing->before);
}

/* "pack-1f7a….pack": its name; NULL: it is no pack. */
static const char *pack_name(const char *file, char out[GIT_NAME_SIZE])
{
    if (strncmp(file, "pack-", 5) != 0 || strlen(file) != 5 + GIT_NAME_LEN + 5 ||
        strcmp(file + 5 + GIT_NAME_LEN, ".pack") != 0)
        return NULL;
    memcpy(out, file + 5, GIT_NAME_LEN);
    out[GIT_NAME_LEN] = '\0';
    return git_name_valid(out) ? out : NULL;
}

struct looking {
    struct repository *r;
    struct packing *packing;
    struct error *err;
    int rc;
};

/* The packs first: one that comes with a newer commit is not among those that go. */
static void begin_on_worker(void *arg)
{
    struct looking *l = arg;
    char name[GIT_NAME_SIZE];
    _cleanup_dir_ DIR *dir = open_packs(l->r->fd);
    const struct dirent *entry;
    buf_clear(&l->packing->before);
    while (dir != NULL && (entry = readdir(dir)) != NULL)
        if (pack_name(entry->d_name, name) != NULL)
            buf_add(&l->packing->before, name, GIT_NAME_SIZE);
    l->rc = dir == NULL ? error_sys(l->err, "listing packs")
                        : repository_read_head(l->r->fd, l->packing->head, l->err);
}

/* Of all that can be reached from one commit and not from another (NULL: nothing left out). */
static int pack_objects(struct repository *r, const char *of, const char *without,
                        char ret_name[GIT_NAME_SIZE], struct error *err)
{
    _cleanup_git_ struct git git = {0};
    /* Looking for what is alike takes minutes in a large one. */
    const char *window = repository_size(r) > LARGE ? "--window=0" : "--window=10";
    const char *const argv[] = {"-c",     "pack.windowMemory=64m", "pack-objects",
                                "--revs", "--delta-base-offset",   "-q",
                                window,   "objects/pack/pack",     NULL};
    struct slice line;
    if (git_start(r->git, r->fd, argv, &git, err) < 0)
        return -1;
    git_allow(&git, GIT_LONG_MS);
    git.patience_ms = GIT_LONG_MS; /* it says nothing until it is done */
    if (git_puts(&git, of, err) < 0 || git_puts(&git, "\n", err) < 0 ||
        (without != NULL && (git_puts(&git, "^", err) < 0 || git_puts(&git, without, err) < 0 ||
                             git_puts(&git, "\n", err) < 0)) ||
        git_close_input(&git, err) < 0)
        return -1;
    int got = git_until(&git, '\n', GIT_NAME_LEN, &line, err);
    if (got < 0)
        return -1;
    if (got == 0 || line.len != GIT_NAME_LEN)
        return git_finish(&git, err) < 0
                   ? -1
                   : error_set(err, ERROR_INTERNAL, "git: a pack without a name");
    memcpy(ret_name, line.data, GIT_NAME_LEN);
    ret_name[GIT_NAME_LEN] = '\0';
    return git_finish(&git, err);
}

int repository_pack(struct repository *r, struct packing *packing, struct error *err)
{
    struct looking looking = {r, packing, err, 0};
    memset(packing->packs, 0, sizeof(packing->packs));
    workers_run(r->git->workers, begin_on_worker, &looking);
    if (looking.rc < 0 || buf_check(&packing->before, "the list of packs", err) < 0)
        return -1;
    if (packing->head[0] == '\0')
        return 0;
    return pack_objects(r, packing->head, NULL, packing->packs[0], err);
}

/* ---- the old ones ---- */

static bool is_new(const struct packing *packing, const char *name)
{
    return strcmp(name, packing->packs[0]) == 0 || strcmp(name, packing->packs[1]) == 0;
}

/* What git does not find in an index it does not look for: so that goes first, and the pack, which
 * the next packing finds it by, last. */
static void unlink_pack(int folder_fd, const char *name)
{
    static const char *const ends[] = {"idx", "rev", "bitmap", "keep", "pack"};
    char file[GIT_NAME_SIZE + 16];
    for (size_t i = 0; i < ARRAY_LEN(ends); i++) {
        snprintf(file, sizeof(file), "pack-%s.%s", name, ends[i]);
        unlinkat(folder_fd, file, 0);
    }
}

static bool is_there(int folder_fd, const char *name)
{
    char file[GIT_NAME_SIZE + 16];
    snprintf(file, sizeof(file), "pack-%s.idx", name);
    return name[0] == '\0' || faccessat(folder_fd, file, F_OK, 0) == 0;
}

static void end_on_worker(void *arg)
{
    struct looking *l = arg;
    const struct packing *packing = l->packing;
    _cleanup_dir_ DIR *dir = open_packs(l->r->fd);
    if (dir == NULL || !is_there(dirfd(dir), packing->packs[0]) ||
        !is_there(dirfd(dir), packing->packs[1])) {
        l->rc = error_set(l->err, ERROR_UNAVAILABLE, "a new pack is not there any more");
        return;
    }
    const struct slice before = {packing->before.data, packing->before.len};
    strv_each (name, before)
        if (!is_new(packing, name))
            unlink_pack(dirfd(dir), name);
}

static void head_on_worker(void *arg)
{
    struct looking *l = arg;
    l->rc = repository_read_head(l->r->fd, l->r->head, l->err);
}

int repository_pack_end(struct repository *r, struct packing *packing, struct error *err)
{
    struct looking looking = {r, packing, err, 0};
    workers_run(r->git->workers, head_on_worker, &looking);
    if (looking.rc < 0)
        return -1;
    if (packing->packs[0][0] == '\0')
        return 0;
    if (strcmp(r->head, packing->head) != 0 &&
        pack_objects(r, r->head, packing->head, packing->packs[1], err) < 0)
        return -1;
    workers_run(r->git->workers, end_on_worker, &looking);
    return looking.rc;
}

int repository_repack(struct repository *r, struct error *err)
{
    _cleanup_packing_ struct packing packing = PACKING_INIT;
    return repository_pack(r, &packing, err) < 0 ? -1 : repository_pack_end(r, &packing, err);
}

/* ---- less of it ---- */

static int write_file(int dir_fd, const char *name, const char *text)
{
    _cleanup_fd_ int fd =
        openat(dir_fd, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    size_t len = strlen(text);
    return fd >= 0 && write(fd, text, len) == (ssize_t)len ? 0 : -1;
}

/* git takes a commit that is named in this file for one without a parent. */
int repository_forget_half(struct repository *r, struct error *err)
{
    char count[32], skip[48], name[GIT_NAME_SIZE], text[GIT_NAME_SIZE + 1];
    const char *const counting[] = {"rev-list", "--count", r->head, "--", NULL};
    if (git_line(r->git, r->fd, counting, count, sizeof(count), err) < 0)
        return -1;
    unsigned long commits = strtoul(count, NULL, 10);
    if (commits < 2)
        return 0;
    snprintf(skip, sizeof(skip), "--skip=%lu", commits / 2 - 1 + commits % 2);
    const char *const finding[] = {"rev-list", "--max-count=1", skip, r->head, "--", NULL};
    if (git_line(r->git, r->fd, finding, name, sizeof(name), err) < 0)
        return -1;
    if (!git_name_valid(name))
        return error_set(err, ERROR_INTERNAL, "git: no commit to begin at");
    snprintf(text, sizeof(text), "%s\n", name);
    if (write_file(r->fd, "shallow.new", text) < 0 ||
        renameat(r->fd, "shallow.new", r->fd, "shallow") < 0)
        return error_sys(err, "shortening a history");
    return 1;
}
