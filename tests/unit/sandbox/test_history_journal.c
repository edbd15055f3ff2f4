/* SPDX-License-Identifier: Apache-2.0 */

/* The journal of executions: what is added is read again, whatever a crash or a full disk left. */

#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/limits.h"
#include "sandbox/history_journal.h"

struct place {
    char path[64];
    int fd;
    struct journal journal;
};

static int setup(void **state)
{
    struct place *p = calloc(1, sizeof(*p));
    struct error err;
    snprintf(p->path, sizeof(p->path), "/tmp/cella-journal-XXXXXX");
    assert_non_null(mkdtemp(p->path));
    p->fd = open(p->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_int_equal(journal_open(&p->journal, p->fd, &err), 0);
    *state = p;
    return 0;
}

static int teardown(void **state)
{
    struct place *p = *state;
    journal_close(&p->journal);
    unlinkat(p->fd, "journal", 0);
    close(p->fd);
    rmdir(p->path);
    free(p);
    return 0;
}

static void add(struct place *p, const char *sandbox, const char *line)
{
    struct error err;
    assert_int_equal(journal_add(&p->journal, sandbox, (struct slice){line, strlen(line)}, &err),
                     0);
}

static void note(void *ctx, struct slice sandbox, struct slice line)
{
    struct buf *out = ctx;
    buf_addc(out, '[');
    buf_add(out, sandbox.data, sandbox.len);
    buf_addc(out, ']');
    buf_add(out, line.data, line.len);
}

static void assert_holds(struct place *p, const char *expected)
{
    _cleanup_buf_ struct buf out = BUF_INIT(1 << 16);
    struct error err = {0};
    assert_int_equal(journal_read(&p->journal, note, &out, &err), 0);
    assert_string_equal(out.data, expected);
}

static void reopen(struct place *p)
{
    struct error err;
    journal_close(&p->journal);
    assert_int_equal(journal_open(&p->journal, p->fd, &err), 0);
}

static void append_raw(struct place *p, const char *text)
{
    _cleanup_fd_ int fd = openat(p->fd, "journal", O_WRONLY | O_APPEND | O_CLOEXEC);
    assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
}

static void test_lines_are_read_again(void **state)
{
    struct place *p = *state;
    assert_holds(p, "");
    add(p, "box", "exec_1 a 1\n");
    add(p, "other", "exec_2 b 2\n");
    assert_holds(p, "[box]exec_1 a 1\n[other]exec_2 b 2\n");
    reopen(p);
    add(p, "box", "exec_3 c 3\n");
    assert_holds(p, "[box]exec_1 a 1\n[other]exec_2 b 2\n[box]exec_3 c 3\n");
}

static void test_a_torn_line_is_none(void **state)
{
    struct place *p = *state;
    add(p, "box", "exec_1 a 1\n");
    append_raw(p, "nothing\n exec_9\n\nbox exec_2 to");
    reopen(p);
    assert_holds(p, "[box]exec_1 a 1\n");
    add(p, "box", "exec_3 c 3\n"); /* it does not become the torn one's end */
    reopen(p);
    assert_holds(p, "[box]exec_1 a 1\n[box]exec_3 c 3\n");
}

static void test_written_anew(void **state)
{
    struct place *p = *state;
    struct error err;
    char line[64];
    unsigned lines = 0;
    while (!journal_is_old(&p->journal)) {
        snprintf(line, sizeof(line), "exec_%08x %040d 1700000000000\n", lines++, 0);
        add(p, "box", line);
    }
    assert_in_range(p->journal.bytes, HISTORY_JOURNAL_BYTES, HISTORY_JOURNAL_BYTES + 200);
    static const char left[] = "box exec_1 a 1\n";
    assert_int_equal(journal_replace(&p->journal, (struct slice){left, sizeof(left) - 1}, &err), 0);
    assert_false(journal_is_old(&p->journal));
    add(p, "box", "exec_2 b 2\n");
    reopen(p);
    assert_holds(p, "[box]exec_1 a 1\n[box]exec_2 b 2\n");
    assert_int_equal(faccessat(p->fd, "journal.new", F_OK, 0), -1);
}

/* As on a full disk: a part of a line is written, and taken back. */
static void test_no_room_for_all_of_a_line(void **state)
{
    struct place *p = *state;
    struct rlimit before, little;
    struct error err = {0};
    add(p, "box", "exec_1 a 1\n");
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    little = (struct rlimit){p->journal.bytes + 5, before.rlim_max};
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &little), 0);
    int rc = journal_add(&p->journal, "box", (struct slice){"exec_2 b 2\n", 11}, &err);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    assert_int_equal(rc, -1);
    add(p, "box", "exec_3 c 3\n");
    reopen(p);
    assert_holds(p, "[box]exec_1 a 1\n[box]exec_3 c 3\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_lines_are_read_again, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_torn_line_is_none, setup, teardown),
        cmocka_unit_test_setup_teardown(test_written_anew, setup, teardown),
        cmocka_unit_test_setup_teardown(test_no_room_for_all_of_a_line, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
