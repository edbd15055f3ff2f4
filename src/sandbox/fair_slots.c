/* SPDX-License-Identifier: Apache-2.0 */

/* Gives slots to workspaces in turn. A waiter lives on its coroutine's stack. */

#include "sandbox/fair_slots.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>

#include "base/cleanup.h"
#include "base/names.h"

struct slot_user {
    char workspace[NAME_MAX_LEN + 1];
    unsigned taken, waiting;
    unsigned last_turn; /* when it got a slot last */
    UT_hash_handle hh;
};

struct slot_waiter {
    struct slot_user *user;
    struct co_cond granted_cond;
    bool granted;
    struct slot_waiter *previous, *next;
};

void fair_slots_init(struct fair_slots *slots, struct loop *loop, const char *what, unsigned most,
                     unsigned most_each, unsigned queue_each)
{
    *slots = (struct fair_slots){
        .loop = loop, .what = what, .most = most, .most_each = most_each, .queue_each = queue_each};
}

void fair_slots_release(struct fair_slots *slots)
{
    struct slot_user *user, *next;
    HASH_ITER(hh, slots->users, user, next)
    {
        HASH_DEL(slots->users, user);
        free(user);
    }
}

static struct slot_user *user_of(struct fair_slots *slots, const char *workspace)
{
    struct slot_user *user;
    HASH_FIND_STR(slots->users, workspace, user);
    if (user != NULL)
        return user;
    user = calloc(1, sizeof(*user));
    if (user == NULL)
        abort(); /* a hundred bytes: nothing sensible can go on */
    snprintf(user->workspace, sizeof(user->workspace), "%s", workspace);
    HASH_ADD_STR(slots->users, workspace, user);
    return user;
}

static void forget_idle(struct fair_slots *slots, struct slot_user *user)
{
    if (user->taken > 0 || user->waiting > 0)
        return;
    HASH_DEL(slots->users, user);
    free(user);
}

static void count_taken(struct fair_slots *slots, struct slot_user *user)
{
    slots->taken++;
    user->taken++;
    user->last_turn = ++slots->turn;
}

static void leave_queue(struct fair_slots *slots, struct slot_waiter *w)
{
    *(w->previous != NULL ? &w->previous->next : &slots->first) = w->next;
    *(w->next != NULL ? &w->next->previous : &slots->last) = w->previous;
    w->user->waiting--;
}

/* The first of the workspace that was served longest ago, of those that may have one more. */
static struct slot_waiter *next_waiter(const struct fair_slots *slots)
{
    struct slot_waiter *best = NULL;
    for (struct slot_waiter *w = slots->first; w != NULL; w = w->next)
        if (w->user->taken < slots->most_each &&
            (best == NULL || w->user->last_turn < best->user->last_turn))
            best = w;
    return best;
}

static void grant(struct fair_slots *slots)
{
    struct slot_waiter *w;
    while (slots->taken < slots->most && (w = next_waiter(slots)) != NULL) {
        leave_queue(slots, w);
        count_taken(slots, w->user);
        w->granted = true;
        co_cond_wake_all(&w->granted_cond);
    }
}

static int wait_in_queue(struct fair_slots *slots, struct slot_user *user, int64_t timeout_ms,
                         struct error *err)
{
    struct slot_waiter w = {.user = user, .previous = slots->last};
    *(slots->last != NULL ? &slots->last->next : &slots->first) = &w;
    slots->last = &w;
    user->waiting++;
    int rc = co_cond_wait(slots->loop, &w.granted_cond, timeout_ms, err);
    if (w.granted && rc < 0)
        fair_slots_give(slots, user->workspace); /* cancelled in the moment of its turn */
    else if (rc < 0)
        leave_queue(slots, &w);
    return rc;
}

int fair_slots_take(struct fair_slots *slots, const char *workspace, int64_t timeout_ms,
                    struct error *err)
{
    struct slot_user *user = user_of(slots, workspace);
    if (slots->taken < slots->most && user->taken < slots->most_each) {
        count_taken(slots, user); /* who waits is over its workspace's share */
        return 0;
    }
    if (user->waiting >= slots->queue_each)
        return error_set(err, ERROR_LIMIT_EXCEEDED,
                         "%u %s of the workspace \"%s\" wait for their turn, and no more may: try "
                         "again in a moment",
                         user->waiting, slots->what, workspace);
    int rc = wait_in_queue(slots, user, timeout_ms, err);
    if (rc < 0)
        forget_idle(slots, user_of(slots, workspace));
    return rc;
}

void fair_slots_force(struct fair_slots *slots, const char *workspace)
{
    count_taken(slots, user_of(slots, workspace));
}

void fair_slots_give(struct fair_slots *slots, const char *workspace)
{
    struct slot_user *user = user_of(slots, workspace);
    slots->taken--;
    user->taken--;
    grant(slots);
    forget_idle(slots, user);
}
