/* SPDX-License-Identifier: Apache-2.0 */

/* Names, followed output, input, starting again, ports: against an agent without cgroups. */

#include <arpa/inet.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/cleanup.h"
#include "base/limits.h"
#include "fixture.h"

/* --- helpers --- */

static void start(struct client *c, const struct agent_exec *exec, struct agent_process *ret)
{
    client_send(c, &agent_exec_schema, 5, exec);
    client_expect(c, &agent_process_schema, 5, ret);
}

/* What a follower gets until its end: text of both streams, and what is missing. */
struct followed {
    struct buf streams[2];
    struct buf both;
    uint64_t gaps;
    struct agent_process end;
};

static void followed_release(struct followed *f)
{
    buf_release(&f->streams[0]);
    buf_release(&f->streams[1]);
    buf_release(&f->both);
}

static void read_to_end(struct client *c, struct followed *f)
{
    *f = (struct followed){
        .streams = {BUF_INIT(64 << 20), BUF_INIT(64 << 20)},
        .both = BUF_INIT(64 << 20),
    };
    for (;;) {
        struct slice payload;
        struct frame_header header = client_next(c, &payload);
        struct agent_gap gap;
        if (header.type == AGENT_STDOUT || header.type == AGENT_STDERR) {
            buf_add(&f->streams[header.type - AGENT_STDOUT], payload.data, payload.len);
            buf_add(&f->both, payload.data, payload.len);
        } else if (header.type == AGENT_GAP) {
            assert_int_equal(wire_decode(&agent_gap_schema, payload, &gap, NULL), 0);
            f->gaps += gap.bytes;
        } else {
            assert_int_equal(header.type, AGENT_PROCESS);
            assert_int_equal(wire_decode(&agent_process_schema, payload, &f->end, NULL), 0);
            return;
        }
    }
}

static void follow(const struct fixture *f, const struct agent_follow *request,
                   struct followed *ret)
{
    struct client c = client_open(f);
    struct agent_process now;
    client_send(&c, &agent_follow_schema, 9, request);
    client_expect(&c, &agent_process_schema, 9, &now);
    read_to_end(&c, ret);
    client_close(&c);
}

static void wait_for_file(const char *path)
{
    for (int i = 0; access(path, F_OK) != 0; i++) {
        assert_true(i < 3000);
        usleep(10 * 1000);
    }
}

static void touch(const char *path)
{
    FILE *file = fopen(path, "we");
    assert_non_null(file);
    fclose(file);
}

/* --- names --- */

static void test_names(void **state)
{
    const struct fixture *f = *state;
    struct client c = client_open(f);
    struct agent_process one, two;
    struct agent_exec exec = {.command = "sleep 100", .cwd = "/", .name = "web"};
    start(&c, &exec, &one);
    assert_string_equal(one.name, "web");
    uint64_t pid = one.pid;
    client_send(&c, &agent_exec_schema, 6, &exec);
    client_expect_error(&c, 6, ERROR_ALREADY_EXISTS, NULL);

    client_send(&c, &agent_get_schema, 7, &(struct agent_ref){.name = "web"});
    client_expect(&c, &agent_process_schema, 7, &two);
    assert_int_equal(two.pid, pid);
    client_send(&c, &agent_get_schema, 8, &(struct agent_ref){.name = "nobody"});
    client_expect_error(&c, 8, ERROR_PROCESS_NOT_FOUND, NULL);
    client_send(&c, &agent_stop_schema, 9, &(struct agent_stop){.name = "web"});
    client_expect(&c, &agent_process_schema, 9, &two);
    assert_int_equal(two.state, PROCESS_KILLED);

    /* The name is free again, and means the newest. */
    exec.command = "true";
    exec.flags = EXEC_WAIT;
    start(&c, &exec, &two);
    uint64_t second = two.pid;
    client_send(&c, &agent_get_schema, 7, &(struct agent_ref){.name = "web"});
    client_expect(&c, &agent_process_schema, 7, &two);
    assert_int_equal(two.pid, second);
    client_close(&c);
}

static void test_made_up_names(void **state)
{
    const struct fixture *f = *state;
    struct client c = client_open(f);
    char names[2][32];
    for (int i = 0; i < 2; i++) {
        struct agent_process p;
        client_run(&c, f, "true", &p);
        assert_int_equal(strlen(p.name), 13);
        assert_memory_equal(p.name, "proc-", 5);
        assert_int_equal(strspn(p.name + 5, "abcdefghijklmnopqrstuvwxyz0123456789"), 8);
        snprintf(names[i], sizeof(names[i]), "%s", p.name);
    }
    assert_string_not_equal(names[0], names[1]);
    client_close(&c);
}

/* --- following --- */

static void test_exec_follow(void **state)
{
    const struct fixture *f = *state;
    struct client c = client_open(f);
    struct agent_process p;
    struct followed got;
    char command[512];
    /* The order is certain: the second line is written when the first was seen. */
    snprintf(command, sizeof(command),
             "echo one; until [ -e %s/go ]; do sleep 0.01; done; echo two >&2; exit 3", f->dir);
    start(&c, &(struct agent_exec){.command = command, .cwd = "/", .flags = EXEC_FOLLOW}, &p);
    assert_int_equal(p.state, PROCESS_RUNNING);
    struct slice payload;
    struct frame_header header = client_next(&c, &payload);
    assert_int_equal(header.type, AGENT_STDOUT);
    assert_int_equal(header.id, 5);
    assert_memory_equal(payload.data, "one\n", 4);
    touch(fixture_path(f, "go"));
    read_to_end(&c, &got);
    assert_string_equal(got.streams[1].data, "two\n");
    assert_int_equal(got.end.exit_code, 3);
    assert_int_equal(got.gaps, 0);
    followed_release(&got);

    /* … and is kept. */
    struct agent_log log;
    client_send(&c, &agent_log_read_schema, 8,
                &(struct agent_log_read){got.end.pid, LOG_BOTH, 2, 100, NULL});
    client_expect(&c, &agent_log_schema, 8, &log);
    assert_int_equal(log.offset, 2);
    assert_int_equal(log.total, 8);
    assert_memory_equal(log.data.data, "e\ntwo\n", 6);
    client_close(&c);
}

static void test_exec_follow_failure(void **state)
{
    const struct fixture *f = *state;
    struct client c = client_open(f);
    client_send(&c, &agent_exec_schema, 5,
                &(struct agent_exec){.command = "true", .cwd = "/none", .flags = EXEC_FOLLOW});
    client_expect_error(&c, 5, ERROR_FILE_NOT_FOUND, NULL);
    client_close(&c);
    struct client d = client_open(f);
    struct agent_process p;
    client_run(&d, f, "true", &p);
    client_close(&d);
}

/* Nothing is lost to a reader that holds, however slow it is. */
static void test_hold(void **state)
{
    enum { BYTES = 8 << 20 };
    const struct fixture *f = *state;
    struct client c = client_open(f), other = client_open(f);
    struct agent_process p;
    struct followed got;
    char command[128];
    snprintf(command, sizeof(command), "head -c %d /dev/zero; echo end >&2", BYTES);
    start(&c, &(struct agent_exec){.command = command, .cwd = "/", .flags = EXEC_FOLLOW}, &p);
    uint64_t pid = p.pid, seen = 0;
    /* It stands still once everything in between is full. */
    for (int same = 0; same < 20; usleep(10 * 1000)) {
        client_send(&other, &agent_get_schema, 6, &(struct agent_ref){.pid = pid});
        client_expect(&other, &agent_process_schema, 6, &p);
        assert_int_equal(p.state, PROCESS_RUNNING);
        same = p.stdout_total == seen ? same + 1 : 0;
        seen = p.stdout_total;
    }
    assert_true(seen < BYTES / 2);
    read_to_end(&c, &got);
    assert_int_equal(got.streams[0].len, BYTES);
    assert_string_equal(got.streams[1].data, "end\n");
    assert_int_equal(got.gaps, 0);
    followed_release(&got);
    client_close(&c);
    client_close(&other);
}

/* A reader that holds and goes away lets the process go on. */
static void test_hold_released(void **state)
{
    const struct fixture *f = *state;
    struct client c = client_open(f), other = client_open(f);
    struct agent_process p;
    start(&c,
          &(struct agent_exec){
              .command = "head -c 4000000 /dev/zero", .cwd = "/", .flags = EXEC_FOLLOW},
          &p);
    uint64_t pid = p.pid;
    client_close(&c);
    p = client_wait(&other, pid);
    assert_int_equal(p.exit_code, 0);
    assert_int_equal(p.stdout_total, 4000000);
    client_close(&other);
}

/* One that does not hold misses what is dropped, and is told. */
static void test_gap(void **state)
{
    enum { BYTES = 3 << 20 };
    const struct fixture *f = *state;
    struct client c = client_open(f);
    struct agent_process p;
    struct followed got;
    char command[64];
    snprintf(command, sizeof(command), "head -c %d /dev/zero", BYTES);
    client_run(&c, f, command, &p);
    follow(f, &(struct agent_follow){.pid = p.pid}, &got);
    assert_true(got.gaps >= BYTES - PROCESS_LOG_MAX);
    assert_int_equal(got.gaps + got.streams[0].len, BYTES);
    followed_release(&got);
    follow(f, &(struct agent_follow){.pid = p.pid, .offset = BYTES - 10}, &got);
    assert_int_equal(got.streams[0].len, 10);
    assert_int_equal(got.gaps, 0);
    followed_release(&got);
    client_close(&c);
}

static void test_follow_later(void **state)
{
    const struct fixture *f = *state;
    struct client c = client_open(f);
    struct agent_process p;
    struct followed got;
    char command[256];
    snprintf(command, sizeof(command),
             "echo early; touch %s/up; until [ -e %s/end ]; do sleep 0.01; done; echo late", f->dir,
             f->dir);
    uint64_t pid = client_start(&c, f, command);
    wait_for_file(fixture_path(f, "up"));
    follow(f, &(struct agent_follow){.pid = pid, .flags = FOLLOW_ONCE}, &got);
    assert_string_equal(got.both.data, "early\n");
    assert_int_equal(got.end.state, PROCESS_RUNNING);
    followed_release(&got);

    struct client d = client_open(f);
    client_send(&d, &agent_follow_schema, 9, &(struct agent_follow){.pid = pid, .offset = 3});
    client_expect(&d, &agent_process_schema, 9, &p);
    client_send(&d, &agent_follow_schema, 10, &(struct agent_follow){.pid = pid});
    touch(fixture_path(f, "end"));
    struct slice payload;
    struct frame_header header;
    _cleanup_buf_ struct buf text = BUF_INIT(1000);
    bool refused = false;
    while ((header = client_next(&d, &payload)).type != AGENT_PROCESS) {
        if (header.type == AGENT_STDOUT)
            buf_add(&text, payload.data, payload.len);
        refused = refused || (header.type == WIRE_ERROR && header.id == 10);
    }
    assert_string_equal(text.data, "ly\nlate\n");
    assert_true(refused);
    client_close(&d);
    client_close(&c);
}

/* Both streams by turns, line by line, as far as their order is remembered. */
static void test_many_runs(void **state)
{
    const struct fixture *f = *state;
    struct client c = client_open(f);
    struct agent_process p;
    struct followed got;
    client_send(&c, &agent_exec_schema, 5,
                &(struct agent_exec){.command = "i=0; while [ $i -lt 20000 ]; do echo $i; echo $i "
                                                ">&2; i=$((i+1)); done",
                                     .cwd = "/",
                                     .flags = EXEC_WAIT});
    client_expect(&c, &agent_process_schema, 5, &p);
    follow(f, &(struct agent_follow){.pid = p.pid}, &got);
    assert_int_equal(got.gaps + got.both.len, p.stdout_total + p.stderr_total);
    followed_release(&got);
    client_close(&c);
}

/* --- input --- */

static void test_input(void **state)
{
    enum { BYTES = 8 << 20 };
    const struct fixture *f = *state;
    struct client c = client_open(f), out = client_open(f);
    struct agent_process p;
    struct followed got;
    struct agent_exec exec = {.command = "cat",
                              .cwd = "/",
                              .name = "cat",
                              .flags = EXEC_FOLLOW | EXEC_STDIN,
                              .stdin_data = {"first\n", 6}};
    start(&out, &exec, &p);
    assert_true(p.flags & EXEC_STDIN);
    char *data = malloc(PROCESS_INPUT_CHUNK);
    assert_non_null(data);
    memset(data, 'x', PROCESS_INPUT_CHUNK);
    size_t sent = 0;
    /* It is not read, so the input has to stop somewhere, too: the last piece is not answered. */
    for (uint32_t id = 1; sent < BYTES; id++, sent += PROCESS_INPUT_CHUNK)
        client_send(&c, &agent_stdin_schema, id,
                    &(struct agent_stdin){.name = "cat", .data = {data, PROCESS_INPUT_CHUNK}});
    client_send(&c, &agent_hello_schema, 1000, NULL);
    unsigned taken = 0, refused = 0;
    struct slice payload;
    for (;;) {
        struct frame_header header = client_next(&c, &payload);
        if (header.type == AGENT_ABOUT)
            break;
        taken += header.type == WIRE_OK;
        refused += header.type == WIRE_ERROR; /* too many wait */
    }
    assert_true(refused > 0);
    unsigned waiting = BYTES / PROCESS_INPUT_CHUNK - taken - refused;
    assert_true(waiting <= PROCESS_INPUTS_MAX); /* cat may have been slow to fill what it can */
    client_send(&c, &agent_stdin_end_schema, 2000, &(struct agent_ref){.name = "cat"});
    read_to_end(&out, &got);
    assert_int_equal(got.streams[0].len, 6 + (taken + waiting) * PROCESS_INPUT_CHUNK);
    assert_memory_equal(got.streams[0].data, "first\nxxx", 9);
    assert_false(got.end.flags & EXEC_STDIN);
    followed_release(&got);
    client_send(&c, &agent_stdin_schema, 3000, &(struct agent_stdin){.name = "cat"});
    unsigned closed = 0;
    for (;;) {
        struct frame_header header = client_next(&c, &payload);
        closed += header.type == WIRE_ERROR;
        if (header.id == 3000)
            break;
    }
    assert_int_equal(closed, 1);
    free(data);
    client_close(&c);
    client_close(&out);
}

static void test_input_refused(void **state)
{
    const struct fixture *f = *state;
    struct client c = client_open(f);
    struct agent_process p;
    uint64_t pid = client_start(&c, f, "sleep 100");
    client_send(&c, &agent_stdin_schema, 1, &(struct agent_stdin){.pid = pid, .data = {"x", 1}});
    client_expect_error(&c, 1, ERROR_NO_STDIN, NULL);
    client_send(&c, &agent_stdin_end_schema, 2, &(struct agent_ref){.pid = pid});
    client_expect_error(&c, 2, ERROR_NO_STDIN, NULL);

    /* Given all of it at the start, it ends by itself. */
    start(&c,
          &(struct agent_exec){.command = "cat",
                               .cwd = "/",
                               .flags = EXEC_WAIT | EXEC_STDIN | EXEC_STDIN_ONCE,
                               .stdin_data = {"all", 3}},
          &p);
    assert_int_equal(p.stdout_data.len, 3);
    client_send(&c, &agent_stdin_schema, 3, &(struct agent_stdin){.pid = p.pid, .data = {"x", 1}});
    client_expect_error(&c, 3, ERROR_STDIN_CLOSED, NULL);
    client_close(&c);
}

/* --- waiting that is given up --- */

static void test_cancel(void **state)
{
    const struct fixture *f = *state;
    struct client c = client_open(f);
    struct agent_process p;
    uint64_t pid = client_start(&c, f, "sleep 100");
    client_send(&c, &agent_wait_schema, 50, &(struct agent_ref){.pid = pid});
    client_send(&c, &agent_wait_schema, 51, &(struct agent_ref){.pid = pid});
    client_send(&c, &agent_cancel_schema, 50, NULL);
    client_send(&c, &agent_cancel_schema, 4711, NULL);
    client_send(&c, &agent_stop_schema, 52, &(struct agent_stop){.pid = pid});
    client_expect(&c, &agent_process_schema, 51, &p);
    client_expect(&c, &agent_process_schema, 52, &p);
    client_close(&c);
}

/* --- starting again --- */

static void test_restart(void **state)
{
    const struct fixture *f = *state;
    struct client c = client_open(f);
    struct agent_process p;
    char command[256];
    snprintf(command, sizeof(command),
             "echo try; echo x >> %s/tries; [ $(wc -l < %s/tries) -ge 3 ]", f->dir, f->dir);
    struct agent_exec exec = {.command = command,
                              .cwd = "/",
                              .flags = EXEC_WAIT | EXEC_RESTART,
                              .max_restarts = RESTARTS_UNLIMITED};
    start(&c, &exec, &p);
    assert_int_equal(p.exit_code, 0);
    assert_int_equal(p.restarts, 2);
    assert_int_equal(p.stdout_data.len, 12);
    client_send(&c, &agent_get_schema, 7, &(struct agent_ref){.pid = p.pid});
    client_expect(&c, &agent_process_schema, 7, &p);

    exec.command = "echo no >&2; exit 7";
    exec.max_restarts = 1;
    start(&c, &exec, &p);
    assert_int_equal(p.exit_code, 7);
    assert_int_equal(p.restarts, 1);
    assert_int_equal(p.stderr_data.len, 6);

    exec.max_restarts = 0;
    start(&c, &exec, &p);
    assert_int_equal(p.restarts, 0);
    client_close(&c);
}

/* It can be stopped between two starts, and nothing of it comes back. */
static void test_stop_between(void **state)
{
    const struct fixture *f = *state;
    struct client c = client_open(f);
    struct agent_process p;
    struct agent_exec exec = {.command = "exit 1",
                              .cwd = "/",
                              .name = "again",
                              .flags = EXEC_RESTART,
                              .max_restarts = RESTARTS_UNLIMITED};
    for (uint64_t grace = 0; grace < 20000; grace += 10000) {
        start(&c, &exec, &p);
        uint64_t pid = p.pid;
        do {
            client_send(&c, &agent_get_schema, 7, &(struct agent_ref){.name = "again"});
            client_expect(&c, &agent_process_schema, 7, &p);
            assert_int_equal(p.state, PROCESS_RUNNING);
            assert_int_equal(p.pid, pid);
        } while (p.restarts < 1);
        client_send(&c, &agent_stop_schema, 8, &(struct agent_stop){pid, grace, NULL});
        client_expect(&c, &agent_process_schema, 8, &p);
        assert_int_equal(p.state, grace == 0 ? PROCESS_KILLED : PROCESS_STOPPED);
        uint64_t restarts = p.restarts;
        usleep(300 * 1000);
        client_send(&c, &agent_get_schema, 7, &(struct agent_ref){.pid = pid});
        client_expect(&c, &agent_process_schema, 7, &p);
        assert_int_equal(p.restarts, restarts);
    }
    client_close(&c);
}

/* --- ports --- */

static unsigned ask_ports(struct client *c, uint64_t pid, struct agent_port *ports, unsigned most)
{
    unsigned count = 0;
    client_send(c, &agent_ports_schema, 60, &(struct agent_ref){.pid = pid});
    for (;;) {
        struct slice payload;
        struct frame_header header = client_next(c, &payload);
        if (header.type == WIRE_OK)
            return count;
        assert_int_equal(header.type, AGENT_PORT);
        assert_true(count < most);
        assert_int_equal(wire_decode(&agent_port_schema, payload, &ports[count++], NULL), 0);
    }
}

static void test_ports(void **state)
{
    const struct fixture *f = *state;
    struct client c = client_open(f);
    struct agent_port ports[8];
    char command[512];
    /* The child of a shell has them, not the leader. */
    snprintf(command, sizeof(command),
             "python3 -c 'import socket,time\n"
             "t=socket.socket(); t.bind((\"127.0.0.1\",0)); t.listen()\n"
             "u=socket.socket(socket.AF_INET6,socket.SOCK_DGRAM); u.bind((\"::\",0))\n"
             "open(\"%s/ports.new\",\"w\").write(f\"{t.getsockname()[1]} {u.getsockname()[1]}\")\n"
             "import os; os.rename(\"%s/ports.new\",\"%s/ports\")\n"
             "time.sleep(100)'; true",
             f->dir, f->dir, f->dir);
    uint64_t pid = client_start(&c, f, command), idle = client_start(&c, f, "sleep 100");
    wait_for_file(fixture_path(f, "ports"));
    unsigned tcp, udp;
    FILE *file = fopen(fixture_path(f, "ports"), "re");
    assert_non_null(file);
    assert_int_equal(fscanf(file, "%u %u", &tcp, &udp), 2);
    fclose(file);
    assert_int_equal(ask_ports(&c, pid, ports, 8), 2);
    assert_int_equal(ports[0].protocol, PORT_TCP);
    assert_int_equal(ports[0].port, tcp);
    assert_int_equal(ports[0].address.len, 4);
    assert_int_equal(ports[1].protocol, PORT_UDP);
    assert_int_equal(ports[1].port, udp);
    assert_int_equal(ports[1].address.len, 16);
    assert_int_equal(ask_ports(&c, idle, ports, 8), 0);
    client_close(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_names, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_made_up_names, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_exec_follow, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_exec_follow_failure, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_hold, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_hold_released, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_gap, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_follow_later, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_many_runs, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_input, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_input_refused, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_cancel, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_restart, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_stop_between, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_ports, fixture_setup, fixture_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
