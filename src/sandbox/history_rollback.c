/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Going back. First a commit of what has not been committed, then the differences between what is
 * there and what is to be, as orders to the agent, then a commit of what came of it: so nothing is
 * lost, and a rollback that was interrupted can be gone back from, or done again. What somebody
 * writes between the first commit and its turn is left alone: the agent is told what was seen in
 * its place. It goes on, on a coroutine of its own, when whoever asked for it has gone.
 */

#include "sandbox/history.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/timetext.h"
#include "loop/co.h"
#include "sandbox/file_tree.h"
#include "sandbox/history_look.h"
#include "sandbox/history_state.h"
#include "sandbox/history_tree.h"

enum {
    HEADER_MAX = 128,
    PIECE = 64 * 1024,
    ROOM = 64 * 1024, /* bytes that its own commit takes on the disk, at the most … */
    ROOM_PER_FILE = 128,
};

struct rollback {
    struct sandbox *sb;
    char target[EXECUTION_ID_SIZE];
    struct arena *arena; /* of the answer */
    struct history_rollback answer;
    char saved[EXECUTION_ID_SIZE];
    bool done;
    int rc;
    struct error err;
    unsigned refs;
    struct co_cond ended;
};

/* ---- the agent's part ---- */

struct applying {
    struct history_tree *tree;
    struct git contents; /* cat-file --batch */
    struct manifest *now, *goal;
    bool compares; /* the agent does, what is there with what was listed */
};

/* What is there, as far as the last commit has it; NULL: nothing that it knows. */
static const struct tracked *is_now(const struct applying *a, const char *path)
{
    const struct tracked *item = history_manifest_find(a->now, path);
    return item == NULL || item->outgrown ? NULL : item;
}

/* The agent wants absolute paths. What is where the last commit saw nothing is nothing that history
 * keeps: it would be lost. */
static int order(struct applying *a, enum history_op op, const struct tracked *item, uint64_t size,
                 const char *target, struct error *err)
{
    char path[PATH_BYTES_MAX + 2];
    const struct tracked *now = is_now(a, item->path);
    bool compared = now != NULL && a->compares;
    snprintf(path, sizeof(path), "/%s", item->path);
    const struct history_item ordered = {
        .op = op,
        .path = path,
        .mode = item->mode,
        .uid = item->uid,
        .gid = item->gid,
        .size = size,
        .target = target,
        .only_new = now == NULL,
        .was_inode = compared ? now->inode : 0,
        .was_ctime_ns = compared && now->type != FILE_DIRECTORY ? now->seen_ns : 0};
    return history_tree_apply_item(a->tree, &ordered, err);
}

/* "<name> blob <size>\n", then as many bytes and a newline. */
static int ask_content(struct applying *a, const struct tracked *item, uint64_t *ret_size,
                       struct error *err)
{
    char name[GIT_NAME_SIZE + 1];
    struct slice line;
    blob_name_text(item->blob, name);
    name[GIT_NAME_LEN] = '\n';
    if (git_put(&a->contents, name, GIT_NAME_SIZE, err) < 0 || git_flush(&a->contents, err) < 0)
        return -1;
    int got = git_until(&a->contents, '\n', HEADER_MAX, &line, err);
    if (got < 0)
        return -1;
    char text[HEADER_MAX + 1];
    snprintf(text, sizeof(text), "%.*s", (int)(got > 0 && line.len < HEADER_MAX ? line.len : 0),
             line.data);
    if (strncmp(text + (text[0] != '\0' ? GIT_NAME_LEN : 0), " blob ", 6) != 0)
        return error_set(err, ERROR_INTERNAL, "git: content of \"%.80s\" is missing", item->path);
    *ret_size = strtoull(text + GIT_NAME_LEN + 6, NULL, 10);
    return 0;
}

static int end_content(struct applying *a, struct error *err)
{
    struct slice newline;
    return git_some(&a->contents, 1, &newline, err);
}

static int put_file(struct applying *a, const struct tracked *item, struct error *err)
{
    uint64_t size;
    struct slice data;
    if (ask_content(a, item, &size, err) < 0 || order(a, HISTORY_FILE, item, size, NULL, err) < 0)
        return -1;
    while (size > 0) {
        if (git_some(&a->contents, size < PIECE ? (size_t)size : PIECE, &data, err) < 0)
            return -1;
        if (data.len == 0)
            return error_set(err, ERROR_INTERNAL, "git: content that ends too early");
        if (history_tree_apply_put(a->tree, data, err) < 0)
            return -1;
        size -= data.len;
    }
    return end_content(a, err);
}

static int put_link(struct applying *a, const struct tracked *item, struct error *err)
{
    uint64_t size;
    struct slice data;
    char target[PATH_BYTES_MAX + 1];
    if (ask_content(a, item, &size, err) < 0)
        return -1;
    if (size > PATH_BYTES_MAX)
        return error_set(err, ERROR_INTERNAL, "git: a link of %llu bytes",
                         (unsigned long long)size);
    for (size_t have = 0; have < size; have += data.len) {
        if (git_some(&a->contents, (size_t)size - have, &data, err) < 0)
            return -1;
        if (data.len == 0)
            return error_set(err, ERROR_INTERNAL, "git: content that ends too early");
        memcpy(target + have, data.data, data.len);
    }
    target[size] = '\0';
    return end_content(a, err) < 0 ? -1 : order(a, HISTORY_SYMLINK, item, 0, target, err);
}

static bool is_root(const struct tracked *item)
{
    return strcmp(item->path, "workspace") == 0 || strcmp(item->path, "home/user") == 0;
}

/* What is in a directory before itself. */
static int remove_others(struct applying *a, struct error *err)
{
    for (size_t i = a->now->count; i-- > 0;) {
        const struct tracked *item = &a->now->items[i];
        const struct tracked *goal = history_manifest_find(a->goal, item->path);
        if (is_root(item) || item->outgrown || item->ignored ||
            (goal != NULL && goal->type == item->type))
            continue;
        if (order(a, HISTORY_REMOVE, item, 0, NULL, err) < 0)
            return -1;
    }
    return 0;
}

static int put_item(struct applying *a, const struct tracked *goal, struct error *err)
{
    const struct tracked *item = is_now(a, goal->path);
    bool same = item != NULL && tracked_same_tree(item, goal);
    if (goal->ignored || (same && tracked_same_attributes(item, goal)))
        return 0;
    if (same && goal->type == FILE_DIRECTORY) /* a file by its content: see HISTORY_ATTRIBUTES */
        return order(a, HISTORY_ATTRIBUTES, goal, 0, NULL, err);
    switch (goal->type) {
    case FILE_DIRECTORY:
        return order(a, HISTORY_DIRECTORY, goal, 0, NULL, err);
    case FILE_SYMLINK:
        return put_link(a, goal, err);
    default:
        return put_file(a, goal, err);
    }
}

static int give_orders(struct applying *a, struct arena *arena, struct history_applied *ret_applied,
                       struct error *err)
{
    if (history_tree_apply_begin(a->tree, err) < 0 || remove_others(a, err) < 0)
        return -1;
    for (size_t i = 0; i < a->goal->count; i++)
        if (put_item(a, &a->goal->items[i], err) < 0)
            return -1;
    return history_tree_apply_end(a->tree, arena, ret_applied, err);
}

/* ---- rules ---- */

struct marking {
    struct manifest *now, *goal;
    struct slice ignore; /* of now */
    bool done;
};

/* In a commit there may be what its own rules left out: it was there before they did, or before it
 * was too large. */
static void mark_on_worker(void *arg)
{
    struct marking *m = arg;
    history_manifest_mark_large(m->goal, m->goal);
    history_manifest_mark_large(m->now, m->goal);
    m->done = history_manifest_mark(m->goal, m->goal->ignore);
    if (m->done && !slice_eq(m->ignore, m->goal->ignore))
        m->done = history_manifest_mark(m->goal, m->ignore) &&
                  history_manifest_mark(m->now, m->goal->ignore);
}

static int mark_ignored(struct sandbox *sb, struct repository *r, struct manifest *now,
                        struct manifest *goal, struct arena *arena, struct error *err)
{
    struct marking marking = {now, goal, history_ignore_of(sb, arena), false};
    workers_run(r->git->workers, mark_on_worker, &marking);
    if (marking.done)
        return 0;
    return error_set(err, ERROR_LIMIT_EXCEEDED,
                     "there are too many files to hold against so many patterns of "
                     "spec.history.ignore");
}

static int apply(struct sandbox *sb, struct repository *r, struct manifest *now,
                 struct manifest *goal, struct arena *arena, struct history_applied *ret_applied,
                 bool *ret_begun, struct error *err)
{
    static const char *const argv[] = {"cat-file", "--batch", NULL};
    struct applying a = {.now = now, .goal = goal, .compares = sb->history->compares};
    if (mark_ignored(sb, r, now, goal, arena, err) < 0)
        return -1;
    if (history_open_tree(sb, &a.tree, err) < 0)
        return -1;
    int rc = git_start(r->git, r->fd, argv, &a.contents, err);
    git_allow(&a.contents, GIT_LONG_MS); /* the sandbox takes what it says */
    *ret_begun = rc == 0;
    if (rc == 0)
        rc = give_orders(&a, arena, ret_applied, err);
    git_end(&a.contents);
    history_tree_close(a.tree);
    return rc;
}

/* ---- all of it ---- */

/* The agent's pairs of paths and reasons. */
static void take_left(struct rollback *b, const struct history_applied *applied)
{
    struct history_left *left = arena_alloc(b->arena, HISTORY_LEFT_SHOWN * sizeof(*left));
    const char *path = NULL;
    strv_each (text, applied->left) {
        if (path == NULL) {
            path = text;
            continue;
        }
        left[b->answer.left_count++] =
            (struct history_left){path_shown(slice_of(path + (path[0] == '/')), b->arena), text};
        path = NULL;
    }
    b->answer.left = left;
    b->answer.left_total = applied->failed;
}

static int check_applied(const struct rollback *b, const struct history_applied *applied,
                         struct error *err)
{
    if (applied->done > 0 || applied->failed == 0)
        return 0;
    return error_set(err, ERROR_ROLLBACK_BLOCKED,
                     "nothing was rolled back: all of the %llu files that differ had to be left "
                     "alone; the first: %.200s%s%s",
                     (unsigned long long)applied->failed, applied->failure,
                     b->answer.saved != NULL ? "; what had not been committed is now, as " : "",
                     b->answer.saved != NULL ? b->answer.saved : "");
}

/* What comes back is in the repository: new are trees, and what git does not know of files. */
static int check_room(struct sandbox *sb, struct repository *r, const struct manifest *goal,
                      struct error *err)
{
    uint64_t needed = ROOM + goal->count * ROOM_PER_FILE, room;
    if (history_room(sb, &room, err) < 0)
        return -1;
    return history_folder_room(r->git, r->folder_fd, needed, err);
}

/* Its own commit. The files are what they are by now: when it fails they are looked at again, by
 * whoever asks next, and what has changed is the rollback's. */
static int commit_rollback(struct rollback *b, struct repository *r, uint64_t failed,
                           struct error *err)
{
    _cleanup_manifest_ struct manifest after;
    struct history_committed committed = {0};
    struct error why = {0};
    char message[128 + EXECUTION_ID_SIZE];
    int len = snprintf(message, sizeof(message), "Rollback to %s", b->target);
    if (failed > 0)
        snprintf(message + len, sizeof(message) - (size_t)len, ", %llu files left alone",
                 (unsigned long long)failed);
    history_manifest_init(&after);
    history_run_begin(b->answer.execution);
    if (history_commit_now(b->sb, r, b->answer.execution, message, true, b->arena, &after,
                           &committed, &why) < 0) {
        history_remember(b->sb, b->answer.execution, EXECUTION_PENDING);
        return error_set(err, why.code,
                         "the files were rolled back, but that is not committed yet: it will be as "
                         "%s, when somebody asks for the history; %.200s",
                         b->answer.execution, why.message);
    }
    history_remember(b->sb, b->answer.execution, r->head);
    b->answer.commit = arena_strdup(b->arena, r->head);
    b->answer.files = committed.files;
    b->answer.file_count = committed.file_count;
    b->answer.files_cut = committed.files_cut;
    return 0;
}

/* With the lock, and the repository open. */
static int go_back(struct rollback *b, struct repository *r, struct error *err)
{
    _cleanup_manifest_ struct manifest now, goal;
    struct history_committed committed = {0};
    struct sandbox *sb = b->sb;
    struct history_applied applied = {0};
    char commit[GIT_NAME_SIZE];
    struct error why = {0};
    history_manifest_init(&now);
    history_manifest_init(&goal);
    if (r->head[0] == '\0')
        return error_set(err, ERROR_NOT_RUNNING, "sandbox \"%s\" does not run any more", sb->name);
    history_run_begin(b->saved);
    if (repository_resolve(r, b->target, commit, err) < 0 ||
        history_commit_now(sb, r, b->saved, HISTORY_MESSAGE, false, b->arena, &now, &committed,
                           err) < 0)
        return -1;
    if (committed.made) {
        b->answer.saved = b->saved;
        history_remember(sb, b->saved, r->head);
    }
    if (repository_tree(r, commit, &goal, err) < 0 || check_room(sb, r, &goal, err) < 0)
        return -1;
    bool begun = false;
    int rc = apply(sb, r, &now, &goal, b->arena, &applied, &begun, &why);
    if (!begun) {
        *err = why;
        return -1;
    }
    if (rc == 0 && check_applied(b, &applied, err) < 0)
        return -1;
    take_left(b, &applied);
    if (commit_rollback(b, r, applied.failed, err) < 0)
        return -1;
    if (rc < 0)
        *err = why;
    return rc;
}

static void rollback_drop(struct rollback *b)
{
    if (--b->refs > 0)
        return;
    arena_free(b->arena);
    free(b);
}

static void rollback(void *arg)
{
    struct rollback *b = arg;
    struct sandbox *sb = b->sb;
    struct sandboxes *s = sb->owner;
    {
        _cleanup_repository_ struct repository r = {.folder_fd = -1, .fd = -1};
        b->rc = history_begin_question(sb, &r, &b->err);
        if (b->rc == 0) {
            b->rc = go_back(b, &r, &b->err);
            history_unlock(sb);
        }
    }
    b->done = true;
    co_cond_wake_all(&b->ended);
    rollback_drop(b);
    sandbox_drop(sb);
    if (--s->drivers == 0)
        co_cond_wake_all(&s->idle);
}

static void copy_answer(const struct rollback *b, struct arena *arena,
                        struct history_rollback *ret_rollback)
{
    struct slice *files = arena_alloc(arena, (b->answer.file_count + 1) * sizeof(*files));
    for (size_t i = 0; i < b->answer.file_count; i++)
        files[i] = (struct slice){arena_dup(arena, b->answer.files[i].data, b->answer.files[i].len),
                                  b->answer.files[i].len};
    struct history_left *left = arena_alloc(arena, (b->answer.left_count + 1) * sizeof(*left));
    for (size_t i = 0; i < b->answer.left_count; i++)
        left[i] = (struct history_left){
            {arena_dup(arena, b->answer.left[i].path.data, b->answer.left[i].path.len),
             b->answer.left[i].path.len},
            arena_strdup(arena, b->answer.left[i].reason)};
    *ret_rollback = b->answer;
    ret_rollback->files = files;
    ret_rollback->left = left;
    ret_rollback->target = arena_strdup(arena, b->target);
    ret_rollback->commit = arena_strdup(arena, b->answer.commit);
    ret_rollback->saved = arena_strdup(arena, b->answer.saved);
}

int history_rollback(struct sandboxes *s, const char *workspace, const char *name,
                     const char *execution, struct arena *arena,
                     struct history_rollback *ret_rollback, struct error *err)
{
    _cleanup_sandbox_ struct sandbox *sb = NULL;
    char target[EXECUTION_ID_SIZE];
    if (execution_normalize(execution, target, err) < 0 ||
        history_find(s, workspace, name, NULL, err) < 0 ||
        sandbox_running(s, workspace, name, &sb, err) < 0)
        return -1;
    if (history_of(sb) == NULL)
        return error_set(err, ERROR_HISTORY_DISABLED, "no history is kept of \"%s\"", sb->name);
    struct rollback *b = calloc(1, sizeof(*b));
    if (b == NULL)
        return error_sys(err, "going back");
    b->sb = sb;
    b->arena = arena_new();
    b->refs = 2;
    memcpy(b->target, target, sizeof(target));
    sandbox_hold(sb);
    s->drivers++;
    if (co_spawn(s->loop, rollback, b, NULL, err) < 0) {
        s->drivers--;
        sandbox_drop(sb);
        b->refs--;
        rollback_drop(b);
        return -1;
    }
    int rc = 0;
    while (!b->done && rc == 0)
        rc = co_cond_wait(s->loop, &b->ended, -1, err);
    if (rc == 0 && b->rc < 0)
        *err = b->err;
    if (rc == 0 && b->rc == 0)
        copy_answer(b, arena, ret_rollback);
    rc = rc < 0 ? rc : b->rc;
    rollback_drop(b);
    return rc;
}
