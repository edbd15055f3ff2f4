/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What the server counts and measures. Each counter and each histogram is one row below, with its
 * label written into the row: there can be no more of them than there are rows, whatever strangers
 * send. Rows of one name stand together. Counting is an addition: no lock, no allocation, so only
 * the thread that owns the loop may count (loop_meters() has them).
 *
 *     meter_count(loop_meters(loop), METER_RETRY_WARDEN);
 *     uint64_t begun = meter_now();  …  meter_took(loop_meters(loop), METER_FILE_READ, begun);
 *
 * Figures that somebody keeps anyway (how many sandboxes there are) are no rows here: they are told
 * when they are asked for (api/ops/metrics.c).
 */

#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "base/error.h"

/* X(ID, name, label or NULL, its value, help) */
#define METER_COUNTERS(X)                                                                          \
    X(CONNECTIONS, "cella_http_connections_opened_total", NULL, NULL, "Connections accepted.")     \
    X(CREATE_OK, "cella_sandbox_creates_total", "result", "success",                               \
      "Sandboxes that were to be made, by what came of it.")                                       \
    X(CREATE_FAILED, "cella_sandbox_creates_total", "result", "failure", NULL)                     \
    X(COMMAND_OK, "cella_executions_total", "result", "success",                                   \
      "Commands and code that were run to their end, by how they ended.")                          \
    X(COMMAND_FAILED, "cella_executions_total", "result", "failure", NULL)                         \
    X(COMMAND_TIMED_OUT, "cella_executions_total", "result", "timeout", NULL)                      \
    X(COMMAND_LIMIT, "cella_executions_total", "result", "limit", NULL)                            \
    X(COMMAND_ERROR, "cella_executions_total", "result", "error", NULL)                            \
    X(TIMEOUT_REQUEST, "cella_timeouts_total", "what", "request",                                  \
      "Time-outs, by what did not come in time.")                                                  \
    X(TIMEOUT_EXECUTION, "cella_timeouts_total", "what", "execution", NULL)                        \
    X(TIMEOUT_WAIT, "cella_timeouts_total", "what", "wait", NULL)                                  \
    X(TIMEOUT_ANSWER, "cella_timeouts_total", "what", "answer", NULL)                              \
    X(RETRY_WARDEN, "cella_retries_total", "what", "warden", "Steps that were tried again.")       \
    X(RETRY_CONNECT, "cella_retries_total", "what", "connect", NULL)                               \
    X(RETRY_CALLBACK, "cella_retries_total", "what", "callback", NULL)                             \
    X(RETRY_EXPORT, "cella_retries_total", "what", "export", NULL)                                 \
    X(HISTORY_LOOKED, "cella_history_looks_total", "result", "success",                            \
      "Looks at sandboxes' files for their history, by what came of it.")                          \
    X(HISTORY_FAILED, "cella_history_looks_total", "result", "failure", NULL)                      \
    X(SPANS_EXPORTED, "cella_otlp_items_total", "result", "exported",                              \
      "Spans and sets of metrics for the collector, by what became of them.")                      \
    X(SPANS_DROPPED, "cella_otlp_items_total", "result", "dropped", NULL)                          \
    X(SPANS_REJECTED, "cella_otlp_items_total", "result", "rejected", NULL)

/* What histograms are cut into: all in seconds, but COUNTS. */
enum meter_scale { METER_LATENCY, METER_LONG, METER_COUNTS, METER_SCALES };

/* X(ID, name, scale, label or NULL, its value, help) */
#define METER_HISTOGRAMS(X)                                                                        \
    X(CREATE_POOL, "cella_sandbox_create_duration_seconds", METER_LATENCY, "from", "pool",         \
      "From the request for a sandbox until it runs.")                                             \
    X(CREATE_SCRATCH, "cella_sandbox_create_duration_seconds", METER_LATENCY, "from", "scratch",   \
      NULL)                                                                                        \
    X(CREATE_CLONE, "cella_sandbox_create_duration_seconds", METER_LATENCY, "from", "clone", NULL) \
    X(EXECUTE_COMMAND, "cella_execution_duration_seconds", METER_LATENCY, "kind", "command",       \
      "How long commands and code ran.")                                                           \
    X(EXECUTE_CODE, "cella_execution_duration_seconds", METER_LATENCY, "kind", "code", NULL)       \
    X(FILE_READ, "cella_file_operation_duration_seconds", METER_LATENCY, "operation", "read",      \
      "Operations on files of sandboxes.")                                                         \
    X(FILE_WRITE, "cella_file_operation_duration_seconds", METER_LATENCY, "operation", "write",    \
      NULL)                                                                                        \
    X(FILE_LIST, "cella_file_operation_duration_seconds", METER_LATENCY, "operation", "list",      \
      NULL)                                                                                        \
    X(FILE_STAT, "cella_file_operation_duration_seconds", METER_LATENCY, "operation", "stat",      \
      NULL)                                                                                        \
    X(FILE_REMOVE, "cella_file_operation_duration_seconds", METER_LATENCY, "operation", "remove",  \
      NULL)                                                                                        \
    X(FILE_SEARCH, "cella_file_operation_duration_seconds", METER_LATENCY, "operation", "search",  \
      NULL)                                                                                        \
    X(FILE_OTHER, "cella_file_operation_duration_seconds", METER_LATENCY, "operation", "other",    \
      NULL)                                                                                        \
    X(CALL_CALLBACK, "cella_network_call_duration_seconds", METER_LATENCY, "to", "callback",       \
      "Calls that the server made over the network, or to a port of a sandbox.")                   \
    X(CALL_PORT, "cella_network_call_duration_seconds", METER_LATENCY, "to", "port", NULL)         \
    X(CALL_JWKS, "cella_network_call_duration_seconds", METER_LATENCY, "to", "jwks", NULL)         \
    X(CALL_COLLECTOR, "cella_network_call_duration_seconds", METER_LATENCY, "to", "collector",     \
      NULL)                                                                                        \
    X(WARDEN, "cella_warden_call_duration_seconds", METER_LATENCY, NULL, NULL,                     \
      "Requests to the privileged process, until its answer.")                                     \
    X(AGENT, "cella_agent_call_duration_seconds", METER_LATENCY, NULL, NULL,                       \
      "Requests to the agents of sandboxes, until the answer, commands that were waited for "      \
      "included.")                                                                                 \
    X(STORE, "cella_store_write_duration_seconds", METER_LATENCY, NULL, NULL,                      \
      "Changes of the database, with the wait for their turn.")                                    \
    X(SESSION_EXECUTIONS, "cella_session_executions", METER_COUNTS, NULL, NULL,                    \
      "Commands that a sandbox has run in its life, told when it is deleted.")                     \
    X(SESSION_DURATION, "cella_session_duration_seconds", METER_LONG, NULL, NULL,                  \
      "How long a sandbox has run in its life, told when it is deleted.")                          \
    X(LOOP_LAG, "cella_loop_lag_seconds", METER_LATENCY, NULL, NULL,                               \
      "Turns of the event loop: for so long whatever came meanwhile had to wait.")

enum meter_counter {
#define X(id, name, label, value, help) METER_##id,
    METER_COUNTERS(X)
#undef X
        METER_COUNTER_COUNT
};

enum meter_histogram {
#define X(id, name, scale, label, value, help) METER_##id,
    METER_HISTOGRAMS(X)
#undef X
        METER_HISTOGRAM_COUNT
};

enum { HISTOGRAM_BOUNDS_MAX = 20 };

struct histogram {
    uint64_t counts[HISTOGRAM_BOUNDS_MAX + 1]; /* up to each bound; behind the last one: beyond */
    double sum;
};

/* Requests are counted by facade, kind of route and status, all of them from closed lists. */
enum { METER_APIS_MAX = 12, METER_CLASSES_MAX = 20, METER_STATUSES = 600 };

struct meters {
    uint64_t counters[METER_COUNTER_COUNT];
    struct histogram histograms[METER_HISTOGRAM_COUNT];
    uint64_t errors[ERROR_NUMBERS];                        /* by number */
    uint64_t *requests[METER_APIS_MAX][METER_CLASSES_MAX]; /* by status; made when first needed */
    struct histogram request_seconds[METER_CLASSES_MAX];
};

/* Each accepts NULL: then nothing is counted. */
struct meters *meters_new(struct error *err);
void meters_free(struct meters *m);

static inline void meter_count(struct meters *m, enum meter_counter counter)
{
    if (m != NULL)
        m->counters[counter]++;
}

static inline void meter_add(struct meters *m, enum meter_counter counter, uint64_t by)
{
    if (m != NULL)
        m->counters[counter] += by;
}

static inline void meter_error(struct meters *m, enum error_code code)
{
    if (m != NULL && (unsigned)code < ERROR_NUMBERS)
        m->errors[code]++;
}

/* Monotonic, in ns. */
static inline uint64_t meter_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

void meter_observe(struct meters *m, enum meter_histogram histogram, double value);
/* Observes the seconds that have passed since meter_now() was `begun`. */
void meter_took(struct meters *m, enum meter_histogram histogram, uint64_t begun);
/* A request that was answered; api and class are the caller's numbers. */
void meter_request(struct meters *m, unsigned api, unsigned class, int status, double seconds);

/* --- telling them --- */

enum meter_type { METER_TYPE_COUNTER, METER_TYPE_GAUGE, METER_TYPE_HISTOGRAM };

struct meter_family {
    const char *name, *help; /* a counter's name ends with _total */
    enum meter_type type;
};

struct meter_label {
    const char *name, *value;
};

/* Whoever they are told to: a family, then its samples. */
struct meter_sink {
    void (*family)(struct meter_sink *sink, const struct meter_family *family);
    void (*number)(struct meter_sink *sink, const struct meter_label *labels, size_t count,
                   double value);
    void (*histogram)(struct meter_sink *sink, const struct meter_label *labels, size_t count,
                      const double *bounds, size_t bound_count, const struct histogram *histogram);
};

/* Names of the caller's numbers, each list ended by NULL. */
struct meter_names {
    const char *const *apis;
    const char *const *classes;
};

/* All counters and histograms; those of requests and errors only as far as there were some. */
void meters_tell(const struct meters *m, const struct meter_names *names, struct meter_sink *sink);
/* A gauge without labels, in one call. */
void meter_gauge(struct meter_sink *sink, const char *name, const char *help, double value);
