/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The live state behind sandbox.h, shared by the files of this folder and nobody else.
 *
 * A sandbox is held by pointer only while a reference is held (sandbox_hold(), sandbox_drop()): any
 * wait can see it deleted, or updated. Its id, workspace and name never change; whoever needs
 * another of its strings beyond a wait copies it.
 */

#include <uthash.h>

#include "loop/co.h"
#include "provider/channel.h"
#include "sandbox/admission.h"
#include "sandbox/ahead.h"
#include "sandbox/auto_lower.h"
#include "sandbox/monitors.h"
#include "sandbox/logs.h"
#include "sandbox/metrics.h"
#include "sandbox/publish.h"
#include "sandbox/restart.h"
#include "sandbox/network_state.h"
#include "sandbox/sandbox.h"
#include "sandbox/spec.h"

/* What its driver is to bring it to. */
enum sandbox_goal { GOAL_RUNNING, GOAL_PAUSED, GOAL_STOPPED, GOAL_DELETED };

enum { ACTOR_MAX = 64 };

struct event_record {
    const char *type; /* literals */
    const char *status;
    char *message;
    int64_t time_ms;
    uint64_t revision;
};

/* What a sandbox's log says besides its events: steps under way, and what befell it. */
struct note_record {
    uint64_t number; /* counts up, in this sandbox */
    int64_t time_ms;
    enum sandbox_log_level level;
    char *message;
};

/* tally.c's. */
struct tally {
    uint64_t starts, actions, commands;
    int64_t since_ms; /* it runs since then; 0: it does not */
    int64_t seen_ms;  /* … and ran for certain then */
    int64_t ran_ms;   /* before that, all runs together */
    bool unsaved;
};

/* How long it lives: reaper.c's. Times are by the loop's clock. */
struct life {
    struct lifespan rules;
    bool stored;                    /* the store has a row for it, which follows its changes */
    int64_t ttl_from_ms, active_ms; /* see sandbox/lifespan.h */
    int64_t stored_active_ms;       /* as the store has it */
    int64_t not_before_ms;          /* an end that failed is not tried again before */
    unsigned streams;               /* connections of somebody's into it, tunnels apart */
    struct timer timer;             /* for the end that comes first; only while there is one */
    struct sandbox *next_due;       /* whose timer has fired: a list */
    bool due;
};

/* Whether and when it is started again: restart.c's. */
struct restart {
    enum restart_policy policy;
    bool interrupted;   /* it is down, and its owner wants it to run */
    unsigned failures;  /* ends and failed starts, one after the other */
    int64_t started_ms; /* by the loop's clock; 0: it has not run since the last failure */
    int64_t at_ms;      /* when the timer starts it; 0: there is none */
    struct timer timer;
};

struct sandbox {
    struct sandboxes *owner;
    char *id;
    char *workspace;
    char *name;
    struct group *group; /* held; NULL: in none */
    struct sandbox *group_prev, *group_next;
    char *key;                          /* "workspace/name", or "workspace/group/name" */
    const char *image;                  /* what was asked for; owned */
    struct sandbox_resources resources; /* owned strings */
    struct spec_limits limits;
    struct promise promise;   /* what it is counted with for admission */
    struct auto_lower *lower; /* NULL: its limits stay as they are */
    char *auto_lower;         /* the same as the list that it came as */
    size_t auto_lower_len;
    char *env;
    size_t env_len;
    struct sandbox_metadata metadata; /* owned strings */
    struct trust_options security;
    struct sandbox_network network;
    struct sandbox_network_log network_log;
    bool enabled;
    enum sandbox_status status;
    uint64_t revision;
    int64_t created_ms, updated_ms;
    char created_by[ACTOR_MAX], updated_by[ACTOR_MAX];
    struct event_record *events;
    size_t event_count;
    struct note_record *notes; /* oldest first */
    size_t note_count;
    size_t notes_unsaved; /* the last so many are not in the store yet */
    unsigned log_followers;
    unsigned agents;                     /* how many it has had: each start brings a new one */
    struct usage *usage;                 /* metrics.c's; NULL before the first sample */
    struct sandbox_history *history;     /* history.c's; NULL before it is needed */
    struct history_rules *history_rules; /* what it keeps; NULL: the usual */
    uint64_t history_bytes;              /* of its repository and lists, as last measured */
    bool history_counted;                /* they were */
    char *history_said;                  /* the same as the list that it came as */
    size_t history_said_len;
    struct tally tally;
    struct life life;
    struct restart restart;

    char *clone_of;   /* id of the sandbox whose files it is still to be given; NULL: none */
    bool copying;     /* that is being done */
    bool unclaimed;   /* it was made ahead by a pool, and has not got its name and limits yet */
    bool limits_stay; /* … of which the limits are what they should be */
    bool given_up;    /* whatever comes of the copy under way, it does not count */
    bool unsettled;   /* its limits are being changed, and the kernel's may be the old or the new */
    bool updating;    /* somebody changes it; the next one waits */
    bool resuming;    /* the start under way is called so */
    uint64_t asked_ns; /* when somebody asked for it; 0: it has been made */
    bool cloned;       /* its files came from another one, in that time */
    enum sandbox_goal goal;
    const char *stop_reason; /* literal; NULL: somebody asked for it */
    bool driven;             /* a driver coroutine is at work */
    bool up;                 /* the provider has it running, as far as we know */
    bool paused;             /* … and standing still */
    int64_t paused_at_ms;    /* the loop's clock: since when; 0: it does not */
    int64_t paused_ms;       /* how long it has stood still before */
    bool exited;             /* its pid 1 ended while the driver was at work */
    bool gone;               /* no longer in the maps */
    unsigned refs;
    struct co_cond changed; /* woken at every change of status */
    struct channel *agent;  /* NULL while there is no connection */
    bool agent_connecting;
    bool agent_checked; /* its version is one that this server can talk to */
    struct co_cond agent_ready;
    struct timer agent_idle;
    unsigned limited_agent; /* 1 + number of the agent that can limit commands; 0: none */
    bool limiting;          /* it is being made so; agent_ready is woken afterwards */
    bool had_terminals;
    struct preview *previews;
    struct published *ports;    /* by number */
    struct co_cond port_served; /* woken when somebody is done with the start of a port's command */
    struct monitor *monitors;
    unsigned monitor_count;
    unsigned tunnels;            /* open ones, idle ones included */
    struct tunnel *idle_tunnels; /* the newest first */
    unsigned idle_tunnel_count;

    UT_hash_handle by_id;
    UT_hash_handle by_name;
};

/* A group and the sandboxes that are in it, held as a sandbox is. */
struct group {
    struct sandboxes *owner;
    char *id;
    char *workspace;
    char *name;
    char *key;  /* "workspace/name" */
    char *spec; /* JSON text */
    bool ending;
    int64_t created_ms, updated_ms;
    char created_by[ACTOR_MAX], updated_by[ACTOR_MAX];
    struct sandbox *members; /* oldest first */
    unsigned member_count;
    bool driven;   /* a coroutine brings it to its end */
    bool gone;     /* no longer in the map */
    bool resizing; /* somebody changes the limits of all its members */
    unsigned refs;
    struct co_cond changed; /* woken when a member comes or goes, after resizing, and at the end */
    UT_hash_handle by_name;
};

/* What the warden last said about the machine. */
struct machine_words {
    uint64_t flags;                                 /* enum machine_flags */
    uint64_t disk_below, disk_reserve, volume_size; /* as in struct warden_machine */
    char storage[128], disk_io[256], memory_bandwidth[256];
    int64_t looked_ms;
    bool looking;
};

/* publish.c's: the host's ports that are for sandboxes. */
struct host_ports {
    uint16_t from, to;
    unsigned next;         /* where the search for a free one begins */
    struct published *all; /* those that have one, by it */
    struct port_gate gate; /* zeros: not yet, or not any more */
    struct timer again;    /* for those that could not be opened */
};

struct sandboxes {
    struct loop *loop;
    struct store *store;
    struct provider *provider;
    struct sandbox *ids;      /* by id, oldest first */
    struct sandbox *names;    /* by workspace/name */
    struct group *groups;     /* by workspace/name, oldest first */
    struct preview *previews; /* by id */
    struct host_ports host_ports;
    struct admission admission;
    struct machine_words words;
    uint64_t revision;
    int64_t last_created_ms;
    unsigned drivers; /* driver coroutines at work */
    struct co_cond idle;
    bool closing;
    struct sampler *sampler;
    struct reaper *reaper;                 /* NULL before everything is recovered */
    struct inspector *inspector;           /* census.c's; the same */
    const struct command_witness *witness; /* NULL: nobody */
    port_delivery *deliver_port;           /* how monitors tell of ports */
    void *deliver_ctx;
    ahead_describe *describe_ahead; /* what spares can have running; NULL: nothing */
    unsigned monitors_running;
    struct co_cond monitors_ended;
    unsigned starting; /* sandboxes that somebody waits for */
    unsigned clones;   /* sandboxes with a clone_of */
    struct pools *pools;
    struct histories *histories;
    struct networks networks;
    struct probe *probe; /* readiness.c's; NULL before somebody asked */
    bool keep;           /* what runs goes on when the server ends */
    bool trace_commands; /* commands are told which trace they belong to */
};

/* registry.c */
struct sandbox *sandbox_new(struct sandboxes *s, const struct store_sandbox *row,
                            struct error *err);
void sandbox_hold(struct sandbox *sb);
void sandbox_drop(struct sandbox *sb);
int sandbox_insert(struct sandbox *sb, struct error *err); /* ALREADY_EXISTS; holds a reference */
void sandbox_remove(struct sandbox *sb);                   /* out of the maps; drops it */
struct sandbox *sandbox_find(struct sandboxes *s, const char *workspace, const char *name,
                             struct error *err);
/* What it is found by in its workspace: its name, or "group/name". */
const char *sandbox_path(const struct sandbox *sb);
struct sandbox *sandbox_find_external(struct sandboxes *s, const char *workspace,
                                      const char *external_id);
void sandbox_info(const struct sandbox *sb, struct arena *arena, struct sandbox_info *ret_info);
void sandbox_add_event(struct sandbox *sb, const char *type, const char *status,
                       const char *message);
void sandbox_load_event(struct sandbox *sb, const struct store_event *event);
void sandbox_set_status(struct sandbox *sb, enum sandbox_status status);
/* It is another one than it was: a new revision, and the time. */
void sandbox_touch(struct sandbox *sb);
/* As it is written to the store, with its newest event; in the arena. */
void sandbox_row(const struct sandbox *sb, struct arena *arena, struct store_sandbox *ret_row,
                 struct store_event *ret_event);
/* Writes it to the store, with its newest event when with_event. */
int sandbox_save(struct sandbox *sb, bool with_event, struct error *err);

/* groups.c */
/* GROUP_NOT_FOUND; one that is ending is found. */
struct group *group_find(struct sandboxes *s, const char *workspace, const char *name,
                         struct error *err);
void group_hold(struct group *group);
void group_drop(struct group *group);
void group_join(struct sandbox *sb); /* its group has it as a member from now on */
void group_leave(struct sandbox *sb);
int sandboxes_load_groups(struct sandboxes *s, struct error *err); /* before the sandboxes */
void sandboxes_free_groups(struct sandboxes *s);                   /* after them */

/* group_end.c */
void group_drive_end(struct group *group); /* sees to it that all that is in it goes, and itself */
void sandboxes_resume_groups(struct sandboxes *s); /* once it is known what runs */

/* notes.c */
void sandbox_note(struct sandbox *sb, enum sandbox_log_level level, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
void sandbox_load_note(struct sandbox *sb, const struct store_note *note);
/* Writes to the store what it does not have yet. On a coroutine; failures are logged. */
void sandbox_save_notes(struct sandbox *sb);
void sandbox_free_notes(struct sandbox *sb);
/* On a coroutine: a command, in the sandbox's log and in the server's, before it is run. */
void sandbox_audit(struct sandbox *sb, const char *actor, const struct agent_exec *exec);

/* metrics.c */
int metrics_new(struct sandboxes *s, int data_dir_fd, struct error *err);
int metrics_start(struct sandboxes *s, struct error *err); /* when all sandboxes are known */
void metrics_stop(struct sandboxes *s); /* on a coroutine: writes what is not written yet */
void metrics_free(struct sandboxes *s);
void metrics_started(struct sandbox *sb); /* its counters begin at zero */
struct sandbox_load sandbox_load(const struct sandbox *sb);
void metrics_forget(struct sandbox *sb); /* on a coroutine: its history goes */

/* capacity.c */
int capacity_look(struct sandboxes *s, struct error *err); /* on a coroutine: asks the warden */
void capacity_keep_fresh(struct sandboxes *s); /* has that done if it was long ago; waits not */

/* lower.c */
void sandbox_measured(struct sandbox *sb); /* there is a new sample of it */
/* Takes the setting over (sandbox/auto_lower.h's list); an empty one switches it off. */
int sandbox_set_auto_lower(struct sandbox *sb, struct slice list, struct error *err);

/* A sample that is no older than a second; *ret_known: what it used since an earlier one is known,
 * and has been told to sandbox_used(). On a coroutine. */
int metrics_look(struct sandbox *sb, bool *ret_known, struct error *err);
unsigned metrics_interval(const struct sandboxes *s); /* s */

/* tally.c */
void tally_started(struct sandbox *sb);
void tally_stopped(struct sandbox *sb);
void tally_resumed(struct sandbox *sb);   /* after a stop that was a pause */
void tally_recovered(struct sandbox *sb); /* once it is known whether it runs */
void tally_action(struct sandbox *sb);    /* somebody asks something of what is inside */
void tally_command(struct sandbox *sb);   /* … to run a command, which is an action too */
void tally_save(struct sandbox *sb);      /* on a coroutine; failures are logged */
int sandboxes_load_tallies(struct sandboxes *s, struct error *err); /* sandboxes come first */
void tally_info(const struct sandbox *sb, struct sandbox_tally *ret_tally);

/* reaper.c */
/* When all sandboxes are known, on a coroutine: what expired meanwhile is dealt with first. */
int reaper_start(struct sandboxes *s, struct error *err);
void reaper_stop(struct sandboxes *s); /* on a coroutine: nothing expires any more */
void reaper_free(struct sandboxes *s);
int sandboxes_load_lifespans(struct sandboxes *s, struct error *err); /* sandboxes come first */
/* The rules are these from now on; `renew`: its ttl begins now. */
void sandbox_set_lifespan(struct sandbox *sb, const struct lifespan *rules, bool renew);
void sandbox_life_started(struct sandbox *sb); /* it runs, since now */
void sandbox_life_changed(struct sandbox *sb); /* its status, or what its end depends on */
void sandbox_life_forget(struct sandbox *sb);  /* it is gone */
void sandbox_life_info(const struct sandbox *sb, struct sandbox_info *info);
int sandbox_lifespan_of(const struct store_lifespan *row, struct lifespan *ret_rules,
                        struct error *err);
/* The row for the store; NULL: none is needed. */
const struct store_lifespan *sandbox_life_row(const struct sandbox *sb, struct arena *arena);
/* Writes down when it was last used, if that is worth it. On a coroutine. */
void sandbox_life_save(struct sandbox *sb);
/* Somebody has just used it, or something in it has used the cpu. */
void sandbox_used(struct sandbox *sb);
/* Whether somebody is waiting for it, or connected to something in it. */
bool sandbox_is_busy(const struct sandbox *sb);
/* A connection into it that lasts. */
void sandbox_stream_begin(struct sandbox *sb);
void sandbox_stream_end(struct sandbox *sb);

/* census.c */
int censuses_start(struct sandboxes *s, struct error *err); /* when all sandboxes are known */
void censuses_soon(struct sandboxes *s);                    /* the provider was away */
void censuses_stop(struct sandboxes *s);
void censuses_free(struct sandboxes *s);

/* recover.c */
/* For one whose status says that it runs, and that does not. */
void sandbox_lost(struct sandbox *sb, enum sandbox_status status, const char *why);

/* wishes.c */
/* Has it deleted, without a record of its own: whoever asks has one that implies it. On a
 * coroutine. */
void sandbox_condemn(struct sandbox *sb, const char *actor);
/* Its end has come, and why: it is stopped or deleted as if somebody had asked for it. */
void sandbox_expire(struct sandbox *sb, const struct lifespan_end *end, const char *why);

/* lifecycle.c */
void sandbox_drive(struct sandbox *sb); /* sees to it that the goal is worked on */
/* Takes a step again for as long as the provider is away, or clearing up. */
int sandbox_with_patience(struct sandbox *sb, int (*step)(struct sandbox *, struct error *),
                          struct error *err);

/* What the provider is asked to make. Strings are borrowed from the sandbox. */
int sandbox_plan(const struct sandbox *sb, struct plan *ret_plan, struct error *err);

/* pools.c */
int pools_new(struct sandboxes *s, struct error *err);
void pools_free(struct sandboxes *s);
int pools_load(struct sandboxes *s, struct error *err);  /* before what runs is compared */
int pools_start(struct sandboxes *s, struct error *err); /* on a coroutine, afterwards */
void pools_stop(struct sandboxes *s);                    /* on a coroutine: removes every spare */

/* pool_keeper.c */
/* Has the keeper look whether there is something to do. */
void pools_wake(struct sandboxes *s);
/* Whether it is a spare, in the making or on its way out too. */
bool pools_know(const struct sandboxes *s, const char *id);
/* A spare's pid 1 ended; the provider was started anew. */
void pools_exited(struct sandboxes *s, const char *id);
/* admission_reserve(), to which spares give way: what nobody has asked for yet is worth less than
 * what somebody asks for now. None goes when all of them together would not be enough. */
int pools_reserve(struct sandboxes *s, struct promise *promise, enum promise_kind kind,
                  const struct spec_limits *limits, struct error *err);
void pools_reconnected(struct sandboxes *s);

/* pool_claim.c */
/* Makes a spare's id the sandbox's own, if there is one that fits, and says then whether it is to
 * stay so. Nothing waits in here. */
struct spare *pools_take(struct sandbox *sb); /* NULL: there was none */
void pools_settle(struct sandbox *sb, struct spare *spare, bool taken);
/* It is not to be after all: a spare that it has taken, and nobody has claimed, is removed. */
void pools_abandon(struct sandbox *sb);
/* The provider's part of it. On an error it is no spare any more, and has to be made anew. */
int sandbox_claim(struct sandbox *sb, struct error *err);

/* clone.c */
/* It has its files now, or is gone. */
void sandbox_forget_source(struct sandbox *sb);
/* Gives a clone its files. */
int sandbox_copy_once(struct sandbox *sb, struct error *err);
/* Ends the copy under way, if there is one, and has what it made removed. Does not wait for that.
 */
void sandbox_give_up_copy(struct sandbox *sb);
/* Whether a clone can be made of it now: SANDBOX_NOT_FOUND when it is gone or being deleted,
 * CONFLICT when it is a clone that could not be copied. Nothing waits in here. */
int sandbox_check_source(struct sandboxes *s, const char *source_id, struct error *err);
/* It is deleted before it has files of its own: its clones become clones of its source, on record.
 * One that has files keeps its clones. */
int sandbox_pass_clones_on(struct sandbox *source, struct error *err);
/* Waits until no clone needs this one's files any more; with `copying`, only until none is being
 * copied right now. Nobody needs files that are not there: a clone without its own never waits. */
int sandbox_wait_for_clones(struct sandbox *source, bool copying, struct error *err);

/* update.c */
/* After a crash in the middle of a change: brings the kernel's limits in line with the record's. */
void sandbox_restore_limits(struct sandbox *sb);
/*
 * sandboxes_update() of several that are held, as one: with an error, or after a crash before the
 * end, none of them has changed; the message names the one that was refused. Those that go
 * meanwhile are left out. Nobody may change the same ones in this way at the same time. Of the
 * request name, revision and enabled mean nothing.
 */
int sandboxes_update_all(struct sandbox **sandboxes, size_t count,
                         const struct sandbox_update *request, struct arena *arena,
                         struct error *err);

/* processes.c */
/* The sandbox's own variables with `over` laid over them. */
struct slice sandbox_env_over(const struct sandbox *sb, struct arena *arena, struct slice over);

/* terminals.c */
/* Its shells are told that their terminals go, if it had any: a shell that somebody sits at ignores
 * SIGTERM, and would make every stop last for all of its grace. */
void sandbox_hang_up(struct sandbox *sb);

/* agent_link.c */
/* Finds a sandbox, waits while it is being made, and gives its agent's channel. Drop the sandbox
 * afterwards. */
int sandbox_agent(struct sandboxes *s, const char *workspace, const char *name,
                  struct sandbox **ret_sandbox, struct channel **ret_channel, struct error *err);
/* A connection of its own to the agent of one that is held and running. AGENT_INCOMPATIBLE when it
 * was started by a release that this one cannot talk to. */
int sandbox_agent_connect(struct sandbox *sb, int *ret_fd, struct error *err);
/* The second half of it, for one that is held and running: no use of it that anybody counts. */
int sandbox_agent_reach(struct sandbox *sb, struct channel **ret_channel, struct error *err);
/* The first half of it: found, and running, or brought there (wake.c). */
int sandbox_running(struct sandboxes *s, const char *workspace, const char *name,
                    struct sandbox **ret_sandbox, struct error *err);
/* The same, for a connection to a port of it. */
int sandbox_running_for_port(struct sandboxes *s, const char *workspace, const char *name,
                             uint16_t port, struct sandbox **ret_sandbox, struct error *err);
/* Connects ahead of the first question, if that can be done: on the driver, while it starts. */
void sandbox_agent_expect(struct sandbox *sb);
void sandbox_agent_close(struct sandbox *sb);

/* monitors.c */
int sandboxes_load_monitors(struct sandboxes *s, struct error *err); /* sandboxes come first */
void sandboxes_resume_monitors(struct sandboxes *s); /* once it is known what runs */
void sandbox_forget_monitors(struct sandbox *sb);    /* their rows go with the sandbox's */
void sandboxes_end_monitors(struct sandboxes *s);    /* on a coroutine; they stay in the store */
bool sandbox_is_monitor(const struct sandbox *sb);   /* whether one of its monitors is running */

/* previews.c */
int sandboxes_load_previews(struct sandboxes *s, struct error *err); /* sandboxes come first */
void sandbox_forget_previews(struct sandbox *sb); /* their rows go with the sandbox's */

/* publish.c */
int sandboxes_load_ports(struct sandboxes *s, struct error *err); /* sandboxes come first */
void sandbox_forget_ports(struct sandbox *sb); /* their rows go with the sandbox's */

/* port_command.c */
/* Whether there is a command that serves the port. */
bool sandbox_port_has_command(struct sandbox *sb, uint16_t port);
/* 0 when somebody listens there, PORT_NOT_LISTENING when nobody does. */
typedef int port_listens(struct sandbox *sb, uint16_t port, void *ctx, struct error *err);
/* Has it started, unless that was done a moment ago, and waits until `listens` is content or it is
 * clear that nothing comes: PORT_NOT_LISTENING tells why. One caller does it, the others wait. The
 * sandbox is held; err is not NULL. */
int sandbox_serve_port(struct sandbox *sb, uint16_t port, port_listens *listens, void *ctx,
                       struct error *err);

/* settle.c */
bool sandbox_comes_up(const struct sandbox *sb);   /* creating, starting, resuming */
bool sandbox_comes_down(const struct sandbox *sb); /* stopping, pausing */

/* pause.c */
/* The driver's steps. */
void sandbox_drive_pause(struct sandbox *sb);
void sandbox_drive_resume(struct sandbox *sb);
/* The provider has it go on, whatever is to become of it. */
int sandbox_thaw(struct sandbox *sb, struct error *err);
void sandbox_froze(struct sandbox *sb); /* the provider has it standing still */
/* Paused, or about to be. */
bool sandbox_is_paused(const struct sandbox *sb);

/* restart.c */
/* It is marked as interrupted, and its policy starts it one way or the other. */
bool sandbox_is_due(const struct sandbox *sb);
/* It is stopped, and the first request that needs it starts it. */
bool sandbox_starts_on_use(const struct sandbox *sb);
/* Until it is started again after a failure; -1: it is not about to be. */
int64_t sandbox_restarts_in_ms(const struct sandbox *sb);
/* Somebody wants something else of it: takes the mark away. */
void restart_forget(struct sandbox *sb);
void restart_started(struct sandbox *sb); /* it runs, since now */
/* It should run and does not: its pid 1 ended, or its start failed. To be recorded next. */
void restart_failed(struct sandbox *sb);
void restart_set_policy(struct sandbox *sb, enum restart_policy policy);
/* On a coroutine, once it is known what runs: starts those that start with the server. */
void restarts_begin(struct sandboxes *s);
void restarts_stop(struct sandboxes *s); /* nothing is started any more */

/* wake.c */
/* What somebody needs a sandbox for. */
enum sandbox_use {
    USE_REQUEST, /* a request of the API, which names it */
    USE_VISIT,   /* a connection to a port, or a request with a token of the sandbox alone */
};
/*
 * Starts or resumes the sandbox, if whoever needs it may have that done, and returns before it
 * runs. Does nothing to any other. `port` is for the log; 0: none. The errors of sandboxes_start().
 *
 *                              USE_REQUEST        USE_VISIT
 *   paused                     wakeOnConnect      wakeOnConnect
 *   stopped, interrupted       spec.restart       spec.restart or wakeOnConnect
 *   stopped otherwise          never              wakeOnConnect
 *   failed                     never              never
 *
 * wakeOnConnect means nothing to a sandbox that is switched off (enabled: false).
 */
int sandbox_wake(struct sandbox *sb, enum sandbox_use use, uint16_t port, struct error *err);

/* tunnel.c */
void tunnels_close_idle(struct sandbox *sb);

static inline void cleanup_group(struct group **group)
{
    if (*group != NULL)
        group_drop(*group);
}
#define _cleanup_group_ __attribute__((cleanup(cleanup_group)))

/* Whoever had business with a sandbox has used it until now; sandbox_drop() is for those who only
 * looked, or who work for the server. */
static inline void cleanup_sandbox(struct sandbox **sb)
{
    if (*sb == NULL)
        return;
    sandbox_used(*sb);
    sandbox_drop(*sb);
}
#define _cleanup_sandbox_ __attribute__((cleanup(cleanup_sandbox)))
