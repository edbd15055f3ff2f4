/* SPDX-License-Identifier: Apache-2.0 */

/* All output as one log: who wrote since, what, and when. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/cleanup.h"
#include "base/limits.h"
#include "fixture.h"

enum { CHANGES_MAX = 32 };

struct changes {
    struct agent_change items[CHANGES_MAX]; /* without their names */
    size_t count;
    uint64_t largest;
};

static struct changes ask(struct client *c, uint64_t after)
{
    struct changes changes = {.largest = after};
    const struct agent_changes request = {.after = after};
    client_send(c, &agent_changes_schema, 9, &request);
    for (;;) {
        struct slice payload;
        struct error err;
        struct frame_header header = client_next(c, &payload);
        assert_int_equal(header.id, 9);
        if (header.type == WIRE_OK)
            return changes;
        assert_int_equal(header.type, AGENT_CHANGE);
        assert_true(changes.count < CHANGES_MAX);
        struct agent_change *item = &changes.items[changes.count++];
        assert_int_equal(wire_decode(&agent_change_schema, payload, item, &err), 0);
        assert_non_null(item->name);
        assert_true(item->change > after);
        if (item->change > changes.largest)
            changes.largest = item->change;
    }
}

static void read_stream(struct client *c, uint64_t sequence, unsigned stream, uint64_t offset,
                        struct agent_timed *ret_timed)
{
    const struct agent_timed_read request = {
        .sequence = sequence, .stream = stream, .offset = offset, .max = 1000};
    client_send(c, &agent_timed_read_schema, 10, &request);
    client_expect(c, &agent_timed_schema, 10, ret_timed);
}

/* The end of a stream is a change too, and may come after the answer to a run. */
static void wait_for_ends(struct client *c, uint64_t pid)
{
    for (unsigned stream = LOG_STDOUT; stream <= LOG_STDERR; stream++) {
        const struct agent_log_read request = {.pid = pid, .stream = stream, .max = 1};
        struct agent_log log = {.open = 1};
        while (log.open) {
            client_send(c, &agent_log_read_schema, 8, &request);
            client_expect(c, &agent_log_schema, 8, &log);
        }
    }
}

static void test_changes(void **state)
{
    struct fixture *f = *state;
    struct client c = client_open(f);
    struct agent_process process;
    assert_int_equal(ask(&c, 0).count, 0);
    client_run(&c, f, "true", &process); /* writes nothing */
    wait_for_ends(&c, process.pid);
    assert_int_equal(ask(&c, 0).count, 0);
    client_run(&c, f, "echo one", &process);
    uint64_t first = process.pid;
    wait_for_ends(&c, first);
    struct changes changes = ask(&c, 0);
    assert_int_equal(changes.count, 1);
    assert_int_equal(changes.items[0].pid, first);
    assert_int_equal(changes.items[0].stdout_total, 4);
    assert_int_equal(changes.items[0].stderr_total, 0);
    uint64_t seen = changes.largest;
    assert_int_equal(ask(&c, seen).count, 0);
    client_run(&c, f, "echo to stderr >&2", &process);
    changes = ask(&c, seen);
    assert_int_equal(changes.count, 1); /* the other one has not written since */
    assert_int_equal(changes.items[0].pid, process.pid);
    assert_int_equal(changes.items[0].stderr_total, 10);
    assert_int_equal(ask(&c, 0).count, 2);
    client_close(&c);
}

static void test_times(void **state)
{
    struct fixture *f = *state;
    struct client c = client_open(f);
    struct agent_process process;
    client_run(&c, f, "echo one; sleep 0.1; echo two", &process);
    struct changes changes = ask(&c, 0);
    struct agent_timed timed;
    read_stream(&c, changes.items[0].sequence, LOG_STDOUT, 0, &timed);
    assert_int_equal(timed.data.len, 8);
    assert_memory_equal(timed.data.data, "one\ntwo\n", 8);
    assert_int_equal(timed.total, 8);
    assert_int_equal(timed.times.len % 16, 0);
    assert_true(timed.times.len >= 16);
    uint64_t mark[2], before = process.started_ms;
    for (size_t at = 0; at < timed.times.len; at += sizeof(mark)) {
        memcpy(mark, timed.times.data + at, sizeof(mark));
        assert_true(mark[0] < 8);
        assert_true(mark[1] + 1 >= before && mark[1] <= process.ended_ms + 1);
        before = mark[1];
    }
    read_stream(&c, changes.items[0].sequence, LOG_STDOUT, 4, &timed);
    assert_int_equal(timed.offset, 4);
    assert_memory_equal(timed.data.data, "two\n", 4);
    read_stream(&c, changes.items[0].sequence, LOG_STDERR, 0, &timed);
    assert_int_equal(timed.data.len, 0);
    assert_int_equal(timed.times.len, 0);
    client_close(&c);
}

static void test_bad_questions(void **state)
{
    struct fixture *f = *state;
    struct client c = client_open(f);
    struct agent_process process;
    client_run(&c, f, "echo one", &process);
    uint64_t sequence = ask(&c, 0).items[0].sequence;
    const struct {
        struct agent_timed_read request;
        enum error_code code;
    } rows[] = {
        {{.sequence = sequence, .stream = 0}, ERROR_INVALID_ARGUMENT},
        {{.sequence = sequence, .stream = 3}, ERROR_INVALID_ARGUMENT},
        {{.sequence = UINT64_MAX, .stream = 1}, ERROR_PROCESS_NOT_FOUND},
        {{.sequence = sequence + 100, .stream = 1}, ERROR_PROCESS_NOT_FOUND},
        {{.sequence = 0, .stream = 1}, ERROR_PROCESS_NOT_FOUND},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct error err;
        client_send(&c, &agent_timed_read_schema, 11, &rows[i].request);
        client_expect_error(&c, 11, rows[i].code, &err);
    }
    /* Past the end there is nothing, however much is asked for. */
    const struct agent_timed_read far = {
        .sequence = sequence, .stream = LOG_STDOUT, .offset = UINT64_MAX, .max = UINT64_MAX};
    struct agent_timed timed;
    client_send(&c, &agent_timed_read_schema, 12, &far);
    client_expect(&c, &agent_timed_schema, 12, &timed);
    assert_int_equal(timed.data.len, 0);
    assert_int_equal(timed.offset, 4);
    client_close(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_changes, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_times, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_bad_questions, fixture_setup, fixture_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
