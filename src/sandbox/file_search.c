/* SPDX-License-Identifier: Apache-2.0 */

/* Searching: the walk is the agent's; here matches are collected within bounds and put in order. */

#include "sandbox/file_search.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/limits.h"
#include "sandbox/transfer.h"

enum { MATCH_BYTES_MAX = 32 << 20 };

static int by_path(const void *a, const void *b)
{
    const struct file_match *x = a, *y = b;
    int order = strcmp(x->path, y->path);
    if (order != 0)
        return order;
    return x->line < y->line ? -1 : x->line > y->line;
}

static int read_matches(struct file_transfer *t, const struct file_find *request,
                        struct arena *arena, struct file_matches *ret_matches, struct error *err)
{
    size_t count = 0, cap = 64, bytes = 0;
    struct file_match *items = arena_alloc(arena, cap * sizeof(*items));
    struct frame_header header;
    struct slice payload;
    struct file_found found;
    transfer_charge(t, arena);
    for (;;) {
        /* A long search is silent while it finds nothing. */
        if (transfer_next(t, 2 * FIND_TIME_MAX_MS, &header, &payload, err) < 0)
            return -1;
        if (header.type == FILE_FOUND)
            break;
        bytes += payload.len + sizeof(*items);
        if (header.type != FILE_MATCH || count == request->results_max || bytes > MATCH_BYTES_MAX)
            return transfer_unexpected(header.type, err);
        if (arena_check(arena, payload.len + (count == cap ? 2 * cap * sizeof(*items) : 0), err) <
            0)
            return -1;
        if (count == cap) {
            struct file_match *more = arena_alloc(arena, 2 * cap * sizeof(*more));
            memcpy(more, items, count * sizeof(*more));
            items = more;
            cap *= 2;
        }
        struct slice copy = {arena_dup(arena, payload.data, payload.len), payload.len};
        if (wire_decode(&file_match_schema, copy, &items[count++], err) < 0)
            return -1;
    }
    if (wire_decode(&file_found_schema, payload, &found, err) < 0)
        return -1;
    if (request->mode != FIND_FUZZY)
        qsort(items, count, sizeof(*items), by_path);
    *ret_matches = (struct file_matches){items, count, found.cut != 0};
    return 0;
}

int sandbox_file_find(struct sandboxes *s, const char *workspace, const char *name,
                      const struct file_find *request, struct arena *arena,
                      struct file_matches *ret_matches, struct error *err)
{
    _cleanup_transfer_ struct file_transfer *t = NULL;
    if (transfer_open(s, workspace, name, &t, err) < 0 ||
        transfer_send(t, &file_find_schema, request, err) < 0)
        return -1;
    return read_matches(t, request, arena, ret_matches, err);
}
