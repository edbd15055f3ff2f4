/* SPDX-License-Identifier: Apache-2.0 */

/*
 * `git log` and `git diff-tree`, as text. Both are asked for NULs behind names, so that no name can
 * be taken for something else; a patch is told from the next by the line that it begins with,
 * which no line of content can be: those begin with a blank, a sign or a backslash.
 */

#include "sandbox/history_look.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/limits.h"

enum {
    FIELD_MAX = 1 << 20,
    LINE_MAX_BYTES = (8 << 20) + 64, /* larger files are binary to git: core.bigFileThreshold */
};

#define TIME_MAX_S (INT64_MAX / 1000)

/* ---- the log ---- */

struct log {
    struct history_commit *commits;
    size_t count, limit;
    struct slice *files; /* of the newest one */
    bool first;          /* … which has no parent */
    size_t room;         /* bytes of names that may still be shown, of all commits */
    struct arena *arena;
};

/* Whether there is room for one more name; asked before it is copied. */
static bool has_room(struct log *log, size_t len)
{
    struct history_commit *c = &log->commits[log->count - 1];
    size_t needed = len + 2 * sizeof(struct slice);
    if (c->file_count == HISTORY_FILES_SHOWN || needed > log->room) {
        c->files_cut = true;
        return false;
    }
    log->room -= needed;
    return true;
}

static void add_file(struct log *log, struct slice shown)
{
    struct history_commit *c = &log->commits[log->count - 1];
    if ((c->file_count & (c->file_count - 1)) == 0) { /* at 0, 1, 2, 4, 8 … there is no room left */
        size_t cap = c->file_count == 0 ? 1 : 2 * c->file_count;
        struct slice *files = arena_alloc(log->arena, cap * sizeof(*files));
        if (c->file_count > 0)
            memcpy(files, log->files, c->file_count * sizeof(*files));
        log->files = files;
        c->files = files;
    }
    log->files[c->file_count++] = shown;
}

static void add_tree_path(struct log *log, struct slice path)
{
    struct arena *arena = log->arena;
    static const char ours_begin[] = ".cella/";
    if (path.len > sizeof(ours_begin) - 1 &&
        memcmp(path.data, ours_begin, sizeof(ours_begin) - 1) == 0)
        return;
    bool ours = memchr(path.data, '/', path.len) == NULL;
    if (!ours && log->first) /* what the image brought is no change */
        return;
    if (!has_room(log, path.len))
        return;
    add_file(log, ours ? (struct slice){arena_dup(arena, path.data, path.len), path.len}
                       : path_shown(path, arena));
}

/* Of the lines of a message: "Execution-Id: …", and the names of what git does not see. */
static void read_message(struct log *log, struct slice text)
{
    static const char id[] = "Execution-Id: ", attributes[] = "Attributes: ";
    struct history_commit *c = &log->commits[log->count - 1];
    const char *end = text.data + text.len;
    for (const char *at = text.data; at < end;) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        size_t len = (size_t)((stop != NULL ? stop : end) - at);
        if (at == text.data)
            c->message = arena_dup(log->arena, at, len);
        else if (len > sizeof(id) - 1 && memcmp(at, id, sizeof(id) - 1) == 0)
            c->id = arena_dup(log->arena, at + sizeof(id) - 1, len - (sizeof(id) - 1));
        else if (len > sizeof(attributes) - 1 &&
                 memcmp(at, attributes, sizeof(attributes) - 1) == 0 && has_room(log, 2 * len)) {
            const char *path = path_unescape(
                (struct slice){at + sizeof(attributes) - 1, len - (sizeof(attributes) - 1)},
                log->arena);
            if (path != NULL)
                add_file(log, path_shown(slice_of(path), log->arena));
        }
        at += len + 1;
    }
}

/* "\1<commit>", "<parents>", "<seconds>", "<message>". 0 when the first is not there. */
static int read_commit(struct git *git, struct slice field, struct log *log, struct error *err)
{
    char number[24];
    if (field.len != GIT_NAME_LEN + 1 || field.data[0] != '\1')
        return error_set(err, ERROR_INTERNAL, "git: a log that makes no sense");
    struct history_commit *c = &log->commits[log->count++];
    *c = (struct history_commit){.id = HISTORY_FIRST_ID,
                                 .commit = arena_dup(log->arena, field.data + 1, GIT_NAME_LEN),
                                 .message = ""};
    log->files = NULL;
    if (git_until(git, '\0', FIELD_MAX, &field, err) <= 0)
        return -1;
    log->first = field.len == 0;
    if (git_until(git, '\0', FIELD_MAX, &field, err) <= 0)
        return -1;
    snprintf(number, sizeof(number), "%.*s", (int)(field.len < 20 ? field.len : 20), field.data);
    long long seconds = strtoll(number, NULL, 10);
    c->time_ms = seconds >= 0 && seconds <= TIME_MAX_S ? seconds * 1000 : 0;
    if (git_until(git, '\0', FIELD_MAX, &field, err) <= 0)
        return -1;
    read_message(log, field);
    return 0;
}

static int read_log(struct git *git, struct log *log, struct error *err)
{
    struct slice field;
    int got;
    error_set(err, ERROR_INTERNAL, "git: a log that ends too early");
    while ((got = git_until(git, '\0', FIELD_MAX, &field, err)) > 0) {
        if (field.len > 0 && field.data[0] == '\n') /* before the first name of a commit */
            field.data++, field.len--;
        if (field.len == 0)
            continue;
        if (field.data[0] == '\1') {
            if (log->count == log->limit)
                return 0;
            if (read_commit(git, field, log, err) < 0)
                return -1;
        } else if (log->count > 0) {
            add_tree_path(log, field);
        }
    }
    return got < 0 ? -1 : 0;
}

int history_log_read(struct git *git, size_t limit, struct arena *arena,
                     struct history_page *ret_page, struct error *err)
{
    struct log log = {.arena = arena, .limit = limit + 1, .room = HISTORY_DIFF_BYTES_MAX};
    log.commits = arena_alloc(arena, (limit + 1) * sizeof(*log.commits));
    if (read_log(git, &log, err) < 0)
        return -1;
    *ret_page = (struct history_page){.commits = log.commits,
                                      .count = log.count < limit ? log.count : limit,
                                      .more = log.count > limit};
    return 0;
}

int repository_log(struct repository *r, size_t limit, size_t offset, struct arena *arena,
                   struct history_page *ret_page, struct error *err)
{
    _cleanup_git_ struct git git = {0};
    char count[32], skip[32];
    snprintf(count, sizeof(count), "--max-count=%zu", limit + 1);
    snprintf(skip, sizeof(skip), "--skip=%zu", offset);
    const char *const argv[] = {
        "log",         "-z",           "--format=%x01%H%x00%P%x00%ct%x00%B%x00",
        "--name-only", "--no-renames", "--root",
        "--no-color",  count,          skip,
        r->head,       "--",           NULL};
    struct history_page page;
    if (git_start(r->git, r->fd, argv, &git, err) < 0 || git_close_input(&git, err) < 0 ||
        history_log_read(&git, limit, arena, &page, err) < 0 || git_finish(&git, err) < 0)
        return -1;
    *ret_page = page;
    return 0;
}

int repository_execution_of(struct repository *r, const char *commit, char *ret_execution,
                            struct error *err)
{
    char line[256];
    const char *const argv[] = {
        "log", "--max-count=1", "--format=%(trailers:key=Execution-Id,valueonly)", commit, "--",
        NULL};
    if (git_line(r->git, r->fd, argv, line, sizeof(line), err) < 0)
        return -1;
    if (execution_normalize(line, ret_execution, NULL) < 0)
        snprintf(ret_execution, EXECUTION_ID_SIZE, "%s", HISTORY_FIRST_ID);
    return 0;
}

int repository_parent(struct repository *r, const char *commit, char ret_parent[GIT_NAME_SIZE],
                      struct error *err)
{
    char line[256];
    const char *const argv[] = {"log", "--max-count=1", "--format=%P", commit, "--", NULL};
    if (git_line(r->git, r->fd, argv, line, sizeof(line), err) < 0)
        return -1;
    line[GIT_NAME_LEN] = '\0';
    memcpy(ret_parent, git_name_valid(line) ? line : commit, GIT_NAME_SIZE);
    return 0;
}

/* ---- a diff ---- */

/* One run: of /workspace, where paths are relative, or of the rest. */
struct diff_run {
    struct arena *arena;
    struct history_file_diff *files;
    size_t count, first; /* the first one of this run */
    size_t room;         /* bytes that may still be shown */
    bool absolute, cut;
    size_t *parts; /* of each file: a change of type is told as two patches */
};

/* ":100644 100644 1f7a… 8c1e… M", "index.js"; with R and C two names. */
static int read_raw(struct git *git, struct diff_run *run, struct error *err)
{
    struct slice field;
    for (;;) {
        int got = git_until(git, '\0', FIELD_MAX, &field, err);
        if (got <= 0 || field.len == 0)
            return got < 0 ? -1 : 0;
        const char *letter = field.data[0] == ':' ? memrchr(field.data, ' ', field.len) : NULL;
        if (letter == NULL)
            return error_set(err, ERROR_INTERNAL, "git: a diff that makes no sense");
        char kind = letter[1];
        bool two = kind == 'R' || kind == 'C';
        if ((two && git_until(git, '\0', FIELD_MAX, &field, err) <= 0) ||
            git_until(git, '\0', FIELD_MAX, &field, err) <= 0)
            return error_set(err, ERROR_INTERNAL, "git: a diff that ends too early");
        if (run->count == HISTORY_DIFF_FILES_MAX) {
            run->cut = true; /* the patches of those before come behind the last of these */
            continue;
        }
        struct slice path = {arena_dup(run->arena, field.data, field.len), field.len};
        run->parts[run->count] = kind == 'T' ? 2 : 1;
        run->files[run->count++].path = run->absolute ? path_shown(path, run->arena) : path;
    }
}

/* Puts what was collected of one file in its place. */
static void keep_part(struct diff_run *run, size_t file, struct buf *text, bool cut)
{
    struct history_file_diff *f = &run->files[file];
    f->text = (struct slice){arena_dup(run->arena, text->data, text->len), text->len};
    f->cut = cut;
    run->cut |= cut;
    buf_clear(text);
}

static int read_patches(struct git *git, struct diff_run *run, struct error *err)
{
    static const char head[] = "diff --git ";
    _cleanup_buf_ struct buf text = BUF_INIT(HISTORY_DIFF_FILE_MAX + 2);
    size_t file = run->first, part = 0;
    bool cut = false, any = false;
    struct slice line;
    int got;
    while ((got = git_until(git, '\n', LINE_MAX_BYTES, &line, err)) > 0) {
        bool begins = line.len > sizeof(head) - 1 && memcmp(line.data, head, sizeof(head) - 1) == 0;
        if (begins && any && ++part >= run->parts[file]) {
            keep_part(run, file++, &text, cut);
            part = 0;
            cut = false;
        }
        any |= begins;
        if (file >= run->count)
            return 0; /* those that are not shown */
        bool fits = text.len + line.len < HISTORY_DIFF_FILE_MAX && line.len < run->room;
        cut |= !fits;
        if (!any || cut)
            continue;
        buf_add(&text, line.data, line.len);
        buf_addc(&text, '\n');
        run->room -= line.len + 1 < run->room ? line.len + 1 : run->room;
    }
    if (any && file < run->count)
        keep_part(run, file, &text, cut);
    return got < 0 ? -1 : 0;
}

static int diff_part(struct repository *r, const char *from, const char *to, struct diff_run *run,
                     struct error *err)
{
    _cleanup_git_ struct git git = {0};
    const char *const argv[] = {"diff-tree",
                                "-r",
                                "-z",
                                "--raw",
                                "-p",
                                "-M",
                                "-l1000",
                                "--no-color",
                                "--no-ext-diff",
                                "--no-textconv",
                                "--src-prefix=a/",
                                "--dst-prefix=b/",
                                run->absolute ? "--no-relative" : "--relative=workspace/",
                                from,
                                to,
                                "--",
                                run->absolute ? ":(exclude,top,literal)workspace" : NULL,
                                run->absolute ? ":(exclude,top,literal).cella" : NULL,
                                run->absolute ? ":(exclude,top,literal)README.md" : NULL,
                                NULL};
    run->first = run->count;
    if (git_start(r->git, r->fd, argv, &git, err) < 0 || git_close_input(&git, err) < 0)
        return -1;
    if (read_raw(&git, run, err) < 0 || read_patches(&git, run, err) < 0)
        return -1;
    /* One that was not read to its end ends by our hand. */
    return run->cut ? 0 : git_finish(&git, err);
}

int repository_diff(struct repository *r, const char *from, const char *to, struct arena *arena,
                    struct history_diff *diff, struct error *err)
{
    struct diff_run run = {.arena = arena, .room = HISTORY_DIFF_BYTES_MAX};
    run.files = arena_alloc(arena, HISTORY_DIFF_FILES_MAX * sizeof(*run.files));
    run.parts = arena_alloc(arena, HISTORY_DIFF_FILES_MAX * sizeof(*run.parts));
    if (strcmp(from, to) != 0) {
        if (diff_part(r, from, to, &run, err) < 0)
            return -1;
        run.absolute = true;
        if (diff_part(r, from, to, &run, err) < 0)
            return -1;
    }
    diff->files = run.files;
    diff->count = run.count;
    diff->cut = run.cut;
    return 0;
}
