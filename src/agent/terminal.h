/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Terminals: sessions that belong to nobody's connection.
 *
 * A session is a pseudo-terminal and the tree of processes that was started on it. It goes when its
 * shell ends, when it is closed, or when nobody was attached for its idle time, and its whole tree
 * with it (SIGHUP first, SIGKILL after TERMINAL_GRACE_MS). Its record stays for TERMINAL_ENDED_MS,
 * so that who was cut off at that moment can still learn the end.
 *
 * Output goes into a ring with offsets. Each attached connection has a place in it and is fed from
 * there as fast as it reads; the programs wait for the fastest of them, but not for longer than
 * TERMINAL_STALL_MS without a byte moving, and then who is too slow misses the middle. The first to
 * come is waited for as if it were there; later on, with nobody attached, they never wait. Input is
 * queued up to a maximum; past it the connection it comes from is not read any further.
 *
 *   terminal.c           the table, beginning and end of a session
 *   terminal_io.c        output, input, attaching
 *   terminal_requests.c  the AGENT_TERMINAL_* requests
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "agent/output.h"
#include "agent/requests.h"
#include "agent/tree.h"
#include "agent/watch.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/limits.h"
#include "wire/messages.h"

struct terminal;

enum { TERMINAL_CLIENTS = 8 };

/* Somebody who may come back after a lost connection, and has to know what of its input came. */
struct terminal_client {
    char name[TERMINAL_SESSION_MAX + 1]; /* "": free */
    uint64_t taken;
    uint64_t used_at; /* monotonic ms */
};

struct attachment {
    struct attachment *next;
    struct terminal *terminal;
    struct connection *connection;
    uint32_t id; /* of the request: all that is sent carries it */
    uint64_t offset;
    bool lagging; /* nobody waits for it until it has caught up */
    bool over;    /* it was told the end */
    uint64_t taken;
    struct terminal_client *client; /* NULL: it did not say */
};

enum terminal_wait { TERMINAL_WAIT_OPEN, TERMINAL_WAIT_GONE };

struct terminal_waiter {
    struct terminal_waiter *next;
    struct connection *connection;
    uint32_t id;
    enum terminal_wait kind;
    bool created; /* it is this request's doing */
};

struct terminal {
    struct terminal *next;
    char session[TERMINAL_SESSION_MAX + 1];
    char *command;
    char *cwd;
    char *user;
    unsigned cols, rows;
    uint64_t started_ms;
    uint64_t idle_ms;
    pid_t pid;

    bool starting; /* exec was not reached yet */
    bool failed;   /* … and will not be */
    bool ended;    /* the shell was reaped */
    bool finished; /* nothing of its tree is left, and its output is complete */
    bool told;     /* somebody has learned of the end */
    bool dropped;  /* the record goes at the end of the turn */
    enum terminal_end reason;
    int exit_code;
    int signal;

    /* monotonic ms; 0: not */
    uint64_t idle_at;   /* nobody is attached: when it goes */
    uint64_t end_at;    /* whoever is attached; 0: never */
    uint64_t kill_at;   /* end of the grace */
    uint64_t retry_at;  /* when to look at a dying tree again */
    uint64_t stall_at;  /* paused: when to go on all the same */
    uint64_t forget_at; /* finished: when the record goes */

    struct watch status;
    struct exec_plan *plan; /* while it is starting */
    struct tree tree;
    struct watch pty;
    bool hung_up; /* nobody has the program's end open */
    bool awaited; /* nobody was attached yet; whoever started it is on the way */
    bool paused;  /* those who are attached have to catch up first */
    struct output output;
    struct buf input;
    size_t input_sent;
    struct attachment *attachments;
    struct terminal_waiter *waiters;
    struct terminal_client clients[TERMINAL_CLIENTS];
};

/* --- terminal.c --- */

/* TERMINAL_NOT_FOUND when there is none. */
struct terminal *terminal_find(struct agent *agent, const char *session, struct error *err);
/* Answers when its shell runs, unless this fails. */
int terminal_open(struct agent *agent, const struct request *request,
                  const struct agent_terminal_open *open, struct error *err);
void terminal_answer(struct agent *agent, const struct terminal *terminal,
                     struct connection *connection, uint32_t id, bool created, uint64_t taken);
/* Ends it with all that runs in it. Answers with WIRE_OK when that is gone. */
int terminal_close(struct agent *agent, struct terminal *terminal, const struct request *request,
                   struct error *err);
/* Begins to end all of them. */
void terminals_hang_up(struct agent *agent);
/* Counts its idle time from now if nobody is attached. */
void terminal_touch(struct terminal *terminal);

/* --- terminal_io.c --- */

watch_ready terminal_ready; /* of terminal->pty */
/* At the end: takes what is left of its output. */
void terminal_drain(struct agent *agent, struct terminal *terminal);
/* Feeds everybody who is attached, and pauses or goes on as they follow. */
void terminal_feed(struct agent *agent, struct terminal *terminal);
/* The same for one connection, which has room again. */
void terminal_pump(struct agent *agent, struct connection *connection);
int terminal_attach(struct agent *agent, const struct request *request, struct terminal *terminal,
                    const struct agent_terminal_attach *attach, struct error *err);
/* Tells them that it could not be started. */
void terminal_refuse_attached(struct agent *agent, struct terminal *terminal,
                              const struct error *why);
void terminal_detach(struct agent *agent, struct attachment *attachment);
/* Queues input and writes what can be written. */
void terminal_write(struct agent *agent, struct terminal *terminal, struct slice data);
bool terminal_takes_input(const struct terminal *terminal);
/* INVALID_ARGUMENT when it is no size. 0: as it is. */
int terminal_resize(struct terminal *terminal, uint64_t cols, uint64_t rows, struct error *err);
/* Nobody moved for TERMINAL_STALL_MS. */
void terminal_stalled(struct agent *agent, struct terminal *terminal);
/* Goes on with connections that were held because there was no room for their input. */
void terminal_let_go(struct agent *agent, struct terminal *terminal);

/* --- terminal_requests.c --- */

request_handler handle_terminal_open, handle_terminal_list, handle_terminal_attach,
    handle_terminal_input, handle_terminal_resize, handle_terminal_close, handle_terminal_hang_up;

/* --- for the loop, as in process.h --- */

bool terminals_reaped(struct agent *agent, pid_t pid, int status);
void terminals_check_trees(struct agent *agent);
void terminals_tick(struct agent *agent);
uint64_t terminals_deadline(const struct agent *agent);
void terminals_forget_connection(struct agent *agent, struct connection *connection);
void terminals_drop(struct agent *agent);
void terminals_release(struct agent *agent);
