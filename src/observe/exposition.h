/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Figures as text for Prometheus: its text format 0.0.4, or OpenMetrics 1.0.
 *
 *     struct exposition e;
 *     exposition_begin(&e, &buf, false);
 *     meters_tell(meters, names, &e.sink);  …  exposition_end(&e);
 */

#include <stdbool.h>

#include "base/buf.h"
#include "observe/meters.h"

#define EXPOSITION_TEXT        "text/plain; version=0.0.4; charset=utf-8"
#define EXPOSITION_OPENMETRICS "application/openmetrics-text; version=1.0.0; charset=utf-8"

struct exposition {
    struct meter_sink sink;
    struct buf *out; /* borrowed */
    bool openmetrics;
    struct meter_family family;
};

void exposition_begin(struct exposition *e, struct buf *out, bool openmetrics);
void exposition_end(struct exposition *e);

/* Whether an Accept field (NULL: none) asks for OpenMetrics rather than for plain text. */
bool exposition_wants_openmetrics(const char *accept);
