/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What is known of a request while it is served: who asks, for what, and what came of it. It is
 * written to the audit log (audit/log.h), before the answer leaves where something was changed or
 * run; and it holds the request's place among the open streams (api/call_limits.h).
 *
 * There is one for every request, which hangs on its exchange and on its coroutine: handlers of all
 * facades, and what they call, need not know of it. Those that settle who is calling say so.
 *
 * A request is one line, or two when its answer is a stream ("phase" begin and end). A command is
 * in its request's line; it has lines of its own ("event":"command") when it takes long, when it is
 * not the only one, or when it begins while a stream is open. No output, no input, no environment,
 * no file's content and no query string is ever in it.
 */

#include "api/api.h"
#include "api/dialect.h"
#include "api/call_limits.h"
#include "audit/log.h"
#include "sandbox/witness.h"

struct recorded_run;

enum { RECORD_PREFIX_LEN = 8 };

/* For all requests. */
struct recorder { /* start from a zeroed struct */
    struct loop *loop;
    struct audit *audit;
    struct limits *limits;
    struct recorded_run *running; /* commands that no line has told of yet */
    unsigned left;                /* commands that outlive their requests */
    bool left_told;               /* that they are too many has been said */
    struct command_witness witness;
    char prefix[RECORD_PREFIX_LEN + 1]; /* of ids of requests that have none */
    uint64_t requests;                  /* that were given one */
};

/* All borrowed. Has the sandboxes tell of commands. */
void recorder_init(struct recorder *recorder, struct loop *loop, struct audit *audit,
                   struct limits *limits, struct sandboxes *sandboxes);

/* Begins the record of a request. */
void record_begin(struct http_exchange *x, const struct api *api, const struct dialect *dialect);
/* Which row it is for; NULL: none. Counts it against the address that it comes from, and refuses
 * what would change something while the audit log cannot be written. */
int record_route(struct http_exchange *x, const struct route *route,
                 const struct route_params *params, struct error *err);
/* The same for what is no route: a visit to a port of a sandbox. */
int record_visit(struct http_exchange *x, const char *sandbox_id, struct error *err);
/* Somebody without a key was let in to a thing of that workspace: its limits count. */
int record_guest(struct http_exchange *x, const char *workspace, struct error *err);
/* Who asks. Counts it against him. */
int record_caller(struct http_exchange *x, const struct principal *principal, const char *workspace,
                  struct error *err);
/* Who asks, where a handler finds that out; he was counted as the address that he comes from. */
void record_client(struct http_exchange *x, const struct principal *principal);
/* Who asks has shown a token of this sandbox, and is there by that. */
int record_box(struct http_exchange *x, const char *workspace, const char *sandbox_id,
               struct error *err);
/* Who asks has shown a token of a preview that is a session (api/blaxel/preview_serve.c), for a row
 * inside its sandbox: that row says what it is, as for any token of the sandbox. */
struct recorded_session {
    const struct route *route;
    const struct route_params *params;
    const char *workspace, *sandbox, *sandbox_id; /* borrowed, until the request's end */
};
int record_session(struct http_exchange *x, const struct recorded_session *session,
                   struct error *err);
/* He has shown nothing, and this sandbox asks for nothing: an address, which uses up neither the
 * sandbox's own limits nor the room that the log has for those who are known. */
int record_stranger(struct http_exchange *x, const char *workspace, const char *sandbox_id,
                    struct error *err);
/* What is run next answers with a stream: takes its place now, before there is something to undo.
 */
int record_stream(struct http_exchange *x, struct error *err);
/* It is a WebSocket, and a message asks for a command: what a request for one would go through. */
int record_exec(struct http_exchange *x, struct error *err);
/* It failed, and this is why: counted among the errors, once. To be said where a stream tells its
 * client why it ends, too: as an answer that is whole, and nobody else hears of it. */
void record_failure(struct http_exchange *x, const struct error *why);
/* Whose limits count for it. */
struct caller record_caller_of(const struct http_exchange *x);
