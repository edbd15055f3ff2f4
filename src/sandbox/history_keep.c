/* SPDX-License-Identifier: Apache-2.0 */

/* What is in a sandbox becomes a commit: its repository, its files as the agent tells of them, and
 * what is done when that fails. */

#include <string.h>

#include "base/limits.h"
#include "base/log.h"
#include "loop/co.h"
#include "observe/meters.h"
#include "sandbox/history_state.h"

enum {
    TOO_MUCH_MS = 60 * 1000, /* until files that were too many are listed again */
    FULL_MS = 2 * 1000,      /* until a full disk is tried again */
    LARGE_MS = 30 * 1000,    /* that a look waits for its turn at the most */
    LARGE_STEP_MS = 250,
};

static const char roots[] = "/workspace\0/home/user";

int history_open_repository(struct sandbox *sb, struct repository *ret_repository,
                            struct error *err)
{
    struct histories *all = sb->owner->histories;
    struct sandbox_history *h = sb->history;
    if (!h->tidied && history_stop_packer(sb, err) < 0)
        return -1;
    if (repository_open(history_git(sb), all->dir_fd, sb->id, true, !h->tidied, ret_repository,
                        err) < 0)
        return -1;
    /* A repository without a commit, or one that was open when the machine went down. */
    int torn = ret_repository->fd >= 0 && (!h->tidied || ret_repository->head[0] == '\0')
                   ? repository_check(ret_repository, err)
                   : 0;
    if (torn < 0) {
        repository_close(ret_repository);
        return -1;
    }
    if (torn > 0)
        log_warn("sandbox %s: its history was torn, and begins anew", sb->id);
    h->tidied = true;
    h->packs = ret_repository->packs;
    h->bytes = ret_repository->bytes;
    memcpy(h->head, ret_repository->head, GIT_NAME_SIZE);
    h->known = true;
    return 0;
}

/* ---- a sandbox's files ---- */

struct agent_source {
    struct sandbox *sb;
    struct history_tree *tree;
    struct slice ignore;
    bool watched, compares; /* the last listing's */
    bool large;             /* it is one of so many at a time */
    size_t entries;
    history_visit *visit;
    void *visit_ctx;
};

/* Waits until few others are as large. Not for ever: who has a turn may be told of his files by an
 * agent that takes its time, and must not hold up everybody else's histories. */
static int begin_large(struct agent_source *source, struct error *err)
{
    const struct sandbox *sb = source->sb;
    struct fair_slots *slots = &sb->owner->histories->large;
    struct error why = {0};
    int64_t until = loop_now(sb->owner->loop) + LARGE_MS;
    int rc;
    while ((rc = fair_slots_take(slots, sb->workspace, LARGE_STEP_MS, &why)) < 0 &&
           why.code == ERROR_TIMEOUT && loop_now(sb->owner->loop) < until)
        if (history_is_going(sb))
            return error_set(err, ERROR_UNAVAILABLE, "it is being deleted");
    if (rc < 0 && why.code != ERROR_TIMEOUT) {
        *err = why;
        return -1;
    }
    if (rc < 0)
        fair_slots_force(slots, sb->workspace);
    source->large = true;
    return 0;
}

static void end_large(struct agent_source *source)
{
    if (source->large)
        fair_slots_give(&source->sb->owner->histories->large, source->sb->workspace);
    source->large = false;
}

static int visit_counted(void *ctx, const struct history_entry *entry, struct error *err)
{
    struct agent_source *source = ctx;
    if (++source->entries >= HISTORY_LARGE_FILES && !source->large && begin_large(source, err) < 0)
        return -1;
    return source->visit(source->visit_ctx, entry, err);
}

static int list_agent(void *ctx, history_visit *visit, void *visit_ctx, struct error *err)
{
    struct agent_source *source = ctx;
    struct history_listed listed = {0};
    source->visit = visit;
    source->visit_ctx = visit_ctx;
    if (history_tree_list(source->tree, source->ignore, HISTORY_ENTRIES_MAX, visit_counted, source,
                          &listed, err) < 0)
        return -1;
    source->watched = listed.watched == 1;
    source->compares = listed.compares == 1;
    if (listed.cut && listed.entries >= HISTORY_ENTRIES_MAX)
        return error_set(err, ERROR_LIMIT_EXCEEDED,
                         "there are more than %d tracked files, too many for a history",
                         HISTORY_ENTRIES_MAX);
    /* The agent of an earlier version says so of what is too deep for it, too. */
    if (listed.cut)
        return error_set(err, ERROR_LIMIT_EXCEEDED,
                         "not all of the tracked files can be listed: a directory cannot be read, "
                         "or is more than %d levels deep",
                         HISTORY_DEPTH_MAX);
    return 0;
}

static int read_agent(void *ctx, const char *const *paths, size_t count, uint64_t size_max,
                      const struct history_sink *sink, void *sink_ctx, struct error *err)
{
    struct agent_source *source = ctx;
    return history_tree_read(source->tree, paths, count, size_max, sink, sink_ctx, err);
}

int history_open_tree(struct sandbox *sb, struct history_tree **ret_tree, struct error *err)
{
    return history_tree_open(sb->owner, sb->workspace, sb->id, (struct slice){roots, sizeof(roots)},
                             ret_tree, err);
}

static int commit_with(struct agent_source *agent, struct repository *r,
                       const struct history_commit_request *request, struct arena *arena,
                       struct manifest *ret_manifest, struct history_committed *ret_committed,
                       struct error *err)
{
    struct sandbox *sb = agent->sb;
    const struct history_source source = {agent, list_agent, read_agent};
    /* Before the agent begins, where that is known. */
    if ((sb->history->files >= HISTORY_LARGE_FILES && begin_large(agent, err) < 0) ||
        history_open_tree(sb, &agent->tree, err) < 0)
        return -1;
    int rc = history_commit_files(r, &source, request, arena, ret_manifest, ret_committed, err);
    if (rc == 0) {
        sb->history->files = agent->entries;
        sb->history->watched = agent->watched;
        sb->history->compares = agent->compares;
        history_take_watch(sb, agent->tree);
    }
    history_tree_close(agent->tree);
    return rc;
}

static int commit_once(struct sandbox *sb, struct repository *r,
                       const struct history_commit_request *request, struct arena *arena,
                       struct manifest *ret_manifest, struct history_committed *ret_committed,
                       struct error *err)
{
    struct agent_source agent = {.sb = sb, .ignore = request->ignore};
    int rc = commit_with(&agent, r, request, arena, ret_manifest, ret_committed, err);
    end_large(&agent);
    return rc;
}

/* It is worth another try, but not at every command's end. */
void history_failed(struct sandbox *sb, const struct error *err)
{
    int64_t pause_ms = err->code == ERROR_LIMIT_EXCEEDED   ? TOO_MUCH_MS
                       : err->code == ERROR_QUOTA_EXCEEDED ? FULL_MS
                                                           : 0;
    meter_count(loop_meters(sb->owner->loop), METER_HISTORY_FAILED);
    if (pause_ms > 0)
        sb->history->not_before_ms = loop_now(sb->owner->loop) + pause_ms;
}

int history_commit_now(struct sandbox *sb, struct repository *r, const char *execution,
                       const char *message, bool even_empty, struct arena *arena,
                       struct manifest *ret_manifest, struct history_committed *ret_committed,
                       struct error *err)
{
    struct sandbox_history *h = sb->history;
    const struct history_rules *rules = history_rules_of(sb);
    /* They may be others by the time that this is done. */
    const unsigned rules_number = h->rules;
    struct history_commit_request request = {
        .execution = execution,
        .message = message,
        .even_empty = even_empty,
        .file_max = rules->file_max,
        .ignore = history_ignore_of(sb, arena),
        .total_max = sb->owner->histories->repository_max,
        .created_ns = (uint64_t)sb->created_ms * 1000000,
    };
    h->settled = false;
    int rc = history_room(sb, &request.pack_max, err);
    if (rc == 0)
        rc = commit_once(sb, r, &request, arena, ret_manifest, ret_committed, err);
    if (rc < 0 && err->code == ERROR_INTERNAL && repository_check(r, NULL) > 0) {
        log_warn("sandbox %s: its history was torn, and begins anew", sb->id);
        history_manifest_release(ret_manifest);
        history_manifest_init(ret_manifest);
        rc = commit_once(sb, r, &request, arena, ret_manifest, ret_committed, err);
    }
    memcpy(h->head, r->head, GIT_NAME_SIZE);
    if (rc == 0 && ret_committed->made)
        history_measure(sb);
    if (rc < 0) {
        h->tidied = false; /* a git that was killed leaves what it had written */
        history_failed(sb, err);
        if (err->code == ERROR_QUOTA_EXCEEDED && request.pack_max > 0)
            history_squeeze(sb);
        return -1;
    }
    meter_count(loop_meters(sb->owner->loop), METER_HISTORY_LOOKED);
    /* Without an execution, what was changed waits for the next one. */
    h->settled = execution != NULL && rules_number == h->rules;
    h->unseen[0] = '\0';
    h->packs += ret_committed->made;
    history_repack_if_due(sb);
    return 0;
}
