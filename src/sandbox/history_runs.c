/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Executions, from their ids to what is looked into at their end. The files of a sandbox that
 * nobody has looked at yet (or whose last look failed) are looked at behind the first execution's
 * back: its answer does not wait, whatever is run or asked next does. So a sandbox that is made for
 * one command pays nothing for a history.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/log.h"
#include "loop/co.h"
#include "sandbox/history_state.h"

enum { SOON_MS = 50 }; /* from the first execution to the first look */

void history_run_begin(char ret_execution[EXECUTION_ID_SIZE])
{
    uint32_t number;
    if (getrandom(&number, sizeof(number), 0) != (ssize_t)sizeof(number))
        abort();
    snprintf(ret_execution, EXECUTION_ID_SIZE, "exec_%08x", number);
}

static int open_or_fail(struct sandbox *sb, struct repository *r, struct error *err)
{
    if (history_open_repository(sb, r, err) == 0)
        return 0;
    history_failed(sb, err);
    return -1;
}

/* ---- executions that are not looked into at once ---- */

/* The oldest goes where there is no room; it is pending, and found by its time. */
static void list_add(struct execution_list *list, const char *execution)
{
    if (list->count == HISTORY_OPEN_MAX)
        memmove(list->ids[0], list->ids[1], --list->count * EXECUTION_ID_SIZE);
    snprintf(list->ids[list->count++], EXECUTION_ID_SIZE, "%s", execution);
}

static bool list_has(const struct execution_list *list, const char *execution, unsigned *ret_place)
{
    for (unsigned i = 0; i < list->count; i++)
        if (strcmp(list->ids[i], execution) == 0) {
            *ret_place = i;
            return true;
        }
    return false;
}

static bool list_remove(struct execution_list *list, const char *execution)
{
    unsigned i;
    if (!list_has(list, execution, &i))
        return false;
    list->count--;
    memmove(list->ids + i, list->ids + i + 1, (list->count - i) * EXECUTION_ID_SIZE);
    return true;
}

static void add_ended(struct sandbox *sb, const char *execution)
{
    struct sandbox_history *h = sb->history;
    history_remember(sb, execution, EXECUTION_PENDING);
    if (h->ended.count == HISTORY_OPEN_MAX && h->looked_into > 0)
        h->looked_into--;
    list_add(&h->ended, execution);
}

/* A look that began after their end has found what they left, whoever it was for. */
static void settle_ended(struct sandbox *sb, const char *commit)
{
    struct sandbox_history *h = sb->history;
    for (unsigned i = 0; i < h->looked_into; i++)
        history_remember(sb, h->ended.ids[i], commit);
    h->ended.count -= h->looked_into;
    memmove(h->ended.ids, h->ended.ids + h->looked_into, h->ended.count * EXECUTION_ID_SIZE);
}

/* ---- looks ---- */

/* With the lock. */
static void look_into(struct sandbox *sb, const char *execution)
{
    _cleanup_repository_ struct repository r = {.folder_fd = -1, .fd = -1};
    _cleanup_manifest_ struct manifest m;
    struct sandbox_history *h = sb->history;
    struct history_committed committed = {0};
    struct error err = {0};
    struct arena *arena = arena_new();
    history_manifest_init(&m);
    list_remove(&h->ended, execution);
    h->looked_into = h->ended.count;
    if (sb->gone || sb->status != SANDBOX_RUNNING) {
        h->settled = false;
        if (!sb->gone)
            add_ended(sb, execution);
    } else if (open_or_fail(sb, &r, &err) < 0 ||
               history_commit_now(sb, &r, execution, HISTORY_MESSAGE, false, arena, &m, &committed,
                                  &err) < 0) {
        if (sb->status == SANDBOX_RUNNING && !sb->gone)
            log_warn("sandbox %s: history: %s", sb->id, err.message);
        add_ended(sb, execution);
    } else {
        history_remember(sb, execution, r.head);
        settle_ended(sb, r.head);
    }
    h->looked_into = 0;
    arena_free(arena);
}

/* A look at the files on a coroutine of its own: whoever waits for it may go, it goes on. */
struct look {
    struct sandbox *sb;
    char execution[EXECUTION_ID_SIZE];
    bool soon;
    bool done;
    unsigned refs;
    struct co_cond ended;
};

static void look_soon(struct sandbox *sb, const char *execution);

static void look_drop(struct look *look)
{
    if (--look->refs == 0)
        free(look);
}

static void look(void *arg)
{
    struct look *l = arg;
    struct sandbox *sb = l->sb;
    struct sandboxes *s = sb->owner;
    struct error err;
    if (l->soon && !sb->history->hurry)
        co_cond_wait(s->loop, &sb->history->hurried, SOON_MS, &err);
    int rc = history_take(sb, &err);
    if (rc == 0 && !history_is_going(sb))
        look_into(sb, l->execution);
    if (l->soon)
        sb->history->waiting = sb->history->hurry = false;
    if (rc == 0)
        history_unlock(sb);
    else
        co_cond_wake_all(&sb->history->freed);
    l->done = true;
    co_cond_wake_all(&l->ended);
    look_drop(l);
    /* Those that ended while it looked: it may have been too early for them. */
    if (sb->history->settled && sb->history->ended.count > 0)
        look_soon(sb, sb->history->ended.ids[0]);
    sandbox_drop(sb);
    if (--s->drivers == 0)
        co_cond_wake_all(&s->idle);
}

static void start_look(struct sandbox *sb, const char *execution, bool soon)
{
    struct look *l = calloc(1, sizeof(*l));
    struct error err;
    if (l == NULL)
        abort();
    *l = (struct look){.sb = sb, .soon = soon, .refs = 2};
    snprintf(l->execution, sizeof(l->execution), "%s", execution);
    sandbox_hold(sb);
    sb->owner->drivers++;
    sb->history->waiting |= soon;
    if (co_spawn(sb->owner->loop, look, l, NULL, &err) < 0) {
        log_warn("sandbox %s: history: %s", sb->id, err.message);
        sb->history->waiting &= !soon;
        sb->owner->drivers--;
        sandbox_drop(sb);
        l->done = true;
        l->refs--;
    }
    while (!soon && !l->done)
        if (co_cond_wait(sb->owner->loop, &l->ended, -1, &err) < 0)
            break;
    look_drop(l);
}

/* For one of those that have ended, unless a look is about to begin, or makes no sense yet. */
static void look_soon(struct sandbox *sb, const char *execution)
{
    const struct sandbox_history *h = sb->history;
    if (!h->waiting && loop_now(sb->owner->loop) >= h->not_before_ms)
        start_look(sb, execution, true);
}

bool history_is_looking(const struct sandbox *sb)
{
    return sb->history != NULL && sb->history->holder != NULL &&
           sb->history->holder == co_self(sb->owner->loop);
}

int history_settle(struct sandbox *sb, struct error *err)
{
    const struct sandbox_history *h = sb->history;
    if (h == NULL || !h->waiting || history_is_looking(sb))
        return 0;
    return history_hurry(sb, err);
}

void history_run_started(struct sandbox *sb, const char *execution)
{
    struct sandbox_history *h = history_of(sb);
    if (h == NULL)
        return;
    history_remember(sb, execution, EXECUTION_PENDING);
    list_add(&h->open, execution);
}

void history_run_told(struct sandboxes *s, const char *workspace, const char *name,
                      const char *execution)
{
    struct sandbox *sb = sandbox_find(s, workspace, name, NULL);
    if (sb != NULL && history_of(sb) != NULL)
        history_remember(sb, execution, EXECUTION_PENDING);
}

void history_run_ended(struct sandbox *sb, const char *execution, bool dirty)
{
    struct sandbox_history *h = history_of(sb);
    struct error err;
    if (h == NULL || execution == NULL)
        return;
    list_remove(&h->open, execution);
    if (h->settled && !dirty) {
        /* What is being committed right now may be what it has changed. */
        while (h->busy)
            if (co_cond_wait(sb->owner->loop, &h->freed, -1, &err) < 0)
                break;
        if (!sb->gone)
            history_remember(sb, execution, h->head);
        snprintf(h->unseen, sizeof(h->unseen), "%s", execution);
    } else if (h->settled) {
        start_look(sb, execution, false);
    } else {
        add_ended(sb, execution);
        look_soon(sb, execution);
    }
}

void history_run_over(struct sandbox *sb, const char *execution, bool dirty)
{
    struct sandbox_history *h = history_of(sb);
    if (h == NULL || !list_remove(&h->open, execution))
        return;
    if (h->settled && !dirty && !h->busy) {
        history_remember(sb, execution, h->head);
        snprintf(h->unseen, sizeof(h->unseen), "%s", execution);
    } else {
        add_ended(sb, execution);
        look_soon(sb, execution);
    }
}

void history_process_seen(struct sandbox *sb, const struct agent_process *process)
{
    unsigned place;
    if (sb->history == NULL || process->execution == NULL || process->ended_ms == 0 ||
        !list_has(&sb->history->open, process->execution, &place))
        return;
    history_run_ended(sb, process->execution, process->clean != 1);
}

void history_run_end(struct sandboxes *s, const char *workspace, const char *name,
                     const char *execution, bool dirty)
{
    struct sandbox *sb = sandbox_find(s, workspace, name, NULL);
    if (sb == NULL)
        return;
    sandbox_hold(sb);
    history_run_ended(sb, execution, dirty);
    sandbox_drop(sb);
}
