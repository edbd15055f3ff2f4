/* SPDX-License-Identifier: Apache-2.0 */

/* Limits of single commands, as far as they need no cgroups; and what happens where they do. */

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/cleanup.h"
#include "fixture.h"

static struct agent_process run(struct client *c, const char *command, struct command_limits limits)
{
    struct agent_process p;
    struct agent_exec exec = {.command = command, .cwd = "/", .flags = EXEC_WAIT, .limits = limits};
    client_send(c, &agent_exec_schema, 1, &exec);
    client_expect(c, &agent_process_schema, 1, &p);
    return p;
}

static void test_output(void **state)
{
    static const struct {
        const char *command;
        uint64_t max;
        enum process_state state;
        uint64_t out, errors;
    } rows[] = {
        {"printf 12345", 6, PROCESS_EXITED, 5, 0},
        {"printf 12345", 5, PROCESS_EXITED, 5, 0},
        {"printf 12345", 4, PROCESS_OUTPUT_LIMIT, 4, 0},
        {"printf 12345 >&2", 1, PROCESS_OUTPUT_LIMIT, 0, 1},
        {"printf 12345 >&2; exit 7", 4, PROCESS_OUTPUT_LIMIT, 0, 4},
        {"yes", 100 * 1000, PROCESS_OUTPUT_LIMIT, 100 * 1000, 0},
        {"yes >&2", 3 << 20, PROCESS_OUTPUT_LIMIT, 0, 3 << 20},
        {"yes & yes >&2 & wait", 1 << 20, PROCESS_OUTPUT_LIMIT, UINT64_MAX, UINT64_MAX},
    };
    struct client c = client_open(*state);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct agent_process p =
            run(&c, rows[i].command, (struct command_limits){.output_bytes = rows[i].max});
        assert_int_equal(p.state, rows[i].state);
        if (rows[i].out == UINT64_MAX) {
            assert_int_equal(p.stdout_total + p.stderr_total, rows[i].max);
            continue;
        }
        assert_int_equal(p.stdout_total, rows[i].out);
        assert_int_equal(p.stderr_total, rows[i].errors);
    }
    client_close(&c);
}

/* The leader has ended long before, and well; what it left is ended with its time. */
static void test_time(void **state)
{
    struct client c = client_open(*state);
    struct agent_process p =
        run(&c, "sleep 4321 & echo done", (struct command_limits){.time_ms = 3000});
    assert_int_equal(p.state, PROCESS_EXITED);
    for (int i = 0; kill(-(pid_t)p.pid, 0) == 0; i++) {
        assert_true(i < 30 * 1000);
        usleep(1000);
    }
    client_send(&c, &agent_get_schema, 2, &(struct agent_ref){.pid = p.pid});
    client_expect(&c, &agent_process_schema, 2, &p);
    assert_int_equal(p.state, PROCESS_EXITED);
    p = run(&c, "sleep 4321", (struct command_limits){.time_ms = 100});
    assert_int_equal(p.state, PROCESS_TIMED_OUT);
    client_close(&c);
}

static void test_open_files(void **state)
{
    struct client c = client_open(*state);
    struct error err;
    struct agent_process p =
        run(&c, "ulimit -Sn; ulimit -Hn", (struct command_limits){.open_files = 21});
    assert_int_equal(p.stdout_data.len, 6);
    assert_memory_equal(p.stdout_data.data, "21\n21\n", 6);
    struct agent_exec exec = {
        .command = "true", .cwd = "/", .limits = {.open_files = UINT64_C(1) << 40}};
    client_send(&c, &agent_exec_schema, 1, &exec);
    client_expect_error(&c, 1, ERROR_INVALID_ARGUMENT, &err);
    assert_non_null(strstr(err.message, "limits.openFiles"));
    client_close(&c);
}

/* Better not at all than without the limit. */
static void test_without_cgroups(void **state)
{
    static const struct command_limits limits[] = {{.memory_bytes = 1 << 30}, {.processes = 10}};
    struct client c = client_open(*state);
    struct error err;
    for (size_t i = 0; i < ARRAY_LEN(limits); i++) {
        struct agent_exec exec = {.command = "true", .cwd = "/", .limits = limits[i]};
        client_send(&c, &agent_exec_schema, 1, &exec);
        client_expect_error(&c, 1, ERROR_NOT_IMPLEMENTED, &err);
    }
    client_close(&c);
}

/* One byte with `count` descriptors. */
static void send_fds(int socket, int fd, size_t count)
{
    union {
        char bytes[CMSG_SPACE(sizeof(int) * 8)];
        struct cmsghdr align;
    } control = {0};
    char byte = 0;
    struct iovec iov = {.iov_base = &byte, .iov_len = 1};
    struct msghdr message = {.msg_iov = &iov, .msg_iovlen = 1};
    if (count > 0) {
        message.msg_control = control.bytes;
        message.msg_controllen = CMSG_SPACE(sizeof(int) * count);
        struct cmsghdr *rights = CMSG_FIRSTHDR(&message);
        *rights = (struct cmsghdr){.cmsg_level = SOL_SOCKET,
                                   .cmsg_type = SCM_RIGHTS,
                                   .cmsg_len = CMSG_LEN(sizeof(int) * count)};
        for (size_t i = 0; i < count; i++)
            memcpy(CMSG_DATA(rights) + i * sizeof(int), &fd, sizeof(fd));
    }
    assert_int_equal(sendmsg(socket, &message, MSG_NOSIGNAL), 1);
}

static void test_what_was_not_announced(void **state)
{
    static const size_t counts[] = {0, 1, 3, 8};
    int fd = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (size_t i = 0; i < ARRAY_LEN(counts); i++) {
        struct client c = client_open(*state);
        client_send(&c, &agent_limits_schema, 5, NULL);
        client_expect(&c, &wire_ok_schema, 5, NULL);
        send_fds(c.fd, fd, counts[i]);
        client_expect_end(&c);
        client_close(&c);
    }
    /* Descriptors that nobody asked for go unnoticed, and are closed. */
    struct client c = client_open(*state);
    struct agent_process p;
    client_run(&c, *state, "echo alive", &p);
    assert_int_equal(p.exit_code, 0);
    client_send(&c, &agent_limits_schema, 6, NULL);
    client_expect(&c, &wire_ok_schema, 6, NULL);
    send_fds(c.fd, fd, LIMIT_FDS);
    client_expect(&c, &wire_ok_schema, 6, NULL);
    client_run(&c, *state, "echo alive", &p);
    assert_int_equal(p.exit_code, 0);
    client_close(&c);
    close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_output, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_time, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_open_files, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_without_cgroups, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_what_was_not_announced, fixture_setup,
                                        fixture_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
