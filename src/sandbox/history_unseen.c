/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Whether files have changed, by signs and without. The sign is an inotify instance of the agent's,
 * of which a second descriptor is kept here once somebody asks for signs often (code, whose
 * interpreters never end): then asking is one system call, and no question to the agent. A sandbox
 * that hands out something else fools its own history and nobody else: what is taken is an inotify
 * instance, which is asked for a number and never read.
 *
 * There are changes without a sign. inotify speaks of names: what is written through a mapping that
 * stays, or by a name outside of the roots that a file got after it was listed, is not told. And
 * what a killed cellad had acknowledged before it looked, the next one has not seen. So whoever
 * asks for a history has the files compared first, if there was an execution since they were.
 */

#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "loop/net.h"
#include "sandbox/history.h"
#include "sandbox/history_state.h"

static bool is_inotify(int fd)
{
    static const char name[] = "anon_inode:inotify";
    char path[64], what[sizeof(name) + 1];
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    ssize_t n = readlink(path, what, sizeof(what));
    return n == (ssize_t)sizeof(name) - 1 && memcmp(what, name, sizeof(name) - 1) == 0;
}

void history_take_watch(struct sandbox *sb, struct history_tree *tree)
{
    struct sandbox_history *h = sb->history;
    struct error ignored;
    int fd;
    if (!h->wants_watch || h->watch_from == 1 + sb->agents)
        return;
    cleanup_fd(&h->watch_fd);
    h->watch_fd = -1;
    h->watch_from = 1 + sb->agents; /* one that has none is not asked again */
    if (history_tree_watch(tree, &fd, &ignored) < 0)
        return;
    if (is_inotify(fd))
        h->watch_fd = fd;
    else
        net_close_foreign(fd);
}

void history_drop_watch(struct sandbox *sb)
{
    if (sb->history == NULL)
        return;
    cleanup_fd(&sb->history->watch_fd);
    sb->history->watch_fd = -1;
    sb->history->watch_from = 0;
}

bool history_is_clean(struct sandbox *sb)
{
    const struct sandbox_history *h = sb->history;
    int queued = 0;
    if (!h->settled || !h->watched)
        return false;
    if (h->watch_fd >= 0 && h->watch_from == 1 + sb->agents)
        return ioctl(h->watch_fd, FIONREAD, &queued) == 0 && queued == 0;
    return history_tree_clean(sb->owner, sb->workspace, sb->id);
}

bool history_seems_clean(struct sandboxes *s, const char *workspace, const char *name)
{
    struct sandbox *sb = sandbox_find(s, workspace, name, NULL);
    if (sb == NULL || history_of(sb) == NULL)
        return false;
    sb->history->wants_watch = true;
    if (sb->history->watch_from != 1 + sb->agents)
        return false; /* one look more, which takes the descriptor, and no question from then on */
    sandbox_hold(sb);
    bool clean = history_is_clean(sb);
    sandbox_drop(sb);
    return clean;
}

/* Files that somebody wrote by himself (the file API) have a sign, and wait for the next execution;
 * only what has none is the last one's. */
static void find_late(struct sandbox *sb, struct repository *r, char out[EXECUTION_ID_SIZE])
{
    const struct sandbox_history *h = sb->history;
    out[0] = '\0';
    if (sb->status != SANDBOX_RUNNING || loop_now(sb->owner->loop) < h->not_before_ms)
        return;
    if (!h->settled)
        executions_pending(r, out);
    /* One whose look has failed is not written down as pending. */
    if (out[0] == '\0' && h->unseen[0] != '\0' && (!h->settled || history_is_clean(sb)))
        memcpy(out, h->unseen, EXECUTION_ID_SIZE);
}

void history_catch_up(struct sandbox *sb, struct repository *r)
{
    char execution[EXECUTION_ID_SIZE];
    struct history_committed committed = {0};
    struct error err = {0};
    find_late(sb, r, execution);
    if (execution[0] == '\0')
        return;
    bool was_settled = sb->history->settled;
    struct arena *arena = arena_new();
    _cleanup_manifest_ struct manifest m;
    history_manifest_init(&m);
    if (history_commit_now(sb, r, execution, HISTORY_MESSAGE, false, arena, &m, &committed, &err) <
        0)
        log_warn("sandbox %s: history: %s", sb->id, err.message);
    else if (committed.made || !was_settled)
        history_remember(sb, execution, r->head);
    arena_free(arena);
}
