/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Takes a secret out of a stream of bytes: where it stands as it is, as many '*' stand afterwards.
 * It may come in any pieces; what could be its beginning is held back until it is known.
 *
 * That is for hosts that echo what they are sent without meaning any harm. One that wants to give
 * the secret away writes it backwards.
 */

#include <stddef.h>

#include "base/buf.h"
#include "base/slice.h"

enum { REDACT_MIN = 8 }; /* shorter ones would stand in anything */

struct redact {
    struct slice secret; /* borrowed */
    size_t held;         /* the first so many bytes of it have been seen, and not been passed on */
};

/* Appends what can be passed on of the bytes. */
void redact_feed(struct redact *redact, const char *data, size_t len, struct buf *out);
/* The end: appends what was held back. */
void redact_end(struct redact *redact, struct buf *out);
