/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What the files of this folder share of histories, and what the rest of it calls. */

#include "sandbox/fair_slots.h"
#include "sandbox/history.h"
#include "sandbox/history_commit.h"
#include "sandbox/history_git.h"
#include "sandbox/history_journal.h"
#include "sandbox/history_rules.h"
#include "sandbox/history_tree.h"
#include "sandbox/state.h"

/* git as it runs for a workspace: in a control group of its own, which few workspaces share. */
struct helper_group {
    struct git_program git;
    bool asked; /* the provider was, for the group's files */
    int files[HELPER_PARTS_MAX];
};

/* Everybody's. */
struct histories {
    struct git_program git; /* for what is done for nobody */
    struct helper_group *groups;
    int dir_fd;
    bool on;
    char why_off[ERROR_MESSAGE_MAX];
    uint64_t repository_max; /* bytes of one, and of the files that it is of */
    bool repacking;
    struct fair_slots diffs; /* each may take some hundred MiB */
    struct fair_slots logs;
    struct fair_slots large; /* looks at many files: up to hundreds of MiB each */
    struct journal journal;
};

/* Some executions, in the order of their coming. */
struct execution_list {
    char ids[HISTORY_OPEN_MAX][EXECUTION_ID_SIZE];
    unsigned count;
};

/* One sandbox's, from its first execution (or question) on. */
struct sandbox_history {
    bool busy;         /* somebody is at work on the repository */
    struct co *holder; /* … and gets to the files while everybody else waits for a look at them */
    struct co_cond freed;
    bool tidied;    /* what a killed server's git left behind is gone */
    unsigned rules; /* how often they have changed */
    bool settled; /* what the agent says of changes is about a listing that we brought to an end */
    bool waiting; /* an execution is to be looked into, as soon as somebody is in a hurry or soon */
    bool hurry;
    struct co_cond hurried;
    char unseen[EXECUTION_ID_SIZE]; /* the last one that ended since the files were looked at, and
                                     * left no sign of a change; "": none */
    bool watched;          /* whether the last listing did, which is what a sign can be about */
    bool compares;         /* whether its agent holds orders against what it has listed */
    bool wants_watch;      /* somebody asks for signs where the agent sends none by itself */
    int watch_fd;          /* the agent's own queue of signs; -1: it has to be asked … */
    unsigned watch_from;   /* … of this agent: 1 + sb->agents; 0: of none */
    int64_t not_before_ms; /* it makes no sense to list its files again before (loop's clock) */
    size_t files;          /* that the last look saw */
    bool known;            /* head is */
    char head[GIT_NAME_SIZE];
    unsigned packs;
    uint64_t bytes;        /* of all packs … */
    uint64_t packed_bytes; /* … and of those that were left the last time that they were made one */
    struct co *packer;     /* who does that; NULL: nobody */
    bool squeeze;          /* a commit had no room: the older half has to go */
    struct execution_list open;  /* executions that nobody waits for */
    struct execution_list ended; /* those that are to be looked into */
    unsigned looked_into; /* of these, the first: they had ended when the present look began */
    struct buf lines;     /* executions that are in the journal, and not in its own list yet */
};

/* NULL: none is kept. */
struct sandbox_history *history_of(struct sandbox *sb);
/* What is remembered of it, also while none is kept. */
struct sandbox_history *history_made(struct sandbox *sb);

/* Takes the sandbox's history for oneself; what waits to be looked into is done before. The sandbox
 * is held. */
int history_lock(struct sandbox *sb, struct error *err);
void history_unlock(struct sandbox *sb);
/* The two halves of that: waits for what is to be looked into, now; and takes it as it is. */
int history_hurry(struct sandbox *sb, struct error *err);
int history_take(struct sandbox *sb, struct error *err);

/* It is being deleted: what was written now would be there for good. */
bool history_is_going(const struct sandbox *sb);
/* What it keeps, or would. */
const struct history_rules *history_rules_of(const struct sandbox *sb);
/* The patterns that it leaves out as things are. */
struct slice history_ignore_of(const struct sandbox *sb, struct arena *arena);

/* With the lock: opens it, and makes it whole when it is torn. */
int history_open_repository(struct sandbox *sb, struct repository *ret_repository,
                            struct error *err);

/* With the lock: what has changed becomes a commit. */
int history_commit_now(struct sandbox *sb, struct repository *r, const char *execution,
                       const char *message, bool even_empty, struct arena *arena,
                       struct manifest *ret_manifest, struct history_committed *ret_committed,
                       struct error *err);

/* That did not come off: counted, and not tried again at every command's end. */
void history_failed(struct sandbox *sb, const struct error *err);

/* Packs that are many, or too much, are made one, behind everybody's back. */
void history_repack_if_due(struct sandbox *sb);
/* history_helper.c: git as it runs for a sandbox's workspace. On a coroutine: may wait for the
 * provider. */
struct git_program *history_git(struct sandbox *sb);
int history_helpers_new(struct histories *h, struct error *err);
void history_helpers_free(struct histories *h);

/* history_room.c: what a history takes, counted for its sandbox and workspace. */
void history_count(struct sandbox *sb, uint64_t bytes);
void history_measure(struct sandbox *sb); /* on a coroutine */
void history_measure_all(struct sandboxes *s);
/* How large the repository may be, as things are. */
uint64_t history_bound(const struct sandbox *sb);
/* A commit did not fit into its sandbox's disk limit: the older half of the history goes, unless it
 * takes little of the limit anyway. */
void history_squeeze(struct sandbox *sb);
/* How many bytes one more commit may take: QUOTA_EXCEEDED when a small one does not fit. On a
 * coroutine. */
int history_room(struct sandbox *sb, uint64_t *ret_room, struct error *err);

/* Whoever clears the repository up, or away, is alone with it. */
int history_stop_packer(struct sandbox *sb, struct error *err);

/* With the lock, for who asks: what was changed without a sign of it becomes a commit of the last
 * execution. What goes wrong is logged. */
void history_catch_up(struct sandbox *sb, struct repository *r);
/* Whether nothing has been changed since the files were looked at, as far as there are signs. */
bool history_is_clean(struct sandbox *sb);
/* After a listing, on its connection, which is good for nothing else afterwards: what is_clean()
 * needs not to have to ask the agent. */
void history_take_watch(struct sandbox *sb, struct history_tree *tree);
/* Gives it up, while the agent still has it: the last one to do so has all the work. */
void history_drop_watch(struct sandbox *sb);

/* Finds a sandbox of which a history is kept: HISTORY_DISABLED. *ret_sandbox is held; NULL: it is
 * only looked for. */
int history_find(struct sandboxes *s, const char *workspace, const char *name,
                 struct sandbox **ret_sandbox, struct error *err);
/* Waits for one that comes up, locks it, opens it, and has a first commit in it: but for one that
 * does not run, and whose files nobody has looked at (head ""). On an error it is not locked. */
int history_begin_question(struct sandbox *sb, struct repository *ret_repository,
                           struct error *err);
/* A connection to the agent for the tracked folders. */
int history_open_tree(struct sandbox *sb, struct history_tree **ret_tree, struct error *err);
/* Where an execution ended: written down when this returns. */
void history_remember(struct sandbox *sb, const char *execution, const char *commit);
/* What is remembered is in its own list after this. */
void history_write_list(struct sandbox *sb);
/* At a start, when all sandboxes are known. */
int history_read_journal(struct sandboxes *s, struct error *err);

#define HISTORY_MESSAGE "Update files for sandbox execution"

/* ---- for the rest of this folder ---- */

/* What it keeps (sandbox/history_rules.h's list). */
int history_set_rules(struct sandbox *sb, struct slice list, struct error *err);
/* The list, which was checked, laid over what it has: for the next look at its files. */
void history_change_rules(struct sandbox *sb, struct slice list);

int histories_new(struct sandboxes *s, int data_dir_fd, struct error *err);
void histories_free(struct sandboxes *s);
/* When all sandboxes are known: what belongs to none goes. */
void histories_start(struct sandboxes *s);

/* Before anybody has business with what is in it: what has to be looked into is looked into. */
int history_settle(struct sandbox *sb, struct error *err);
/* Whether the running coroutine is one that looks at, or changes, its files for its history. */
bool history_is_looking(const struct sandbox *sb);
/* One has begun that nobody waits for. */
void history_run_started(struct sandbox *sb, const char *execution);
/* It has ended; see history_run_end(). */
void history_run_ended(struct sandbox *sb, const char *execution, bool dirty);
/* The same for one that was perhaps not waited for: if its end has not been seen yet. */
void history_process_seen(struct sandbox *sb, const struct agent_process *process);
/* … and where nothing may wait: what it has changed is looked into soon. */
void history_run_over(struct sandbox *sb, const char *execution, bool dirty);

/* On a coroutine: it goes with its sandbox. */
void history_forget(struct sandbox *sb);
/* A clone is given its source's. */
void history_inherit(struct sandbox *sb, const char *source_id);
void sandbox_history_free(struct sandbox_history *h); /* NULL is fine */
