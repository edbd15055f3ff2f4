/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What outlives the process: sandboxes, their events and logs, workspaces, API keys. SQLite (WAL,
 * synchronous=NORMAL: a commit survives the death of any process, the last ones may be lost in a
 * power cut); all SQL of the project is in this folder.
 *
 * cellad holds the live state in memory and writes through: a change is acknowledged to a client
 * after its store call has returned. Calls run on the store's own thread when made on a coroutine
 * (the loop goes on meanwhile), in the order they were made, and directly otherwise (start-up,
 * tests, other programs). Several changes waiting at the same time may share one transaction.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/slice.h"
#include "loop/loop.h"

struct store;

/* How long a sandbox lives (sandbox/lifespan.h); times are Unix times. */
struct store_lifespan {
    int64_t ttl_s, idle_s, max_age_s, expires_ms; /* 0: none */
    const char *on_expire;                        /* "stop", "delete"; NULL: as usual */
    int64_t ttl_from_ms;                          /* when the ttl began to count */
    int64_t active_ms;                            /* of the last use that is known */
    bool wake;                                    /* a connection starts it */
};

struct store_sandbox {
    const char *id;
    const char *workspace;
    const char *name;
    const char *status; /* sandbox/sandbox.h's names: "running", … */
    const char *image;
    const char *cpu, *memory, *disk; /* as they were asked for */
    struct slice resources;          /* "name=value" list of the others */
    struct slice auto_lower;         /* sandbox/auto_lower.h's list; empty: off */
    struct slice history;            /* sandbox/history_rules.h's list; empty: as usual */
    struct slice env;                /* "NAME=value" list */
    bool enabled;
    int64_t created_ms, updated_ms;
    const char *created_by, *updated_by;
    struct slice labels;                                  /* "key=value" list */
    const char *external_id, *display_name, *blaxel_spec; /* NULL: none */
    const char *e2b_spec;                                 /* the same */
    uint64_t revision;                                    /* from the same sequence as events' */
    const char *clone_of; /* id of the sandbox whose files it is still to be given; NULL: none */
    bool unsettled;       /* its limits are being changed, and may be any of two */
    const char *restart;  /* sandbox/restart.h's names; NULL: the default */
    bool interrupted;     /* it is down, and its owner wants it to run */
    const char *trust_level, *security; /* sandbox/trust.h's texts; NULL: from before there were */
    const struct store_lifespan *lifespan; /* NULL: what is stored, if anything, stays */
    struct slice network;                  /* net_policy_pack()'s list; empty: none */
};

struct store_event {
    const char *type;   /* CREATE, START, STOP, … */
    const char *status; /* SUCCESS, FAILURE */
    const char *message;
    int64_t time_ms;
    uint64_t revision; /* one sequence over all sandboxes; shown as "rev-123" */
};

/* A line of a sandbox's log that is no event. */
struct store_note {
    uint64_t number; /* counts up, in the sandbox */
    int64_t time_ms;
    uint64_t level; /* sandbox/state.h's numbers */
    const char *message;
};

/* Opens or makes the database at path and brings its schema up to date (migrations are numbered,
 * each in a transaction; a database from a newer version is refused). loop may be NULL: then every
 * call is made directly. read_only: for looking at another process's database. */
int store_open(struct loop *loop, const char *path, bool read_only, struct store **ret_store,
               struct error *err);
void store_close(struct store *store);

/* Writes a copy of one moment to a new file (or an empty one), whoever else uses the database. On
 * the caller's thread. */
int store_copy(struct store *store, const char *path, struct error *err);
/* The newest that this program knows. */
int store_schema_version(void);

/* Start-up: every sandbox, each followed by its events, oldest first. Loading (keys too) calls back
 * on the caller's thread, in the middle of a query: a callback must not call the store. */
struct store_load {
    int (*sandbox)(void *ctx, const struct store_sandbox *row, struct error *err);
    int (*event)(void *ctx, const char *sandbox_id, const struct store_event *event,
                 struct error *err);
    void *ctx;
    int (*note)(void *ctx, const char *sandbox_id, const struct store_note *note,
                struct error *err); /* after the events; may be NULL, as event may */
};

/* Whether a change could be made now: one that changes nothing is; with `write`, one that writes to
 * the disk as others do. UNAVAILABLE when the database's file was removed, or moved away. */
int store_check(struct store *store, bool write, struct error *err);

int store_load_all(struct store *store, const struct store_load *load, struct error *err);

/* Inserts or replaces a sandbox and appends an event (may be NULL) in one transaction; keeps the
 * newest EVENTS_KEPT_MAX events. ALREADY_EXISTS when the workspace has another one of that name. */
int store_put_sandbox(struct store *store, const struct store_sandbox *row,
                      const struct store_event *event, struct error *err);
/* Several, with an event each, all or none. */
int store_put_sandboxes(struct store *store, const struct store_sandbox *rows,
                        const struct store_event *events, size_t count, struct error *err);
/* Appends lines to a sandbox's log, and keeps the newest NOTES_KEPT_MAX. */
int store_add_notes(struct store *store, const char *id, const struct store_note *notes,
                    size_t count, struct error *err);
/* With its events and log. Fine when it is not there. */
int store_delete_sandbox(struct store *store, const char *id, struct error *err);
/* Those that were made are stopped, and nothing is to start them again: for a copy of the database
 * that the files of sandboxes did not come with. */
int store_stop_sandboxes(struct store *store, struct error *err);
/* Of those that have one. store_load_all() does not tell of them. */
int store_load_lifespans(struct store *store,
                         int (*each)(void *ctx, const char *sandbox_id,
                                     const struct store_lifespan *row, struct error *err),
                         void *ctx, struct error *err);
/* Sets active_ms of a sandbox that has a life span. Fine when there is none. */
int store_use_sandbox(struct store *store, const char *sandbox_id, int64_t active_ms,
                      struct error *err);
/* The highest revision ever given out, so that numbers are not used twice. */
int store_last_revision(struct store *store, uint64_t *ret_revision, struct error *err);

/*
 * Groups of sandboxes. A sandbox of a group has the name "group/name" in its row, and the group's
 * row exists for as long as one of its sandboxes' does.
 */
struct store_group {
    const char *id;
    const char *workspace;
    const char *name;
    const char *spec; /* JSON text */
    bool ending;      /* it goes, with all its sandboxes */
    int64_t created_ms, updated_ms;
    const char *created_by, *updated_by;
};
/* A group with its first sandboxes and an event each, all or none. ALREADY_EXISTS,
 * WORKSPACE_NOT_FOUND. */
int store_add_group(struct store *store, const struct store_group *row,
                    const struct store_sandbox *sandboxes, const struct store_event *events,
                    size_t count, struct error *err);
/* Replaces spec, ending and who changed it when. */
int store_put_group(struct store *store, const struct store_group *row, struct error *err);
/* CONFLICT while a sandbox is in it; fine when it is not there. */
int store_delete_group(struct store *store, const char *id, struct error *err);
int store_load_groups(struct store *store,
                      int (*each)(void *ctx, const struct store_group *row, struct error *err),
                      void *ctx, struct error *err);
/* Pools, and what they have made ahead. */
struct store_pool {
    const char *name;
    const char *image;
    const char *cpu, *memory, *disk;
    struct slice resources;             /* the others, as a sandbox's */
    const char *trust_level, *security; /* NULL: none */
    struct slice network;               /* as a sandbox's */
    const char *code;                   /* what runs in its spares, as sandbox/pools.h has it */
    int64_t size, ttl_s, at_once;
    int64_t created_ms, updated_ms;
    const char *created_by;
};
/* Inserts, or replaces what can change: size, ttl, how many are made at once, what runs in them. */
int store_put_pool(struct store *store, const struct store_pool *row, struct error *err);
int store_delete_pool(struct store *store, const char *name, struct error *err);
int store_load_pools(struct store *store,
                     int (*each)(void *ctx, const struct store_pool *row, struct error *err),
                     void *ctx, struct error *err);
/* A spare is one until a sandbox of its id is stored as running, or deleted. */
int store_add_spare(struct store *store, const char *id, const char *pool, struct error *err);
int store_delete_spare(struct store *store, const char *id, struct error *err);
/* Forgets those that no sandbox has come of. */
int store_clear_spares(struct store *store, struct error *err);
int store_load_spares(struct store *store,
                      int (*each)(void *ctx, const char *id, struct error *err), void *ctx,
                      struct error *err);

/* How long a sandbox has run, and how much it was asked; goes with the sandbox. */
struct store_tally {
    const char *sandbox_id;
    uint64_t starts;
    int64_t since_ms; /* it runs since then; 0: it does not */
    int64_t seen_ms;  /* … and ran for certain then */
    int64_t ran_ms;   /* before that, all runs together */
    uint64_t actions, commands;
};
/* Fine when the sandbox is gone. */
int store_put_tally(struct store *store, const struct store_tally *row, struct error *err);
int store_load_tallies(struct store *store,
                       int (*each)(void *ctx, const struct store_tally *row, struct error *err),
                       void *ctx, struct error *err);

/* Workspaces. "default" is always there. */
struct store_workspace {
    const char *name;
    int64_t created_ms;
    const char *created_by; /* "" when nobody did */
    const char *rates;      /* its own, as api/call_limits.h reads them; "" or NULL: none … */
    const char *quotas;     /* … and the same */
};
/* Without rates and quotas. */
int store_add_workspace(struct store *store, const struct store_workspace *row, struct error *err);
/* With its keys. WORKSPACE_NOT_EMPTY while there is a sandbox or a group in it; fine when it is not
 * there. */
int store_delete_workspace(struct store *store, const char *name, struct error *err);
/* Fine when it is not there any more. */
int store_set_workspace_limits(struct store *store, const char *name, const char *rates,
                               const char *quotas, struct error *err);
int store_load_workspaces(struct store *store,
                          int (*each)(void *ctx, const struct store_workspace *row,
                                      struct error *err),
                          void *ctx, struct error *err);

/* API keys, by the SHA-256 of the key in lower-case hex. */
struct store_key {
    char id[16];
    char hash[65];
    char hint[16]; /* how the key begins, so that its owner knows it again */
    char name[64]; /* who it is in createdBy and logs */
    char workspace[64];
    unsigned scopes; /* auth/auth.h bits */
    int64_t created_ms;
    char created_by[64];
    int64_t expires_ms;   /* 0: never */
    int64_t last_used_ms; /* 0: not yet */
    char issuer[16];      /* on whose word it was made (auth/auth.h); "": nobody else's */
};
/* Inserts, or replaces what a key of that id is (not when it was made and used). ALREADY_EXISTS
 * when the workspace has another one of that name, WORKSPACE_NOT_FOUND when there is none. */
int store_put_key(struct store *store, const struct store_key *key, struct error *err);
int store_delete_key(struct store *store, const char *id, struct error *err);
int store_use_key(struct store *store, const char *id, int64_t when_ms, struct error *err);
int store_load_keys(struct store *store,
                    int (*each)(void *ctx, const struct store_key *key, struct error *err),
                    void *ctx, struct error *err);

/* A secret of the server's own. What is stored under that name replaces the (random) bytes given;
 * when nothing is, they are stored. */
int store_secret(struct store *store, const char *name, void *bytes, size_t len, struct error *err);

/* Previews of sandboxes; they and their tokens go with the sandbox. */
struct store_preview {
    const char *id; /* the one in its address */
    const char *sandbox_id;
    const char *name; /* unique in the sandbox */
    unsigned port;
    bool is_public;
    int64_t expires_ms; /* 0: never */
    int64_t created_ms, updated_ms;
    const char *created_by;
    struct slice request_headers, response_headers; /* "Name: value" lists */
    const char *spec;                               /* JSON text of the facade's */
    bool drops_tokens;                              /* when it is stored: those that it had go */
};
struct store_preview_token {
    const char *name; /* unique in the preview */
    const char *token;
    int64_t expires_ms; /* 0: never */
    int64_t created_ms;
};
/* Inserts, or changes all but name, sandbox and making. SANDBOX_NOT_FOUND when that is gone. */
int store_put_preview(struct store *store, const struct store_preview *row, struct error *err);
int store_delete_preview(struct store *store, const char *id, struct error *err);
/* PREVIEW_NOT_FOUND when that is gone. */
int store_put_preview_token(struct store *store, const char *preview_id,
                            const struct store_preview_token *row, struct error *err);
int store_delete_preview_token(struct store *store, const char *preview_id, const char *name,
                               struct error *err);
struct store_load_previews {
    int (*preview)(void *ctx, const struct store_preview *row, struct error *err);
    int (*token)(void *ctx, const char *preview_id, const struct store_preview_token *row,
                 struct error *err);
    void *ctx;
};
int store_load_previews(struct store *store, const struct store_load_previews *load,
                        struct error *err);

/* Ports of sandboxes that are published; they go with the sandbox. */
struct store_port {
    const char *sandbox_id;
    unsigned port;
    const char *protocol, *access; /* sandbox/publish.h's texts */
    unsigned host_port;            /* different for each; 0: none */
    const char *command;           /* NULL: none */
    const char *generation;        /* of its tokens */
    int64_t created_ms, updated_ms;
    const char *created_by;
};
/* Inserts, or replaces access, command and generation. SANDBOX_NOT_FOUND when that is gone,
 * PORT_IN_USE when another one has the host's port. */
int store_put_port(struct store *store, const struct store_port *row, struct error *err);
/* Fine when it is not there. */
int store_delete_port(struct store *store, const char *sandbox_id, unsigned port,
                      struct error *err);
int store_load_ports(struct store *store,
                     int (*each)(void *ctx, const struct store_port *row, struct error *err),
                     void *ctx, struct error *err);

/* Who is to be told of the ports of a process; they go with the sandbox. */
struct store_monitor {
    const char *sandbox_id;
    uint64_t pid;
    uint64_t started_ms; /* of the process */
    const char *callback;
    unsigned shape; /* the facade's */
};
/* Takes the place of the process's earlier one, with its ports. SANDBOX_NOT_FOUND. */
int store_put_monitor(struct store *store, const struct store_monitor *row, struct error *err);
int store_delete_monitor(struct store *store, const char *sandbox_id, uint64_t pid,
                         struct error *err);
/* A port of it. Fine when the monitor is gone. */
int store_put_monitor_port(struct store *store, const char *sandbox_id, uint64_t pid, unsigned port,
                           bool told, struct error *err);
int store_delete_monitor_port(struct store *store, const char *sandbox_id, uint64_t pid,
                              unsigned port, struct error *err);
struct store_load_monitors {
    int (*monitor)(void *ctx, const struct store_monitor *row, struct error *err);
    int (*port)(void *ctx, const char *sandbox_id, uint64_t pid, unsigned port, bool told,
                struct error *err);
    void *ctx;
};
int store_load_monitors(struct store *store, const struct store_load_monitors *load,
                        struct error *err);

/* Secrets that a workspace's sandboxes may have sent for them, never read (auth/secrets.h). */
struct store_workspace_secret {
    const char *workspace;
    const char *name;
    struct slice sealed;
    struct slice hosts; /* a list of strings */
    uint64_t version;
    const char *metadata; /* JSON text; NULL: none */
    int64_t created_ms, updated_ms;
    const char *created_by, *updated_by;
};
/* Inserts, or replaces all but its making. WORKSPACE_NOT_FOUND. */
int store_put_workspace_secret(struct store *store, const struct store_workspace_secret *row,
                               struct error *err);
/* Fine when it is not there. */
int store_delete_workspace_secret(struct store *store, const char *workspace, const char *name,
                                  struct error *err);
int store_load_workspace_secrets(struct store *store,
                                 int (*each)(void *ctx, const struct store_workspace_secret *row,
                                             struct error *err),
                                 void *ctx, struct error *err);

/* The certificate authority of a sandbox (sandbox/ca.h); goes with the sandbox. */
struct store_sandbox_ca {
    const char *sandbox_id;
    const char *certificate; /* PEM */
    struct slice sealed_key;
};
/* SANDBOX_NOT_FOUND when that is gone. */
int store_put_sandbox_ca(struct store *store, const struct store_sandbox_ca *row,
                         struct error *err);
/* Fine when there is none. */
int store_delete_sandbox_ca(struct store *store, const char *sandbox_id, struct error *err);
int store_load_sandbox_cas(struct store *store,
                           int (*each)(void *ctx, const struct store_sandbox_ca *row,
                                       struct error *err),
                           void *ctx, struct error *err);

/* Which tokens of a sandbox count (auth/sandbox_token.h); goes with the sandbox.
 * SANDBOX_NOT_FOUND when that is gone. */
int store_put_token_generation(struct store *store, const char *sandbox_id, int64_t generation,
                               struct error *err);
int store_load_token_generations(struct store *store,
                                 int (*each)(void *ctx, const char *sandbox_id, int64_t generation,
                                             struct error *err),
                                 void *ctx, struct error *err);
