/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Visits that are no requests: connections of bytes to ports of the host. Nothing shows who comes,
 * so it is an address, which is limited and told of as somebody without a key is. One line says
 * that a connection was let in, or why it was not: it may last for days.
 */

#include "api/record_connection.h"

#include <stdio.h>

#include "api/record_state.h"
#include "base/timetext.h"

int record_connection_begin(struct recorded_connection *c, struct error *err)
{
    struct limits *limits = c->recorder->limits;
    c->begun_us = record_now_us();
    c->caller = caller_in(caller_of_peer(c->address), c->workspace);
    if (limits_admit_connection(limits, c->address, c->workspace, err) < 0 ||
        limits_stream_begin(limits, c->caller, err) < 0)
        return -1;
    c->has_stream = true;
    return 0;
}

void record_connection_tell(const struct recorded_connection *c, const struct error *why)
{
    struct audit *audit = c->recorder->audit;
    const struct audit_options *options = audit_options_of(audit);
    const struct recorded_who who = {.workspace = c->workspace,
                                     .address = c->address,
                                     .method = "TCP",
                                     .dialect = &dialect_cella,
                                     .class = ROUTE_CLASS_PROXY};
    char port[8];
    if (options->off || options->no_reads || !audit_spare(audit, time_now_ms()))
        return;
    struct buf *line = audit_begin(audit, "request", time_now_ms());
    if (line == NULL)
        return;
    record_add_who(line, &who);
    snprintf(port, sizeof(port), "%u", c->port);
    audit_add_text(line, "sandboxId", slice_of(c->sandbox_id), WORD_SHOWN_MAX);
    audit_add_text(line, "target", slice_of(port), TARGET_SHOWN_MAX);
    if (why != NULL)
        audit_add_text(line, "error", slice_of(error_name(why->code)), WORD_SHOWN_MAX);
    audit_add_us(line, "durationMs", record_now_us() - c->begun_us);
    audit_end(audit);
}

void record_connection_end(struct recorded_connection *c)
{
    if (c->has_stream)
        limits_stream_end(c->recorder->limits, c->caller);
    c->has_stream = false;
}
