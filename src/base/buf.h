/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A growing byte buffer with a maximum.
 *
 * `data[len]` is always a NUL, so that `data` can be read as a C string (an empty buffer that
 * never grew points at a static ""). Appending past `max`, or running out of memory, leaves
 * the content as it was and sets `failed`; later appends do nothing. So a builder appends
 * freely and checks once: `if (b.failed) …` (or buf_check(), which sets the error).
 *
 *     struct buf b = BUF_INIT(LIMIT);      …      buf_release(&b);
 */

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

struct memory_account;

struct buf {
    char *data;
    size_t len;
    size_t cap;
    size_t max;
    bool failed;
    bool refused;                   /* … because the account had no room for it */
    struct memory_account *account; /* that its memory counts in (base/memory.h); NULL: none */
};

extern char buf_empty[1];

#define BUF_INIT(maximum)                                                                          \
    {                                                                                              \
        .data = buf_empty, .max = (maximum)                                                        \
    }

void buf_init(struct buf *b, size_t max);
void buf_release(struct buf *b); /* frees, and leaves an empty buffer with the same maximum */
void buf_clear(struct buf *b);   /* len = 0, keeps the memory, forgets `failed` */

void buf_add(struct buf *b, const void *data, size_t len);
void buf_adds(struct buf *b, const char *str);
void buf_addc(struct buf *b, char c);
void buf_addf(struct buf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* A finite number, as short as it can be without meaning another one. */
void buf_add_double(struct buf *b, double value);
void buf_vaddf(struct buf *b, const char *fmt, va_list args);

/* Makes room for `extra` bytes and returns where they go; NULL (and `failed`) past the maximum.
 * After writing there, say so with buf_commit(). */
char *buf_reserve(struct buf *b, size_t extra);
void buf_commit(struct buf *b, size_t len);

/* Drops the first n bytes. */
void buf_consume(struct buf *b, size_t n);

/* 0, or -1 with PAYLOAD_TOO_LARGE ("<what> is larger than <max> bytes") when an append failed, or
 * with MEMORY_LIMITED or OVERLOADED when its account had no room. */
int buf_check(const struct buf *b, const char *what, struct error *err);

/* Hands the memory over: a NUL-terminated string to free(). The buffer is empty afterwards. */
char *buf_steal(struct buf *b);
