/* SPDX-License-Identifier: Apache-2.0 */

/* Terminals, end to end, against an agent without cgroups. */

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/cleanup.h"
#include "base/limits.h"
#include "fixture.h"

enum { OPEN_ID = 7, ATTACH_ID = 8, OTHER_ID = 9, SEEN_MAX = 16 << 20 };

/* Somebody who is attached: what came so far. */
struct viewer {
    struct client c;
    struct agent_terminal about;
    struct buf seen;
    uint64_t next; /* offset that the next output should have */
    uint64_t dropped;
    uint64_t taken;
    bool over;
    struct agent_terminal_exit end;
};

static struct agent_terminal open_terminal(struct client *c, const struct agent_terminal_open *open)
{
    struct agent_terminal about;
    client_send(c, &agent_terminal_open_schema, OPEN_ID, open);
    client_expect(c, &agent_terminal_schema, OPEN_ID, &about);
    assert_string_equal(about.session, open->session);
    return about;
}

static void start(const struct fixture *f, const char *session, const char *command)
{
    struct client c = client_open(f);
    struct agent_terminal_open open = {.session = session, .command = command, .cwd = f->dir};
    struct agent_terminal about = open_terminal(&c, &open);
    assert_int_equal(about.created, 1);
    assert_true(about.pid > 0);
    client_close(&c);
}

static void attach_from(struct viewer *v, const struct fixture *f,
                        const struct agent_terminal_attach *attach)
{
    *v = (struct viewer){.c = client_open(f), .seen = BUF_INIT(SEEN_MAX)};
    client_send(&v->c, &agent_terminal_attach_schema, ATTACH_ID, attach);
    client_expect(&v->c, &agent_terminal_schema, ATTACH_ID, &v->about);
    v->next = attach->offset;
    v->taken = v->about.taken;
}

static void attach(struct viewer *v, const struct fixture *f, const char *session)
{
    attach_from(v, f, &(struct agent_terminal_attach){.session = session});
}

static void leave(struct viewer *v)
{
    buf_release(&v->seen);
    client_close(&v->c);
}

static void take_one(struct viewer *v)
{
    struct slice payload;
    struct agent_terminal_output output;
    struct agent_terminal_taken taken;
    struct frame_header header = client_next(&v->c, &payload);
    switch (header.type) {
    case AGENT_TERMINAL_OUTPUT:
        assert_int_equal(header.id, ATTACH_ID);
        assert_int_equal(wire_decode(&agent_terminal_output_schema, payload, &output, NULL), 0);
        assert_true(output.data.len > 0);
        assert_true(output.offset >= v->next);
        v->dropped += output.offset - v->next;
        v->next = output.offset + output.data.len;
        buf_add(&v->seen, output.data.data, output.data.len);
        assert_false(v->seen.failed);
        break;
    case AGENT_TERMINAL_EXIT:
        assert_int_equal(header.id, ATTACH_ID);
        assert_int_equal(wire_decode(&agent_terminal_exit_schema, payload, &v->end, NULL), 0);
        assert_int_equal(v->end.total, v->next);
        v->over = true;
        break;
    case AGENT_TERMINAL_TAKEN:
        assert_int_equal(wire_decode(&agent_terminal_taken_schema, payload, &taken, NULL), 0);
        assert_true(taken.taken > v->taken);
        v->taken = taken.taken;
        break;
    default:
        assert_int_equal(header.type, WIRE_OK);
    }
}

static void await(struct viewer *v, const char *text)
{
    while (strstr(v->seen.data, text) == NULL) {
        if (v->over)
            fail_msg("it ended without \"%s\": %s", text, v->seen.data);
        take_one(v);
    }
}

static void await_end(struct viewer *v)
{
    while (!v->over)
        take_one(v);
}

static void type(struct viewer *v, const char *text, size_t len)
{
    struct agent_terminal_input input = {.data = {text, len}};
    client_send(&v->c, &agent_terminal_input_schema, OTHER_ID, &input);
}

static void type_text(struct viewer *v, const char *text)
{
    type(v, text, strlen(text));
}

/* --- what a program sees --- */

static void test_is_a_terminal(void **state)
{
    const struct fixture *f = *state;
    struct client c = client_open(f);
    struct viewer v;
    struct agent_terminal_open open = {
        .session = "t1",
        .command = "tty; stty size; test -t 0 && test -t 1 && test -t 2 && echo all three; "
                   "echo $TERM; echo into /dev/tty >/dev/tty; exit 7",
        .cwd = f->dir,
        .cols = 100,
        .rows = 30,
    };
    struct agent_terminal about = open_terminal(&c, &open);
    assert_int_equal(about.cols, 100);
    assert_int_equal(about.rows, 30);
    assert_string_equal(about.cwd, f->dir);
    attach(&v, f, "t1");
    await_end(&v);
    assert_non_null(strstr(v.seen.data, "/dev/pts/"));
    assert_non_null(strstr(v.seen.data, "30 100\r\n"));
    assert_non_null(strstr(v.seen.data, "all three\r\n"));
    assert_non_null(strstr(v.seen.data, "xterm-256color\r\n"));
    assert_non_null(strstr(v.seen.data, "into /dev/tty\r\n"));
    assert_int_equal(v.end.exit_code, 7);
    assert_int_equal(v.end.reason, TERMINAL_EXITED);
    leave(&v);
    client_close(&c);
}

static void test_defaults(void **state)
{
    const struct fixture *f = *state;
    struct client c = client_open(f);
    struct viewer v;
    struct agent_terminal about =
        open_terminal(&c, &(struct agent_terminal_open){.session = "t2", .cwd = "/"});
    assert_int_equal(about.cols, 80);
    assert_int_equal(about.rows, 24);
    assert_int_equal(about.command[0], '/'); /* somebody's shell */
    attach(&v, f, "t2");
    type_text(&v, "stty size; echo $((6 * 7))-; exit 3\n");
    await(&v, "24 80\r\n42-\r\n");
    await_end(&v);
    assert_int_equal(v.end.exit_code, 3);
    leave(&v);
    client_close(&c);
}

static void test_shell_and_environment(void **state)
{
    static const char env[] = "COLOUR=blue\0TERM=dumb";
    const struct fixture *f = *state;
    struct client c = client_open(f);
    struct viewer v;
    struct agent_terminal_open open = {.session = "t3",
                                       .shell = "sh",
                                       .command = "echo $0 $COLOUR $TERM $HOME",
                                       .cwd = "/",
                                       .env = {env, sizeof(env)}};
    open_terminal(&c, &open);
    attach(&v, f, "t3");
    await_end(&v);
    assert_non_null(strstr(v.seen.data, "sh blue dumb /"));
    leave(&v);
    client_close(&c);
}

static void test_resize(void **state)
{
    const struct fixture *f = *state;
    struct viewer v;
    start(f, "t4", "trap 'stty size' WINCH; echo ready; while :; do sleep 0.01; done");
    attach(&v, f, "t4");
    await(&v, "ready");
    client_send(&v.c, &agent_terminal_resize_schema, OTHER_ID,
                &(struct agent_terminal_resize){.cols = 132, .rows = 50});
    await(&v, "50 132\r\n");
    /* By its name, from elsewhere; and by attaching. */
    struct client c = client_open(f);
    client_send(&c, &agent_terminal_resize_schema, 1,
                &(struct agent_terminal_resize){.session = "t4", .cols = 133});
    client_expect(&c, &wire_ok_schema, 1, NULL);
    await(&v, "50 133\r\n");
    struct viewer other;
    attach_from(&other, f,
                &(struct agent_terminal_attach){.session = "t4", .cols = 90, .rows = 20});
    await(&v, "20 90\r\n");
    await(&other, "20 90\r\n");
    leave(&other);
    client_close(&c);
    leave(&v);
}

static void test_interrupt(void **state)
{
    const struct fixture *f = *state;
    struct client c = client_open(f);
    struct viewer v;
    open_terminal(&c, &(struct agent_terminal_open){.session = "t5", .shell = "/bin/sh"});
    attach(&v, f, "t5");
    type_text(&v, "PS1='rea''dy> '\n");
    await(&v, "ready> ");
    /* Said by the job itself: by then it is in the foreground. */
    type_text(&v, "sh -c 'echo be\"\"gins; exec sleep 1000'\n");
    await(&v, "begins\r\n");
    buf_clear(&v.seen);
    type_text(&v, "\003");
    await(&v, "ready> "); /* a signal from the keyboard drops what was typed before */
    type_text(&v, "echo status $((1 + $?))\n");
    await(&v, "status 131\r\n");
    type_text(&v, "\004"); /* the end of input: the shell goes */
    await_end(&v);
    assert_int_equal(v.end.reason, TERMINAL_EXITED);
    leave(&v);
    client_close(&c);
}

/* --- bytes --- */

static void fill_file(const char *path, size_t size)
{
    _cleanup_fd_ int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    _cleanup_free_ char *bytes = malloc(size);
    for (size_t i = 0; i < size; i++)
        bytes[i] = (char)(i * 31 + i / 257);
    assert_int_equal(write(fd, bytes, size), size);
}

static void test_output_is_exact(void **state)
{
    const struct fixture *f = *state;
    enum { SIZE = 3 << 20 };
    struct viewer v;
    fill_file(fixture_path(f, "bytes"), SIZE);
    start(f, "t6", "stty raw -echo; read go; cat bytes");
    attach(&v, f, "t6");
    type_text(&v, "go\n");
    /* Nobody reads for a moment: the program waits, and nothing is lost. */
    usleep(100 * 1000);
    await_end(&v);
    assert_int_equal(v.dropped, 0);
    assert_true(v.seen.len >= SIZE);
    for (size_t i = 0; i < SIZE; i++)
        if (v.seen.data[v.seen.len - SIZE + i] != (char)(i * 31 + i / 257))
            fail_msg("byte %zu", i);
    leave(&v);
}

static void test_input_is_exact(void **state)
{
    const struct fixture *f = *state;
    enum { SIZE = 300 * 1000, PIECE = 30 * 1000 };
    struct viewer v;
    _cleanup_free_ char *bytes = malloc(SIZE);
    for (size_t i = 0; i < SIZE; i++)
        bytes[i] = (char)(i * 7 + i / 251);
    start(f, "t7", "stty raw -echo; echo ready; sleep 0.1; head -c 300000 >got; echo whole");
    attach(&v, f, "t7");
    await(&v, "ready");
    for (size_t at = 0; at < SIZE; at += PIECE)
        type(&v, bytes + at, PIECE);
    await(&v, "whole");
    await_end(&v);
    assert_int_equal(v.taken, SIZE);
    _cleanup_fd_ int fd = open(fixture_path(f, "got"), O_RDONLY | O_CLOEXEC);
    _cleanup_free_ char *got = malloc(SIZE);
    assert_int_equal(read(fd, got, SIZE), SIZE);
    assert_memory_equal(got, bytes, SIZE);
    leave(&v);
}

static void test_input_has_a_limit(void **state)
{
    const struct fixture *f = *state;
    static const char piece[TERMINAL_CHUNK_MAX];
    struct client c = client_open(f);
    struct viewer v;
    struct frame_header header;
    struct slice payload;
    start(f, "t8", "stty raw -echo; echo ready; sleep 1000");
    attach(&v, f, "t8");
    await(&v, "ready"); /* a line that gets too long would be dropped without end */
    int taken = 0;
    for (;; taken++) {
        struct agent_terminal_input input = {"t8", {piece, sizeof(piece)}};
        client_send(&c, &agent_terminal_input_schema, 1, &input);
        header = client_next(&c, &payload);
        if (header.type != WIRE_OK)
            break;
    }
    assert_int_equal(header.type, WIRE_ERROR);
    assert_true(taken >= 1 && taken < 20);
    leave(&v);
    client_close(&c);
}

/* Whoever started it comes a moment later, and has missed nothing. */
static void test_the_first_is_waited_for(void **state)
{
    const struct fixture *f = *state;
    struct viewer v;
    start(f, "t15", "stty raw -echo; head -c 2000000 /dev/zero; echo end");
    usleep(100 * 1000);
    attach(&v, f, "t15");
    await_end(&v);
    assert_int_equal(v.dropped, 0);
    assert_int_equal(v.seen.len, 2000004);
    leave(&v);
}

static void test_the_middle_is_dropped(void **state)
{
    const struct fixture *f = *state;
    enum { WHOLE = 6 + 2000000 + 4 };
    struct viewer v;
    start(f, "t9",
          "stty raw -echo; echo ready; read x; head -c 2000000 /dev/zero; echo end; sleep 1000");
    attach(&v, f, "t9");
    await(&v, "ready\n");
    leave(&v);
    /* With nobody attached any more the program does not wait; the newest bytes are kept. */
    struct client c = client_open(f);
    struct agent_terminal_input go = {"t9", {"x\n", 2}};
    client_send(&c, &agent_terminal_input_schema, 1, &go);
    client_expect(&c, &wire_ok_schema, 1, NULL);
    for (uint64_t total = 0; total < WHOLE;) {
        struct agent_terminal about;
        struct slice payload;
        usleep(2000);
        client_send(&c, &agent_terminal_list_schema, 1, NULL);
        for (;;) {
            struct frame_header header = client_next(&c, &payload);
            if (header.type == WIRE_OK)
                break;
            assert_int_equal(wire_decode(&agent_terminal_schema, payload, &about, NULL), 0);
            if (strcmp(about.session, "t9") == 0)
                total = about.total;
        }
    }
    client_close(&c);
    attach(&v, f, "t9");
    while (v.next < WHOLE)
        take_one(&v);
    assert_true(v.dropped > 0 && v.seen.len <= TERMINAL_RING);
    assert_int_equal(v.dropped + v.seen.len, v.next);
    assert_memory_equal(v.seen.data + v.seen.len - 4, "end\n", 4);
    leave(&v);
    attach_from(&v, f,
                &(struct agent_terminal_attach){.session = "t9", .offset = TERMINAL_FROM_NOW});
    assert_int_equal(v.about.total, WHOLE);
    leave(&v);
}

/* --- coming and going --- */

static void test_two_and_again(void **state)
{
    const struct fixture *f = *state;
    struct viewer a, b;
    start(f, "t10", "stty -echo; while read x; do echo got $x; done");
    attach(&a, f, "t10");
    attach(&b, f, "t10");
    type_text(&a, "one\n");
    await(&a, "got one\r\n");
    await(&b, "got one\r\n");
    type_text(&b, "two\n");
    await(&a, "got two\r\n");
    await(&b, "got two\r\n");
    leave(&b);
    uint64_t at = a.next;
    leave(&a);
    /* Nobody is attached: the session goes on, by its name. */
    struct client c = client_open(f);
    struct agent_terminal_input input = {"t10", {"three\n", 6}};
    client_send(&c, &agent_terminal_input_schema, 1, &input);
    client_expect(&c, &wire_ok_schema, 1, NULL);
    client_close(&c);
    attach_from(&a, f, &(struct agent_terminal_attach){.session = "t10", .offset = at});
    await(&a, "got three\r\n");
    assert_int_equal(a.dropped, 0);
    assert_null(strstr(a.seen.data, "got two")); /* from where it was */
    attach(&b, f, "t10");
    await(&b, "got three\r\n");
    assert_non_null(strstr(b.seen.data, "got one\r\n")); /* from the beginning */
    leave(&b);
    leave(&a);
}

static void test_input_is_counted(void **state)
{
    const struct fixture *f = *state;
    struct viewer a, b;
    struct agent_terminal_attach as = {.session = "t11", .client = "me"};
    start(f, "t11", "stty -echo; cat");
    attach_from(&a, f, &as);
    assert_int_equal(a.about.taken, 0);
    type_text(&a, "hello\n");
    while (a.taken < 6)
        take_one(&a);
    attach_from(&b, f, &as);
    assert_int_equal(b.about.taken, 6);
    char rest[1024]; /* it came back: the old connection is over */
    while (recv(a.c.fd, rest, sizeof(rest), 0) > 0)
        ;
    buf_release(&a.seen);
    client_close(&a.c);
    as.client = "you";
    attach_from(&a, f, &as);
    assert_int_equal(a.about.taken, 0);
    leave(&a);
    leave(&b);
}

/* However busy it is and whoever looks on. */
static void test_time_out(void **state)
{
    const struct fixture *f = *state;
    struct client c = client_open(f);
    struct agent_terminal_open open = {
        .session = "timed", .command = "while :; do :; done", .timeout_ms = 150};
    open_terminal(&c, &open);
    struct viewer v;
    attach(&v, f, "timed");
    await_end(&v);
    assert_int_equal(v.end.reason, TERMINAL_TIMED_OUT);
    leave(&v);
    client_close(&c);
}

static void test_open_or_existing(void **state)
{
    const struct fixture *f = *state;
    struct client c = client_open(f);
    struct agent_terminal_open open = {
        .session = "t12", .command = "read x", .flags = TERMINAL_OR_EXISTING};
    struct agent_terminal first = open_terminal(&c, &open), again = open_terminal(&c, &open);
    assert_int_equal(first.created, 1);
    assert_int_equal(again.created, 0);
    assert_int_equal(again.pid, first.pid);
    open.flags = 0;
    client_send(&c, &agent_terminal_open_schema, 1, &open);
    client_expect_error(&c, 1, ERROR_ALREADY_EXISTS, NULL);
    /* Its end is kept for who comes back, and told again; who opens gets a new one. */
    struct viewer v;
    attach(&v, f, "t12");
    type_text(&v, "x\n");
    await_end(&v);
    leave(&v);
    attach(&v, f, "t12");
    assert_int_equal(v.about.ended, 1);
    await_end(&v);
    leave(&v);
    again = open_terminal(&c, &open);
    assert_int_equal(again.created, 1);
    assert_int_not_equal(again.pid, first.pid);
    client_close(&c);
}

/* --- the end --- */

static void test_close(void **state)
{
    const struct fixture *f = *state;
    struct viewer v;
    struct client c = client_open(f);
    struct agent_terminal_ref ref = {"t13"};
    /* One goes when the line is cut, the other one does not want to. */
    start(f, "t13", "sleep 1000 & trap '' HUP; echo pids $$ $! .; while :; do sleep 0.1; done");
    attach(&v, f, "t13");
    await(&v, " .\r\n");
    int shell = 0, background = 0;
    assert_int_equal(sscanf(strstr(v.seen.data, "pids "), "pids %d %d", &shell, &background), 2);
    client_send(&c, &agent_terminal_close_schema, 1, &ref);
    client_expect(&c, &wire_ok_schema, 1, NULL);
    assert_true(kill(shell, 0) < 0 && errno == ESRCH);
    await_end(&v);
    assert_int_equal(v.end.reason, TERMINAL_CLOSED);
    assert_int_equal(v.end.exit_code, 137);
    leave(&v);
    client_send(&c, &agent_terminal_close_schema, 2, &ref);
    client_expect(&c, &wire_ok_schema, 2, NULL);
    client_send(&c, &agent_terminal_close_schema, 3, &ref);
    client_expect_error(&c, 3, ERROR_TERMINAL_NOT_FOUND, NULL);
    client_close(&c);
}

static void test_hang_up(void **state)
{
    const struct fixture *f = *state;
    struct viewer a, b;
    struct client c = client_open(f);
    client_send(&c, &agent_terminal_hang_up_schema, 1, NULL); /* nobody is there */
    client_expect(&c, &wire_ok_schema, 1, NULL);
    start(f, "t16", "cat");
    start(f, "t17", "trap '' HUP; echo stays; while :; do sleep 0.05; done");
    attach(&a, f, "t16");
    attach(&b, f, "t17");
    await(&b, "stays\r\n");
    client_send(&c, &agent_terminal_hang_up_schema, 2, NULL);
    client_expect(&c, &wire_ok_schema, 2, NULL);
    await_end(&a);
    await_end(&b);
    assert_int_equal(a.end.signal, SIGHUP);
    assert_int_equal(b.end.signal, SIGKILL);
    assert_int_equal(a.end.reason, TERMINAL_CLOSED);
    leave(&a);
    leave(&b);
    client_close(&c);
}

static void test_idle(void **state)
{
    const struct fixture *f = *state;
    struct client c = client_open(f);
    struct agent_terminal_open open = {
        .session = "t14", .command = "sleep 1000", .cwd = "/", .idle_ms = 1000};
    struct agent_terminal about = open_terminal(&c, &open);
    struct viewer v;
    attach(&v, f, "t14");
    usleep(1200 * 1000); /* somebody is there: it stays */
    assert_int_equal(kill((pid_t)about.pid, 0), 0);
    leave(&v);
    while (kill((pid_t)about.pid, 0) == 0)
        usleep(5000);
    /* A moment later its record is gone too. */
    for (;;) {
        struct slice payload;
        client_send(&c, &agent_terminal_close_schema, 1, &(struct agent_terminal_ref){"t14"});
        if (client_next(&c, &payload).type == WIRE_ERROR)
            break;
    }
    client_close(&c);
}

static void test_limits(void **state)
{
    const struct fixture *f = *state;
    struct client c = client_open(f);
    char session[16];
    for (int i = 0; i < TERMINALS_MAX; i++) {
        snprintf(session, sizeof(session), "many%d", i);
        open_terminal(&c, &(struct agent_terminal_open){.session = session, .command = "read x"});
    }
    struct agent_terminal_open open = {.session = "more", .command = "read x"};
    client_send(&c, &agent_terminal_open_schema, 1, &open);
    client_expect_error(&c, 1, ERROR_LIMIT_EXCEEDED, NULL);
    client_send(&c, &agent_terminal_close_schema, 2, &(struct agent_terminal_ref){"many3"});
    client_expect(&c, &wire_ok_schema, 2, NULL);
    open_terminal(&c, &open);

    struct viewer v[TERMINAL_ATTACHED_MAX + 1];
    for (int i = 0; i < TERMINAL_ATTACHED_MAX; i++)
        attach(&v[i], f, "many0");
    struct client late = client_open(f);
    client_send(&late, &agent_terminal_attach_schema, 1,
                &(struct agent_terminal_attach){.session = "many0"});
    client_expect_error(&late, 1, ERROR_LIMIT_EXCEEDED, NULL);
    client_close(&late);
    /* One connection has one. */
    client_send(&v[0].c, &agent_terminal_attach_schema, OTHER_ID,
                &(struct agent_terminal_attach){.session = "many1"});
    client_expect_error(&v[0].c, OTHER_ID, ERROR_CONFLICT, NULL);
    for (int i = 0; i < TERMINAL_ATTACHED_MAX; i++)
        leave(&v[i]);
    client_close(&c);
}

static void test_bad_requests(void **state)
{
    static const struct {
        struct agent_terminal_open open;
        enum error_code code;
    } rows[] = {
        {{.session = ""}, ERROR_INVALID_ARGUMENT},
        {{.session = "a/b"}, ERROR_INVALID_ARGUMENT},
        {{.session = "a b"}, ERROR_INVALID_ARGUMENT},
        {{.session = "x", .cols = TERMINAL_SIZE_MAX + 1}, ERROR_INVALID_ARGUMENT},
        {{.session = "x", .shell = "/no/such/shell"}, ERROR_INVALID_ARGUMENT},
        {{.session = "x", .shell = "/etc/passwd"}, ERROR_INVALID_ARGUMENT},
        {{.session = "x", .user = "no-such-user"}, ERROR_INVALID_ARGUMENT},
        {{.session = "x", .cwd = "/no/such/place"}, ERROR_FILE_NOT_FOUND},
        {{.session = "x", .cwd = "relative"}, ERROR_INVALID_PATH},
        {{.session = "x", .env = {"NOVALUE", sizeof("NOVALUE")}}, ERROR_INVALID_ARGUMENT},
    };
    const struct fixture *f = *state;
    struct client c = client_open(f);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        client_send(&c, &agent_terminal_open_schema, 1, &rows[i].open);
        client_expect_error(&c, 1, rows[i].code, NULL);
    }
    client_send(&c, &agent_terminal_attach_schema, 2, &(struct agent_terminal_attach){"x"});
    client_expect_error(&c, 2, ERROR_TERMINAL_NOT_FOUND, NULL);
    client_send(&c, &agent_terminal_input_schema, 3, &(struct agent_terminal_input){0});
    client_expect_error(&c, 3, ERROR_INVALID_ARGUMENT, NULL);
    client_send(&c, &agent_terminal_resize_schema, 4, &(struct agent_terminal_resize){0});
    client_expect_error(&c, 4, ERROR_INVALID_ARGUMENT, NULL);
    client_send(&c, &agent_terminal_list_schema, 5, NULL);
    client_expect(&c, &wire_ok_schema, 5, NULL);
    client_close(&c);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_is_a_terminal),
        TEST(test_defaults),
        TEST(test_shell_and_environment),
        TEST(test_resize),
        TEST(test_interrupt),
        TEST(test_output_is_exact),
        TEST(test_input_is_exact),
        TEST(test_input_has_a_limit),
        TEST(test_the_first_is_waited_for),
        TEST(test_the_middle_is_dropped),
        TEST(test_two_and_again),
        TEST(test_input_is_counted),
        TEST(test_time_out),
        TEST(test_open_or_existing),
        TEST(test_close),
        TEST(test_hang_up),
        TEST(test_idle),
        TEST(test_limits),
        TEST(test_bad_requests),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
