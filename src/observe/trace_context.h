/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * W3C Trace Context: the fields traceparent and tracestate, read as strictly as they are specified.
 * A traceparent that is not right counts as none; a tracestate that is not right is left out, and
 * the traceparent beside it still counts.
 */

#include <stdbool.h>

#include "base/errand.h"

enum { TRACEPARENT_LEN = 55, TRACESTATE_MEMBERS_MAX = 32 };

/* "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01" into the errand; false: nothing of it
 * has changed. A later version's is read as far as this one goes. */
bool trace_parent_parse(const char *text, struct errand *errand);
/* The same as text, of an errand that is traced. */
void trace_parent_text(const struct errand *errand, char out[TRACEPARENT_LEN + 1]);

/* Appends a tracestate field's members; false, and the errand has none at all: they are not right,
 * too many, or too long. */
bool trace_state_add(const char *text, struct errand *errand);
