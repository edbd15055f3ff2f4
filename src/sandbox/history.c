/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Histories of sandboxes: that there are some, what each of them keeps, who may be at work on one,
 * and their end.
 */

#include "sandbox/history.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/layout.h"
#include "base/limits.h"
#include "base/log.h"
#include "loop/co.h"
#include "sandbox/history_state.h"
#include "sandbox/id_files.h"

enum { THREADS = 2 };

/* ---- all of them ---- */

int histories_new(struct sandboxes *s, int data_dir_fd, struct error *err)
{
    struct histories *h = calloc(1, sizeof(*h));
    struct error why = {0};
    if (h == NULL)
        return error_sys(err, "allocating");
    h->dir_fd = h->journal.fd = -1;
    s->histories = h;
    h->repository_max = HISTORY_REPOSITORY_MAX;
    fair_slots_init(&h->diffs, s->loop, "diffs", HISTORY_DIFFS_MAX, HISTORY_EACH_MAX,
                    HISTORY_QUEUE_MAX);
    fair_slots_init(&h->logs, s->loop, "lists of commits", HISTORY_LOGS_MAX, HISTORY_EACH_MAX,
                    HISTORY_QUEUE_MAX);
    fair_slots_init(&h->large, s->loop, "looks at many files", HISTORY_LARGE_MAX,
                    HISTORY_LARGE_EACH_MAX, HISTORY_LARGE_QUEUE_MAX);
    h->git.loop = s->loop;
    h->git.workers = workers_new(s->loop, THREADS, err);
    if (h->git.workers == NULL || history_helpers_new(h, err) < 0 ||
        id_folder_open(data_dir_fd, LAYOUT_HISTORY, &h->dir_fd, err) < 0) {
        histories_free(s);
        return -1;
    }
    if (journal_open(&h->journal, h->dir_fd, err) < 0) {
        histories_free(s);
        return -1;
    }
    h->on = git_program_find(h->git.path, &why) == 0;
    if (!h->on)
        snprintf(h->why_off, sizeof(h->why_off), "%s", why.message);
    return 0;
}

void sandboxes_set_history(struct sandboxes *s, bool on)
{
    if (on)
        return;
    s->histories->on = false;
    snprintf(s->histories->why_off, sizeof(s->histories->why_off),
             "this server was started with --no-history");
}

void sandboxes_set_history_size(struct sandboxes *s, uint64_t bytes)
{
    s->histories->repository_max = bytes;
}

static bool is_known(void *ctx, const char *id)
{
    const struct sandboxes *s = ctx;
    struct sandbox *sb;
    HASH_FIND(by_id, s->ids, id, strlen(id), sb);
    return sb != NULL || strcmp(id, LAYOUT_HISTORY_JOURNAL) == 0;
}

void histories_start(struct sandboxes *s)
{
    history_folders_sweep(&s->histories->git, s->histories->dir_fd, is_known, s);
    struct error err = {0};
    if (!s->histories->on)
        log_warn("no history of sandboxes' files is kept: %s", s->histories->why_off);
    else if (history_read_journal(s, &err) < 0)
        log_warn("history: %s", err.message);
    history_measure_all(s);
}

void histories_free(struct sandboxes *s)
{
    struct histories *h = s->histories;
    if (h == NULL)
        return;
    workers_free(h->git.workers);
    history_helpers_free(h);
    fair_slots_release(&h->diffs);
    fair_slots_release(&h->logs);
    fair_slots_release(&h->large);
    journal_close(&h->journal);
    cleanup_fd(&h->dir_fd);
    free(h);
    s->histories = NULL;
}

/* ---- one of them ---- */

/* What was written now would be there for good. */
bool history_is_going(const struct sandbox *sb)
{
    return sb->gone || sb->status == SANDBOX_DELETING;
}

const struct history_rules *history_rules_of(const struct sandbox *sb)
{
    return sb->history_rules != NULL ? sb->history_rules : &history_rules_usual;
}

struct sandbox_history *history_made(struct sandbox *sb)
{
    if (sb->history == NULL) {
        sb->history = calloc(1, sizeof(*sb->history));
        if (sb->history == NULL)
            abort();
        buf_init(&sb->history->lines, HISTORY_LINES_BYTES);
        sb->history->watch_fd = -1;
    }
    return sb->history;
}

struct sandbox_history *history_of(struct sandbox *sb)
{
    struct histories *all = sb->owner->histories;
    return !all->on || history_is_going(sb) || !history_rules_of(sb)->enabled ? NULL
                                                                              : history_made(sb);
}

struct slice history_ignore_of(const struct sandbox *sb, struct arena *arena)
{
    struct slice ignore = history_rules_of(sb)->ignore;
    return (struct slice){arena_dup(arena, ignore.data, ignore.len), ignore.len};
}

int history_set_rules(struct sandbox *sb, struct slice list, struct error *err)
{
    struct history_rules *rules = NULL;
    char *said = NULL;
    if (list.len > 0) {
        if (history_rules_read(list, &rules, err) < 0)
            return -1;
        said = malloc(list.len);
        if (said == NULL) {
            free(rules);
            return error_sys(err, "allocating");
        }
        memcpy(said, list.data, list.len);
    }
    free(sb->history_rules);
    free(sb->history_said);
    sb->history_rules = rules;
    sb->history_said = said;
    sb->history_said_len = list.len;
    return 0;
}

void history_change_rules(struct sandbox *sb, struct slice list)
{
    struct error err;
    struct arena *arena = arena_new();
    const struct slice said = {sb->history_said, sb->history_said_len};
    if (history_set_rules(sb, history_rules_over(list, said, arena), &err) < 0)
        log_warn("sandbox %s: the rules of its history: %s", sb->id, err.message);
    arena_free(arena);
    if (sb->history == NULL)
        return;
    sb->history->rules++;
    sb->history->settled = false; /* the agent watches what the old ones named */
}

void sandbox_history_free(struct sandbox_history *h)
{
    if (h == NULL)
        return;
    cleanup_fd(&h->watch_fd);
    buf_release(&h->lines);
    free(h);
}

int history_find(struct sandboxes *s, const char *workspace, const char *name,
                 struct sandbox **ret_sandbox, struct error *err)
{
    struct sandbox *sb = sandbox_find(s, workspace, name, err);
    if (sb == NULL)
        return -1;
    if (s->histories->on && history_is_going(sb))
        return error_set(err, ERROR_SANDBOX_NOT_FOUND, "sandbox \"%s\" is being deleted", sb->name);
    if (history_of(sb) == NULL)
        return error_set(err, ERROR_HISTORY_DISABLED, "no history is kept of \"%s\": %s", sb->name,
                         s->histories->on ? "its spec.history.enabled is false"
                                          : s->histories->why_off);
    if (ret_sandbox != NULL) {
        sandbox_hold(sb);
        *ret_sandbox = sb;
    }
    return 0;
}

bool history_enabled(struct sandboxes *s, const char *workspace, const char *name)
{
    struct sandbox *sb = sandbox_find(s, workspace, name, NULL);
    return sb != NULL && history_of(sb) != NULL;
}

/* Sees to it that what waits to be looked into is looked into now, and waits for that. */
int history_hurry(struct sandbox *sb, struct error *err)
{
    struct sandbox_history *h = sb->history;
    while (h->waiting) {
        h->hurry = true;
        co_cond_wake_all(&h->hurried);
        if (co_cond_wait(sb->owner->loop, &h->freed, -1, err) < 0)
            return -1;
    }
    return 0;
}

int history_take(struct sandbox *sb, struct error *err)
{
    while (sb->history->busy)
        if (co_cond_wait(sb->owner->loop, &sb->history->freed, -1, err) < 0)
            return -1;
    sb->history->busy = true;
    sb->history->holder = co_self(sb->owner->loop);
    return 0;
}

int history_lock(struct sandbox *sb, struct error *err)
{
    return history_hurry(sb, err) < 0 ? -1 : history_take(sb, err);
}

void history_unlock(struct sandbox *sb)
{
    sb->history->holder = NULL;
    sb->history->busy = false;
    co_cond_wake_all(&sb->history->freed);
}

/* ---- clones, and the end ---- */

void history_forget(struct sandbox *sb)
{
    struct histories *all = sb->owner->histories;
    struct error err;
    if (sb->history != NULL) {
        sb->history->hurry = true;
        co_cond_wake_all(&sb->history->hurried);
        history_stop_packer(sb, &err);
        if (history_take(sb, &err) == 0)
            history_unlock(sb);
    }
    history_folder_remove(&all->git, all->dir_fd, sb->id);
}

void history_inherit(struct sandbox *sb, const char *source_id)
{
    struct histories *all = sb->owner->histories;
    struct sandbox *source;
    struct error err = {0};
    if (!history_rules_of(sb)->enabled)
        return;
    HASH_FIND(by_id, sb->owner->ids, source_id, strlen(source_id), source);
    /* Also one that nobody has asked of yet: somebody may while this copies. */
    bool locked =
        source != NULL && !source->gone && (source->history != NULL || history_of(source) != NULL);
    if (locked) {
        sandbox_hold(source);
        if (history_lock(source, &err) < 0) { /* what was run in it is part of it */
            sandbox_drop(source);
            return;
        }
        history_write_list(source);
    }
    if (history_folder_copy(&all->git, all->dir_fd, source_id, sb->id, &err) < 0)
        log_warn("sandbox %s: it has no history of its source: %s", sb->id, err.message);
    history_measure(sb);
    if (locked) {
        history_unlock(source);
        sandbox_drop(source);
    }
}
