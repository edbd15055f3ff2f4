/* SPDX-License-Identifier: Apache-2.0 */

/*
 * How long a sandbox has run, and how much it was asked. Counting is an addition in memory, on the
 * way of every request; it is written down with the samples of the sandbox's usage, every few
 * seconds, and when it stops: a crash loses what was counted since, and nothing waits for it.
 */

#include "sandbox/state.h"

#include <string.h>

#include "base/log.h"
#include "base/timetext.h"

void tally_started(struct sandbox *sb)
{
    sb->tally.starts++;
    sb->tally.since_ms = sb->tally.seen_ms = time_now_ms();
    sb->tally.unsaved = true;
}

void tally_resumed(struct sandbox *sb)
{
    if (sb->tally.since_ms != 0) /* it did not stand still after all */
        return;
    sb->tally.since_ms = sb->tally.seen_ms = time_now_ms();
    sb->tally.unsaved = true;
}

static void ended(struct sandbox *sb, int64_t when_ms)
{
    struct tally *tally = &sb->tally;
    if (tally->since_ms == 0)
        return;
    if (when_ms > tally->since_ms) /* unless the clock was set back */
        tally->ran_ms += when_ms - tally->since_ms;
    tally->since_ms = 0;
    tally->unsaved = true;
}

void tally_stopped(struct sandbox *sb)
{
    ended(sb, time_now_ms());
}

void tally_recovered(struct sandbox *sb)
{
    if (!sb->up || sb->paused) /* since when nobody knows */
        ended(sb, sb->tally.seen_ms);
    else if (sb->tally.since_ms == 0)
        tally_started(sb);
}

void tally_action(struct sandbox *sb)
{
    sb->tally.actions++;
    sb->tally.unsaved = true;
}

void tally_command(struct sandbox *sb)
{
    sb->tally.commands++;
    sb->tally.unsaved = true;
}

void tally_save(struct sandbox *sb)
{
    struct error err;
    if (!sb->tally.unsaved || sb->gone)
        return;
    sb->tally.unsaved = false;
    sb->tally.seen_ms = time_now_ms();
    const struct store_tally row = {
        .sandbox_id = sb->id, /* never changes, and is held by whoever calls */
        .starts = sb->tally.starts,
        .since_ms = sb->tally.since_ms,
        .seen_ms = sb->tally.seen_ms,
        .ran_ms = sb->tally.ran_ms,
        .actions = sb->tally.actions,
        .commands = sb->tally.commands,
    };
    if (store_put_tally(sb->owner->store, &row, &err) < 0)
        log_error("sandbox %s: recording its tally: %s", sb->id, err.message);
}

static int load_tally(void *ctx, const struct store_tally *row, struct error *err)
{
    struct sandboxes *s = ctx;
    struct sandbox *sb;
    HASH_FIND(by_id, s->ids, row->sandbox_id, strlen(row->sandbox_id), sb);
    if (sb != NULL)
        sb->tally = (struct tally){.starts = row->starts,
                                   .since_ms = row->since_ms,
                                   .seen_ms = row->seen_ms,
                                   .ran_ms = row->ran_ms,
                                   .actions = row->actions,
                                   .commands = row->commands};
    return 0;
}

int sandboxes_load_tallies(struct sandboxes *s, struct error *err)
{
    return store_load_tallies(s->store, load_tally, s, err);
}

void tally_info(const struct sandbox *sb, struct sandbox_tally *ret_tally)
{
    const struct tally *tally = &sb->tally;
    int64_t now = time_now_ms();
    int64_t running = tally->since_ms == 0 || now < tally->since_ms ? 0 : now - tally->since_ms;
    *ret_tally = (struct sandbox_tally){
        .starts = tally->starts,
        .started_ms = tally->since_ms,
        .running_ms = running,
        .total_ms = tally->ran_ms + running,
        .actions = tally->actions,
        .commands = tally->commands,
    };
}
