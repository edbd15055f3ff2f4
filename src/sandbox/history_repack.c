/* SPDX-License-Identifier: Apache-2.0 */

/* When the packs of a history are made one: behind everybody's back, one sandbox at a time. */

#include "base/limits.h"
#include "base/log.h"
#include "loop/co.h"
#include "sandbox/history_pack.h"
#include "sandbox/history_state.h"

/* Whoever clears the repository up, or away, is alone with it. */
int history_stop_packer(struct sandbox *sb, struct error *err)
{
    struct sandbox_history *h = sb->history;
    if (h->packer != NULL)
        co_cancel(h->packer);
    while (h->packer != NULL)
        if (co_cond_wait(sb->owner->loop, &h->freed, -1, err) < 0)
            return -1;
    return 0;
}

/* With the lock. 1: it is still too large, and has lost its older half. */
static int end_packing(struct sandbox *sb, struct repository *r, struct packing *packing,
                       struct error *err)
{
    if (history_is_going(sb))
        return 0;
    if (repository_pack_end(r, packing, err) < 0)
        return -1;
    sb->history->packed_bytes = repository_size(r);
    history_measure(sb);
    bool squeeze = sb->history->squeeze;
    sb->history->squeeze = false;
    return squeeze || sb->history->packed_bytes > history_bound(sb) ? repository_forget_half(r, err)
                                                                    : 0;
}

/* Nobody waits for the long part of it: commits are made meanwhile. */
static int repack_now(struct sandbox *sb, struct error *err)
{
    struct histories *all = sb->owner->histories;
    _cleanup_repository_ struct repository r = {.folder_fd = -1, .fd = -1};
    _cleanup_packing_ struct packing packing = PACKING_INIT;
    if (repository_open(history_git(sb), all->dir_fd, sb->id, false, false, &r, err) < 0)
        return -1;
    for (int again = 1; r.fd >= 0 && again > 0;) {
        if (repository_pack(&r, &packing, err) < 0 || history_take(sb, err) < 0)
            return -1;
        again = end_packing(sb, &r, &packing, err);
        history_unlock(sb);
        if (again < 0)
            return -1;
    }
    return 0;
}

/* Packs are made one behind everybody's back, one sandbox at a time; see history_stop_packer(). */
static void repack(void *arg)
{
    struct sandbox *sb = arg;
    struct sandboxes *s = sb->owner;
    struct error err = {0};
    sb->history->packer = co_self(s->loop);
    if (history_is_going(sb)) {
        /* its folder is about to go */
    } else if (repack_now(sb, &err) == 0) {
        sb->history->not_before_ms = 0;
    } else {
        sb->history->tidied = false; /* a git that was killed leaves what it had written */
        sb->history->packed_bytes = 0;
        if (!history_is_going(sb) && err.code != ERROR_CANCELLED)
            log_warn("sandbox %s: packing its history: %s", sb->id, err.message);
    }
    sb->history->packer = NULL;
    s->histories->repacking = false;
    co_cond_wake_all(&sb->history->freed);
    sandbox_drop(sb);
    if (--s->drivers == 0)
        co_cond_wake_all(&s->idle);
}

void history_repack_if_due(struct sandbox *sb)
{
    struct histories *all = sb->owner->histories;
    struct error err;
    struct sandbox_history *h = sb->history;
    /* One that stayed large when it was packed is packed again when it has grown. */
    uint64_t bound = history_bound(sb);
    bool large = h->squeeze || (h->bytes > bound && h->bytes > h->packed_bytes + bound / 8);
    if ((h->packs < HISTORY_PACKS_MAX && !large) || all->repacking || sb->owner->closing)
        return;
    h->packs = 0;
    all->repacking = true;
    sandbox_hold(sb);
    sb->owner->drivers++;
    if (co_spawn(sb->owner->loop, repack, sb, NULL, &err) < 0) {
        all->repacking = false;
        sb->owner->drivers--;
        sandbox_drop(sb);
    }
}
