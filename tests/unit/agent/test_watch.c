/* SPDX-License-Identifier: Apache-2.0 */

/* FILE_WATCH and FILE_FIND, end to end, on a real file system. */

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/globs.h"
#include "agent/fuzzy.h"
#include "base/cleanup.h"
#include "base/limits.h"
#include "fixture.h"

static void put(const struct fixture *f, const char *name, const char *text)
{
    int fd = open(fixture_path(f, name), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    close(fd);
}

static void make_dir(const struct fixture *f, const char *name)
{
    assert_int_equal(mkdir(fixture_path(f, name), 0755), 0);
}

/* --- watching --- */

static void watch(struct client *c, const char *path, bool recursive, const char *ignore)
{
    struct slice list = {ignore, ignore == NULL ? 0 : strlen(ignore) + 1};
    client_send(c, &file_watch_schema, 1, &(struct file_watch){path, recursive, list});
    client_expect(c, &wire_ok_schema, 1, NULL);
}

/* Reads events up to one of that kind and name. How many of them there were. */
static int wait_for(struct client *c, uint64_t op, const char *name)
{
    for (int count = 1;; count++) {
        struct file_event event;
        client_expect(c, &file_event_schema, 1, &event);
        assert_int_not_equal(event.op, OP_OVERFLOW);
        if (event.op == op && event.name != NULL && strcmp(event.name, name) == 0)
            return count;
    }
}

static void test_one_directory(void **state)
{
    const struct fixture *f = *state;
    struct client c = client_open(f);
    make_dir(f, "w");
    make_dir(f, "w/sub");
    watch(&c, fixture_path(f, "w"), false, "*.log");
    put(f, "w/sub/unseen", "x");
    put(f, "w/x.log", "x");
    put(f, "w/file", "x");
    assert_int_equal(wait_for(&c, OP_CREATE, "file"), 1);
    assert_int_equal(wait_for(&c, OP_WRITE, "file"), 1);
    assert_int_equal(rename(fixture_path(f, "w/file"), fixture_path(f, "w/moved")), 0);
    assert_int_equal(wait_for(&c, OP_RENAME, "file"), 1);
    assert_int_equal(wait_for(&c, OP_CREATE, "moved"), 1);
    assert_int_equal(chmod(fixture_path(f, "w/moved"), 0600), 0);
    assert_int_equal(wait_for(&c, OP_CHMOD, "moved"), 1);
    assert_int_equal(unlink(fixture_path(f, "w/moved")), 0);
    assert_int_equal(wait_for(&c, OP_REMOVE, "moved"), 1);
    client_close(&c);
}

static void test_moves_of_directories(void **state)
{
    const struct fixture *f = *state;
    struct client c = client_open(f);
    make_dir(f, "w");
    make_dir(f, "w/a");
    make_dir(f, "w/a/b");
    make_dir(f, "out");
    watch(&c, fixture_path(f, "w"), true, NULL);
    for (int i = 0; i < 20; i++) { /* round and round, into each other and out */
        rename(fixture_path(f, "w/a"), fixture_path(f, "w/z"));
        put(f, "w/z/b/f", "x");
        rename(fixture_path(f, "w/z"), fixture_path(f, "out/z"));
        put(f, "out/z/b/unseen", "x");
        rename(fixture_path(f, "out/z"), fixture_path(f, "w/a"));
    }
    put(f, "w/a/b/last", "x");
    wait_for(&c, OP_CREATE, "last");
    struct agent_process process;
    struct client other = client_open(f);
    client_run(&other, f, "rm -r w/a; mkdir w/end; : > w/end/end", &process);
    client_close(&other);
    wait_for(&c, OP_REMOVE, "a");
    wait_for(&c, OP_CREATE, "end");
    client_close(&c);
}

static void test_end_of_the_root(void **state)
{
    const struct fixture *f = *state;
    struct client c = client_open(f);
    struct file_event event;
    make_dir(f, "w");
    watch(&c, fixture_path(f, "w"), true, NULL);
    assert_int_equal(rmdir(fixture_path(f, "w")), 0);
    client_expect(&c, &file_event_schema, 1, &event);
    assert_int_equal(event.op, OP_REMOVE);
    assert_null(event.name);
    client_expect_end(&c);
    client_close(&c);
}

/* Nobody reads: the agent's memory stays as it is, and the reader is told in the end. */
static void test_slow_reader(void **state)
{
    const struct fixture *f = *state;
    struct client c = client_open(f);
    char name[300], path[600];
    make_dir(f, "w");
    watch(&c, fixture_path(f, "w"), false, NULL);
    memset(name, 'n', 200);
    for (int i = 0; i < 12000; i++) {
        snprintf(name + 200, sizeof(name) - 200, "%d", i % 50);
        snprintf(path, sizeof(path), "%s/w/%s", f->dir, name);
        close(open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
        unlink(path);
    }
    struct file_event event = {0};
    for (int i = 0; i < 30000 && event.op != OP_OVERFLOW; i++)
        client_expect(&c, &file_event_schema, 1, &event);
    assert_int_equal(event.op, OP_OVERFLOW);
    assert_non_null(event.text);
    client_close(&c);
}

static void test_too_many_directories(void **state)
{
    const struct fixture *f = *state;
    struct client c = client_open(f);
    struct file_event event = {0};
    char path[600];
    make_dir(f, "w");
    for (int i = 0; i < WATCH_DIRS_MAX + 10; i++) {
        snprintf(path, sizeof(path), "%s/w/%d", f->dir, i);
        assert_int_equal(mkdir(path, 0755), 0);
    }
    watch(&c, fixture_path(f, "w"), true, NULL);
    client_expect(&c, &file_event_schema, 1, &event);
    assert_int_equal(event.op, OP_OVERFLOW);
    client_close(&c);
}

static void test_watch_refusals(void **state)
{
    const struct fixture *f = *state;
    struct client c = client_open(f);
    client_send(&c, &file_watch_schema, 1, &(struct file_watch){.path = "relative"});
    client_expect_error(&c, 1, ERROR_INVALID_PATH, NULL);
    client_send(&c, &file_watch_schema, 1, &(struct file_watch){.path = fixture_path(f, "none")});
    client_expect_error(&c, 1, ERROR_FILE_NOT_FOUND, NULL);
    client_close(&c);
}

/* --- finding --- */

static int find(struct client *c, const struct file_find *request, uint64_t *ret_cut)
{
    struct slice payload;
    struct file_found found;
    client_send(c, &file_find_schema, 2, request);
    for (int count = 0;; count++) {
        struct frame_header header = client_next(c, &payload);
        if (header.type == FILE_FOUND) {
            assert_int_equal(wire_decode(&file_found_schema, payload, &found, NULL), 0);
            assert_int_equal(found.total, count);
            *ret_cut = found.cut;
            return count;
        }
        assert_int_equal(header.type, FILE_MATCH);
    }
}

static void test_find(void **state)
{
    const struct fixture *f = *state;
    struct client c = client_open(f);
    uint64_t cut;
    make_dir(f, "w");
    make_dir(f, "w/deep");
    put(f, "w/a.txt", "needle\nno\nNeedle\n");
    put(f, "w/deep/b.txt", "needleneedle");
    put(f, "w/deep/.hidden", "needle");
    assert_int_equal(symlink("/", fixture_path(f, "w/root")), 0);
    struct file_find request = {.path = fixture_path(f, "w"), .results_max = 100};
    assert_int_equal(find(&c, &request, &cut), 5);
    assert_int_equal(cut, 0);
    request.flags = FIND_FILES | FIND_NO_HIDDEN;
    assert_int_equal(find(&c, &request, &cut), 3);
    request.patterns = (struct slice){"*.txt", 6};
    assert_int_equal(find(&c, &request, &cut), 2);
    request.exclude = (struct slice){"deep", 5};
    assert_int_equal(find(&c, &request, &cut), 1);
    request = (struct file_find){.path = fixture_path(f, "w"), .results_max = 2};
    assert_int_equal(find(&c, &request, &cut), 2);
    assert_int_equal(cut, 1);
    request = (struct file_find){
        .path = fixture_path(f, "w"), .results_max = 100, .mode = FIND_CONTENT, .query = "needle"};
    assert_int_equal(find(&c, &request, &cut), 3);
    request.flags = FIND_ANY_CASE;
    assert_int_equal(find(&c, &request, &cut), 4);
    request.mode = FIND_FUZZY;
    request.query = "btxt";
    assert_int_equal(find(&c, &request, &cut), 1);
    static const struct file_find bad[] = {
        {.path = "/", .results_max = 0},
        {.path = "/", .results_max = FIND_RESULTS_MAX + 1},
        {.path = "/", .results_max = 1, .mode = 9},
        {.path = "/", .results_max = 1, .mode = FIND_CONTENT},
        {.path = "/", .results_max = 1, .mode = FIND_FUZZY, .query = ""},
    };
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        client_send(&c, &file_find_schema, 2, &bad[i]);
        client_expect_error(&c, 2, ERROR_INVALID_ARGUMENT, NULL);
    }
    client_close(&c);
}

static void test_globs(void **state)
{
    static const char list[] = "node_modules\0*.log\0src/gen\0docs/*.md";
    struct slice patterns = {list, sizeof(list)};
    assert_true(globs_match(patterns, "node_modules", "node_modules"));
    assert_true(globs_match(patterns, "a/node_modules", "node_modules"));
    assert_true(globs_match(patterns, "node_modules/x", "x"));
    assert_true(globs_match(patterns, "a/b.log", "b.log"));
    assert_true(globs_match(patterns, "src/gen", "gen"));
    assert_true(globs_match(patterns, "docs/a/b.md", "b.md"));
    assert_false(globs_match(patterns, "gen", "gen"));
    assert_false(globs_match(patterns, "src/general", "general"));
    assert_false(globs_match((struct slice){NULL, 0}, "a", "a"));
}

static void test_fuzzy(void **state)
{
    assert_int_equal(fuzzy_score("xyz", "src/main.c"), 0);
    assert_int_equal(fuzzy_score("", "src/main.c"), 0);
    assert_int_equal(fuzzy_score("  ", "src/main.c"), 0);
    assert_true(fuzzy_score("main", "main") > fuzzy_score("main", "src/main.c"));
    assert_true(fuzzy_score("main", "src/main.c") > fuzzy_score("main", "main/x.c"));
    assert_true(fuzzy_score("MC", "src/main.c") > 0);
    assert_true(fuzzy_score("main", "main.c") > fuzzy_score("main", "moaoion.c"));
    assert_true(fuzzy_score("main", "main") <= 1000);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_one_directory), TEST(test_moves_of_directories), TEST(test_end_of_the_root),
        TEST(test_slow_reader),   TEST(test_too_many_directories), TEST(test_watch_refusals),
        TEST(test_find),          cmocka_unit_test(test_globs),    cmocka_unit_test(test_fuzzy),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
