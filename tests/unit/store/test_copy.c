/* SPDX-License-Identifier: Apache-2.0 */

/* Copies of the database, whether changes can be made, and what is left of what was deleted. */

#include "store/store.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "fixture.h"
#include "loop/loop.h"

#define MARK "a-word-that-nothing-else-has"

static struct loaded loaded;

static void put_marked(struct store *store, const char *id)
{
    struct store_sandbox row = make_sandbox(id, id);
    struct error err = {0};
    row.env = (struct slice){"A=" MARK, sizeof("A=" MARK)};
    if (store_put_sandbox(store, &row, NULL, &err) < 0)
        fail_msg("%s", err.message);
}

/* Whether the file has the mark in it; also when it is not there. */
static bool holds_mark(const char *path)
{
    _cleanup_buf_ struct buf text = BUF_INIT(64 << 20);
    _cleanup_fd_ int fd = open(path, O_RDONLY | O_CLOEXEC);
    char piece[65536];
    ssize_t n;
    while (fd >= 0 && (n = read(fd, piece, sizeof(piece))) > 0)
        buf_add(&text, piece, (size_t)n);
    return text.len > 0 && memmem(text.data, text.len, MARK, strlen(MARK)) != NULL;
}

static void copies(void **state)
{
    struct fixture *f = *state;
    struct store *copy;
    struct error err = {0};
    char path[128];
    snprintf(path, sizeof(path), "%s/copy.db", f->dir);
    put_marked(f->store, "gone");
    struct store_sandbox row = make_sandbox("kept", "kept");
    assert_int_equal(store_put_sandbox(f->store, &row, NULL, &err), 0);
    assert_int_equal(store_delete_sandbox(f->store, "gone", &err), 0);
    if (store_copy(f->store, path, &err) < 0)
        fail_msg("%s", err.message);
    assert_false(holds_mark(path)); /* pages that nobody uses are not in it */
    assert_int_equal(store_copy(f->store, path, &err), -1); /* never over another */
    if (store_open(NULL, path, true, &copy, &err) < 0)
        fail_msg("%s", err.message);
    load(copy, &loaded);
    assert_int_equal(loaded.sandbox_count, 1);
    assert_string_equal(loaded.names[0], "kept");
    assert_int_equal(store_put_sandbox(copy, &row, NULL, &err), -1); /* it was opened to be read */
    store_close(copy);
    unlink(path);
    assert_int_equal(store_copy(f->store, "/nowhere/copy.db", &err), -1);
}

static void checks(void **state)
{
    struct fixture *f = *state;
    struct error err = {0};
    char away[128];
    snprintf(away, sizeof(away), "%s/away", f->dir);
    for (int write = 0; write < 2; write++) {
        if (store_check(f->store, write, &err) < 0)
            fail_msg("%s", err.message);
        assert_int_equal(rename(f->path, away), 0);
        assert_int_equal(store_check(f->store, write, &err), -1);
        assert_int_equal(err.code, ERROR_UNAVAILABLE);
        assert_int_equal(rename(away, f->path), 0);
        assert_int_equal(store_check(f->store, write, &err), 0);
    }
    put_marked(f->store, "one"); /* a check changes nothing */
    fixture_reopen(f);
    load(f->store, &loaded);
    assert_int_equal(loaded.sandbox_count, 1);
}

/* A server's: its log still has what was deleted, for some seconds. */
static void what_was_deleted_is_forgotten(void **state)
{
    struct fixture *f = *state;
    struct error err = {0};
    char log[128];
    snprintf(log, sizeof(log), "%s-wal", f->path);
    struct loop *loop = loop_new(&err);
    assert_non_null(loop);
    store_close(f->store);
    f->store = NULL;
    if (store_open(loop, f->path, false, &f->store, &err) < 0)
        fail_msg("%s", err.message);
    put_marked(f->store, "gone");
    assert_true(holds_mark(log));
    assert_int_equal(store_delete_sandbox(f->store, "gone", &err), 0);
    for (int i = 0; i < 600 && (holds_mark(log) || holds_mark(f->path)); i++)
        nanosleep(&(struct timespec){.tv_nsec = 100 * 1000 * 1000}, NULL);
    assert_false(holds_mark(log));
    assert_false(holds_mark(f->path));
    store_close(f->store);
    f->store = NULL;
    loop_free(loop);
    if (store_open(NULL, f->path, false, &f->store, &err) < 0)
        fail_msg("%s", err.message);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
    const struct CMUnitTest tests[] = {TEST(copies), TEST(checks),
                                       TEST(what_was_deleted_is_forgotten)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
