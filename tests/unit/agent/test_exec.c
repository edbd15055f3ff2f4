/* SPDX-License-Identifier: Apache-2.0 */

/* Commands, end to end, against an agent without cgroups. */

#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/cleanup.h"
#include "base/limits.h"
#include "fixture.h"

static void assert_text(struct slice data, const char *text)
{
    assert_int_equal(data.len, strlen(text));
    assert_memory_equal(data.data, text, data.len);
}

static uint64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* --- what a command gives back --- */

static void test_results(void **state)
{
    static const struct {
        const char *command;
        int exit_code, signal;
        const char *out, *err;
    } rows[] = {
        {"true", 0, 0, "", ""},
        {"false", 1, 0, "", ""},
        {"echo hello", 0, 0, "hello\n", ""},
        {"echo oops >&2; exit 3", 3, 0, "", "oops\n"},
        {"kill -TERM $$", 143, SIGTERM, "", ""},
        {"kill -KILL $$", 137, SIGKILL, "", ""},
        {"no-such-program-here", 127, 0, "", NULL},
        {"no-such-program-here | cat", 0, 0, "", NULL},
        {"/etc/passwd", 126, 0, "", NULL},
        {"cat", 0, 0, "", ""}, /* stdin is /dev/null */
        {"printf 'a\\0b\\377'", 0, 0, NULL, ""},
        {"sh -c 'sleep 0.05; echo late'", 0, 0, "late\n", ""},
    };
    const struct fixture *f = *state;
    struct client c = client_open(f);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct agent_process p;
        client_run(&c, f, rows[i].command, &p);
        if (p.exit_code != (uint64_t)rows[i].exit_code)
            fail_msg("%s: exit code %d", rows[i].command, (int)p.exit_code);
        assert_int_equal(p.signal, rows[i].signal);
        assert_int_equal(p.state, PROCESS_EXITED);
        assert_string_equal(p.command, rows[i].command);
        assert_string_equal(p.cwd, f->dir);
        assert_string_equal(p.user, "root");
        assert_true(p.ended_ms >= p.started_ms && p.started_ms > 0);
        if (rows[i].out != NULL)
            assert_text(p.stdout_data, rows[i].out);
        if (rows[i].err != NULL)
            assert_text(p.stderr_data, rows[i].err);
        else if (p.exit_code >= 126)
            assert_true(p.stderr_total > 0); /* the shell says why */
    }
    client_close(&c);
}

static void test_binary_output(void **state)
{
    const struct fixture *f = *state;
    struct client c = client_open(f);
    struct agent_process p;
    client_run(&c, f, "printf 'a\\000b\\377\\n\\r'", &p);
    assert_int_equal(p.stdout_data.len, 6);
    assert_memory_equal(p.stdout_data.data, "a\0b\377\n\r", 6);
    client_close(&c);
}

static struct slice strv(const char *bytes, size_t len)
{
    return (struct slice){bytes, len};
}

#define STRV(literal) strv(literal, sizeof(literal)) /* the literal's own NUL ends the last one */

static void test_argv(void **state)
{
    const struct fixture *f = *state;
    struct client c = client_open(f);
    struct agent_process p;
    struct agent_exec exec = {
        .argv = STRV("printf\0%s|\0a b\0\0$HOME"), .cwd = "/", .flags = EXEC_WAIT};
    client_send(&c, &agent_exec_schema, 1, &exec);
    client_expect(&c, &agent_process_schema, 1, &p);
    assert_text(p.stdout_data, "a b||$HOME|");
    assert_string_equal(p.command, "printf %s| a b  $HOME");

    exec.argv = STRV("no-such-program-here\0x");
    client_send(&c, &agent_exec_schema, 2, &exec);
    client_expect(&c, &agent_process_schema, 2, &p);
    assert_int_equal(p.exit_code, 127);
    assert_text(p.stderr_data, "no-such-program-here: not found\n");

    exec.argv = STRV("/etc/passwd");
    client_send(&c, &agent_exec_schema, 3, &exec);
    client_expect(&c, &agent_process_schema, 3, &p);
    assert_int_equal(p.exit_code, 126);
    client_close(&c);
}

static void test_environment(void **state)
{
    const struct fixture *f = *state;
    struct client c = client_open(f);
    struct agent_process p;
    struct agent_exec exec = {
        .command = "env",
        .cwd = "/tmp",
        .env = STRV("A=1\0HOME=/elsewhere\0A=2\0EMPTY=\0E=a=b"),
        .flags = EXEC_WAIT,
    };
    client_send(&c, &agent_exec_schema, 1, &exec);
    client_expect(&c, &agent_process_schema, 1, &p);
    char want[512];
    snprintf(want, sizeof(want),
             "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin\n"
             "HOME=/elsewhere\nUSER=root\nLOGNAME=root\nSHELL=%s\nLANG=C.UTF-8\n"
             "PWD=/tmp\nA=2\nEMPTY=\nE=a=b\n",
             getpwuid(0)->pw_shell);
    assert_text(p.stdout_data, want);
    client_close(&c);
}

/* Nothing of the agent is left in a command: its fds, its mask, its dispositions. */
static void test_clean_start(void **state)
{
    const struct fixture *f = *state;
    struct client c = client_open(f);
    struct agent_process p;
    for (int i = 0; i < 3; i++) {
        client_run(&c, f, "ls /proc/self/fd", &p);
        assert_text(p.stdout_data, "0\n1\n2\n3\n"); /* 3 is the directory that ls reads */
        client_run(&c, f, "grep -E '^Sig(Blk|Ign):' /proc/self/status", &p);
        assert_text(p.stdout_data, "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n");
        client_run(&c, f, "umask; ps -o pid=,sid=,pgid= -p $$ | awk '{print $1==$2 && $2==$3}'",
                   &p);
        assert_text(p.stdout_data, "0022\n1\n");
    }
    client_close(&c);
}

static void test_user(void **state)
{
    const struct fixture *f = *state;
    struct client c = client_open(f);
    struct agent_process p;
    struct agent_exec exec = {.command = "id -u; id -g; id -G; echo $HOME $USER",
                              .cwd = "/",
                              .user = "nobody",
                              .flags = EXEC_WAIT};
    client_send(&c, &agent_exec_schema, 1, &exec);
    client_expect(&c, &agent_process_schema, 1, &p);
    assert_text(p.stdout_data, "65534\n65534\n65534\n/nonexistent nobody\n");
    assert_string_equal(p.user, "nobody");

    exec.user = "12345";
    client_send(&c, &agent_exec_schema, 2, &exec);
    client_expect(&c, &agent_process_schema, 2, &p);
    assert_text(p.stdout_data, "12345\n12345\n12345\n/ 12345\n");

    /* The working directory is looked at with the user's own rights. */
    assert_int_equal(chmod(f->dir, 0700), 0);
    exec.cwd = f->dir;
    client_send(&c, &agent_exec_schema, 3, &exec);
    client_expect_error(&c, 3, ERROR_PERMISSION_DENIED, NULL);
    client_close(&c);
}

static void test_refusals(void **state)
{
    static const struct {
        struct agent_exec exec;
        enum error_code code;
        const char *says;
    } rows[] = {
        {{.cwd = "/"}, ERROR_INVALID_ARGUMENT, "exactly one"},
        {{.command = "true", .argv = {"x", 2}}, ERROR_INVALID_ARGUMENT, "exactly one"},
        {{.argv = {"", 1}}, ERROR_INVALID_ARGUMENT, "empty"},
        {{.command = "true", .cwd = "tmp"}, ERROR_INVALID_PATH, "workingDir tmp"},
        {{.command = "true", .cwd = "/nope/x"},
         ERROR_FILE_NOT_FOUND,
         "workingDir /nope/x: No such"},
        {{.command = "true", .cwd = "/etc/passwd"},
         ERROR_NOT_A_DIRECTORY,
         "workingDir /etc/passwd"},
        {{.command = "true", .user = "nobody-here"}, ERROR_INVALID_ARGUMENT, "nobody-here"},
        {{.command = "true", .env = {"A=1\0B", 6}}, ERROR_INVALID_ARGUMENT, "B: is not"},
        {{.command = "true", .env = {"=x", 3}}, ERROR_INVALID_ARGUMENT, "=x: is not"},
    };
    const struct fixture *f = *state;
    struct client c = client_open(f);
    for (uint32_t i = 0; i < 2 * ARRAY_LEN(rows); i++) {
        struct agent_exec exec = rows[i / 2].exec;
        struct error err;
        if (i % 2 == 1)
            exec.flags = EXEC_WAIT;
        client_send(&c, &agent_exec_schema, i, &exec);
        client_expect_error(&c, i, rows[i / 2].code, &err);
        if (strstr(err.message, rows[i / 2].says) == NULL)
            fail_msg("'%s' does not say '%s'", err.message, rows[i / 2].says);
    }
    client_send(&c, &agent_list_schema, 99, NULL); /* and nothing of them is left */
    client_expect(&c, &wire_ok_schema, 99, NULL);
    client_close(&c);
}

/* --- output --- */

/* Reads a whole stream by offsets. */
static void read_log(struct client *c, uint64_t pid, uint64_t stream, uint64_t from,
                     struct buf *ret_data, uint64_t *ret_start)
{
    bool first = true;
    for (;;) {
        struct agent_log log;
        struct agent_log_read read = {
            .pid = pid, .stream = stream, .offset = from, .max = UINT64_MAX};
        client_send(c, &agent_log_read_schema, 5, &read);
        client_expect(c, &agent_log_schema, 5, &log);
        if (first)
            *ret_start = log.offset;
        else
            assert_int_equal(log.offset, from);
        first = false;
        buf_add(ret_data, log.data.data, log.data.len);
        from = log.offset + log.data.len;
        if (from == log.total && !log.open)
            return;
    }
}

static void test_flood(void **state)
{
    const struct fixture *f = *state;
    struct client c = client_open(f);
    struct agent_process p;
    enum { ALL = 10 * 1000 * 1000 };
    client_run(&c, f, "seq -f %09.0f 1000000", &p); /* ten bytes a line */
    assert_int_equal(p.stdout_total, ALL);
    assert_int_equal(p.stdout_data.len, PROCESS_INLINE_MAX);
    assert_memory_equal(p.stdout_data.data + PROCESS_INLINE_MAX - 10, "001000000\n", 10);

    _cleanup_buf_ struct buf data = BUF_INIT(PROCESS_LOG_MAX);
    uint64_t start;
    read_log(&c, p.pid, LOG_STDOUT, 0, &data, &start);
    assert_int_equal(start, ALL - PROCESS_LOG_MAX);
    assert_int_equal(data.len, PROCESS_LOG_MAX);
    for (size_t i = 0; i < data.len; i++) {
        char line[16];
        snprintf(line, sizeof(line), "%09llu\n", (unsigned long long)(start + i) / 10 + 1);
        if (data.data[i] != line[(start + i) % 10])
            fail_msg("byte %zu is wrong", i);
    }
    client_close(&c);
}

static void test_small_log(void **state)
{
    const struct fixture *f = *state;
    struct client c = client_open(f);
    struct agent_process p;
    struct agent_exec exec = {.command = "seq 10000", .cwd = "/", .log_max = 7, .flags = EXEC_WAIT};
    client_send(&c, &agent_exec_schema, 1, &exec);
    client_expect(&c, &agent_process_schema, 1, &p);
    assert_int_equal(p.stdout_total, 48894);
    assert_text(p.stdout_data, "\n10000\n");

    struct agent_log log;
    struct agent_log_read read = {.pid = p.pid, .stream = LOG_STDOUT, .offset = 48890, .max = 2};
    client_send(&c, &agent_log_read_schema, 2, &read);
    client_expect(&c, &agent_log_schema, 2, &log);
    assert_int_equal(log.offset, 48890);
    assert_int_equal(log.open, 0);
    assert_text(log.data, "00");
    client_close(&c);
}

/* While one floods, another is served; and output can be read while it runs. */
static void test_flood_beside(void **state)
{
    const struct fixture *f = *state;
    struct client c = client_open(f);
    struct agent_process p;
    uint64_t pid = client_start(&c, f, "yes");
    for (int i = 0; i < 10; i++) {
        client_run(&c, f, "echo beside", &p);
        assert_text(p.stdout_data, "beside\n");
    }
    struct agent_log log;
    client_send(&c, &agent_log_read_schema, 2,
                &(struct agent_log_read){.pid = pid, .stream = LOG_STDOUT, .max = 10});
    client_expect(&c, &agent_log_schema, 2, &log);
    assert_int_equal(log.open, 1);
    client_send(&c, &agent_stop_schema, 3, &(struct agent_stop){.pid = pid});
    client_expect(&c, &agent_process_schema, 3, &p);
    assert_int_equal(p.state, PROCESS_KILLED);
    client_close(&c);
}

/* A background process outlives its leader, and goes on writing into its log. */
static void test_background_output(void **state)
{
    const struct fixture *f = *state;
    struct client c = client_open(f);
    struct agent_process p;
    assert_int_equal(mkfifo(fixture_path(f, "go"), 0600), 0);
    client_run(&c, f, "(read line < go; echo $line) & echo leader", &p);
    assert_text(p.stdout_data, "leader\n");
    assert_int_equal(p.state, PROCESS_EXITED);
    uint64_t pid = p.pid;

    struct agent_process other;
    client_run(&c, f, "echo background > go", &other);
    _cleanup_buf_ struct buf data = BUF_INIT(1000);
    uint64_t start;
    read_log(&c, pid, LOG_STDOUT, 0, &data, &start);
    assert_string_equal(data.data, "leader\nbackground\n");
    client_close(&c);
}

/* --- the table --- */

static void test_unknown(void **state)
{
    const struct fixture *f = *state;
    struct client c = client_open(f);
    client_send(&c, &agent_get_schema, 1, &(struct agent_ref){1u << 30});
    client_expect_error(&c, 1, ERROR_PROCESS_NOT_FOUND, NULL);
    client_send(&c, &agent_wait_schema, 2, &(struct agent_ref){0});
    client_expect_error(&c, 2, ERROR_PROCESS_NOT_FOUND, NULL);
    client_send(&c, &agent_stop_schema, 3, &(struct agent_stop){.pid = 1});
    client_expect_error(&c, 3, ERROR_PROCESS_NOT_FOUND, NULL);
    client_send(&c, &agent_log_read_schema, 4, &(struct agent_log_read){.pid = 1, .stream = 1});
    client_expect_error(&c, 4, ERROR_PROCESS_NOT_FOUND, NULL);
    client_send(&c, &agent_log_read_schema, 5, &(struct agent_log_read){.pid = 1, .stream = 4});
    client_expect_error(&c, 5, ERROR_INVALID_ARGUMENT, NULL);
    client_close(&c);
}

static void test_list(void **state)
{
    const struct fixture *f = *state;
    struct client c = client_open(f);
    struct agent_process p;
    uint64_t first = client_start(&c, f, "sleep 100");
    client_run(&c, f, "echo x", &p);
    uint64_t second = p.pid;
    client_send(&c, &agent_list_schema, 9, NULL);
    client_expect(&c, &agent_process_schema, 9, &p);
    assert_int_equal(p.pid, first);
    assert_int_equal(p.state, PROCESS_RUNNING);
    assert_int_equal(p.ended_ms, 0);
    client_expect(&c, &agent_process_schema, 9, &p);
    assert_int_equal(p.pid, second);
    assert_int_equal(p.state, PROCESS_EXITED);
    assert_int_equal(p.stdout_total, 2);
    assert_int_equal(p.stdout_data.len, 0);
    client_expect(&c, &wire_ok_schema, 9, NULL);
    client_close(&c);
}

/* Long command lines make a list that does not fit into the queue at once. */
static void test_long_list(void **state)
{
    enum { COUNT = 60, LEN = 100 * 1000 };
    const struct fixture *f = *state;
    struct client c = client_open(f);
    struct agent_process p;
    _cleanup_free_ char *command = malloc(LEN + 1);
    memset(command, ' ', LEN);
    memcpy(command, "true", 4);
    command[LEN] = '\0';
    for (int i = 0; i < COUNT; i++)
        client_run(&c, f, command, &p);
    client_send(&c, &agent_list_schema, 9, NULL);
    client_send(&c, &agent_hello_schema, 10, NULL);
    for (int i = 0; i < COUNT; i++) {
        client_expect(&c, &agent_process_schema, 9, &p);
        assert_int_equal(strlen(p.command), LEN);
    }
    client_expect(&c, &wire_ok_schema, 9, NULL);
    struct agent_about about;
    client_expect(&c, &agent_about_schema, 10, &about);
    client_close(&c);
}

static void test_kept_processes(void **state)
{
    const struct fixture *f = *state;
    struct client c = client_open(f);
    struct agent_process p;
    uint64_t first = 0;
    for (int i = 0; i < PROCESSES_KEPT_MAX + 5; i++) {
        client_run(&c, f, "true", &p);
        if (i == 0)
            first = p.pid;
    }
    client_send(&c, &agent_get_schema, 1, &(struct agent_ref){first});
    client_expect_error(&c, 1, ERROR_PROCESS_NOT_FOUND, NULL);
    client_send(&c, &agent_get_schema, 2, &(struct agent_ref){p.pid});
    client_expect(&c, &agent_process_schema, 2, &p);
    client_send(&c, &agent_list_schema, 3, NULL);
    int count = 0;
    struct slice payload;
    while (client_next(&c, &payload).type == AGENT_PROCESS)
        count++;
    assert_in_range(count, PROCESSES_KEPT_MAX - 1, PROCESSES_KEPT_MAX);
    client_close(&c);
}

static void test_kept_bytes(void **state)
{
    const struct fixture *f = *state;
    struct client c = client_open(f);
    struct agent_process p;
    uint64_t first = 0, bytes = 0;
    for (int i = 0; i < 20; i++) {
        client_run(&c, f, "head -c 1200000 /dev/zero", &p);
        assert_int_equal(p.stdout_total, 1200000);
        if (i == 0)
            first = p.pid;
    }
    client_send(&c, &agent_get_schema, 1, &(struct agent_ref){first});
    client_expect_error(&c, 1, ERROR_PROCESS_NOT_FOUND, NULL);
    client_send(&c, &agent_list_schema, 3, NULL);
    for (;;) {
        struct slice payload;
        if (client_next(&c, &payload).type != AGENT_PROCESS)
            break;
        bytes += PROCESS_LOG_MAX;
    }
    assert_in_range(bytes, LOG_BYTES_KEPT_MAX - 2 * PROCESS_LOG_MAX, LOG_BYTES_KEPT_MAX);
    client_close(&c);
}

/* --- waiting and stopping --- */

static void test_wait(void **state)
{
    const struct fixture *f = *state;
    struct client c = client_open(f), other = client_open(f);
    struct agent_process p;
    assert_int_equal(mkfifo(fixture_path(f, "go"), 0600), 0);
    uint64_t pid = client_start(&c, f, "read line < go; echo $line; exit 5");
    client_send(&c, &agent_wait_schema, 1, &(struct agent_ref){pid});
    client_send(&other, &agent_wait_schema, 2, &(struct agent_ref){pid});
    client_send(&c, &agent_hello_schema, 3, NULL); /* is answered before */
    struct agent_about about;
    client_expect(&c, &agent_about_schema, 3, &about);
    assert_int_equal(about.version, AGENT_VERSION);
    client_close(&other); /* whoever goes away is not waited with */

    struct client third = client_open(f);
    struct agent_process writer;
    client_run(&third, f, "echo done > go", &writer);
    client_expect(&c, &agent_process_schema, 1, &p);
    assert_int_equal(p.exit_code, 5);
    assert_int_equal(p.stdout_total, 5);
    assert_text(p.stdout_data, ""); /* whoever waits for its end alone does not get it */
    p = client_wait(&c, pid);       /* again, at once */
    assert_int_equal(p.exit_code, 5);
    client_close(&third);
    client_close(&c);
}

/* EXEC_WAIT whose connection goes away: the command runs on. */
static void test_cut_wait(void **state)
{
    const struct fixture *f = *state;
    struct client c = client_open(f);
    assert_int_equal(mkfifo(fixture_path(f, "go"), 0600), 0);
    struct agent_exec exec = {
        .command = "read line < go; echo $line", .cwd = f->dir, .flags = EXEC_WAIT};
    client_send(&c, &agent_exec_schema, 1, &exec);
    struct agent_process p;
    for (uint64_t pid = 0; pid == 0;) { /* until it is there */
        struct slice payload;
        client_send(&c, &agent_list_schema, 2, NULL);
        while (client_next(&c, &payload).type == AGENT_PROCESS)
            if (wire_decode(&agent_process_schema, payload, &p, NULL) == 0)
                pid = p.pid;
    }
    uint64_t pid = p.pid;
    client_close(&c);
    c = client_open(f);
    client_run(&c, f, "echo on > go", &p);
    p = client_wait(&c, pid);
    assert_int_equal(p.stdout_total, 3);
    client_close(&c);
}

static void test_timeout(void **state)
{
    const struct fixture *f = *state;
    struct client c = client_open(f);
    struct agent_process p;
    struct agent_exec exec = {.command = "echo begun; sleep 100 & sleep 100",
                              .cwd = "/",
                              .timeout_ms = 2000, /* the shell has to have said its word */
                              .flags = EXEC_WAIT};
    uint64_t begun = now_ms();
    client_send(&c, &agent_exec_schema, 1, &exec);
    client_expect(&c, &agent_process_schema, 1, &p);
    assert_in_range(now_ms() - begun, 2000, 20000);
    assert_int_equal(p.state, PROCESS_TIMED_OUT);
    assert_int_equal(p.exit_code, 137);
    assert_int_equal(p.signal, SIGKILL);
    assert_text(p.stdout_data, "begun\n");
    /* A stop of what is over answers once the background part is gone as well. */
    client_send(&c, &agent_stop_schema, 2, &(struct agent_stop){.pid = p.pid});
    client_expect(&c, &agent_process_schema, 2, &p);
    assert_int_equal(p.state, PROCESS_TIMED_OUT);
    assert_true(kill(-(pid_t)p.pid, 0) < 0 && errno == ESRCH);
    client_close(&c);
}

/* Until it has stopped itself: a stop that comes right before would not find it so. */
static void wait_stopped(uint64_t pid)
{
    char path[64], text[256] = "";
    snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    while (strstr(text, ") T") == NULL) {
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        assert_true(fd >= 0);
        ssize_t n = read(fd, text, sizeof(text) - 1);
        close(fd);
        assert_true(n > 0);
        text[n] = '\0';
    }
}

static void test_stop(void **state)
{
    static const struct {
        const char *command;
        uint64_t grace_ms;
        enum process_state state;
        int exit_code;
    } rows[] = {
        {"sleep 100", 0, PROCESS_KILLED, 137},
        {"sleep 100", 10000, PROCESS_STOPPED, 143},
        {"sleep 100 & echo ready; sleep 100", 10000, PROCESS_STOPPED, 143},
        {"trap 'exit 9' TERM; echo ready; while :; do sleep 0.01; done", 10000, PROCESS_STOPPED, 9},
        {"trap 'exit 8' TERM; echo ready; kill -STOP $$; exit 1", 10000, PROCESS_STOPPED, 8},
        {"trap '' TERM; echo ready; while :; do sleep 0.01; done", 100, PROCESS_STOPPED, 137},
    };
    const struct fixture *f = *state;
    struct client c = client_open(f);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct agent_process p;
        uint64_t pid = client_start(&c, f, rows[i].command);
        while (strstr(rows[i].command, "ready") != NULL) {
            struct agent_log log;
            client_send(&c, &agent_log_read_schema, 1,
                        &(struct agent_log_read){.pid = pid, .stream = LOG_STDOUT, .max = 10});
            client_expect(&c, &agent_log_schema, 1, &log);
            if (log.total > 0)
                break;
        }
        if (strstr(rows[i].command, "-STOP") != NULL)
            wait_stopped(pid);
        client_send(&c, &agent_stop_schema, 2, &(struct agent_stop){pid, rows[i].grace_ms});
        client_expect(&c, &agent_process_schema, 2, &p);
        assert_int_equal(p.state, rows[i].state);
        assert_int_equal(p.exit_code, rows[i].exit_code);
        assert_true(kill(-(pid_t)pid, 0) < 0 && errno == ESRCH);
        /* Once more: answered as it is. */
        client_send(&c, &agent_stop_schema, 3, &(struct agent_stop){pid, 0});
        client_expect(&c, &agent_process_schema, 3, &p);
        assert_int_equal(p.state, rows[i].state);
    }
    client_close(&c);
}

/* A patient stop, and then an impatient one: both are answered. */
static void test_stop_twice(void **state)
{
    const struct fixture *f = *state;
    struct client c = client_open(f);
    struct agent_process p;
    uint64_t pid = client_start(&c, f, "trap '' TERM; echo ready; while :; do sleep 0.01; done");
    struct agent_log log = {0};
    while (log.total == 0) {
        client_send(&c, &agent_log_read_schema, 1,
                    &(struct agent_log_read){.pid = pid, .stream = LOG_STDOUT, .max = 10});
        client_expect(&c, &agent_log_schema, 1, &log);
    }
    client_send(&c, &agent_stop_schema, 2, &(struct agent_stop){pid, 1000 * 1000});
    client_send(&c, &agent_stop_schema, 2, &(struct agent_stop){pid, 0});
    for (int i = 0; i < 2; i++) {
        client_expect(&c, &agent_process_schema, 2, &p);
        assert_int_equal(p.state, PROCESS_KILLED);
    }
    client_close(&c);
}

/* --- connections --- */

static void test_bad_frames(void **state)
{
    const struct fixture *f = *state;
    struct client c = client_open(f);
    /* Bad requests are answered, and the connection goes on … */
    client_send_raw(&c, AGENT_EXEC, 1, "garbage", 7);
    client_expect_error(&c, 1, ERROR_INVALID_ARGUMENT, NULL);
    client_send_raw(&c, 999, 2, "", 0);
    client_expect_error(&c, 2, ERROR_INVALID_ARGUMENT, NULL);
    client_send_raw(&c, FILE_STAT, 3, "", 0);
    client_expect_error(&c, 3, ERROR_INVALID_ARGUMENT, NULL);
    client_send_raw(&c, AGENT_PROCESS, 4, "", 0);
    client_expect_error(&c, 4, ERROR_INVALID_ARGUMENT, NULL);
    /* … bad frames end it. */
    unsigned char bytes[FRAME_HEADER_SIZE] = {0xff, 0xff, 0xff, 0xff};
    assert_int_equal(write(c.fd, bytes, sizeof(bytes)), sizeof(bytes));
    client_expect_error(&c, 0, ERROR_INVALID_ARGUMENT, NULL);
    client_expect_end(&c);
    client_close(&c);
}

/* Byte by byte, and several at once. */
static void test_split_frames(void **state)
{
    const struct fixture *f = *state;
    struct client c = client_open(f);
    _cleanup_buf_ struct buf frames = BUF_INIT(1 << 20);
    for (uint32_t i = 0; i < 5; i++)
        wire_encode(&frames, &agent_hello_schema, i, NULL);
    struct agent_exec exec = {.command = "echo x", .cwd = "/", .flags = EXEC_WAIT};
    wire_encode(&frames, &agent_exec_schema, 5, &exec);
    for (size_t i = 0; i < frames.len; i++)
        assert_int_equal(write(c.fd, frames.data + i, 1), 1);
    struct agent_about about;
    for (uint32_t i = 0; i < 5; i++)
        client_expect(&c, &agent_about_schema, i, &about);
    struct agent_process p;
    client_expect(&c, &agent_process_schema, 5, &p);
    assert_text(p.stdout_data, "x\n");
    client_close(&c);
}

/* Who asks for much and reads nothing is not served for ever, and hurts nobody else. */
static void test_slow_reader(void **state)
{
    const struct fixture *f = *state;
    struct client slow = client_open(f), c = client_open(f);
    struct agent_process p;
    client_run(&c, f, "head -c 1000000 /dev/zero", &p);
    struct agent_log_read read = {.pid = p.pid, .stream = LOG_STDOUT, .max = UINT64_MAX};
    for (uint32_t i = 0; i < 200; i++)
        client_send(&slow, &agent_log_read_schema, i, &read);
    client_run(&c, f, "echo fine", &p);
    assert_text(p.stdout_data, "fine\n");
    /* All answers come, once they are read. */
    for (uint32_t i = 0; i < 200; i++) {
        struct agent_log log;
        client_expect(&slow, &agent_log_schema, i, &log);
        assert_int_equal(log.data.len, WIRE_DATA_CHUNK);
    }
    client_close(&slow);
    client_close(&c);
}

/* Orphans are reaped, and nobody's end is mixed up with a command's. */
static void test_orphans(void **state)
{
    const struct fixture *f = *state;
    struct client c = client_open(f);
    struct agent_process p;
    client_run(&c, f, "(setsid sh -c 'exit 7' &) ; exit 2", &p);
    assert_int_equal(p.exit_code, 2);
    char command[128];
    snprintf(command, sizeof(command), "ps -o stat= --ppid %d", (int)f->agent);
    for (int zombies = 1; zombies != 0;) {
        client_run(&c, f, command, &p);
        zombies = memchr(p.stdout_data.data, 'Z', p.stdout_data.len) != NULL;
    }
    client_close(&c);
}

int main(void)
{
    if (geteuid() != 0)
        return 77; /* skipped: commands run as root unless told otherwise */
#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_results),
        TEST(test_binary_output),
        TEST(test_argv),
        TEST(test_environment),
        TEST(test_clean_start),
        TEST(test_user),
        TEST(test_refusals),
        TEST(test_flood),
        TEST(test_small_log),
        TEST(test_flood_beside),
        TEST(test_background_output),
        TEST(test_unknown),
        TEST(test_list),
        TEST(test_long_list),
        TEST(test_kept_processes),
        TEST(test_kept_bytes),
        TEST(test_wait),
        TEST(test_cut_wait),
        TEST(test_timeout),
        TEST(test_stop),
        TEST(test_stop_twice),
        TEST(test_bad_frames),
        TEST(test_split_frames),
        TEST(test_slow_reader),
        TEST(test_orphans),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
