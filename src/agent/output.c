/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The ring behind a process's output. It is filled by readv() straight from the pipe: a flood
 * costs one copy, and the agent keeps no buffer of its own that would stay dirty afterwards.
 */

#include "agent/output.h"

#include <stdlib.h>
#include <string.h>

enum {
    CAP_FIRST = 1024,
    CAP_SMALLEST_MAX = 4096, /* a ring of a few bytes would be read a few bytes at a time */
    SPACE_MAX = 64 * 1024,   /* bounds the work of one turn; also the size of a pipe */
};

void output_init(struct output *output, size_t max)
{
    *output = (struct output){.max = max};
}

void output_release(struct output *output)
{
    free(output->data);
    output_init(output, output->max);
}

static size_t cap_max(const struct output *output)
{
    return output->max < CAP_SMALLEST_MAX ? CAP_SMALLEST_MAX : output->max;
}

static size_t min_size(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Moves the content into new memory, oldest byte first. Leaves everything as it is when there
 * is none. */
static void resize(struct output *output, size_t cap)
{
    char *data = malloc(cap);
    if (data == NULL)
        return;
    if (output->len > 0) {
        size_t first = min_size(output->len, output->cap - output->head);
        memcpy(data, output->data + output->head, first);
        memcpy(data + first, output->data, output->len - first);
    }
    free(output->data);
    output->data = data;
    output->cap = cap;
    output->head = 0;
}

int output_space(struct output *output, struct iovec iov[2])
{
    if (output->cap < cap_max(output) && output->cap - output->len < output->cap / 4 + 1)
        resize(output, min_size(output->cap == 0 ? CAP_FIRST : output->cap * 2, cap_max(output)));
    if (output->cap == 0)
        return 0;
    /* Past its largest size the ring takes space from its oldest half. */
    size_t space = output->cap - output->len;
    if (space < output->cap / 2 && (output->cap >= cap_max(output) || space == 0))
        space = output->cap / 2;
    space = min_size(space, SPACE_MAX);

    size_t at = (output->head + output->len) % output->cap;
    size_t first = min_size(space, output->cap - at);
    iov[0] = (struct iovec){output->data + at, first};
    if (first == space)
        return 1;
    iov[1] = (struct iovec){output->data, space - first};
    return 2;
}

void output_commit(struct output *output, size_t len)
{
    output->total += len;
    output->len += len;
    if (output->len > output->cap) {
        output->head = (output->head + output->len - output->cap) % output->cap;
        output->len = output->cap;
    }
}

void output_add(struct output *output, const char *data, size_t len)
{
    while (len > 0) {
        struct iovec iov[2];
        if (output_space(output, iov) == 0) {
            output_skip(output, len);
            return;
        }
        size_t n = len < iov[0].iov_len ? len : iov[0].iov_len;
        memcpy(iov[0].iov_base, data, n);
        output_commit(output, n);
        data += n;
        len -= n;
    }
}

void output_skip(struct output *output, size_t len)
{
    output->total += len;
    output->len = 0;
    output->head = 0;
}

static size_t kept(const struct output *output)
{
    return min_size(output->len, output->max);
}

uint64_t output_start(const struct output *output)
{
    return output->total - kept(output);
}

uint64_t output_read(const struct output *output, uint64_t offset, size_t max, struct buf *out)
{
    if (offset < output_start(output))
        offset = output_start(output);
    if (offset >= output->total)
        return output->total;
    size_t want = min_size((size_t)(output->total - offset), max);
    size_t at = (output->head + output->len - (size_t)(output->total - offset)) % output->cap;
    size_t first = min_size(want, output->cap - at);
    buf_add(out, output->data + at, first);
    buf_add(out, output->data, want - first);
    return offset;
}

void output_trim(struct output *output)
{
    if (output->len == 0) {
        free(output->data);
        output->data = NULL;
        output->cap = output->head = 0;
        return;
    }
    if (output->cap > kept(output)) {
        size_t drop = output->len - kept(output);
        output->head = (output->head + drop) % output->cap;
        output->len -= drop;
        resize(output, output->len);
    }
}
