/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The table of processes: every command that was started, while it runs and for a while after.
 *
 * A process has ended when its leader was reaped. Its tree may live on in the background, and
 * its output is collected until the last writer has closed it. Records of processes that are
 * over in every respect are dropped, oldest first, past PROCESSES_KEPT_MAX of them or
 * LOG_BYTES_KEPT_MAX of their memory.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "agent/follow.h"
#include "agent/input.h"
#include "agent/runs.h"
#include "agent/stream.h"
#include "agent/tree.h"
#include "agent/watch.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/slice.h"
#include "wire/messages.h"

struct connection;

enum waiter_kind {
    WAIT_START,  /* AGENT_EXEC without EXEC_WAIT: exec was reached */
    WAIT_END,    /* AGENT_WAIT: the leader has ended */
    WAIT_RESULT, /* EXEC_WAIT: the same, and its output comes along */
    WAIT_GONE,   /* AGENT_STOP: nothing of the tree is left */
};

struct waiter {
    struct waiter *next;
    struct connection *connection;
    uint32_t id;
    enum waiter_kind kind;
};

struct process {
    struct process *next;
    uint64_t sequence; /* counts up: the order of the table */
    uint64_t change;   /* of agent->changes, when it wrote last; 0: it has not */
    uint64_t id;       /* what it goes by outside: the pid of its first leader */
    pid_t pid;         /* of its leader; 0: between two starts */
    char *name;
    char execution[EXECUTION_ID_MAX + 1]; /* cellad's name for it; "": none */
    uint64_t flags;                       /* enum exec_flags */
    char *command;
    size_t command_len;
    char *cwd;
    char *user;

    bool starting; /* exec was not reached yet */
    bool failed;   /* … and will not be: the record goes at the end of the turn */
    bool ended;
    bool tree_gone;
    enum process_state state;
    enum process_state end_state; /* what its end will be called; PROCESS_RUNNING: by itself */
    bool kill_sent;
    int exit_code;
    int signal;
    uint64_t started_ms;
    uint64_t ended_ms;
    uint64_t timeout_at; /* monotonic ms; 0: none */
    uint64_t kill_at;    /* end of the grace of a stop; 0: none */
    uint64_t retry_at;   /* when to look at a dying tree again; 0: not */
    uint64_t output_max; /* bytes of both streams; 0: no limit */
    uint64_t limit_at;   /* when nothing of its tree may be left any more; 0: never */
    uint64_t look_at;    /* when to ask the group whether a limit was hit; 0: it tells */

    char *again; /* the request, for starting it again */
    size_t again_len;
    uint64_t restarts;
    uint64_t max_restarts;
    uint64_t born_at;    /* monotonic ms, of the last start */
    uint64_t restart_at; /* of the next one; 0: none */
    unsigned failures;   /* in a row, each soon after its start */

    struct watch status;
    struct exec_plan *plan;   /* what the child is carrying out, while it is starting */
    uint64_t listen_at;       /* when its descriptors get into the loop; 0: they are */
    struct stream streams[2]; /* LOG_STDOUT - 1, LOG_STDERR - 1 */
    struct runs runs;         /* how they came to be one log */
    struct input input;
    struct tree tree;
    struct limit_group *group; /* NULL: its limits need none */
    struct waiter *waiters;
    struct follower *followers;
};

/* Starts a command. The answer goes out when the time has come, unless this fails. `payload` is
 * the encoded form of *exec. */
int process_exec(struct agent *agent, struct connection *connection, uint32_t id,
                 const struct agent_exec *exec, struct slice payload, struct error *err);

/* --- the table: process_table.c --- */

/* By pid, or (0) by name. PROCESS_NOT_FOUND when there is none. */
struct process *process_find(struct agent *agent, uint64_t pid, const char *name,
                             struct error *err);

/* By what cellad calls it; NULL: there is none. */
struct process *process_find_execution(struct agent *agent, const char *execution);

/* The first process after a place in the table (0: the first of all). */
struct process *process_after(struct agent *agent, uint64_t sequence);

/* Those of which something is left. */
unsigned processes_count_live(const struct agent *agent);

/* A copy of the wanted name (ALREADY_EXISTS while it is taken), or one made up for NULL. */
char *process_make_name(struct agent *agent, const char *wanted, struct error *err);

/* What a new leader goes by. The record of an ended process that went by it is dropped: it could
 * not be asked for any more. */
uint64_t process_make_id(struct agent *agent, pid_t pid);

void process_free(struct agent *agent, struct process *process);

/* --- */

/* Answers when that has come true, perhaps at once. */
int process_add_waiter(struct agent *agent, struct process *process, enum waiter_kind kind,
                       struct connection *connection, uint32_t id, struct error *err);

/* grace_ms 0: SIGKILL now; else SIGTERM now and SIGKILL later. */
void process_stop(struct agent *agent, struct process *process, uint64_t grace_ms);

/* To its leader's process group; see struct agent_signal. INVALID_ARGUMENT, NOT_RUNNING. */
int process_signal(struct process *process, uint64_t signal, struct error *err);

/* A limit of its own was hit (struct command_limits): ends what is left of its tree. Whatever ended
 * it before counts. */
void process_hit_limit(struct agent *agent, struct process *process, enum process_state as);

/* Answers with AGENT_PROCESS, with the newest output if asked for. */
void process_answer(struct agent *agent, struct process *process, struct connection *connection,
                    uint32_t id, bool with_output);

/* --- for the loop --- */

/* A child was reaped (status as of waitpid); true when it was the leader of a process. */
bool processes_reaped(struct agent *agent, pid_t pid, int status);
/* After all children of a turn were reaped: trees may have become empty. */
void processes_check_trees(struct agent *agent);
/* Time-outs and ends of grace. */
void processes_tick(struct agent *agent, uint64_t now);
/* When processes_tick() has to be called next; UINT64_MAX: never. */
uint64_t processes_deadline(const struct agent *agent);
/* Nobody waits any more on that connection for the request of that id (0: for any). */
void processes_forget(struct agent *agent, struct connection *connection, uint32_t id);
/* End of the turn: drops what is no longer kept. The list itself changes here alone. */
void processes_drop(struct agent *agent);
void processes_release(struct agent *agent);
