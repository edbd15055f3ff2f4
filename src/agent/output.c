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
    MARK_EVERY_MS = 20,      /* what comes closer together counts as one moment */
    MARKS_FIRST = 8,
    MARKS_MAX = 256,
};

void output_init(struct output *output, size_t max)
{
    *output = (struct output){.max = max};
}

void output_release(struct output *output)
{
    free(output->data);
    free(output->marks);
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

/* --- times --- */

static uint64_t span(uint64_t from_ms, uint64_t to_ms)
{
    return to_ms > from_ms ? to_ms - from_ms : 0;
}

/* Makes room by forgetting: marks of bytes that are gone, else the one that is missed least, which
 * is where the gap it leaves is small for how long ago it is. So new marks are close together and
 * old ones further apart. */
static void thin_marks(struct output *output)
{
    struct output_mark *marks = output->marks;
    unsigned gone = 0, count = output->mark_count, least = 1;
    while (gone + 1 < count && marks[gone + 1].offset <= output_start(output))
        gone++;
    if (gone > 0) {
        output->mark_count -= gone;
        memmove(marks, marks + gone, output->mark_count * sizeof(*marks));
        return;
    }
    uint64_t least_gap = UINT32_MAX, least_age = 1, now = output->mark.time_ms;
    for (unsigned i = 1; i + 1 < count; i++) {
        uint64_t gap = span(marks[i - 1].time_ms, marks[i + 1].time_ms);
        uint64_t age = span(marks[i].time_ms, now) + 1;
        if (gap * least_age < least_gap * age) {
            least = i;
            least_gap = gap;
            least_age = age;
        }
    }
    output->mark_count--;
    memmove(marks + least, marks + least + 1, (count - 1 - least) * sizeof(*marks));
}

static void push_mark(struct output *output)
{
    if (output->mark_count == output->mark_cap) {
        unsigned cap = output->mark_cap == 0 ? MARKS_FIRST : output->mark_cap * 2;
        struct output_mark *marks =
            cap > MARKS_MAX ? NULL : realloc(output->marks, cap * sizeof(*marks));
        if (marks != NULL) {
            output->marks = marks;
            output->mark_cap = cap;
        } else if (output->mark_count > 0) {
            thin_marks(output);
        } else {
            return;
        }
    }
    output->marks[output->mark_count++] = output->mark;
}

void output_stamp(struct output *output, uint64_t time_ms)
{
    if (output->total > 0) {
        int64_t since = (int64_t)(time_ms - output->mark.time_ms);
        if (since >= 0 && since < MARK_EVERY_MS) /* a clock that was set back makes a mark */
            return;
        if (output->mark.offset != output->total)
            push_mark(output);
    }
    output->mark = (struct output_mark){output->total, time_ms};
}

void output_times(const struct output *output, uint64_t from, uint64_t to, struct buf *out)
{
    for (unsigned i = 0; i < output->mark_count; i++) {
        const struct output_mark *mark = &output->marks[i];
        uint64_t next =
            i + 1 < output->mark_count ? output->marks[i + 1].offset : output->mark.offset;
        if (mark->offset < to && next > from)
            buf_add(out, mark, sizeof(*mark));
    }
    if (output->mark.offset < to)
        buf_add(out, &output->mark, sizeof(output->mark));
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

int output_peek(const struct output *output, uint64_t offset, size_t max, struct iovec iov[2])
{
    size_t want = min_size((size_t)(output->total - offset), max);
    if (want == 0)
        return 0;
    size_t at = (output->head + output->len - (size_t)(output->total - offset)) % output->cap;
    size_t first = min_size(want, output->cap - at);
    iov[0] = (struct iovec){output->data + at, first};
    iov[1] = (struct iovec){output->data, want - first};
    return first == want ? 1 : 2;
}

uint64_t output_read(const struct output *output, uint64_t offset, size_t max, struct buf *out)
{
    if (offset < output_start(output))
        offset = output_start(output);
    if (offset >= output->total)
        return output->total;
    struct iovec iov[2];
    int pieces = output_peek(output, offset, max, iov);
    for (int i = 0; i < pieces; i++)
        buf_add(out, iov[i].iov_base, iov[i].iov_len);
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
