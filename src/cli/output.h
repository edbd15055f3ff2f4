/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Bytes to stdout, text to stderr, and how far a long transfer has come. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <yyjson.h>

#include "base/buf.h"
#include "base/error.h"

enum { OUTPUT_MAX = 256 << 20 }; /* what one answer may take as text */

/* All of it, to stdout or stderr. When nobody reads any more (`| head`) the process ends as SIGPIPE
 * would have ended it: quietly. */
int output_bytes(int fd, const void *data, size_t len, struct error *err);
/* A buffer to stdout; fails when something did not fit into it. */
int output_buf(const struct buf *text, struct error *err);
struct table;
int output_table(const struct table *table, struct error *err);
/* A document or part of one to stdout, indented, with a line break at the end. */
int output_json(const yyjson_val *value, struct error *err);
/* An answer that is a list, which is its member of that name: as it came, or (not json) a row for
 * each in the table, which is taken over. */
int output_list(bool json, yyjson_val *root, const char *member, struct table *table,
                void (*add_row)(struct table *table, yyjson_val *item), struct error *err);
/* One text of an answer alone on a line, for $(…); all of the answer when that is wanted. */
int output_member(yyjson_val *root, const char *pointer, bool json, struct error *err);
/* What an answer says in words, a line of it. */
int output_message(yyjson_val *root, struct error *err);
/* On stderr: that an answer's list is only a part, where it is. */
void output_more(yyjson_val *root, yyjson_val *list);

/* "cella: <message>" on stderr, made harmless for a terminal. */
void output_error(const struct error *err);

/*
 * A line on stderr about a long transfer: "  12.3 MiB of 100.0 MiB (12%)  8.1 MiB/s  0:10 left".
 * Only for somebody who looks at it: stderr is a terminal and, when the bytes go to stdout, that is
 * none. The first half second passes without a word.
 */
struct progress {
    bool shown;
    bool on;
    int64_t total; /* -1: unknown */
    uint64_t done;
    int64_t started_ms, last_ms;
};

void progress_start(struct progress *p, int64_t total, bool to_stdout);
void progress_add(struct progress *p, size_t bytes);
void progress_end(struct progress *p); /* takes the line away */

/* "12.3 MiB" */
enum { SIZE_TEXT_MAX = 32 };
void size_text(uint64_t bytes, char out[SIZE_TEXT_MAX]);
