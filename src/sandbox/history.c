/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Histories of sandboxes: who may be at work on one, when its files are looked at, and what is
 * written down of an execution. The files of a sandbox that nobody has looked at yet (or whose last
 * look failed) are looked at behind the first execution's back: its answer does not wait, whatever
 * is run or asked next does. So a sandbox that is made for one command pays nothing for a history.
 */

#include "sandbox/history.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/layout.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/timetext.h"
#include "loop/co.h"
#include "observe/meters.h"
#include "sandbox/history_look.h"
#include "sandbox/history_pack.h"
#include "sandbox/history_state.h"
#include "sandbox/history_tree.h"
#include "sandbox/id_files.h"
#include "sandbox/processes.h"

enum {
    THREADS = 2,
    SOON_MS = 50,              /* from the first execution to the first look */
    TOO_MUCH_MS = 60 * 1000,   /* until files that were too many are listed again */
    FULL_MS = 2 * 1000,        /* until a full disk is tried again */
    PROCESSES_LOOKED_AT = 512, /* of those that nobody waits for */
};

static const char roots[] = "/workspace\0/home/user";

/* ---- ids ---- */

void history_run_begin(char ret_execution[EXECUTION_ID_SIZE])
{
    uint32_t number;
    if (getrandom(&number, sizeof(number), 0) != (ssize_t)sizeof(number))
        abort();
    snprintf(ret_execution, EXECUTION_ID_SIZE, "exec_%08x", number);
}

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
    h->git.loop = s->loop;
    h->git.workers = workers_new(s->loop, THREADS, err);
    if (h->git.workers == NULL ||
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
    unsigned orphans = git_end_orphans(s->histories->dir_fd);
    if (orphans > 0)
        log_info("ended %u git of a server that was killed", orphans);
    history_folders_sweep(&s->histories->git, s->histories->dir_fd, is_known, s);
    struct error err = {0};
    if (!s->histories->on)
        log_warn("no history of sandboxes' files is kept: %s", s->histories->why_off);
    else if (history_read_journal(s, &err) < 0)
        log_warn("history: %s", err.message);
}

void histories_free(struct sandboxes *s)
{
    struct histories *h = s->histories;
    if (h == NULL)
        return;
    workers_free(h->git.workers);
    journal_close(&h->journal);
    cleanup_fd(&h->dir_fd);
    free(h);
    s->histories = NULL;
}

/* ---- one of them ---- */

/* What was written now would be there for good. */
static bool is_going(const struct sandbox *sb)
{
    return sb->gone || sb->status == SANDBOX_DELETING;
}

static const struct history_rules *rules_of(const struct sandbox *sb)
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
    return !all->on || is_going(sb) || !rules_of(sb)->enabled ? NULL : history_made(sb);
}

struct slice history_ignore_of(const struct sandbox *sb, struct arena *arena)
{
    struct slice ignore = rules_of(sb)->ignore;
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
    if (s->histories->on && is_going(sb))
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
static int hurry(struct sandbox *sb, struct error *err)
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

static int take(struct sandbox *sb, struct error *err)
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
    return hurry(sb, err) < 0 ? -1 : take(sb, err);
}

void history_unlock(struct sandbox *sb)
{
    sb->history->holder = NULL;
    sb->history->busy = false;
    co_cond_wake_all(&sb->history->freed);
}

/* ---- the repository ---- */

/* Whoever clears the repository up, or away, is alone with it. */
static int stop_packer(struct sandbox *sb, struct error *err)
{
    struct sandbox_history *h = sb->history;
    if (h->packer != NULL)
        co_cancel(h->packer);
    while (h->packer != NULL)
        if (co_cond_wait(sb->owner->loop, &h->freed, -1, err) < 0)
            return -1;
    return 0;
}

int history_open_repository(struct sandbox *sb, struct repository *ret_repository,
                            struct error *err)
{
    struct histories *all = sb->owner->histories;
    struct sandbox_history *h = sb->history;
    if (!h->tidied && stop_packer(sb, err) < 0)
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
    bool watched; /* the last listing's */
};

static int list_agent(void *ctx, history_visit *visit, void *visit_ctx, struct error *err)
{
    struct agent_source *source = ctx;
    struct history_listed listed = {0};
    if (history_tree_list(source->tree, source->ignore, HISTORY_ENTRIES_MAX, visit, visit_ctx,
                          &listed, err) < 0)
        return -1;
    source->watched = listed.watched == 1;
    if (listed.cut)
        return error_set(err, ERROR_LIMIT_EXCEEDED,
                         "there are more than %d tracked files, too many for a history",
                         HISTORY_ENTRIES_MAX);
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
    struct agent_source agent = {tree, request->ignore, false};
    const struct history_source source = {&agent, list_agent, read_agent};
    if (history_commit_files(r, &source, request, arena, ret_manifest, ret_committed, err) < 0)
        return -1;
    sb->history->watched = agent.watched;
    history_take_watch(sb, tree);
    return 0;
}

/* With the lock. 1: it is still too large, and has lost its older half. */
static int end_packing(struct sandbox *sb, struct repository *r, struct packing *packing,
                       struct error *err)
{
    if (is_going(sb))
        return 0;
    if (repository_pack_end(r, packing, err) < 0)
        return -1;
    sb->history->packed_bytes = repository_size(r);
    return sb->history->packed_bytes > sb->owner->histories->repository_max
               ? repository_forget_half(r, err)
               : 0;
}

/* Nobody waits for the long part of it: commits are made meanwhile. */
static int repack_now(struct sandbox *sb, struct error *err)
{
    struct histories *all = sb->owner->histories;
    _cleanup_repository_ struct repository r = {.folder_fd = -1, .fd = -1};
    _cleanup_packing_ struct packing packing = PACKING_INIT;
    if (repository_open(&all->git, all->dir_fd, sb->id, false, false, &r, err) < 0)
        return -1;
    for (int again = 1; r.fd >= 0 && again > 0;) {
        if (repository_pack(&r, &packing, err) < 0 || take(sb, err) < 0)
            return -1;
        again = end_packing(sb, &r, &packing, err);
        history_unlock(sb);
        if (again < 0)
            return -1;
    }
    return 0;
}

/* Packs are made one behind everybody's back, one sandbox at a time; see stop_packer(). */
static void repack(void *arg)
{
    struct sandbox *sb = arg;
    struct sandboxes *s = sb->owner;
    struct error err = {0};
    sb->history->packer = co_self(s->loop);
    if (is_going(sb)) {
        /* its folder is about to go */
    } else if (repack_now(sb, &err) == 0) {
        sb->history->not_before_ms = 0;
    } else {
        sb->history->tidied = false; /* a git that was killed leaves what it had written */
        sb->history->packed_bytes = 0;
        if (!is_going(sb) && err.code != ERROR_CANCELLED)
            log_warn("sandbox %s: packing its history: %s", sb->id, err.message);
    }
    sb->history->packer = NULL;
    s->histories->repacking = false;
    co_cond_wake_all(&sb->history->freed);
    sandbox_drop(sb);
    if (--s->drivers == 0)
        co_cond_wake_all(&s->idle);
}

static void repack_if_due(struct sandbox *sb)
{
    struct histories *all = sb->owner->histories;
    struct error err;
    struct sandbox_history *h = sb->history;
    /* One that stayed large when it was packed is packed again when it has grown. */
    bool large =
        h->bytes > all->repository_max && h->bytes > h->packed_bytes + all->repository_max / 8;
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

/* Packing makes it smaller: until then nothing is added. */
static int refuse_large(struct sandbox *sb, struct error *err)
{
    struct sandbox_history *h = sb->history;
    uint64_t most = sb->owner->histories->repository_max;
    /* One commit may be that large by itself: what helps then is the next one. */
    bool just_packed = h->packed_bytes > 0 && h->bytes <= h->packed_bytes + most / 8;
    if (h->bytes <= 2 * most || just_packed)
        return 0;
    repack_if_due(sb);
    return error_set(err, ERROR_LIMIT_EXCEEDED,
                     "the history is too large: it goes on when it has been packed");
}

/* It is worth another try, but not at every command's end. */
static void failed(struct sandbox *sb, const struct error *err)
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
    const struct history_rules *rules = rules_of(sb);
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
    int rc = refuse_large(sb, err);
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
        failed(sb, err);
        return -1;
    }
    meter_count(loop_meters(sb->owner->loop), METER_HISTORY_LOOKED);
    /* Without an execution, what was changed waits for the next one. */
    h->settled = execution != NULL && rules_number == h->rules;
    h->unseen[0] = '\0';
    h->packs += ret_committed->made;
    repack_if_due(sb);
    return 0;
}

/* ---- executions ---- */

static int open_or_fail(struct sandbox *sb, struct repository *r, struct error *err)
{
    if (history_open_repository(sb, r, err) == 0)
        return 0;
    failed(sb, err);
    return -1;
}

/* With the lock. */
static void look_into(struct sandbox *sb, const char *execution)
{
    _cleanup_repository_ struct repository r = {.folder_fd = -1, .fd = -1};
    _cleanup_manifest_ struct manifest m;
    struct history_committed committed = {0};
    struct error err = {0};
    struct arena *arena = arena_new();
    history_manifest_init(&m);
    if (sb->gone || sb->status != SANDBOX_RUNNING)
        sb->history->settled = false;
    else if (open_or_fail(sb, &r, &err) < 0 ||
             history_commit_now(sb, &r, execution, HISTORY_MESSAGE, false, arena, &m, &committed,
                                &err) < 0) {
        if (sb->status == SANDBOX_RUNNING && !sb->gone)
            log_warn("sandbox %s: history: %s", sb->id, err.message);
        history_remember(sb, execution, EXECUTION_PENDING);
    } else {
        history_remember(sb, execution, r.head);
    }
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
    int rc = take(sb, &err);
    if (rc == 0 && !is_going(sb))
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

static void close_run(struct sandbox_history *h, const char *execution)
{
    for (unsigned i = 0; i < h->open_count; i++)
        if (strcmp(h->open[i], execution) == 0) {
            memmove(h->open[i], h->open[--h->open_count], EXECUTION_ID_SIZE);
            return;
        }
}

static bool is_open(const struct sandbox_history *h, const char *execution)
{
    for (unsigned i = 0; i < h->open_count; i++)
        if (strcmp(h->open[i], execution) == 0)
            return true;
    return false;
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
    return hurry(sb, err);
}

void history_run_started(struct sandbox *sb, const char *execution)
{
    struct sandbox_history *h = history_of(sb);
    if (h == NULL)
        return;
    history_remember(sb, execution, EXECUTION_PENDING);
    if (h->open_count == HISTORY_OPEN_MAX)
        close_run(h, h->open[0]);
    snprintf(h->open[h->open_count++], EXECUTION_ID_SIZE, "%s", execution);
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
    close_run(h, execution);
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
        history_remember(sb, execution, EXECUTION_PENDING);
        if (!h->waiting && loop_now(sb->owner->loop) >= h->not_before_ms)
            start_look(sb, execution, true);
    }
}

void history_process_seen(struct sandbox *sb, const struct agent_process *process)
{
    if (sb->history == NULL || process->execution == NULL || process->ended_ms == 0 ||
        !is_open(sb->history, process->execution))
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

/* ---- clones, and the end ---- */

void history_forget(struct sandbox *sb)
{
    struct histories *all = sb->owner->histories;
    struct error err;
    if (sb->history != NULL) {
        sb->history->hurry = true;
        co_cond_wake_all(&sb->history->hurried);
        stop_packer(sb, &err);
        if (take(sb, &err) == 0)
            history_unlock(sb);
    }
    history_folder_remove(&all->git, all->dir_fd, sb->id);
}

void history_inherit(struct sandbox *sb, const char *source_id)
{
    struct histories *all = sb->owner->histories;
    struct sandbox *source;
    struct error err = {0};
    if (!rules_of(sb)->enabled)
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
    if (locked) {
        history_unlock(source);
        sandbox_drop(source);
    }
}

/* ---- questions ---- */

/* Those that nobody has waited for, and that have ended since. */
static void close_open_runs(struct sandbox *sb)
{
    struct agent_process *items;
    size_t count;
    if (sb->history->open_count == 0 || sb->status != SANDBOX_RUNNING)
        return;
    struct arena *arena = arena_new();
    if (sandbox_process_list(sb->owner, sb->workspace, sb->id, arena, &items, &count, NULL) == 0)
        for (size_t i = 0; i < count && i < PROCESSES_LOOKED_AT; i++)
            history_process_seen(sb, &items[i]);
    arena_free(arena);
}

static int being_deleted(const struct sandbox *sb, struct error *err)
{
    return error_set(err, ERROR_SANDBOX_NOT_FOUND, "sandbox \"%s\" is being deleted", sb->name);
}

/* Who only reads is in nobody's way, not even of a delete: then what git says of a repository that
 * goes is no word about the sandbox. */
static int end_question(const struct sandbox *sb, int rc, struct error *err)
{
    return rc < 0 && is_going(sb) ? being_deleted(sb, err) : rc;
}

int history_begin_question(struct sandbox *sb, struct repository *ret_repository, struct error *err)
{
    close_open_runs(sb);
    if (history_lock(sb, err) < 0)
        return -1;
    if (is_going(sb)) {
        history_unlock(sb);
        return being_deleted(sb, err);
    }
    history_write_list(sb);
    if (history_open_repository(sb, ret_repository, err) < 0) {
        history_unlock(sb);
        return -1;
    }
    int rc = 0;
    if (ret_repository->head[0] == '\0' && sb->status == SANDBOX_RUNNING) {
        struct history_committed committed;
        struct arena *arena = arena_new();
        _cleanup_manifest_ struct manifest m;
        history_manifest_init(&m);
        rc = history_commit_now(sb, ret_repository, NULL, NULL, false, arena, &m, &committed, err);
        arena_free(arena);
    } else if (ret_repository->head[0] == '\0') {
        rc = repository_make(ret_repository, err);
        if (rc == 0)
            rc = history_commit_nothing(ret_repository, err);
        memcpy(sb->history->head, ret_repository->head, GIT_NAME_SIZE);
    }
    if (rc < 0) {
        repository_close(ret_repository);
        history_unlock(sb);
    } else {
        history_catch_up(sb, ret_repository);
    }
    return rc;
}

int history_list(struct sandboxes *s, const char *workspace, const char *name, size_t limit,
                 size_t offset, struct arena *arena, struct history_page *ret_page,
                 struct error *err)
{
    _cleanup_repository_ struct repository r = {.folder_fd = -1, .fd = -1};
    struct sandbox *sb = NULL;
    if (history_find(s, workspace, name, &sb, err) < 0)
        return -1;
    int rc = history_begin_question(sb, &r, err);
    if (rc == 0) {
        /* Commits do not change. */
        history_unlock(sb);
        rc = end_question(sb, repository_log(&r, limit, offset, arena, ret_page, err), err);
    }
    sandbox_drop(sb);
    return rc;
}

static int diff_executions(struct repository *r, const char *from, const char *to,
                           struct arena *arena, struct history_diff *ret_diff, struct error *err)
{
    char ids[2][EXECUTION_ID_SIZE], commits[2][GIT_NAME_SIZE];
    if (to == NULL) {
        memcpy(commits[1], r->head, GIT_NAME_SIZE);
        if (repository_execution_of(r, r->head, ids[1], err) < 0)
            return -1;
    } else if (execution_normalize(to, ids[1], err) < 0 ||
               repository_resolve(r, ids[1], commits[1], err) < 0) {
        return -1;
    }
    if (from == NULL) {
        if (repository_parent(r, commits[1], commits[0], err) < 0 ||
            repository_execution_of(r, commits[0], ids[0], err) < 0)
            return -1;
    } else if (execution_normalize(from, ids[0], err) < 0 ||
               repository_resolve(r, ids[0], commits[0], err) < 0) {
        return -1;
    }
    struct history_diff diff = {.from = arena_strdup(arena, ids[0]),
                                .to = arena_strdup(arena, ids[1])};
    if (repository_diff(r, commits[0], commits[1], arena, &diff, err) < 0)
        return -1;
    *ret_diff = diff;
    return 0;
}

static int diff_in_turn(struct sandboxes *s, struct repository *r, const char *from, const char *to,
                        struct arena *arena, struct history_diff *ret_diff, struct error *err)
{
    struct histories *all = s->histories;
    while (all->diffs >= HISTORY_DIFFS_MAX)
        if (co_cond_wait(s->loop, &all->diff_made, -1, err) < 0)
            return -1;
    all->diffs++;
    int rc = diff_executions(r, from, to, arena, ret_diff, err);
    all->diffs--;
    co_cond_wake_all(&all->diff_made);
    return rc;
}

int history_diff(struct sandboxes *s, const char *workspace, const char *name, const char *from,
                 const char *to, struct arena *arena, struct history_diff *ret_diff,
                 struct error *err)
{
    _cleanup_repository_ struct repository r = {.folder_fd = -1, .fd = -1};
    char ignored_id[EXECUTION_ID_SIZE];
    struct sandbox *sb = NULL;
    if ((from != NULL && execution_normalize(from, ignored_id, err) < 0) ||
        (to != NULL && execution_normalize(to, ignored_id, err) < 0) ||
        history_find(s, workspace, name, &sb, err) < 0)
        return -1;
    int rc = history_begin_question(sb, &r, err);
    if (rc == 0) {
        history_unlock(sb);
        rc = end_question(sb, diff_in_turn(s, &r, from, to, arena, ret_diff, err), err);
    }
    sandbox_drop(sb);
    return rc;
}
