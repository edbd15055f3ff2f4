/* SPDX-License-Identifier: Apache-2.0 */

#include "auth/throttle.h"

#include "fixture.h"

static void fail_times(struct throttle *t, const char *peer, int times, int64_t now)
{
    for (int i = 0; i < times; i++)
        throttle_failed(t, peer_address(peer), now);
}

static void test_bucket(void **state)
{
    struct throttle t = {NULL};
    struct peer_address a = peer_address("192.0.2.1:1");
    assert_int_equal(throttle_wait(&t, a, 0), 0);
    fail_times(&t, "192.0.2.1:2", THROTTLE_BURST - 1, 1000);
    assert_int_equal(throttle_wait(&t, a, 1000), 0); /* one is left */
    fail_times(&t, "192.0.2.1:3", 1, 1000);
    assert_int_equal(throttle_wait(&t, a, 1000), THROTTLE_REFILL_MS);
    assert_int_equal(throttle_wait(&t, a, 1000 + THROTTLE_REFILL_MS - 1), 1);
    assert_int_equal(throttle_wait(&t, a, 1000 + THROTTLE_REFILL_MS), 0);
    fail_times(&t, "192.0.2.1:4", 1,
               1000 + THROTTLE_REFILL_MS); /* one came back, and is gone again */
    assert_int_equal(throttle_wait(&t, a, 1000 + THROTTLE_REFILL_MS), THROTTLE_REFILL_MS);
    /* Going on costs nothing more: it is over after one refill whatever was tried meanwhile. */
    fail_times(&t, "192.0.2.1:5", 10000, 10000);
    assert_int_equal(throttle_wait(&t, a, 10000), THROTTLE_REFILL_MS);
    assert_int_equal(throttle_wait(&t, peer_address("192.0.2.2:1"), 10000), 0);
    throttle_release(&t);
}

static void test_addresses(void **state)
{
    static const struct {
        const char *a, *b;
        bool same;
    } rows[] = {
        {"192.0.2.1:1", "192.0.2.1:65535", true},
        {"192.0.2.1:1", "192.0.2.2:1", false},
        {"[2001:db8::1]:1", "[2001:db8::ffff:1]:2", true}, /* one /64 */
        {"[2001:db8::1]:1", "[2001:db8:0:1::1]:1", false},
        {"[::1]:1", "[::1]:2", true},
        {"[::1]:1", "127.0.0.1:1", false},
        {"[::ffff:192.0.2.1]:1", "192.0.2.1:1", true},
        {"[::ffff:192.0.2.1]:1", "[::ffff:192.0.2.2]:1", false},
        {"unix", "nonsense", true},
        {"[::1]:1", "unix", false},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        assert_int_equal(peer_address_eq(peer_address(rows[i].a), peer_address(rows[i].b)),
                         rows[i].same);
}

static void test_not_counted(void **state)
{
    struct throttle t = {NULL};
    static const char *const peers[] = {"unix", "", ":", "[", "]:1", "x:1", "[x]:1", "1.2.3:1"};
    for (size_t i = 0; i < ARRAY_LEN(peers); i++) {
        fail_times(&t, peers[i], 100, 1);
        assert_int_equal(throttle_wait(&t, peer_address(peers[i]), 1), 0);
    }
    throttle_failed(&t, peer_address(NULL), 1);
    assert_null(t.peers);
}

static void test_table_is_bounded(void **state)
{
    struct throttle t = {NULL};
    char peer[32];
    fail_times(&t, "203.0.113.1:1", 100, 1);
    for (int i = 0; i < THROTTLE_PEERS_MAX - 1; i++) {
        snprintf(peer, sizeof(peer), "10.0.%d.%d:1", i / 250, i % 250);
        fail_times(&t, peer, 1, 1);
    }
    assert_true(throttle_wait(&t, peer_address("203.0.113.1:1"), 1) > 0);
    fail_times(&t, "203.0.113.1:1", 1, 1); /* the youngest failure again */
    fail_times(&t, "198.51.100.1:1", 1, 1);
    assert_int_equal(HASH_COUNT(t.peers), THROTTLE_PEERS_MAX);
    assert_true(throttle_wait(&t, peer_address("203.0.113.1:1"), 1) > 0);
    for (int i = 0; i < THROTTLE_PEERS_MAX; i++) {
        snprintf(peer, sizeof(peer), "10.1.%d.%d:1", i / 250, i % 250);
        fail_times(&t, peer, 1, 1);
    }
    assert_int_equal(HASH_COUNT(t.peers), THROTTLE_PEERS_MAX);
    throttle_release(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bucket),
        cmocka_unit_test(test_addresses),
        cmocka_unit_test(test_not_counted),
        cmocka_unit_test(test_table_is_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
