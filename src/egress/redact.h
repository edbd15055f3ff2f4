/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Takes secrets out of a stream of bytes. Where one stands, '*' stand afterwards, as many as it
 * took. It is found as it is, in hexadecimal and in base64 (egress/redact_forms.h), with any of its
 * characters escaped as in JSON, URLs or HTML, and in any pieces.
 *
 * What may go on, and when, must not tell how much of a secret a stream resembles: a host that
 * echoes what it is sent would otherwise be asked for one character after the other. So the last
 * bytes of a stream are held back whatever they are, as many as a secret can take. They go on with
 * the bytes that follow; at once when a control character or one beyond ASCII follows, because no
 * form of a secret goes across one (a line of a stream of events is never late); or when the caller
 * says so, at the end or after a time that depends on nothing but the clock. All that is left to
 * learn is whether a guess was the whole secret.
 *
 * A host that means harm encrypts the secret, or writes it backwards.
 */

#include "base/buf.h"
#include "base/error.h"
#include "base/slice.h"
#include "egress/redact_forms.h"

struct redact;

/* The most that is taken in at once, and the most that is held back. */
enum { REDACT_PIECE_MAX = 128 * 1024, REDACT_HELD_MAX = REDACT_PIECE_MAX + 128 * 1024 };

/* For one stream after the other. set: borrowed. */
struct redact *redact_new(const struct redact_set *set, struct error *err);
void redact_free(struct redact *redact); /* NULL is fine */

/* Takes more bytes in, and appends those that may go on. */
void redact_feed(struct redact *redact, struct slice data, struct buf *out);
/* How many are held back. */
size_t redact_held(const struct redact *redact);
/* Appends all that are held back. The stream goes on: the rest of a secret that was cut in two by
 * this is still taken out. */
void redact_release(struct redact *redact, struct buf *out);
/* The same at the end of the stream: another one may follow. */
void redact_end(struct redact *redact, struct buf *out);
/* Forgets the stream, and what is held back. */
void redact_reset(struct redact *redact);
/* A whole text, between streams. */
void redact_text(struct redact *redact, struct slice text, struct buf *out);
