/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What record.c (requests) and record_runs.c (what they run) know of each other. */

#include "api/record.h"
#include "base/arena.h"
#include "base/buf.h"

enum {
    COMMAND_SHOWN_MAX = 1000, /* bytes of a command, or of code */
    TARGET_SHOWN_MAX = 300,
    WORD_SHOWN_MAX = 200,
};

/* Who asks, and by what: what the lines of a request and of its commands begin with. */
struct recorded_who {
    const char *request_id, *key_id, *key, *workspace, *address, *method;
    const struct dialect *dialect;
    const struct route *route;
    enum route_class class;
};

struct record {
    const struct api *api;
    struct recorder *recorder;
    struct http_exchange *x;
    struct recorded_who who;
    int64_t begun_us;
    struct caller caller;
    struct caller streamer; /* who has the place among streams: who he is may be settled later */
    const char *sandbox, *sandbox_id, *target;
    struct recorded_run *run; /* the newest one that no line has told of */
    enum error_code error;
    int status;
    bool changes;    /* it may: its line is written before its answer leaves */
    bool has_stream; /* one of the places for streams */
    bool streamed;   /* its answer is one */
    bool told;       /* there is a line on it */
    bool left_out;   /* there will be none */
    bool failed;     /* its failure is counted */
};

/* A command, until its end is known and told. In an arena of its own, and a small one: a request
 * that is a WebSocket can have any number of them, and some outlive their request by days. */
struct recorded_run {
    struct arena *arena;
    struct recorder *recorder;
    struct record *record;          /* NULL: it may be over */
    const struct recorded_who *who; /* the record's; or a copy, once its request may go first */
    const char *sandbox_id, *sandbox, *user, *cwd, *language;
    struct slice text;
    int64_t begun_us;
    int64_t exit_code;
    bool has_exit, ended, told, counted, left;
    struct recorded_run *previous, *next; /* among those that no line has told of */
};

int64_t record_now_us(void);
/* The errand's id, or one of its own; kept, since lines are also made when no coroutine runs. */
void record_name_request(struct record *r);
void record_add_who(struct buf *line, const struct recorded_who *who);
void record_name_sandbox(struct record *r, const char *name, const char *id);

/* ---- record_runs.c ---- */

void record_add_run(struct buf *line, const struct recorded_run *run);
/* A line has told of it; when its end is known as well, it is done with. */
void recorded_run_told(struct recorded_run *run);
/* Its own line. */
void recorded_run_tell(struct recorded_run *run, const char *phase);
/* Has the sandboxes tell of what is run in them. */
void recorder_witness(struct recorder *recorder, struct sandboxes *sandboxes);
