/* SPDX-License-Identifier: Apache-2.0 */

/* What can be asked of a history: the list of its commits, and what differs between two of them. */

#include <string.h>

#include "base/cleanup.h"
#include "base/limits.h"
#include "loop/co.h"
#include "sandbox/history_look.h"
#include "sandbox/history_state.h"
#include "sandbox/processes.h"

enum {
    PROCESSES_LOOKED_AT = 512, /* of those that nobody waits for */
    COMES_UP_MS = 120 * 1000,
};

/* The name of the first commit for as long as nobody could look at the files. */
static const char no_commit[] = "0000000000000000000000000000000000000000";
_Static_assert(sizeof(no_commit) == GIT_NAME_SIZE, "as long as a name");

/* Those that nobody has waited for, and that have ended since. */
static void close_open_runs(struct sandbox *sb)
{
    struct agent_process *items;
    size_t count;
    if (sb->history->open.count == 0 || sb->status != SANDBOX_RUNNING)
        return;
    struct arena *arena = arena_new();
    if (sandbox_process_list(sb->owner, sb->workspace, sb->id, arena, &items, &count, NULL) == 0)
        for (size_t i = 0; i < count && i < PROCESSES_LOOKED_AT; i++)
            history_process_seen(sb, &items[i]);
    arena_free(arena);
}

static int being_deleted(const struct sandbox *sb, struct error *err)
{
    return error_set(err, ERROR_SANDBOX_NOT_FOUND, "sandbox \"%s\" is being deleted", sb->name);
}

/* Who only reads is in nobody's way, not even of a delete: then what git says of a repository that
 * goes is no word about the sandbox. */
static int end_question(const struct sandbox *sb, int rc, struct error *err)
{
    return rc < 0 && history_is_going(sb) ? being_deleted(sb, err) : rc;
}

/* What its image brought can be looked at in a moment, and a clone gets its history before it runs.
 */
static int wait_until_up(struct sandbox *sb, struct error *err)
{
    while (sandbox_comes_up(sb) && !sb->gone)
        if (co_cond_wait(sb->owner->loop, &sb->changed, COMES_UP_MS, err) < 0)
            return -1;
    return 0;
}

int history_begin_question(struct sandbox *sb, struct repository *ret_repository, struct error *err)
{
    if (wait_until_up(sb, err) < 0)
        return -1;
    close_open_runs(sb);
    if (history_lock(sb, err) < 0)
        return -1;
    if (history_is_going(sb)) {
        history_unlock(sb);
        return being_deleted(sb, err);
    }
    history_write_list(sb);
    if (history_open_repository(sb, ret_repository, err) < 0) {
        history_unlock(sb);
        return -1;
    }
    int rc = 0;
    if (ret_repository->head[0] == '\0' && sb->status == SANDBOX_RUNNING) {
        struct history_committed committed;
        struct arena *arena = arena_new();
        _cleanup_manifest_ struct manifest m;
        history_manifest_init(&m);
        rc = history_commit_now(sb, ret_repository, NULL, NULL, false, arena, &m, &committed, err);
        arena_free(arena);
    }
    if (rc < 0) {
        repository_close(ret_repository);
        history_unlock(sb);
    } else {
        history_catch_up(sb, ret_repository);
        history_write_list(sb); /* where that has committed is the answer to this question, too */
    }
    return rc;
}

/* Nobody has seen its files yet, and it does not run: a commit of none would be the first for good,
 * and going back to it would remove what the image brought. So it is told, and not made. */
static int tell_first(const struct sandbox *sb, size_t offset, struct arena *arena,
                      struct history_page *ret_page)
{
    static const struct slice files[] = {{"README.md", sizeof("README.md") - 1}};
    struct history_commit *commit = arena_alloc(arena, sizeof(*commit));
    *commit = (struct history_commit){.id = HISTORY_FIRST_ID,
                                      .commit = no_commit,
                                      .time_ms = sb->created_ms,
                                      .message = "Initial commit",
                                      .files = files,
                                      .file_count = ARRAY_LEN(files)};
    *ret_page = (struct history_page){.commits = commit, .count = offset == 0};
    return 0;
}

static int log_in_turn(struct sandbox *sb, struct repository *r, size_t limit, size_t offset,
                       struct arena *arena, struct history_page *ret_page, struct error *err)
{
    struct fair_slots *slots = &sb->owner->histories->logs;
    if (fair_slots_take(slots, sb->workspace, -1, err) < 0)
        return -1;
    int rc = repository_log(r, limit, offset, arena, ret_page, err);
    fair_slots_give(slots, sb->workspace);
    return rc;
}

int history_list(struct sandboxes *s, const char *workspace, const char *name, size_t limit,
                 size_t offset, struct arena *arena, struct history_page *ret_page,
                 struct error *err)
{
    _cleanup_repository_ struct repository r = {.folder_fd = -1, .fd = -1};
    struct sandbox *sb = NULL;
    if (history_find(s, workspace, name, &sb, err) < 0)
        return -1;
    int rc = history_begin_question(sb, &r, err);
    if (rc == 0) {
        /* Commits do not change. */
        history_unlock(sb);
        rc = r.head[0] == '\0'
                 ? tell_first(sb, offset, arena, ret_page)
                 : end_question(sb, log_in_turn(sb, &r, limit, offset, arena, ret_page, err), err);
    }
    sandbox_drop(sb);
    return rc;
}

/* Whatever is asked for ended at the first commit, which is still to come. */
static int diff_nothing(struct repository *r, const char *from, const char *to, struct arena *arena,
                        struct history_diff *ret_diff, struct error *err)
{
    const char *asked[] = {from, to}, *ids[2];
    for (size_t i = 0; i < ARRAY_LEN(asked); i++) {
        char id[EXECUTION_ID_SIZE] = HISTORY_FIRST_ID, ignored[GIT_NAME_SIZE];
        if (asked[i] != NULL && (execution_normalize(asked[i], id, err) < 0 ||
                                 repository_resolve(r, id, ignored, err) < 0))
            return -1;
        ids[i] = arena_strdup(arena, id);
    }
    *ret_diff = (struct history_diff){.from = ids[0], .to = ids[1]};
    return 0;
}

static int diff_executions(struct repository *r, const char *from, const char *to,
                           struct arena *arena, struct history_diff *ret_diff, struct error *err)
{
    char ids[2][EXECUTION_ID_SIZE], commits[2][GIT_NAME_SIZE];
    if (r->head[0] == '\0')
        return diff_nothing(r, from, to, arena, ret_diff, err);
    if (to == NULL) {
        memcpy(commits[1], r->head, GIT_NAME_SIZE);
        if (repository_execution_of(r, r->head, ids[1], err) < 0)
            return -1;
    } else if (execution_normalize(to, ids[1], err) < 0 ||
               repository_resolve(r, ids[1], commits[1], err) < 0) {
        return -1;
    }
    if (from == NULL) {
        if (repository_parent(r, commits[1], commits[0], err) < 0 ||
            repository_execution_of(r, commits[0], ids[0], err) < 0)
            return -1;
    } else if (execution_normalize(from, ids[0], err) < 0 ||
               repository_resolve(r, ids[0], commits[0], err) < 0) {
        return -1;
    }
    struct history_diff diff = {.from = arena_strdup(arena, ids[0]),
                                .to = arena_strdup(arena, ids[1])};
    if (repository_diff(r, commits[0], commits[1], arena, &diff, err) < 0)
        return -1;
    *ret_diff = diff;
    return 0;
}

static int diff_in_turn(struct sandboxes *s, const char *workspace, struct repository *r,
                        const char *from, const char *to, struct arena *arena,
                        struct history_diff *ret_diff, struct error *err)
{
    struct fair_slots *slots = &s->histories->diffs;
    if (fair_slots_take(slots, workspace, -1, err) < 0)
        return -1;
    int rc = diff_executions(r, from, to, arena, ret_diff, err);
    fair_slots_give(slots, workspace);
    return rc;
}

int history_diff(struct sandboxes *s, const char *workspace, const char *name, const char *from,
                 const char *to, struct arena *arena, struct history_diff *ret_diff,
                 struct error *err)
{
    _cleanup_repository_ struct repository r = {.folder_fd = -1, .fd = -1};
    char ignored_id[EXECUTION_ID_SIZE];
    struct sandbox *sb = NULL;
    if ((from != NULL && execution_normalize(from, ignored_id, err) < 0) ||
        (to != NULL && execution_normalize(to, ignored_id, err) < 0) ||
        history_find(s, workspace, name, &sb, err) < 0)
        return -1;
    int rc = history_begin_question(sb, &r, err);
    if (rc == 0) {
        history_unlock(sb);
        rc = end_question(sb, diff_in_turn(s, sb->workspace, &r, from, to, arena, ret_diff, err),
                          err);
    }
    sandbox_drop(sb);
    return rc;
}
