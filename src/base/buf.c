/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Growing buffers. Every one has a maximum given at birth, because whatever grows in a server
 * grows at a stranger's will sooner or later.
 */

#include "base/buf.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

char buf_empty[1];

void buf_init(struct buf *b, size_t max)
{
    *b = (struct buf)BUF_INIT(max);
}

void buf_release(struct buf *b)
{
    if (b->data != buf_empty)
        free(b->data);
    struct memory_account *account = b->account;
    memory_give(account, b->cap);
    buf_init(b, b->max);
    b->account = account;
}

void buf_clear(struct buf *b)
{
    b->len = 0;
    b->failed = b->refused = false;
    if (b->data != buf_empty)
        b->data[0] = '\0';
}

char *buf_reserve(struct buf *b, size_t extra)
{
    if (b->failed)
        return NULL;
    if (extra > b->max - b->len) {
        b->failed = true;
        return NULL;
    }
    size_t need = b->len + extra + 1; /* the NUL */
    if (need <= b->cap)
        return b->data + b->len;
    size_t cap = b->cap < 64 ? 64 : b->cap;
    while (cap < need)
        cap *= 2;
    if (cap > b->max + 1)
        cap = b->max + 1;
    if (memory_check(b->account, cap - b->cap, NULL) < 0) {
        b->failed = b->refused = true;
        return NULL;
    }
    char *data = realloc(b->data == buf_empty ? NULL : b->data, cap);
    if (data == NULL) {
        b->failed = true;
        return NULL;
    }
    memory_take(b->account, cap - b->cap);
    data[b->len] = '\0';
    b->data = data;
    b->cap = cap;
    return b->data + b->len;
}

void buf_commit(struct buf *b, size_t len)
{
    if (len == 0)
        return;
    b->len += len;
    b->data[b->len] = '\0';
}

void buf_add(struct buf *b, const void *data, size_t len)
{
    if (len == 0)
        return;
    char *to = buf_reserve(b, len);
    if (to == NULL)
        return;
    memcpy(to, data, len);
    buf_commit(b, len);
}

void buf_adds(struct buf *b, const char *str)
{
    buf_add(b, str, strlen(str));
}

void buf_addc(struct buf *b, char c)
{
    buf_add(b, &c, 1);
}

void buf_vaddf(struct buf *b, const char *fmt, va_list args)
{
    va_list again;
    va_copy(again, args);
    int len = vsnprintf(NULL, 0, fmt, again);
    va_end(again);
    if (len < 0) {
        b->failed = true;
        return;
    }
    char *to = buf_reserve(b, (size_t)len);
    if (to == NULL)
        return;
    vsnprintf(to, (size_t)len + 1, fmt, args);
    buf_commit(b, (size_t)len);
}

void buf_addf(struct buf *b, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    buf_vaddf(b, fmt, args);
    va_end(args);
}

void buf_add_double(struct buf *b, double value)
{
    char text[40];
    snprintf(text, sizeof(text), "%.15g", value);
    if (strtod(text, NULL) != value)
        snprintf(text, sizeof(text), "%.17g", value);
    buf_adds(b, text);
}

void buf_consume(struct buf *b, size_t n)
{
    if (n == 0)
        return;
    if (n > b->len)
        n = b->len;
    memmove(b->data, b->data + n, b->len - n);
    b->len -= n;
    b->data[b->len] = '\0';
}

int buf_check(const struct buf *b, const char *what, struct error *err)
{
    if (!b->failed)
        return 0;
    if (b->refused && memory_check(b->account, b->cap, err) < 0)
        return -1;
    if (b->refused)
        return error_set(err, ERROR_MEMORY_LIMITED, "there was no memory for %s: try again later",
                         what);
    return error_set(err, ERROR_PAYLOAD_TOO_LARGE, "%s is larger than %zu bytes", what, b->max);
}

char *buf_steal(struct buf *b)
{
    char *data = b->data == buf_empty ? strdup("") : b->data;
    memory_give(b->account, b->cap);
    buf_init(b, b->max);
    return data;
}
