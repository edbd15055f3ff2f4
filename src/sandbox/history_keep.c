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
};

static const char roots[] = "/workspace\0/home/user";

int history_open_repository(struct sandbox *sb, struct repository *ret_repository,
                            struct error *err)
{
    struct histories *all = sb->owner->histories;
    struct sandbox_history *h = sb->history;
    if (!h->tidied && history_stop_packer(sb, err) < 0)
        return -1;
    if (repository_open(&all->git, all->dir_fd, sb->id, true, !h->tidied, ret_repository, err) < 0)
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

struct agent_source {
    struct history_tree *tree;
    struct slice ignore;
    bool watched, compares; /* the last listing's */
};

static int list_agent(void *ctx, history_visit *visit, void *visit_ctx, struct error *err)
{
    struct agent_source *source = ctx;
    struct history_listed listed = {0};
    if (history_tree_list(source->tree, source->ignore, HISTORY_ENTRIES_MAX, visit, visit_ctx,
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

static int commit_once(struct sandbox *sb, struct repository *r,
                       const struct history_commit_request *request, struct arena *arena,
                       struct manifest *ret_manifest, struct history_committed *ret_committed,
                       struct error *err)
{
    _cleanup_history_tree_ struct history_tree *tree = NULL;
    if (history_open_tree(sb, &tree, err) < 0)
        return -1;
    struct agent_source agent = {.tree = tree, .ignore = request->ignore};
    const struct history_source source = {&agent, list_agent, read_agent};
    if (history_commit_files(r, &source, request, arena, ret_manifest, ret_committed, err) < 0)
        return -1;
    sb->history->watched = agent.watched;
    sb->history->compares = agent.compares;
    history_take_watch(sb, tree);
    return 0;
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
    const struct history_commit_request request = {
        .execution = execution,
        .message = message,
        .even_empty = even_empty,
        .file_max = rules->file_max,
        .ignore = history_ignore_of(sb, arena),
        .total_max = sb->owner->histories->repository_max,
        .created_ns = (uint64_t)sb->created_ms * 1000000,
    };
    h->settled = false;
    int rc = history_refuse_large(sb, err);
    if (rc == 0)
        rc = commit_once(sb, r, &request, arena, ret_manifest, ret_committed, err);
    if (rc < 0 && err->code == ERROR_INTERNAL && repository_check(r, NULL) > 0) {
        log_warn("sandbox %s: its history was torn, and begins anew", sb->id);
        history_manifest_release(ret_manifest);
        history_manifest_init(ret_manifest);
        rc = commit_once(sb, r, &request, arena, ret_manifest, ret_committed, err);
    }
    memcpy(h->head, r->head, GIT_NAME_SIZE);
    if (rc < 0) {
        h->tidied = false; /* a git that was killed leaves what it had written */
        history_failed(sb, err);
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
