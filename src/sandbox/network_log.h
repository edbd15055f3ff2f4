/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What a sandbox tried to reach, and what became of it. The egress process knows it first, and
 * keeps it in memory; from there it is collected into a file for each sandbox
 * (network_log_file.h), so that it survives the death of either. What is read is both: the file,
 * and what is newer than it.
 *
 * Calls are made on coroutines. Names and details come out of a sandbox and are a stranger's.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "wire/messages.h"

struct sandboxes;

struct network_log_query {
    uint64_t after;    /* a number: those behind it only */
    int64_t since_ms;  /* Unix time: what has happened since; 0: all */
    size_t limit;      /* the newest so many, at most EGRESS_LOG_MAX */
    uint64_t verdicts; /* a bit for each enum net_verdict; 0: all */
    unsigned kinds;    /* a bit for each enum egress_log_kind; 0: all */
};

struct network_log {
    struct egress_log_entry *entries; /* oldest first */
    size_t count;
    uint64_t last; /* for `after` of the next question, whatever the query leaves out */
};

/* "allowed", "refused", "failed", or the name of a verdict. INVALID_ARGUMENT. */
int network_log_verdicts(const char *text, uint64_t *ret_verdicts, struct error *err);

int sandboxes_network_log(struct sandboxes *s, const char *workspace, const char *name,
                          const struct network_log_query *query, struct arena *arena,
                          struct network_log *ret_log, struct error *err);

/*
 * The same, and what comes after it: network_log_next() gives what there is first (perhaps
 * nothing), then waits for more; 0 entries after idle_ms. An entry that has changed comes again
 * (with its number). *ret_ended: the sandbox is gone. LIMIT_EXCEEDED past LOG_FOLLOWERS_MAX.
 */
struct network_log_reader;

int sandboxes_network_log_follow(struct sandboxes *s, const char *workspace, const char *name,
                                 const struct network_log_query *query,
                                 struct network_log_reader **ret_reader, struct error *err);
int network_log_next(struct network_log_reader *reader, int64_t idle_ms, struct arena *arena,
                     struct network_log *ret_log, bool *ret_ended, struct error *err);
void network_log_end(struct network_log_reader *reader); /* NULL is fine */

static inline void cleanup_network_log(struct network_log_reader **reader)
{
    network_log_end(*reader);
}
