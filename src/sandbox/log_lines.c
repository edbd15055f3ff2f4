/* SPDX-License-Identifier: Apache-2.0 */

/* Gathering lines within bounds, and finding out when they were written. */

#include "sandbox/log_lines.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

enum { SLACK = 2 }; /* so many times too much is gathered before the oldest go */

/* What a line holds, roughly. */
static size_t line_cost(const struct log_line *line)
{
    return sizeof(*line) + line->entry.message.len + PROCESS_NAME_MAX;
}

static void line_release(const struct log_lines *lines, struct log_line *line)
{
    memory_give(lines->account, line_cost(line));
    free((char *)line->entry.message.data);
    free((char *)line->entry.process);
}

static int compare(const void *left, const void *right)
{
    const struct log_line *a = left, *b = right;
    if (a->entry.time_ms != b->entry.time_ms)
        return a->entry.time_ms < b->entry.time_ms ? -1 : 1;
    if (a->rank != b->rank)
        return a->rank < b->rank ? -1 : 1;
    return a->order < b->order ? -1 : 1;
}

/* Sorts them, and lets the oldest go until the rest is small enough. */
static void settle(struct log_lines *lines)
{
    size_t gone = 0;
    if (lines->count == 0)
        return;
    qsort(lines->items, lines->count, sizeof(*lines->items), compare);
    while (gone < lines->count &&
           (lines->count - gone > lines->max_count || lines->bytes > LOGS_BYTES_MAX)) {
        lines->bytes -= lines->items[gone].entry.message.len;
        line_release(lines, &lines->items[gone++]);
    }
    lines->count -= gone;
    lines->left_out += gone;
    memmove(lines->items, lines->items + gone, lines->count * sizeof(*lines->items));
}

static void *must(void *memory)
{
    if (memory == NULL)
        abort(); /* bounded by LOGS_BYTES_MAX */
    return memory;
}

static char *copy(const char *data, size_t len)
{
    char *text = must(malloc(len + 1));
    if (len > 0)
        memcpy(text, data, len);
    text[len] = '\0';
    return text;
}

void log_lines_add(struct log_lines *lines, const struct sandbox_log_entry *entry, unsigned rank)
{
    if (entry->time_ms < lines->since_ms)
        return;
    if (lines->count == lines->cap) {
        lines->cap = lines->cap == 0 ? 64 : lines->cap * 2;
        lines->items = must(realloc(lines->items, lines->cap * sizeof(*lines->items)));
    }
    struct log_line *line = &lines->items[lines->count++];
    *line = (struct log_line){.entry = *entry, .rank = rank, .order = lines->orders++};
    size_t len = entry->message.len < LOG_LINE_MAX ? entry->message.len : LOG_LINE_MAX;
    line->entry.message = (struct slice){copy(entry->message.data, len), len};
    if (entry->process != NULL)
        line->entry.process = copy(entry->process, strlen(entry->process));
    lines->bytes += len;
    memory_take(lines->account, line_cost(line));
    if (lines->count > SLACK * (lines->max_count + 64) || lines->bytes > SLACK * LOGS_BYTES_MAX)
        settle(lines);
}

void log_lines_release(struct log_lines *lines)
{
    for (size_t i = 0; i < lines->count; i++)
        line_release(lines, &lines->items[i]);
    free(lines->items);
    *lines = (struct log_lines){
        .max_count = lines->max_count, .since_ms = lines->since_ms, .account = lines->account};
}

size_t log_lines_take(struct log_lines *lines, struct arena *arena,
                      struct sandbox_log_entry **ret_entries)
{
    settle(lines);
    struct sandbox_log_entry *entries = arena_alloc(arena, (lines->count + 1) * sizeof(*entries));
    for (size_t i = 0; i < lines->count; i++) {
        entries[i] = lines->items[i].entry;
        entries[i].message.data = arena_dup(arena, entries[i].message.data, entries[i].message.len);
        entries[i].process = arena_strdup(arena, entries[i].process);
    }
    *ret_entries = entries;
    return lines->count;
}

/* --- lines of a stream --- */

struct mark {
    uint64_t offset, time_ms;
};

/* The time of the last mark at or before the offset, going on from *at. */
static int64_t time_at(const struct log_piece *piece, uint64_t offset, size_t *at)
{
    size_t count = piece->times.len / sizeof(struct mark);
    struct mark mark = {0, 0};
    while (*at < count) {
        struct mark next;
        memcpy(&next, piece->times.data + *at * sizeof(next), sizeof(next));
        if (next.offset > offset)
            break;
        mark = next;
        ++*at;
    }
    if (mark.time_ms == 0 && *at > 0)
        memcpy(&mark, piece->times.data + (*at - 1) * sizeof(mark), sizeof(mark));
    if (mark.time_ms == 0 || mark.time_ms > (uint64_t)piece->now_ms)
        return piece->now_ms;
    return (int64_t)mark.time_ms;
}

size_t log_lines_split(struct log_lines *lines, const struct sandbox_log_entry *like, unsigned rank,
                       const struct log_piece *piece, bool all)
{
    size_t used = 0, mark = 0;
    while (used < piece->data.len) {
        const char *begin = piece->data.data + used;
        size_t left = piece->data.len - used;
        const char *end = memchr(begin, '\n', left);
        if (end == NULL && !all && left <= LOG_LINE_MAX)
            break;
        size_t len = end == NULL ? left : (size_t)(end - begin);
        struct sandbox_log_entry entry = *like;
        entry.time_ms = time_at(piece, piece->offset + used, &mark);
        used += len + (end != NULL);
        if (len > 0 && begin[len - 1] == '\r')
            len--;
        entry.message = (struct slice){begin, len};
        log_lines_add(lines, &entry, rank);
    }
    return used;
}
