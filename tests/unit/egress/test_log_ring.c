/* SPDX-License-Identifier: Apache-2.0 */

/* The log of a sandbox: what is kept, what counts up, what an open connection shows. */

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "base/limits.h"
#include "egress/log_ring.h"

struct seen {
    size_t count;
    uint64_t first, last;
    struct egress_log_entry entry; /* the last one; its texts are gone */
    char name[64];
};

static void see(void *ctx, const struct egress_log_entry *entry)
{
    struct seen *seen = ctx;
    if (seen->count++ == 0)
        seen->first = entry->sequence;
    seen->last = entry->sequence;
    seen->entry = *entry;
    snprintf(seen->name, sizeof(seen->name), "%s", entry->name != NULL ? entry->name : "-");
}

static struct seen read_all(const struct log_ring *ring, uint64_t after, size_t max)
{
    struct seen seen = {0};
    log_ring_read(ring, after, max, see, &seen);
    return seen;
}

static void test_counts_up(void **state)
{
    struct log_ring ring = {0};
    const struct log_event refused = {
        .kind = EGRESS_TLS, .verdict = NET_REFUSED_UNLISTED, .name = "evil.example", .port = 443};
    for (int i = 0; i < 5; i++)
        log_ring_add(&ring, &refused, 1000 + (uint64_t)i);
    struct seen seen = read_all(&ring, 0, 0);
    assert_int_equal(seen.count, 1);
    assert_int_equal(seen.entry.count, 5);
    assert_int_equal(seen.entry.first_ms, 1000);
    assert_int_equal(seen.entry.last_ms, 1004);
    log_ring_add(&ring, &refused, 1005 + LOG_RING_SAME_MS);
    assert_int_equal(read_all(&ring, 0, 0).count, 2);
    log_ring_release(&ring);
}

static void test_oldest_go(void **state)
{
    struct log_ring ring = {0};
    char name[32];
    struct log_event event = {.kind = EGRESS_DNS, .verdict = NET_ALLOWED, .name = name};
    for (unsigned i = 1; i <= EGRESS_LOG_MAX + 10; i++) {
        snprintf(name, sizeof(name), "n%u.example", i);
        log_ring_add(&ring, &event, i);
    }
    struct seen seen = read_all(&ring, 0, 0);
    assert_int_equal(seen.count, EGRESS_LOG_MAX);
    assert_int_equal(seen.first, 11);
    assert_int_equal(seen.last, EGRESS_LOG_MAX + 10);
    seen = read_all(&ring, 0, 3);
    assert_int_equal(seen.count, 3);
    assert_int_equal(seen.first, EGRESS_LOG_MAX + 8);
    seen = read_all(&ring, EGRESS_LOG_MAX + 9, 0);
    assert_int_equal(seen.count, 1);
    assert_int_equal(read_all(&ring, EGRESS_LOG_MAX + 10, 0).count, 0);
    log_ring_release(&ring);
}

static void test_live(void **state)
{
    struct log_ring ring = {0};
    struct log_live live = {0};
    const struct log_event event = {
        .kind = EGRESS_HTTP, .verdict = NET_ALLOWED, .name = "good.example", .port = 80};
    log_ring_open(&ring, &event, &live, 10);
    live.moved = (struct net_relayed){.there = 7, .back = 9};
    struct seen seen = read_all(&ring, 0, 0);
    assert_int_equal(seen.entry.open, 1);
    assert_int_equal(seen.entry.bytes_out, 7);
    assert_int_equal(seen.entry.bytes_in, 9);
    log_live_end(&live, NET_REFUSED_CHANGED, 20);
    log_live_end(&live, NET_ALLOWED, 30); /* once is enough */
    seen = read_all(&ring, 0, 0);
    assert_int_equal(seen.entry.open, 0);
    assert_int_equal(seen.entry.bytes_in, 9);
    assert_int_equal(seen.entry.verdict, NET_REFUSED_CHANGED);
    assert_int_equal(seen.entry.last_ms, 20);
    log_ring_release(&ring);
}

/* A connection outlives its entry, or the whole log. */
static void test_live_without_entry(void **state)
{
    struct log_ring ring = {0};
    struct log_live live = {0};
    char name[32] = "good.example";
    struct log_event event = {.kind = EGRESS_HTTP, .verdict = NET_ALLOWED, .name = name};
    log_ring_open(&ring, &event, &live, 10);
    for (unsigned i = 0; i < EGRESS_LOG_MAX; i++) {
        snprintf(name, sizeof(name), "n%u.example", i);
        log_ring_add(&ring, &event, i);
    }
    assert_null(live.item);
    log_live_end(&live, NET_ALLOWED, 20);
    log_ring_open(&ring, &event, &live, 10);
    log_ring_release(&ring);
    assert_null(live.item);
    log_live_end(&live, NET_ALLOWED, 30);
}

static void test_texts(void **state)
{
    struct log_ring ring = {0};
    const struct log_event event = {
        .kind = EGRESS_HTTP, .verdict = NET_REFUSED_MALFORMED, .name = "a\x1b[31mb\r\n"};
    log_ring_add(&ring, &event, 1);
    assert_string_equal(read_all(&ring, 0, 0).name, "a?[31mb??");
    log_ring_release(&ring);
}

static struct seen read_changes(const struct log_changes *changes, uint64_t after, size_t max)
{
    struct seen seen = {0};
    log_changes_read(changes, after, max, see, &seen);
    return seen;
}

/* Who remembers the last change that he has is told all that came after it, of everybody, once. */
static void test_changes(void **state)
{
    struct log_changes changes = {0};
    struct log_ring one, two;
    struct log_live live = {0};
    const struct log_event a = {.kind = EGRESS_DNS, .verdict = NET_ALLOWED, .name = "a.example"},
                           b = {.kind = EGRESS_TLS, .verdict = NET_ALLOWED, .name = "b.example"};
    log_ring_init(&one, &changes, "one", 0);
    log_ring_init(&two, &changes, "two", 700);
    assert_int_equal(read_changes(&changes, 0, 10).count, 0);
    log_ring_add(&one, &a, 1);
    log_ring_open(&two, &b, &live, 2);
    struct seen seen = read_changes(&changes, 0, 10);
    assert_int_equal(seen.count, 2);
    assert_int_equal(seen.first, 1);
    assert_int_equal(seen.last, 701);
    assert_int_equal(read_changes(&changes, 0, 1).entry.change, 1);
    assert_int_equal(read_changes(&changes, changes.last, 10).count, 0);
    uint64_t had = changes.last;
    log_ring_add(&one, &a, 3); /* counts up */
    log_live_end(&live, NET_ALLOWED, 4);
    seen = read_changes(&changes, had, 10);
    assert_int_equal(seen.count, 2);
    assert_int_equal(seen.first, 1);
    assert_int_equal(seen.entry.open, 0);
    assert_true(log_changes_has(&changes, had));
    had = changes.last;
    assert_false(log_changes_has(&changes, had));
    log_ring_release(&two);
    assert_int_equal(read_changes(&changes, 0, 10).count, 1);
    assert_int_equal(read_changes(&changes, had, 10).count, 0);
    assert_true(log_changes_has(&changes, 0));
    log_ring_release(&one);
    assert_false(log_changes_has(&changes, 0)); /* though the last change has a higher number */
    assert_null(changes.oldest);
    assert_null(changes.newest);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_counts_up), cmocka_unit_test(test_oldest_go),
        cmocka_unit_test(test_live),      cmocka_unit_test(test_live_without_entry),
        cmocka_unit_test(test_texts),     cmocka_unit_test(test_changes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
