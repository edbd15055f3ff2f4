/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A sandbox's log: what befell it (its events, and finer steps), and every line that its processes
 * have written, in the order of time. The first is kept for good, within bounds; lines are there
 * for as long as the sandbox's agent keeps the output that they are part of.
 *
 * Calls are made on coroutines. Lines come out of a sandbox and are not trusted: they are bounded
 * in number, length and bytes, and may hold anything but line ends.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/slice.h"

struct sandboxes;

#define SANDBOX_LOG_LEVELS(X)                                                                      \
    X(DEBUG, "debug")                                                                              \
    X(INFO, "info")                                                                                \
    X(WARN, "warn")                                                                                \
    X(ERROR, "error")

enum sandbox_log_level {
#define X(name, text) SANDBOX_LOG_##name,
    SANDBOX_LOG_LEVELS(X)
#undef X
        SANDBOX_LOG_LEVEL_COUNT
};

const char *sandbox_log_level_text(enum sandbox_log_level level);
/* INVALID_ARGUMENT lists the levels there are. "warning" is warn. */
int sandbox_log_level_parse(const char *text, enum sandbox_log_level *ret_level, struct error *err);

enum sandbox_log_source { SANDBOX_LOG_OF_SANDBOX = 1 << 0, SANDBOX_LOG_OF_PROCESSES = 1 << 1 };

struct sandbox_log_query {
    size_t tail;                  /* the newest so many, at most LOGS_TAIL_MAX */
    enum sandbox_log_level level; /* and what is worse */
    int64_t since_ms;             /* Unix time; 0: from the beginning */
    unsigned sources;             /* enum sandbox_log_source; 0: all */
};

struct sandbox_log_entry {
    int64_t time_ms;
    enum sandbox_log_level level;
    struct slice message; /* any bytes; of a line longer than LOG_LINE_MAX the beginning */
    uint64_t pid;         /* of the process that wrote it; 0: it is about the sandbox */
    const char *process;  /* its name */
    unsigned stream;      /* LOG_STDOUT, LOG_STDERR */
};

/* What there is, oldest first. */
int sandbox_logs(struct sandboxes *s, const char *workspace, const char *name,
                 const struct sandbox_log_query *query, struct arena *arena,
                 struct sandbox_log_entry **ret_entries, size_t *ret_count, struct error *err);

/*
 * The same, and what comes after it. sandbox_log_next() gives what there is first (perhaps
 * nothing), then waits for more; 0 entries after idle_ms. *ret_ended: the sandbox is gone, nothing
 * comes any more. A line is given when it is whole. LIMIT_EXCEEDED past LOG_FOLLOWERS_MAX at one
 * sandbox.
 */
struct sandbox_log_reader;

int sandbox_log_follow(struct sandboxes *s, const char *workspace, const char *name,
                       const struct sandbox_log_query *query,
                       struct sandbox_log_reader **ret_reader, struct error *err);
int sandbox_log_next(struct sandbox_log_reader *reader, int64_t idle_ms, struct arena *arena,
                     struct sandbox_log_entry **ret_entries, size_t *ret_count, bool *ret_ended,
                     struct error *err);
void sandbox_log_end(struct sandbox_log_reader *reader); /* NULL is fine */

static inline void cleanup_sandbox_log(struct sandbox_log_reader **reader)
{
    sandbox_log_end(*reader);
}
