/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Histories of files that only a test has, with a real git: a fake that lists and reads them, and a
 * folder with a loop in which a test runs as a coroutine. After cmocka.h. TEST(name) makes a
 * function test_name() of one that is given its place.
 */

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "loop/co.h"
#include "sandbox/history.h"
#include "sandbox/history_commit.h"
#include "sandbox/history_look.h"
#include "sandbox/history_repo.h"

/* ---- a sandbox's files ---- */

struct fake_file {
    const char *path;
    uint64_t type, mode, uid;
    const char *content; /* or a link's target */
    size_t len;          /* 0: strlen() */
    uint64_t stamp;      /* ctime and mtime */
};

struct fake {
    struct fake_file files[32];
    size_t count, reads;
    bool lies; /* says that they are empty when they are listed */
};

static inline size_t length(const struct fake_file *f)
{
    return f->len > 0 ? f->len : strlen(f->content == NULL ? "" : f->content);
}

static inline struct history_entry entry_of(const struct fake_file *f)
{
    return (struct history_entry){.path = f->path,
                                  .type = f->type,
                                  .mode = f->mode,
                                  .uid = f->uid,
                                  .gid = f->uid,
                                  .size = f->type == FILE_REGULAR ? length(f) : 0,
                                  .mtime_ns = f->stamp,
                                  .ctime_ns = f->stamp,
                                  .inode = 7,
                                  .target = f->type == FILE_SYMLINK ? f->content : NULL};
}

static inline int fake_list(void *ctx, history_visit *visit, void *visit_ctx, struct error *err)
{
    struct fake *fake = ctx;
    for (size_t i = 0; i < fake->count; i++) {
        struct history_entry entry = entry_of(&fake->files[i]);
        if (fake->lies)
            entry.size = 0;
        if (visit(visit_ctx, &entry, err) < 0)
            return -1;
    }
    return 0;
}

static inline int fake_read(void *ctx, const char *const *paths, size_t count, uint64_t size_max,
                            const struct history_sink *sink, void *sink_ctx, struct error *err)
{
    struct fake *fake = ctx;
    for (size_t i = 0; i < count; i++) {
        const struct fake_file *f = NULL;
        for (size_t j = 0; j < fake->count; j++)
            if (strcmp(fake->files[j].path, paths[i]) == 0)
                f = &fake->files[j];
        assert_non_null(f);
        struct history_entry entry = entry_of(f);
        fake->reads++;
        if (entry.size > size_max) {
            entry.flags = HISTORY_NO_CONTENT;
            if (sink->begin(sink_ctx, &entry, err) < 0)
                return -1;
            continue;
        }
        if (sink->begin(sink_ctx, &entry, err) < 0)
            return -1;
        for (size_t at = 0; at < length(f); at += 1000) {
            size_t n = length(f) - at < 1000 ? length(f) - at : 1000;
            if (sink->data(sink_ctx, (struct slice){f->content + at, n}, err) < 0)
                return -1;
        }
        if (sink->end(sink_ctx, false, err) < 0)
            return -1;
    }
    return 0;
}

static inline struct fake_file *fake_put(struct fake *fake, const char *path, uint64_t type,
                                         uint64_t mode, const char *content)
{
    struct fake_file *f = NULL;
    for (size_t i = 0; i < fake->count; i++)
        if (strcmp(fake->files[i].path, path) == 0)
            f = &fake->files[i];
    if (f == NULL)
        f = &fake->files[fake->count++];
    uint64_t stamp = f->stamp == 0 ? 1000000 : f->stamp + 1;
    *f = (struct fake_file){path, type, mode, 0, content, 0, stamp};
    return f;
}

static inline void fake_remove(struct fake *fake, const char *path)
{
    for (size_t i = 0; i < fake->count; i++)
        if (strcmp(fake->files[i].path, path) == 0)
            fake->files[i] = fake->files[--fake->count];
}

/* ---- where it runs ---- */

struct place {
    struct loop *loop;
    struct git_program git;
    char path[64];
    int fd;
    struct arena *arena;
    void (*test)(struct place *p);
};

static inline int remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
    return remove(path);
}

static inline void run_place(void *arg)
{
    struct place *p = arg;
    p->test(p);
    loop_stop(p->loop);
}

static inline void on_coroutine(void (*test)(struct place *p))
{
    struct error err;
    struct place p = {.test = test, .path = "/tmp/cella-history-XXXXXX"};
    assert_non_null(mkdtemp(p.path));
    p.fd = open(p.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    p.loop = loop_new(&err);
    p.arena = arena_new();
    p.git.loop = p.loop;
    p.git.workers = workers_new(p.loop, 1, &err);
    if (git_program_find(p.git.path, &err) < 0)
        fail_msg("%s", err.message);
    assert_int_equal(co_spawn(p.loop, run_place, &p, NULL, &err), 0);
    assert_int_equal(loop_run(p.loop, &err), 0);
    workers_free(p.git.workers);
    loop_free(p.loop);
    arena_free(p.arena);
    close(p.fd);
    nftw(p.path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static inline void open_repository(struct place *p, const char *id, struct repository *ret)
{
    struct error err;
    if (repository_open(&p->git, p->fd, id, true, true, ret, &err) < 0)
        fail_msg("%s", err.message);
}

static inline int remember(struct place *p, const char *execution, const char *commit,
                           int64_t time_ms)
{
    char line[EXECUTION_LINE_SIZE];
    struct error err;
    size_t len = execution_line(line, execution, commit, time_ms);
    return executions_append(p->fd, "box", (struct slice){line, len}, &err);
}

/* Commits what the fake has, which patterns leave some of out; whether there was something to
 * commit. */
static inline bool commit_with(struct place *p, struct fake *fake, const char *execution,
                               struct slice ignore)
{
    struct repository r;
    struct error err = {0};
    struct history_committed committed = {0};
    struct manifest m;
    const struct history_source source = {fake, fake_list, fake_read};
    const struct history_commit_request request = {.execution = execution,
                                                   .message = "Update files for sandbox execution",
                                                   .file_max = 100000,
                                                   .ignore = ignore,
                                                   .total_max = 1 << 30,
                                                   .created_ns = 1000};
    history_manifest_init(&m);
    open_repository(p, "box", &r);
    if (history_commit_files(&r, &source, &request, p->arena, &m, &committed, &err) < 0)
        fail_msg("%s", err.message);
    if (execution != NULL)
        assert_int_equal(remember(p, execution, r.head, 1), 0);
    history_manifest_release(&m);
    repository_close(&r);
    return committed.made;
}

static inline bool commit(struct place *p, struct fake *fake, const char *execution)
{
    return commit_with(p, fake, execution, (struct slice){0});
}

static inline struct history_page log_of(struct place *p, size_t limit, size_t offset)
{
    struct repository r;
    struct error err;
    struct history_page page;
    open_repository(p, "box", &r);
    if (repository_log(&r, limit, offset, p->arena, &page, &err) < 0)
        fail_msg("%s", err.message);
    repository_close(&r);
    return page;
}

static inline struct history_diff diff_of(struct place *p, const char *from, const char *to)
{
    struct repository r;
    struct error err;
    struct history_diff diff = {0};
    char commits[2][GIT_NAME_SIZE];
    open_repository(p, "box", &r);
    if (repository_resolve(&r, from, commits[0], &err) < 0 ||
        repository_resolve(&r, to, commits[1], &err) < 0 ||
        repository_diff(&r, commits[0], commits[1], p->arena, &diff, &err) < 0)
        fail_msg("%s", err.message);
    repository_close(&r);
    return diff;
}

static inline void assert_slice(struct slice s, const char *text)
{
    char *copy = strndup(s.data, s.len);
    assert_string_equal(copy, text);
    free(copy);
}

static inline const char *part_of(struct place *p, const struct history_diff *diff,
                                  const char *path)
{
    for (size_t i = 0; i < diff->count; i++)
        if (slice_eq(diff->files[i].path, slice_of(path)))
            return arena_dup(p->arena, diff->files[i].text.data, diff->files[i].text.len);
    fail_msg("no diff of %s", path);
    return NULL;
}

static inline void seed_files(struct fake *fake)
{
    fake_put(fake, "/workspace", FILE_DIRECTORY, 0755, NULL);
    fake_put(fake, "/workspace/index.js", FILE_REGULAR, 0644, "console.log(\"Version 1\");");
}

#define TEST(name)                                                                                 \
    static void test_##name(void **state)                                                          \
    {                                                                                              \
        on_coroutine(name);                                                                        \
    }
