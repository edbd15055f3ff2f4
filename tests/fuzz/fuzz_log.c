/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Output of a sandbox as lines of a log: whatever bytes and marks its agent sends, every byte is in
 * exactly one line or is left for later, no line has a line end in it, and none is from the future.
 */

#include "sandbox/log_lines.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { NOW = 1700000000, PROLOGUE = 3 };

static void check(const struct sandbox_log_entry *entry)
{
    if (entry->time_ms < 0 || entry->time_ms > NOW || entry->message.len > LOG_LINE_MAX ||
        (entry->message.len > 0 && memchr(entry->message.data, '\n', entry->message.len) != NULL))
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < PROLOGUE)
        return 0;
    bool all = data[0] & 1;
    size_t times = data[1] * 16 < size - PROLOGUE ? data[1] * 16 : size - PROLOGUE;
    const char *rest = (const char *)data + PROLOGUE;
    const struct sandbox_log_entry like = {.pid = 1, .process = "fuzz", .stream = 1};
    const struct log_piece piece = {
        .data = {rest + times, size - PROLOGUE - times},
        .offset = data[2],
        .times = {rest, times},
        .now_ms = NOW,
    };
    struct log_lines lines = {.max_count = 16};
    size_t used = log_lines_split(&lines, &like, 0, &piece, all);
    if (used > piece.data.len || (all && used != piece.data.len) ||
        (!all && used > 0 && used < piece.data.len && piece.data.data[used - 1] != '\n'))
        abort();
    struct arena *arena = arena_new();
    struct sandbox_log_entry *entries;
    size_t count = log_lines_take(&lines, arena, &entries);
    if (count > lines.max_count)
        abort();
    for (size_t i = 0; i < count; i++) {
        check(&entries[i]);
        if (i > 0 && entries[i].time_ms < entries[i - 1].time_ms)
            abort();
    }
    log_lines_release(&lines);
    arena_free(arena);
    return 0;
}
