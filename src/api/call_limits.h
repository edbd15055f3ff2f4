/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * How much a caller may ask for: requests of each class a second, and streams at a time.
 *
 * A caller is a key; whoever works inside a sandbox with its own token is that sandbox; who shows
 * nothing is an address (an IPv6 address is its /64). Beside that every address has a bucket for
 * all it asks for, whoever asks from there. Who is on this machine (loopback, the unix socket) is
 * not counted unless the configuration says so: a proxy there stands for many, and whoever can run
 * programs here has other means. Streams are counted for everybody.
 */

#include <stdbool.h>
#include <stdint.h>

#include "api/buckets.h"
#include "api/limits_counters.h"
#include "api/route_class.h"
#include "auth/auth.h"
#include "base/error.h"
#include "base/quotas.h"
#include "http/server.h"

struct limits_config {
    bool off;                                      /* no rate is looked at */
    bool local;                                    /* callers of this machine count */
    struct bucket_rate classes[ROUTE_CLASS_COUNT]; /* of one caller */
    struct bucket_rate address;                    /* of one address, all classes together */
    struct quotas quotas; /* QUOTA_STREAMS: of the server, or of the workspace that this is about */
    uint64_t memory;      /* bytes that all requests may hold; 0: no limit */
    uint64_t memory_per_caller;
};

/*
 * rates: "off", "on", or a list: "exec=200:1000,read=off,address=1000,local=on", where 200:1000 is
 * 200 a second and 1000 at once (as many as a second has, when it is left out). quotas: a list of
 * the kinds in base/quotas.h: "streams=6144,memory=8Gi,sandboxes=off", and
 * "request-memory=160Mi,request-memory-per-key=64Mi" for what requests hold. What is not named is
 * as by default. INVALID_ARGUMENT.
 */
int limits_config_parse(const char *rates, const char *quotas, struct limits_config *ret_config,
                        struct error *err);

/* The same for one workspace, on top of what the server's options say: "streams" are then those of
 * the workspace; "address", "local" and memory, which are of no workspace, are INVALID_ARGUMENT. */
int limits_config_refine(const struct limits_config *base, const char *rates, const char *quotas,
                         struct limits_config *ret_config, struct error *err);

struct stream_owner;
struct workspace_limits;
struct caller_memory;

struct limits {
    struct limits_config config;
    struct buckets callers, addresses;
    struct stream_owner *owners;         /* of open streams */
    struct caller_memory *memory;        /* of callers with requests under way */
    struct workspace_limits *workspaces; /* that have limits of their own */
    uint32_t streams;
    struct limits_counters counters;
};

void limits_init(struct limits *limits, const struct limits_config *config);
void limits_release(struct limits *limits);

/* A workspace's own limits, from now on; both "": it has none. INVALID_ARGUMENT. */
int limits_set_workspace(struct limits *limits, const char *workspace, const char *rates,
                         const char *quotas, struct error *err);
/* What counts in a workspace; NULL or "": in none. Until the next limits_set_workspace(). */
const struct limits_config *limits_of(const struct limits *limits, const char *workspace);
/* The quotas of a workspace, for ctx a struct limits. */
const struct quotas *limits_quotas_of(const void *ctx, const char *workspace);

/* Who is asking, and in which workspace; zeroed: nobody who is counted. */
struct caller {
    unsigned char bytes[BUCKET_OWNER_SIZE];
    char workspace[64]; /* "": in none */
};

struct caller caller_in(struct caller caller, const char *workspace);

struct caller caller_of_principal(const struct principal *principal, const char *peer);
struct caller caller_of_sandbox(const char *sandbox_id);
struct caller caller_of_peer(const char *peer);

/* Each takes a token: RATE_LIMITED when there is none, with the fields that say so on the answer.
 */
int limits_admit_address(struct limits *limits, struct http_exchange *x, struct error *err);
int limits_admit(struct limits *limits, struct http_exchange *x, struct caller caller,
                 enum route_class class, struct error *err);
/* The same for what is asked for after the answer's head: by a message of a WebSocket. */
int limits_admit_more(struct limits *limits, const char *peer, struct caller caller,
                      enum route_class class, struct error *err);
/* Somebody without a key, of whom it turns out which workspace he is in, and who was counted
 * against the server's limits before: once more, if that has limits of its own. */
int limits_admit_guest(struct limits *limits, struct http_exchange *x, struct caller caller,
                       enum route_class class, struct error *err);
/* All of these for a connection of bytes to a port, of which no request tells who comes: the
 * address, what it may visit, and what guests of that workspace may. */
int limits_admit_connection(struct limits *limits, const char *peer, const char *workspace,
                            struct error *err);
/* Whether requests from there are counted; workspace NULL: by the server's own limits. */
bool limits_counts(const struct limits *limits, const char *workspace, const char *peer);
struct bucket_state limits_look(const struct limits *limits, struct caller caller,
                                enum route_class class);

enum { LIMITS_LINES_PER_S = 100, LIMITS_LINES_AT_ONCE = 10000 };
/* Whether the audit log has room for one more line on what he has only looked at, or was refused:
 * who does that without end would push out what others have done. Everybody counts. */
bool limits_take_line(struct limits *limits, struct caller caller);

/* One more open stream: TOO_MANY_STREAMS. */
int limits_stream_begin(struct limits *limits, struct caller caller, struct error *err);
void limits_stream_end(struct limits *limits, struct caller caller);
uint32_t limits_streams_of(const struct limits *limits, struct caller caller);
/* Of all callers in its workspace. */
uint32_t limits_streams_in(const struct limits *limits, const char *workspace);
