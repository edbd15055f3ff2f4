/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The chain that makes a log of lines tamper-evident. A line is a flat JSON object that begins with
 * its number and ends with its hash:
 *
 *     {"seq":7,"time":"2026-01-02T03:04:05.678Z",…,"hash":"<64 hexadecimal digits>"}
 *
 * The hash is SHA-256 over the 32 bytes of the hash before it (zeros before the first) and the
 * line's own bytes up to its `,"hash":`. So no line can be changed, put in, taken out or moved
 * without every hash after it being wrong; and whoever knows the newest hash knows them all.
 *
 * In a string every '"' is escaped. So `,"name":"value"` as bytes of a line is that member and
 * never a part of another one's value: lines are searched without being parsed.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/slice.h"

enum {
    AUDIT_HASH_SIZE = 32,
    AUDIT_HASH_TEXT = 2 * AUDIT_HASH_SIZE,
    AUDIT_LINE_MAX = 16 * 1024, /* bytes of a line; longer ones are nobody's */
};

struct audit_chain {
    void *algorithm; /* OpenSSL's */
    void *context;
    uint64_t seq; /* of the newest line; 0: there is none */
    unsigned char head[AUDIT_HASH_SIZE];
};

int audit_chain_init(struct audit_chain *chain, struct error *err);
void audit_chain_release(struct audit_chain *chain);

/* Ends the line that begins at `start` of the buffer (without its last brace), which has the number
 * chain->seq + 1, and makes it the newest. */
void audit_chain_seal(struct audit_chain *chain, struct buf *lines, size_t start);

/* What a line says of itself. */
struct audit_line {
    uint64_t seq;
    struct slice time; /* "2026-01-02T03:04:05.678Z" */
    struct slice body; /* what is hashed */
    unsigned char hash[AUDIT_HASH_SIZE];
};

/* Takes a line apart, without its line break; false: it is none. */
bool audit_line_parse(struct slice text, struct audit_line *ret_line);
/* Whether the line's hash follows from the one before it. Makes it the newest in any case. */
bool audit_chain_follow(struct audit_chain *chain, const struct audit_line *line);

/* Makes the head a hash over itself and these bytes: for a digest over many lines. */
void audit_chain_fold(struct audit_chain *chain, struct slice bytes);

void audit_hash_text(const unsigned char hash[AUDIT_HASH_SIZE], char out[AUDIT_HASH_TEXT + 1]);
bool audit_hash_parse(const char *text, unsigned char ret_hash[AUDIT_HASH_SIZE]);

/* --- members of a line, each with its comma --- */

/* At most `max` bytes of the text, then "…"; what is not UTF-8 becomes U+FFFD. Nothing is added for
 * an empty text. */
void audit_add_text(struct buf *line, const char *name, struct slice text, size_t max);
void audit_add_number(struct buf *line, const char *name, int64_t value);
/* Milliseconds with three digits behind the point. */
void audit_add_us(struct buf *line, const char *name, int64_t us);
/* "2026-01-02T03:04:05.678Z" */
enum { AUDIT_TIME_LEN = 24 };
void audit_time_text(int64_t unix_ms, char out[AUDIT_TIME_LEN + 1]);
