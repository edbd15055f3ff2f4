/* SPDX-License-Identifier: Apache-2.0 */

/* FILE_TREE and FILE_TREE_PUT: whole or not at all, whatever happens half-way. */

#include <dirent.h>
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
#include <sys/mount.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#include "agent/tree_journal.h"
#include "base/cleanup.h"
#include "base/limits.h"
#include "fixture.h"

/* --- helpers --- */

static void put(const struct fixture *f, const char *name, const char *text)
{
    int fd = open(fixture_path(f, name), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    close(fd);
}

/* "" when it is not there. */
static const char *content(const struct fixture *f, const char *name)
{
    static char have[256];
    memset(have, 0, sizeof(have));
    int fd = open(fixture_path(f, name), O_RDONLY | O_CLOEXEC);
    if (fd >= 0) {
        assert_true(read(fd, have, sizeof(have) - 1) >= 0);
        close(fd);
    }
    return have;
}

static bool exists(const struct fixture *f, const char *name)
{
    struct stat st;
    return lstat(fixture_path(f, name), &st) == 0;
}

static int count_names(const char *path)
{
    DIR *dir = opendir(path);
    if (dir == NULL)
        return -1;
    int count = 0;
    for (const struct dirent *e; (e = readdir(dir)) != NULL;)
        count += strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0 &&
                 strcmp(e->d_name, ".socket") != 0;
    closedir(dir);
    return count;
}

static void pause_ms(long ms)
{
    nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000}, NULL);
}

static void begin(struct client *c, const char *root)
{
    client_send(c, &file_tree_put_schema, 1, &(struct file_tree_begin){root});
}

static void item(struct client *c, const char *path, const char *text)
{
    client_send(c, &file_tree_item_schema, 1,
                &(struct file_tree_item){path, FILE_MODE_DEFAULT, false});
    if (*text != '\0')
        client_send_raw(c, FILE_DATA, 1, text, strlen(text));
}

static void end_ok(struct client *c)
{
    struct file_entry entry;
    client_send(c, &file_end_schema, 1, NULL);
    client_expect(c, &file_entry_schema, 1, &entry);
    assert_int_equal(entry.type, FILE_DIRECTORY);
}

static void end_fails(struct client *c, enum error_code code)
{
    client_send(c, &file_end_schema, 1, NULL);
    client_expect_error(c, 1, code, NULL);
}

/* The agent's only child: its worker. */
static pid_t worker_of(const struct fixture *f)
{
    char path[64], text[64] = "";
    snprintf(path, sizeof(path), "/proc/%d/task/%d/children", f->agent, f->agent);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    ssize_t n = read(fd, text, sizeof(text) - 1);
    close(fd);
    return n <= 0 ? 0 : (pid_t)strtol(text, NULL, 10);
}

static pid_t wait_worker(const struct fixture *f)
{
    pid_t pid = 0;
    for (int i = 0; i < 10000 && (pid = worker_of(f)) == 0; i++)
        pause_ms(1);
    assert_int_not_equal(pid, 0);
    return pid;
}

static void wait_no_worker(const struct fixture *f)
{
    for (int i = 0; i < 10000 && worker_of(f) != 0; i++)
        pause_ms(1);
    assert_int_equal(worker_of(f), 0);
}

/* --- putting --- */

static void test_put(void **state)
{
    const struct fixture *f = *state;
    struct client c = client_open(f);
    struct stat st;
    mkdir(fixture_path(f, "t"), 0755);
    put(f, "t/old", "before");
    assert_int_equal(chmod(fixture_path(f, "t/old"), 0750), 0);
    assert_int_equal(chown(fixture_path(f, "t/old"), 12, 34), 0);
    begin(&c, fixture_path(f, "t"));
    item(&c, fixture_path(f, "t/a/b/c"), "deep");
    item(&c, fixture_path(f, "t/a/b/d"), "");
    client_send(&c, &file_tree_item_schema, 1,
                &(struct file_tree_item){fixture_path(f, "t/e"), 0700, true});
    item(&c, fixture_path(f, "t/old"), "after");
    client_send(&c, &file_tree_item_schema, 1,
                &(struct file_tree_item){fixture_path(f, "t/x"), 04711, false});
    end_ok(&c);
    assert_string_equal(content(f, "t/a/b/c"), "deep");
    assert_true(exists(f, "t/a/b/d"));
    assert_string_equal(content(f, "t/old"), "after");
    assert_int_equal(stat(fixture_path(f, "t/old"), &st), 0);
    assert_int_equal(st.st_mode & 07777, 0750);
    assert_int_equal(st.st_uid, 12);
    assert_int_equal(st.st_gid, 34);
    assert_int_equal(stat(fixture_path(f, "t/e"), &st), 0);
    assert_int_equal(st.st_mode & 07777, 0700);
    assert_int_equal(stat(fixture_path(f, "t/x"), &st), 0);
    assert_int_equal(st.st_mode & 07777, 04711);
    assert_int_equal(count_names(fixture_path(f, "t")), 4);
    assert_false(exists(f, ".state"));
    client_close(&c);
}

static void test_empty_tree_makes_the_root(void **state)
{
    const struct fixture *f = *state;
    struct client c = client_open(f);
    begin(&c, fixture_path(f, "new/root"));
    end_ok(&c);
    assert_int_equal(count_names(fixture_path(f, "new/root")), 0);
    client_close(&c);
}

static void test_links(void **state)
{
    const struct fixture *f = *state;
    struct client c = client_open(f);
    mkdir(fixture_path(f, "real"), 0755);
    put(f, "real/file", "before");
    assert_int_equal(symlink("real", fixture_path(f, "dir-link")), 0);
    assert_int_equal(symlink("real/file", fixture_path(f, "file-link")), 0);
    assert_int_equal(symlink("real/new", fixture_path(f, "dangling")), 0);
    begin(&c, f->dir);
    item(&c, fixture_path(f, "dangling"), "made");
    item(&c, fixture_path(f, "dir-link/x"), "through");
    item(&c, fixture_path(f, "file-link"), "after");
    end_ok(&c);
    assert_string_equal(content(f, "real/file"), "after");
    assert_string_equal(content(f, "real/new"), "made");
    assert_string_equal(content(f, "real/x"), "through");
    struct stat st;
    assert_int_equal(lstat(fixture_path(f, "file-link"), &st), 0);
    assert_true(S_ISLNK(st.st_mode));
    client_close(&c);
}

/* What cannot be done as a whole is not done in part. */
static void test_refused(void **state)
{
    const struct fixture *f = *state;
    struct client c = client_open(f);
    mkdir(fixture_path(f, "t"), 0755);
    mkdir(fixture_path(f, "t/dir"), 0755);
    put(f, "t/keep", "before");
    static const struct {
        const char *path;
        enum error_code code;
    } rows[] = {
        {"t/dir", ERROR_IS_A_DIRECTORY},
        {"t/keep/below", ERROR_NOT_A_DIRECTORY},
        {"t/new/file/below", ERROR_NOT_A_DIRECTORY}, /* t/new/file comes in the same request */
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        begin(&c, fixture_path(f, "t"));
        item(&c, fixture_path(f, "t/keep"), "after");
        item(&c, fixture_path(f, "t/new/file"), "1");
        item(&c, fixture_path(f, rows[i].path), "2");
        item(&c, fixture_path(f, "t/zz"), "3");
        client_send(&c, &file_end_schema, 1, NULL);
        struct slice payload;
        struct error err;
        struct frame_header header = client_next(&c, &payload);
        assert_int_equal(header.type, WIRE_ERROR);
        wire_take_error(payload, &err);
        if (i < 2)
            assert_int_equal(err.code, rows[i].code);
        assert_string_equal(content(f, "t/keep"), "before");
        assert_int_equal(count_names(fixture_path(f, "t")), 2);
        assert_false(exists(f, ".state"));
    }
    begin(&c, "relative");
    end_fails(&c, ERROR_INVALID_PATH);
    begin(&c, fixture_path(f, "t"));
    client_send(&c, &file_tree_item_schema, 1,
                &(struct file_tree_item){fixture_path(f, "t/m"), 010000, false});
    end_fails(&c, ERROR_INVALID_ARGUMENT);
    client_close(&c);
}

static void test_full_disk(void **state)
{
    const struct fixture *f = *state;
    const char *small = fixture_path(f, "small");
    mkdir(small, 0755);
    assert_int_equal(mount("tmpfs", small, "tmpfs", 0, "size=1m"), 0);
    struct client c = client_open(f);
    put(f, "small/old", "before");
    _cleanup_free_ char *piece = calloc(1, WIRE_DATA_CHUNK);
    begin(&c, small);
    item(&c, fixture_path(f, "small/a/one"), "1");
    item(&c, fixture_path(f, "small/b/two"), "2");
    for (int i = 0; i < 8; i++)
        client_send_raw(&c, FILE_DATA, 1, piece, WIRE_DATA_CHUNK);
    item(&c, fixture_path(f, "small/old"), "after");
    end_fails(&c, ERROR_QUOTA_EXCEEDED);
    assert_string_equal(content(f, "small/old"), "before");
    assert_int_equal(count_names(small), 1);
    client_close(&c);
    wait_no_worker(f);
    assert_int_equal(umount(small), 0);
}

static void test_too_many(void **state)
{
    const struct fixture *f = *state;
    struct client c = client_open(f);
    char path[600];
    begin(&c, fixture_path(f, "t"));
    for (int i = 0; i <= TREE_FILES_MAX; i++) {
        snprintf(path, sizeof(path), "%s/t/%d", f->dir, i);
        item(&c, path, "");
    }
    end_fails(&c, ERROR_LIMIT_EXCEEDED);
    assert_false(exists(f, "t"));
    client_close(&c);
}

/* --- killed half-way --- */

static void test_cut_before_the_end(void **state)
{
    const struct fixture *f = *state;
    put(f, "old", "before");
    for (int kill_it = 0; kill_it < 2; kill_it++) {
        struct client c = client_open(f);
        begin(&c, f->dir);
        item(&c, fixture_path(f, "new/one"), "1");
        item(&c, fixture_path(f, "old"), "after");
        pid_t pid = wait_worker(f);
        if (kill_it)
            assert_int_equal(kill(pid, SIGKILL), 0);
        client_close(&c);
        wait_no_worker(f);
        assert_string_equal(content(f, "old"), "before");
        assert_false(exists(f, "new"));
        assert_false(exists(f, ".state"));
    }
}

enum { MANY = 400 };

/* At whatever moment the worker dies: everything is there, or nothing, once the agent has had its
 * say; and a file that was replaced is never in between. */
static void test_killed_at_any_moment(void **state)
{
    const struct fixture *f = *state;
    char path[600];
    for (int round = 0; round < 24; round++) {
        put(f, "old", "before");
        struct client c = client_open(f);
        begin(&c, f->dir);
        for (int i = 0; i < MANY; i++) {
            snprintf(path, sizeof(path), "%s/many/%d/%d", f->dir, i / 20, i);
            item(&c, path, "x");
        }
        item(&c, fixture_path(f, "old"), "after");
        pid_t pid = wait_worker(f);
        client_send(&c, &file_end_schema, 1, NULL);
        for (int i = 0; i < round * 1000; i++)
            __asm__ volatile("" ::: "memory");
        if (round % 3 == 0)
            nanosleep(&(struct timespec){.tv_nsec = round * 400000L}, NULL);
        kill(pid, SIGKILL);
        client_close(&c);
        /* The dead worker, then the housekeeper, then nobody. */
        for (int i = 0; i < 10000; i++) {
            bool settled = worker_of(f) == 0 && !exists(f, ".state");
            bool all = strcmp(content(f, "old"), "after") == 0 && exists(f, "many/19/399");
            bool none = strcmp(content(f, "old"), "before") == 0 && !exists(f, "many");
            if (settled && (all || none))
                break;
            pause_ms(1);
        }
        assert_int_equal(worker_of(f), 0);
        assert_false(exists(f, ".state"));
        bool all = exists(f, "many");
        assert_string_equal(content(f, "old"), all ? "after" : "before");
        if (all)
            for (int i = 0; i < MANY; i++) {
                snprintf(path, sizeof(path), "many/%d/%d", i / 20, i);
                assert_string_equal(content(f, path), "x");
            }
        /* Nothing hidden is left beside them. */
        assert_int_equal(count_names(f->dir), all ? 2 : 1);
        struct client again = client_open(f);
        struct agent_process process;
        client_run(&again, f, "rm -rf many old", &process);
        client_close(&again);
    }
}

/* --- the journal itself --- */

/* These tests need a folder and no agent; but one that has not come up yet cannot end well. */
static void settle(const struct fixture *f)
{
    struct client c = client_open(f);
    struct agent_about about;
    client_send(&c, &agent_hello_schema, 9, NULL);
    client_expect(&c, &agent_about_schema, 9, &about);
    client_close(&c);
}

static ino_t inode_of(const struct fixture *f, const char *name)
{
    struct stat st;
    assert_int_equal(lstat(fixture_path(f, name), &st), 0);
    return st.st_ino;
}

/* As a worker leaves things that died after `done` of the five steps. */
static void half_done(const struct fixture *f, const char *state_dir, int done)
{
    struct error err;
    struct tree_journal journal = TREE_JOURNAL_INIT;
    put(f, ".new", "new");
    put(f, ".swap", "after");
    put(f, "old", "before");
    tree_journal_mkdir(&journal, fixture_path(f, "d"));
    tree_journal_mkdir(&journal, fixture_path(f, "d/e"));
    tree_journal_create(&journal, fixture_path(f, "d/e/n"), inode_of(f, ".new"));
    tree_journal_swap(&journal, fixture_path(f, "old"), ".hidden", inode_of(f, ".swap"));
    assert_int_equal(tree_journal_begin(&journal, state_dir, &err), 0);
    if (done > 0)
        mkdir(fixture_path(f, "d"), 0755);
    if (done > 1)
        mkdir(fixture_path(f, "d/e"), 0755);
    if (done > 2)
        assert_int_equal(link(fixture_path(f, ".new"), fixture_path(f, "d/e/n")), 0);
    if (done > 3)
        assert_int_equal(link(fixture_path(f, ".swap"), fixture_path(f, ".hidden")), 0);
    if (done > 4)
        assert_int_equal(renameat2(AT_FDCWD, fixture_path(f, ".hidden"), AT_FDCWD,
                                   fixture_path(f, "old"), RENAME_EXCHANGE),
                         0);
    unlink(fixture_path(f, ".new"));
    unlink(fixture_path(f, ".swap"));
    tree_journal_release(&journal); /* and with it the lock, as the kernel does */
}

static void test_recovery(void **state)
{
    const struct fixture *f = *state;
    settle(f);
    char state_dir[600];
    snprintf(state_dir, sizeof(state_dir), "%s/journals", f->dir);
    for (int done = 0; done <= 5; done++) {
        half_done(f, state_dir, done);
        tree_journals_recover(state_dir);
        assert_string_equal(content(f, "old"), "before");
        assert_false(exists(f, "d"));
        assert_false(exists(f, ".hidden"));
        assert_false(exists(f, "journals"));
        assert_int_equal(count_names(f->dir), 1);
    }
}

/* A journal that is held is somebody's who is alive. */
static void test_recovery_leaves_the_living_alone(void **state)
{
    const struct fixture *f = *state;
    settle(f);
    struct error err;
    char state_dir[600];
    snprintf(state_dir, sizeof(state_dir), "%s/journals", f->dir);
    struct tree_journal journal = TREE_JOURNAL_INIT;
    tree_journal_mkdir(&journal, fixture_path(f, "d"));
    assert_int_equal(tree_journal_begin(&journal, state_dir, &err), 0);
    mkdir(fixture_path(f, "d"), 0755);
    tree_journals_recover(state_dir);
    assert_true(exists(f, "d"));
    assert_int_equal(tree_journal_done(&journal, state_dir, &err), 0);
    tree_journal_release(&journal);
    assert_true(exists(f, "d"));
    assert_false(exists(f, "journals"));
}

static void test_recovery_of_rubbish(void **state)
{
    const struct fixture *f = *state;
    settle(f);
    char state_dir[600];
    snprintf(state_dir, sizeof(state_dir), "%s/journals", f->dir);
    mkdir(state_dir, 0700);
    mkdir(fixture_path(f, "journals/trees"), 0700);
    put(f, "journals/trees/t-1", "no list at all");
    put(f, "journals/trees/d-2", "");
    mkdir(fixture_path(f, "journals/trees/t-3"), 0700);
    tree_journals_recover(state_dir);
    assert_false(exists(f, "journals/trees/t-1"));
    assert_false(exists(f, "journals/trees/d-2"));
}

/* --- getting --- */

static void test_get(void **state)
{
    const struct fixture *f = *state;
    struct client c = client_open(f);
    mkdir(fixture_path(f, "t"), 0755);
    mkdir(fixture_path(f, "t/a"), 0755);
    mkdir(fixture_path(f, "t/a/b"), 0755);
    put(f, "t/a/b/file", "x");
    put(f, "t/top", "xy");
    assert_int_equal(symlink("/", fixture_path(f, "t/root")), 0);
    static const struct {
        uint64_t depth, max;
        int count;
        uint64_t cut;
    } rows[] = {{1, 100, 3, 0}, {2, 100, 4, 0}, {28, 100, 5, 0}, {28, 2, 2, 1}, {28, 0, 0, 1}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct file_entry entry;
        struct file_tree_end end;
        struct slice payload;
        client_send(
            &c, &file_tree_schema, 5,
            &(struct file_tree_get){fixture_path(f, "t"), rows[i].depth, rows[i].max, NULL});
        client_expect(&c, &file_entry_schema, 5, &entry);
        assert_int_equal(entry.type, FILE_DIRECTORY);
        int count = 0;
        struct frame_header header;
        while ((header = client_next(&c, &payload)).type == FILE_ENTRY)
            count++;
        assert_int_equal(header.type, FILE_TREE_END);
        assert_int_equal(wire_decode(&file_tree_end_schema, payload, &end, NULL), 0);
        assert_int_equal(count, rows[i].count);
        assert_int_equal(end.cut, rows[i].cut);
    }
    client_send(&c, &file_tree_schema, 6,
                &(struct file_tree_get){fixture_path(f, "t/top"), 1, 1, NULL});
    client_expect_error(&c, 6, ERROR_NOT_A_DIRECTORY, NULL);
    client_send(&c, &file_tree_schema, 6, &(struct file_tree_get){f->dir, 1000, 1, NULL});
    client_expect_error(&c, 6, ERROR_INVALID_ARGUMENT, NULL);
    client_close(&c);
}

int main(void)
{
    if (geteuid() != 0)
        return 77; /* skipped: owners and mounts need root */
#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_put),
        TEST(test_empty_tree_makes_the_root),
        TEST(test_links),
        TEST(test_refused),
        TEST(test_full_disk),
        TEST(test_too_many),
        TEST(test_cut_before_the_end),
        TEST(test_killed_at_any_moment),
        TEST(test_recovery),
        TEST(test_recovery_leaves_the_living_alone),
        TEST(test_recovery_of_rubbish),
        TEST(test_get),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
