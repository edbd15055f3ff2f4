/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Sends spans and figures to an OpenTelemetry collector, by OTLP over HTTP, in protobuf or as
 * JSON. Everything is collected on the loop and sent by threads; a collector that is slow or away
 * costs memory up to a bound (SPANS_BYTES_MAX), then spans, which are counted, and never a
 * request's time.
 */

#include "base/error.h"
#include "export/settings.h"
#include "loop/loop.h"
#include "observe/meters.h"
#include "observe/span.h"

struct exporter;

/* How the figures are told: exporter_tell(ctx, sink). */
typedef void exporter_tell(void *ctx, struct meter_sink *sink);

/* Takes the settings over. *ret_exporter is NULL when they name no collector. */
int exporter_new(struct loop *loop, struct export_settings *settings, exporter_tell *tell,
                 void *ctx, struct exporter **ret_exporter, struct error *err);
/* On the loop: begins to send. */
int exporter_start(struct exporter *exporter, struct error *err);
/* NULL: traces are not sent. */
struct tracer *exporter_tracer(struct exporter *exporter);
/* On a coroutine: a last try, of two seconds at most, with what there is. NULL is fine, also below.
 */
void exporter_stop(struct exporter *exporter);
void exporter_free(struct exporter *exporter);
