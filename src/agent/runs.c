/* SPDX-License-Identifier: Apache-2.0 */

/* Runs, four bytes each: the length, and the stream in the lowest bit. Readers are mostly near the
 * end, so an offset is looked for from there. */

#include "agent/runs.h"

#include <stdlib.h>
#include <string.h>

enum {
    RUNS_FIRST = 64,
    RUNS_MAX = 16 * 1024,
};
#define RUN_LEN_MAX ((uint64_t)INT32_MAX)

static uint32_t *item(const struct runs *runs, unsigned index)
{
    if (runs->items == NULL)
        return (uint32_t *)&runs->few[index];
    return &runs->items[(runs->head + index) % runs->cap];
}

static unsigned stream_of(uint32_t run)
{
    return run & 1;
}

static uint32_t len_of(uint32_t run)
{
    return run >> 1;
}

void runs_release(struct runs *runs)
{
    free(runs->items);
    *runs = (struct runs){0};
}

size_t runs_bytes(const struct runs *runs)
{
    return runs->cap * sizeof(*runs->items);
}

static void drop_oldest(struct runs *runs)
{
    runs->start += len_of(*item(runs, 0));
    runs->count--;
    if (runs->items != NULL)
        runs->head = (runs->head + 1) % runs->cap;
    else
        memmove(runs->few, runs->few + 1, sizeof(runs->few) - sizeof(runs->few[0]));
}

/* Makes room for one more; where there is no memory, by forgetting the oldest. */
static void make_room(struct runs *runs)
{
    unsigned cap = runs->items == NULL ? RUNS_FEW : runs->cap;
    if (runs->count < cap)
        return;
    unsigned more = runs->items == NULL ? RUNS_FIRST : cap * 2;
    uint32_t *items = more > RUNS_MAX ? NULL : malloc(more * sizeof(*items));
    if (items == NULL) {
        drop_oldest(runs);
        return;
    }
    for (unsigned i = 0; i < runs->count; i++)
        items[i] = *item(runs, i);
    free(runs->items);
    runs->items = items;
    runs->cap = more;
    runs->head = 0;
}

void runs_add(struct runs *runs, unsigned stream, size_t len)
{
    if (len == 0)
        return;
    uint32_t *last = runs->count == 0 ? NULL : item(runs, runs->count - 1);
    if (last != NULL && stream_of(*last) == stream && len_of(*last) + len <= RUN_LEN_MAX) {
        *last += (uint32_t)len << 1;
        return;
    }
    make_room(runs);
    *item(runs, runs->count++) = (uint32_t)len << 1 | stream;
}

void runs_seek(const struct runs *runs, const uint64_t totals[2], uint64_t offset,
               struct run_cursor *ret_cursor)
{
    struct run_cursor at = {
        .index = runs->count,
        .offset = totals[0] + totals[1],
        .stream = {totals[0], totals[1]},
    };
    while (at.offset > offset && at.index > 0) {
        uint32_t run = *item(runs, --at.index);
        at.offset -= len_of(run);
        at.stream[stream_of(run)] -= len_of(run);
    }
    if (at.offset < offset && at.index < runs->count)
        runs_pass(runs, &at, (size_t)(offset - at.offset));
    *ret_cursor = at;
}

size_t runs_next(const struct runs *runs, const struct run_cursor *cursor, unsigned *ret_stream)
{
    if (cursor->index >= runs->count)
        return 0;
    uint32_t run = *item(runs, cursor->index);
    *ret_stream = stream_of(run);
    return len_of(run) - cursor->into;
}

void runs_pass(const struct runs *runs, struct run_cursor *cursor, size_t len)
{
    uint32_t run = *item(runs, cursor->index);
    cursor->offset += len;
    cursor->stream[stream_of(run)] += len;
    cursor->into += (uint32_t)len;
    if (cursor->into == len_of(run)) {
        cursor->into = 0;
        cursor->index++;
    }
}
