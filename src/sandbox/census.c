/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Takes censuses, and acts on those that are taken while the server runs: a stranger that was there
 * the last time, too, is removed, and so is the run of a sandbox that is recorded as stopped. Once
 * is not enough: a census shows a moment that is over when it is read.
 */

#include "sandbox/census.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "loop/co.h"

enum {
    CENSUS_SOON_MS = 2 * 1000, /* after a recovery, and to look at a suspect again */
    CENSUS_EVERY_MS = 5 * 60 * 1000,
};

struct inspector {
    struct sandboxes *owner;
    struct timer timer;
    struct census suspects; /* what did not belong there the last time */
    bool at_work, stopped;
};

/* ---- taking one ---- */

void census_release(struct census *census)
{
    struct found *item, *next;
    HASH_ITER(hh, census->items, item, next)
    {
        HASH_DEL(census->items, item);
        free(item);
    }
}

static int add(void *ctx, const struct warden_entry *entry, struct error *err)
{
    struct census *census = ctx;
    struct found *item = calloc(1, sizeof(*item));
    if (item == NULL)
        return error_sys(err, "listing what runs");
    memcpy(item->id, entry->id, strnlen(entry->id, sizeof(item->id) - 1));
    item->running = entry->running != 0;
    item->paused = entry->paused != 0;
    if (entry->address != NULL)
        memcpy(item->address, entry->address, strnlen(entry->address, sizeof(item->address) - 1));
    if (entry->address6 != NULL)
        memcpy(item->address6, entry->address6,
               strnlen(entry->address6, sizeof(item->address6) - 1));
    HASH_ADD_STR(census->items, id, item);
    return 0;
}

int census_take(struct sandboxes *s, struct census *census, struct error *err)
{
    return s->provider->ops->list(s->provider, add, census, err);
}

const struct found *census_find(const struct census *census, const char *id)
{
    struct found *item;
    HASH_FIND_STR(census->items, id, item);
    return item;
}

bool census_running(const struct census *census, const char *id)
{
    const struct found *item = census_find(census, id);
    return item != NULL && item->running;
}

bool census_paused(const struct census *census, const char *id)
{
    const struct found *item = census_find(census, id);
    return item != NULL && item->running && item->paused;
}

/* ---- strangers ---- */

static struct sandbox *known(const struct sandboxes *s, const char *id)
{
    struct sandbox *sb;
    HASH_FIND(by_id, s->ids, id, strlen(id), sb);
    return sb;
}

static bool is_stranger(const struct sandboxes *s, const char *id)
{
    return known(s, id) == NULL && !pools_know(s, id);
}

static void remove_stranger(struct sandboxes *s, const char *id)
{
    struct error err;
    if (s->provider->ops->remove(s->provider, id, &err) < 0)
        log_error("removing %s: %s", id, err.message);
}

void census_remove_strangers(struct sandboxes *s, const struct census *census)
{
    for (const struct found *item = census->items; item != NULL; item = item->hh.next) {
        if (!is_stranger(s, item->id))
            continue;
        log_warn("removing %s, which belongs to no sandbox", item->id);
        remove_stranger(s, item->id);
    }
}

/* ---- while the server runs ---- */

/* It is recorded as stopped or failed, and nobody is about to change that. A start whose answer
 * came too late may have been carried out all the same. */
static bool runs_against_its_record(const struct sandboxes *s, const struct found *item)
{
    const struct sandbox *sb = known(s, item->id);
    return sb != NULL && (sb->group == NULL || !sb->group->ending) && item->running && !sb->up &&
           !sb->driven && (sb->status == SANDBOX_STOPPED || sb->status == SANDBOX_FAILED);
}

static void act(struct sandboxes *s, const struct found *item, bool stranger)
{
    struct error err;
    if (stranger) {
        log_warn("removing %s, which nobody knows", item->id);
        remove_stranger(s, item->id);
    } else {
        log_warn("stopping sandbox %s, which runs and should not", item->id);
        if (s->provider->ops->stop(s->provider, item->id, 0, &err) < 0)
            log_error("stopping %s: %s", item->id, err.message);
    }
}

/* What does not belong there stays in `census`, unless it was dealt with; the rest is dropped. */
static void inspect(struct inspector *inspector, struct census *census)
{
    struct sandboxes *s = inspector->owner;
    struct found *item, *next;
    HASH_ITER(hh, census->items, item, next)
    {
        bool stranger = is_stranger(s, item->id);
        if (stranger || runs_against_its_record(s, item)) {
            if (census_find(&inspector->suspects, item->id) == NULL)
                continue;
            act(s, item, stranger);
        }
        HASH_DEL(census->items, item);
        free(item);
    }
}

static void look(struct timer *timer);

static void plan_next(struct inspector *inspector, int64_t in_ms)
{
    if (!inspector->stopped)
        timer_start(inspector->owner->loop, &inspector->timer, in_ms, look);
}

static void inspector_main(void *arg)
{
    struct inspector *inspector = arg;
    struct sandboxes *s = inspector->owner;
    struct census census = {0};
    struct error err;
    if (census_take(s, &census, &err) < 0) {
        log_warn("asking what runs: %s", err.message);
        census_release(&census);
    } else if (!inspector->stopped) {
        inspect(inspector, &census);
    }
    census_release(&inspector->suspects);
    inspector->suspects = census;
    inspector->at_work = false;
    plan_next(inspector, census.items != NULL ? CENSUS_SOON_MS : CENSUS_EVERY_MS);
    if (--s->drivers == 0)
        co_cond_wake_all(&s->idle);
}

static void look(struct timer *timer)
{
    struct inspector *inspector = container_of(timer, struct inspector, timer);
    struct sandboxes *s = inspector->owner;
    struct error err;
    if (inspector->at_work)
        return; /* it plans the next one */
    inspector->at_work = true;
    s->drivers++;
    if (co_spawn(s->loop, inspector_main, inspector, NULL, &err) < 0) {
        log_error("asking what runs: %s", err.message);
        s->drivers--;
        inspector->at_work = false;
        plan_next(inspector, CENSUS_EVERY_MS);
    }
}

int censuses_start(struct sandboxes *s, struct error *err)
{
    s->inspector = calloc(1, sizeof(*s->inspector));
    if (s->inspector == NULL)
        return error_sys(err, "allocating");
    s->inspector->owner = s;
    plan_next(s->inspector, CENSUS_SOON_MS);
    return 0;
}

void censuses_soon(struct sandboxes *s)
{
    if (s->inspector != NULL)
        plan_next(s->inspector, CENSUS_SOON_MS);
}

void censuses_stop(struct sandboxes *s)
{
    if (s->inspector == NULL)
        return;
    s->inspector->stopped = true;
    timer_stop(&s->inspector->timer);
}

void censuses_free(struct sandboxes *s)
{
    if (s->inspector == NULL)
        return;
    censuses_stop(s);
    census_release(&s->inspector->suspects);
    free(steal_ptr(s->inspector));
}
