/* SPDX-License-Identifier: Apache-2.0 */

/* A ring of pointers: an idle sandbox has none, a busy one as many as fit. */

#include "egress/log_ring.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/limits.h"

struct log_item {
    const struct log_ring *ring;
    struct log_item *before, *after; /* in the order of changes */
    uint64_t change;                 /* 0: not in it */
    uint64_t sequence, first_ms, last_ms, count, in, out;
    struct log_live *live; /* NULL: not open */
    enum egress_log_kind kind;
    enum net_verdict verdict;
    uint16_t port, type;
    uint8_t protocol;
    char address[NET_ADDRESS_TEXT];
    char detail[LOG_RING_TEXT_MAX + 1];
    char name[NET_NAME_MAX + 1];
};

static struct log_item *item_at(const struct log_ring *ring, size_t i)
{
    return ring->items[(ring->first + i) % EGRESS_LOG_MAX];
}

/* ---- the order of changes ---- */

static void leave_changes(struct log_item *item)
{
    struct log_changes *changes = item->ring->changes;
    if (item->change == 0)
        return;
    *(item->before != NULL ? &item->before->after : &changes->oldest) = item->after;
    *(item->after != NULL ? &item->after->before : &changes->newest) = item->before;
    item->before = item->after = NULL;
    item->change = 0;
}

static void note_change(struct log_item *item)
{
    struct log_changes *changes = item->ring->changes;
    if (changes == NULL)
        return;
    leave_changes(item);
    item->change = ++changes->last;
    item->before = changes->newest;
    *(item->before != NULL ? &item->before->after : &changes->oldest) = item;
    changes->newest = item;
    co_cond_wake_all(&changes->more);
}

/* ---- entries ---- */

static void item_free(struct log_item *item)
{
    leave_changes(item);
    if (item->live != NULL)
        item->live->item = NULL;
    free(item);
}

void log_ring_init(struct log_ring *ring, struct log_changes *changes, const char *owner,
                   uint64_t after)
{
    *ring = (struct log_ring){.changes = changes, .owner = owner, .sequence = after};
}

void log_ring_release(struct log_ring *ring)
{
    for (size_t i = 0; i < ring->count; i++)
        item_free(item_at(ring, i));
    free(ring->items);
    *ring = (struct log_ring){0};
}

/* Cut at its size, and without what a terminal would take for a command. */
static void set_text(char *to, size_t size, const char *from)
{
    size_t len = 0;
    for (; from != NULL && from[len] != '\0' && len + 1 < size; len++)
        to[len] = (unsigned char)from[len] < ' ' || from[len] == 0x7f ? '?' : from[len];
    to[len] = '\0';
}

static struct log_item *item_new(const struct log_ring *ring, const struct log_event *event)
{
    struct log_item *item = calloc(1, sizeof(*item));
    if (item == NULL)
        abort();
    item->ring = ring;
    item->kind = event->kind;
    item->verdict = event->verdict;
    item->port = event->port;
    item->type = event->type;
    item->protocol = event->protocol;
    item->count = 1;
    set_text(item->name, sizeof(item->name), event->name);
    set_text(item->detail, sizeof(item->detail), event->detail);
    if (event->address != NULL)
        net_address_text(event->address, item->address);
    return item;
}

static struct log_item *append(struct log_ring *ring, const struct log_event *event,
                               uint64_t now_ms)
{
    if (ring->items == NULL) {
        ring->items = calloc(EGRESS_LOG_MAX, sizeof(struct log_item *));
        if (ring->items == NULL)
            abort();
    }
    if (ring->count == EGRESS_LOG_MAX) {
        item_free(item_at(ring, 0));
        ring->first = (ring->first + 1) % EGRESS_LOG_MAX;
        ring->count--;
    }
    struct log_item *item = item_new(ring, event);
    item->sequence = ++ring->sequence;
    item->first_ms = item->last_ms = now_ms;
    ring->items[(ring->first + ring->count++) % EGRESS_LOG_MAX] = item;
    note_change(item);
    return item;
}

static bool is_same(const struct log_item *a, const struct log_item *b)
{
    return a->live == NULL && a->kind == b->kind && a->verdict == b->verdict &&
           a->port == b->port && a->type == b->type && a->protocol == b->protocol &&
           strcmp(a->name, b->name) == 0 && strcmp(a->address, b->address) == 0 &&
           strcmp(a->detail, b->detail) == 0;
}

void log_ring_add(struct log_ring *ring, const struct log_event *event, uint64_t now_ms)
{
    _cleanup_free_ struct log_item *item = item_new(ring, event);
    for (size_t i = 0; i < ring->count && i < LOG_RING_LOOK_BACK; i++) {
        struct log_item *before = item_at(ring, ring->count - 1 - i);
        if (before->last_ms + LOG_RING_SAME_MS < now_ms || !is_same(before, item))
            continue;
        before->last_ms = now_ms;
        before->count++;
        note_change(before);
        return;
    }
    append(ring, event, now_ms);
}

void log_ring_open(struct log_ring *ring, const struct log_event *event, struct log_live *live,
                   uint64_t now_ms)
{
    live->item = append(ring, event, now_ms);
    live->item->live = live;
}

void log_live_end(struct log_live *live, enum net_verdict verdict, uint64_t now_ms)
{
    struct log_item *item = live->item;
    if (item == NULL)
        return;
    item->in = live->moved.back;
    item->out = live->moved.there;
    item->last_ms = now_ms;
    item->verdict = verdict;
    item->live = NULL;
    live->item = NULL;
    note_change(item);
}

static const char *text_or_none(const char *text)
{
    return text[0] == '\0' ? NULL : text;
}

static void tell(const struct log_item *item, log_each *each, void *ctx)
{
    const struct log_live *live = item->live;
    const struct egress_log_entry entry = {
        .id = item->ring->owner,
        .change = item->change,
        .sequence = item->sequence,
        .first_ms = item->first_ms,
        .last_ms = item->last_ms,
        .kind = item->kind,
        .verdict = item->verdict,
        .name = text_or_none(item->name),
        .address = text_or_none(item->address),
        .port = item->port,
        .type = item->type,
        .protocol = item->protocol,
        .bytes_in = live != NULL ? live->moved.back : item->in,
        .bytes_out = live != NULL ? live->moved.there : item->out,
        .count = item->count,
        .open = live != NULL,
        .detail = text_or_none(item->detail),
    };
    each(ctx, &entry);
}

void log_ring_read(const struct log_ring *ring, uint64_t after, size_t max, log_each *each,
                   void *ctx)
{
    size_t from = 0;
    while (from < ring->count && item_at(ring, from)->sequence <= after)
        from++;
    if (max > 0 && ring->count - from > max)
        from = ring->count - max;
    for (; from < ring->count; from++)
        tell(item_at(ring, from), each, ctx);
}

bool log_changes_has(const struct log_changes *changes, uint64_t after)
{
    return changes->newest != NULL && changes->newest->change > after;
}

void log_changes_read(const struct log_changes *changes, uint64_t after, size_t max, log_each *each,
                      void *ctx)
{
    const struct log_item *item = changes->newest;
    if (!log_changes_has(changes, after))
        return;
    while (item->before != NULL && item->before->change > after)
        item = item->before;
    for (size_t i = 0; item != NULL && i < max; i++, item = item->after)
        tell(item, each, ctx);
}
