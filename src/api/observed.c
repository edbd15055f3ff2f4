/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Counting and the access log. The path is logged without its query, which may hold a token.
 */

#include "api/observed.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "api/memory_return.h"
#include "api/route_class.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "observe/meters.h"
#include "sandbox/observed.h"

_Static_assert((int)ROUTE_CLASS_COUNT <= (int)METER_CLASSES_MAX, "room for every kind of route");

/* Dialects of one name are one facade. */
static unsigned facade_of(const struct dialect *dialect)
{
    for (size_t i = 0; i < dialect_count; i++)
        if (dialects[i] == dialect || strcmp(dialects[i]->name, dialect->name) == 0)
            return (unsigned)i;
    return 0;
}

void observed_route(struct http_exchange *x, const struct dialect *dialect,
                    const struct route *route)
{
    http_set_route(x, route == NULL ? NULL : route->path, facade_of(dialect), route_class(route));
}

void observed_port(struct http_exchange *x)
{
    http_set_route(x, NULL, facade_of(&dialect_cella), ROUTE_CLASS_PROXY);
}

void observed_error(const struct api *api, const struct error *why)
{
    static const struct {
        enum error_code code;
        enum meter_counter counter;
    } timeouts[] = {{ERROR_REQUEST_TIMEOUT, METER_TIMEOUT_REQUEST},
                    {ERROR_WAIT_TIMEOUT, METER_TIMEOUT_WAIT},
                    {ERROR_TIMEOUT, METER_TIMEOUT_ANSWER}};
    struct meters *meters = loop_meters(api->loop);
    meter_error(meters, why->code);
    for (size_t i = 0; i < ARRAY_LEN(timeouts); i++)
        if (timeouts[i].code == why->code)
            meter_count(meters, timeouts[i].counter);
}

/* What a server does wrong is worth a line by itself; the rest when it is asked for. */
static enum log_level access_level(const struct api *api, const struct http_summary *summary)
{
    if (summary->status >= 500)
        return LOG_LEVEL_WARN;
    bool asked = api->access_log && summary->kind != ROUTE_CLASS_FREE;
    return asked ? LOG_LEVEL_INFO : LOG_LEVEL_DEBUG;
}

static void write_access(const struct api *api, const struct http_summary *summary)
{
    enum log_level level = access_level(api, summary);
    if (!log_shows(level))
        return;
    const struct http_request *request = summary->request;
    const struct log_field fields[] = {
        {.name = "method", .text = request->method},
        {.name = "path", .text = request->path},
        {.name = "route", .text = summary->route != NULL ? summary->route : ""},
        {.name = "status", .number = summary->status},
        {.name = "duration_ms", .number = (double)(int64_t)(summary->seconds * 1e6) / 1e3},
        {.name = "bytes", .number = (double)summary->sent},
        {.name = "peer", .text = request->peer},
    };
    log_write_fields(level, summary->cut ? "request cut" : "request", fields, ARRAY_LEN(fields));
}

void observed_request(struct http_exchange *x, const struct http_summary *summary, void *ctx)
{
    const struct api *api = ctx;
    meter_request(loop_meters(api->loop), summary->api, summary->kind, summary->status,
                  summary->seconds);
    write_access(api, summary);
    if (api->memory_return != NULL)
        memory_return_soon(api->memory_return, api->loop, http_memory(x)->used);
}

/* --- telling --- */

static void tell_build(struct meter_sink *sink)
{
    const struct meter_label version = {"version", CELLA_VERSION};
    sink->family(sink, &(struct meter_family){"cella_build_info", "The server's version; always 1.",
                                              METER_TYPE_GAUGE});
    sink->number(sink, &version, 1, 1);
}

/* Of cellad alone: two system calls, whatever there is to count. */
static void tell_process(const struct api *api, struct meter_sink *sink)
{
    struct rusage usage;
    unsigned long long pages = 0;
    getrusage(RUSAGE_SELF, &usage);
    FILE *statm = fopen("/proc/self/statm", "re");
    if (statm != NULL) {
        char text[128] = "";
        if (fgets(text, sizeof(text), statm) != NULL)
            pages = strtoull(text + strcspn(text, " "), NULL, 10);
        fclose(statm);
    }
    sink->family(sink, &(struct meter_family){"process_cpu_seconds_total",
                                              "Processor time of the process that serves the APIs.",
                                              METER_TYPE_COUNTER});
    sink->number(sink, NULL, 0,
                 (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
                     (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6);
    meter_gauge(sink, "process_resident_memory_bytes", "Its memory.",
                (double)pages * (double)sysconf(_SC_PAGESIZE));
    meter_gauge(sink, "process_start_time_seconds", "When it was started, as Unix time.",
                (double)api->started_ms / 1e3);
}

static void tell_http(const struct api *api, struct meter_sink *sink)
{
    const struct http_load load =
        api->server == NULL ? (struct http_load){0} : http_server_load(api->server);
    meter_gauge(sink, "cella_http_connections", "Connections that are open.", load.connections);
    meter_gauge(sink, "cella_http_requests_in_progress",
                "Requests that are being answered, streams included.", load.busy);
    const struct memory_budget memory =
        api->server == NULL ? (struct memory_budget){0} : *http_server_memory(api->server);
    meter_gauge(sink, "cella_request_memory_bytes", "Memory that requests under way hold.",
                (double)memory.used);
    meter_gauge(sink, "cella_request_memory_peak_bytes", "The most that they have held.",
                (double)memory.peak);
    meter_gauge(sink, "cella_request_memory_limit_bytes",
                "The most that they may hold; 0: there is no limit.", (double)memory.max);
    meter_gauge(sink, "cella_draining", "Whether the server is on its way out.", api->draining);
}

void observed_tell(const struct api *api, struct meter_sink *sink)
{
    const char *facades[METER_APIS_MAX + 1] = {NULL};
    for (size_t i = 0; i < dialect_count && i < METER_APIS_MAX; i++)
        facades[i] = dialects[i]->name;
    const char *classes[METER_CLASSES_MAX + 1] = {NULL};
    for (int i = 0; i < ROUTE_CLASS_COUNT; i++)
        classes[i] = route_class_name((enum route_class)i);
    const struct meter_names names = {.apis = facades, .classes = classes};
    tell_build(sink);
    tell_process(api, sink);
    tell_http(api, sink);
    sandboxes_tell(api->sandboxes, sink);
    meters_tell(loop_meters(api->loop), &names, sink);
}
