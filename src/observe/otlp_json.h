/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * OTLP's requests as JSON (OTLP/HTTP's other encoding): made from those in protobuf, so that spans
 * are kept in one form and figures told in one way, whichever the collector wants. As the
 * specification has it: ids in hex, enums as numbers, 64-bit integers as text.
 */

#include "base/buf.h"
#include "base/slice.h"

/* Of observe/otlp.h's: what it does not write is not known here, and left out. Failures are the
 * buffer's. */
void otlp_traces_to_json(struct buf *out, struct slice request);
void otlp_metrics_to_json(struct buf *out, struct slice request);
