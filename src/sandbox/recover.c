/* SPDX-License-Identifier: Apache-2.0 */

/*
 * After a crash, of this process or of the provider's: what the store says is compared with what
 * runs. Nothing is repaired here; each sandbox gets the goal that its last recorded status implies,
 * and the driver does the rest. What runs, has files or is about to get them without being recorded
 * was never acknowledged to anybody and is removed.
 */

#include "sandbox/sandbox.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/limits.h"
#include "base/log.h"
#include "loop/co.h"
#include "sandbox/census.h"
#include "sandbox/history_state.h"
#include "sandbox/state.h"

/* Where it is in its network, as it is in now, and what holds there: a change may have been under
 * way. */
static void restore_network(struct sandbox *sb, const struct census *census)
{
    struct error err;
    const struct found *item = census_find(census, sb->id);
    sandbox_network_at(sb, item == NULL ? NULL : item->address,
                       item == NULL ? NULL : item->address6);
    if (sb->network.address[0] != '\0' && !sb->unclaimed &&
        sandbox_with_patience(sb, sandbox_network_renew, &err) < 0)
        log_error("sandbox %s: its network: %s", sb->id, err.message);
}

static void save_event(struct sandbox *sb)
{
    struct error err;
    if (sandbox_save(sb, true, &err) < 0)
        log_error("sandbox %s: recording its state: %s", sb->id, err.message);
}

void sandbox_lost(struct sandbox *sb, enum sandbox_status status, const char *why)
{
    bool wanted = sb->goal == GOAL_RUNNING;
    sb->goal = GOAL_STOPPED;
    sb->up = sb->paused = false;
    if (status == SANDBOX_FAILED && wanted)
        restart_failed(sb);
    else
        sb->restart.interrupted = wanted;
    sandbox_network_stopped(sb);
    tally_stopped(sb);
    sandbox_agent_close(sb);
    history_drop_watch(sb);
    tunnels_close_idle(sb);
    sandbox_set_status(sb, status);
    sandbox_add_event(sb, "STOP", status == SANDBOX_FAILED ? "FAILURE" : "SUCCESS", why);
    save_event(sb);
    tally_save(sb);
}

static const enum sandbox_goal goal_of_status[] = {
    [SANDBOX_CREATING] = GOAL_RUNNING, [SANDBOX_RUNNING] = GOAL_RUNNING,
    [SANDBOX_STARTING] = GOAL_RUNNING, [SANDBOX_STOPPING] = GOAL_STOPPED,
    [SANDBOX_STOPPED] = GOAL_STOPPED,  [SANDBOX_PAUSING] = GOAL_PAUSED,
    [SANDBOX_PAUSED] = GOAL_PAUSED,    [SANDBOX_RESUMING] = GOAL_RUNNING,
    [SANDBOX_DELETING] = GOAL_DELETED, [SANDBOX_FAILED] = GOAL_STOPPED,
};

/* A clone without its files, or one that had them when the crash came. */
static bool resume_clone(struct sandbox *sb)
{
    if (sb->clone_of == NULL || sb->status == SANDBOX_FAILED || sb->goal == GOAL_DELETED)
        return false;
    if (sb->up) {
        sandbox_forget_source(sb);
        return false;
    }
    if (!sb->enabled && sb->status == SANDBOX_CREATING)
        sb->goal = GOAL_STOPPED;
    sandbox_drive(sb);
    return true;
}

/* It ran or stood still, and nobody wanted anything else. */
static bool had_memory(const struct sandbox *sb)
{
    return sb->status == SANDBOX_RUNNING || sb->status == SANDBOX_PAUSED ||
           sb->status == SANDBOX_PAUSING || sb->status == SANDBOX_RESUMING;
}

static void resume(struct sandbox *sb, const struct census *census)
{
    sb->up = census_running(census, sb->id);
    if (census_paused(census, sb->id))
        sandbox_froze(sb);
    if (sb->up)
        restore_network(sb, census);
    tally_recovered(sb);
    sb->goal = goal_of_status[sb->status];
    if (sb->group != NULL && sb->group->ending && sb->goal != GOAL_DELETED)
        return; /* the end of the group deletes it, and leaves alone what is being deleted already
                 */
    if (sb->unclaimed && sb->goal == GOAL_RUNNING)
        sb->up = false; /* of a pool, still: the driver goes on with the claim */
    if (sb->unsettled)
        sandbox_restore_limits(sb);
    if (resume_clone(sb))
        return;
    if (had_memory(sb) && !sb->up) {
        sandbox_lost(sb, SANDBOX_STOPPED,
                     sb->status == SANDBOX_RUNNING
                         ? "Sandbox was not running any more when the server came back"
                         : "Sandbox was paused, and its memory is gone: its files are kept");
        return;
    }
    if (sb->up && sb->goal == GOAL_PAUSED && sb->paused && sb->status == SANDBOX_PAUSED)
        return;
    if (sb->up && sb->goal == GOAL_RUNNING && !sb->paused && sb->status != SANDBOX_RESUMING) {
        if (sb->status != SANDBOX_RUNNING) {
            sandbox_set_status(sb, SANDBOX_RUNNING);
            sandbox_add_event(sb, "START", "SUCCESS", "Sandbox started successfully");
            save_event(sb);
        }
        return;
    }
    if (sb->goal == GOAL_STOPPED && !sb->up) {
        if (sb->status == SANDBOX_STOPPING)
            sandbox_lost(sb, SANDBOX_STOPPED, "Sandbox stopped successfully");
        return;
    }
    sandbox_drive(sb);
}

/* The calls may wait, and the map change meanwhile: so every sandbox is held first. */
static void each_sandbox(struct sandboxes *s, const struct census *census,
                         void (*fn)(struct sandbox *, const struct census *))
{
    size_t count = 0;
    struct sandbox **all = calloc(HASH_CNT(by_id, s->ids) + 1, sizeof(*all));
    if (all == NULL)
        abort();
    for (struct sandbox *sb = s->ids; sb != NULL; sb = sb->by_id.next) {
        sandbox_hold(sb);
        all[count++] = sb;
    }
    for (size_t i = 0; i < count; i++) {
        if (!all[i]->gone)
            fn(all[i], census);
        sandbox_drop(all[i]);
    }
    free(all);
}

static int load_sandbox(void *ctx, const struct store_sandbox *row, struct error *err)
{
    struct sandboxes *s = ctx;
    _cleanup_sandbox_ struct sandbox *sb = sandbox_new(s, row, err);
    if (sb == NULL)
        return error_prefix(err, "sandbox %s in the database", row->id);
    bool idle = sb->status == SANDBOX_STOPPED || sb->status == SANDBOX_FAILED;
    if (sandbox_insert(sb, err) < 0)
        return -1;
    admission_count(&s->admission, &sb->promise, idle ? PROMISE_DISK : PROMISE_ALL, &sb->limits);
    return 0;
}

static int load_event(void *ctx, const char *id, const struct store_event *event, struct error *err)
{
    struct sandboxes *s = ctx;
    struct sandbox *sb;
    HASH_FIND(by_id, s->ids, id, strlen(id), sb);
    if (sb != NULL)
        sandbox_load_event(sb, event);
    return 0;
}

static int load_note(void *ctx, const char *id, const struct store_note *note, struct error *err)
{
    struct sandboxes *s = ctx;
    struct sandbox *sb;
    HASH_FIND(by_id, s->ids, id, strlen(id), sb);
    if (sb != NULL)
        sandbox_load_note(sb, note);
    return 0;
}

int sandboxes_recover(struct sandboxes *s, struct error *err)
{
    struct store_load load = {
        .sandbox = load_sandbox, .event = load_event, .note = load_note, .ctx = s};
    if (store_last_revision(s->store, &s->revision, err) < 0 || sandboxes_load_groups(s, err) < 0 ||
        store_load_all(s->store, &load, err) < 0 || sandboxes_load_tallies(s, err) < 0 ||
        sandboxes_load_lifespans(s, err) < 0 || sandboxes_load_previews(s, err) < 0 ||
        sandboxes_load_ports(s, err) < 0 || sandboxes_load_monitors(s, err) < 0 ||
        pools_load(s, err) < 0)
        return -1;

    histories_start(s);
    struct census census = {0};
    if (census_take(s, &census, err) < 0) {
        census_release(&census);
        return error_prefix(err, "asking what runs");
    }
    struct warden_about about;
    if (s->provider->ops->about(s->provider, &about, err) == 0 && about.storage != NULL)
        snprintf(s->words.storage, sizeof(s->words.storage), "%s", about.storage);
    networks_look(s);
    if (capacity_look(s, err) < 0)
        log_warn("looking at the machine: %s", err->message);
    each_sandbox(s, &census, resume);
    egress_link_start(s);
    census_remove_strangers(s, &census);
    census_release(&census);
    sandboxes_resume_groups(s);
    sandboxes_resume_monitors(s);
    if (metrics_start(s, err) < 0 || reaper_start(s, err) < 0 || censuses_start(s, err) < 0)
        return -1;
    restarts_begin(s);
    return pools_start(s, err);
}

/* --- while it runs --- */

static void check_running(struct sandbox *sb, const struct census *census)
{
    if (sb->driven || (sb->status != SANDBOX_RUNNING && sb->status != SANDBOX_PAUSED))
        return;
    if (!census_running(census, sb->id)) {
        sandbox_lost(sb, SANDBOX_FAILED, "Sandbox ended while nobody was watching");
        return;
    }
    restore_network(sb, census);
    if (sb->driven || sb->gone)
        return;
    sb->paused = census_paused(census, sb->id);
    if (sb->paused != (sb->goal == GOAL_PAUSED))
        sandbox_drive(sb);
}

static void compare(void *arg)
{
    struct sandboxes *s = arg;
    struct census census = {0};
    struct error err;
    if (census_take(s, &census, &err) < 0) {
        log_error("asking what runs: %s", err.message);
    } else {
        networks_look(s);
        egress_link_start(s);
        each_sandbox(s, &census, check_running);
        census_remove_strangers(s, &census);
    }
    census_release(&census);
    censuses_soon(s);
    if (--s->drivers == 0)
        co_cond_wake_all(&s->idle);
}

static void on_reconnected(void *ctx)
{
    struct sandboxes *s = ctx;
    struct error err;
    pools_reconnected(s);
    s->drivers++;
    if (co_spawn(s->loop, compare, s, NULL, &err) < 0) {
        s->drivers--;
        log_error("comparing what runs: %s", err.message);
    }
}

struct exit_note {
    struct sandbox *sb;
    bool out_of_memory;
};

static void note_exit(void *arg)
{
    struct exit_note *note = arg;
    struct sandboxes *s = note->sb->owner;
    sandbox_lost(note->sb, SANDBOX_FAILED,
                 note->out_of_memory ? "Sandbox ended: out of memory"
                                     : "Sandbox ended unexpectedly");
    sandbox_drop(note->sb);
    free(note);
    if (--s->drivers == 0)
        co_cond_wake_all(&s->idle);
}

static void on_exited(void *ctx, const char *id, bool out_of_memory)
{
    struct sandboxes *s = ctx;
    struct sandbox *sb;
    struct error err;
    HASH_FIND(by_id, s->ids, id, strlen(id), sb);
    if (sb == NULL) {
        pools_exited(s, id);
        return;
    }
    if (sb->driven) {
        sb->exited = true;
        return;
    }
    if (sb->status != SANDBOX_RUNNING && sb->status != SANDBOX_PAUSED)
        return;
    log_warn("sandbox %s ended by itself%s", id, out_of_memory ? ": out of memory" : "");
    struct exit_note *note = malloc(sizeof(*note));
    if (note == NULL)
        abort();
    *note = (struct exit_note){sb, out_of_memory};
    sandbox_hold(sb);
    s->drivers++;
    if (co_spawn(s->loop, note_exit, note, NULL, &err) < 0) {
        log_error("sandbox %s: %s", id, err.message);
        s->drivers--;
        sandbox_drop(sb);
        free(note);
    }
}

int sandboxes_new(struct loop *loop, struct store *store, int data_dir_fd,
                  struct sandboxes **ret_sandboxes, struct error *err)
{
    struct sandboxes *s = calloc(1, sizeof(*s));
    if (s == NULL)
        return error_sys(err, "allocating");
    s->loop = loop;
    s->store = store;
    admission_init(&s->admission, data_dir_fd);
    s->networks.run_fd = -1;
    struct provider_events events = {.exited = on_exited, .reconnected = on_reconnected, .ctx = s};
    if (pools_new(s, err) < 0 || metrics_new(s, data_dir_fd, err) < 0 ||
        histories_new(s, data_dir_fd, err) < 0 || egress_link_open(s, data_dir_fd, err) < 0 ||
        provider_native_new(loop, data_dir_fd, &events, &s->provider, err) < 0) {
        egress_link_free(s);
        histories_free(s);
        metrics_free(s);
        pools_free(s);
        free(s);
        return -1;
    }
    *ret_sandboxes = s;
    return 0;
}

int sandboxes_set_capacity(struct sandboxes *s, const char *overcommit, const char *capacity,
                           struct error *err)
{
    if (admission_set_overcommit(&s->admission, overcommit, err) < 0)
        return error_prefix(err, "overcommit");
    if (machine_configure(&s->admission.machine, capacity, err) < 0)
        return error_prefix(err, "capacity");
    return 0;
}

void sandboxes_free(struct sandboxes *s)
{
    if (s == NULL)
        return;
    while (s->ids != NULL)
        sandbox_remove(s->ids);
    sandboxes_free_groups(s);
    reaper_free(s);
    censuses_free(s);
    pools_free(s);
    metrics_free(s);
    histories_free(s);
    egress_link_free(s);
    s->provider->ops->free(s->provider);
    free(s->probe);
    free(s);
}

int sandboxes_about(struct sandboxes *s, struct warden_about *ret_about, struct error *err)
{
    return s->provider->ops->about(s->provider, ret_about, err);
}
