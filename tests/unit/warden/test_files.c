/* SPDX-License-Identifier: Apache-2.0 */

#include "warden/files.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static void a_removed_folder_takes_nothing(void **state)
{
    char dir[] = "/tmp/cella-files-XXXXXX";
    struct error err;
    int fd;
    assert_non_null(mkdtemp(dir));
    assert_int_equal(dir_open_at(AT_FDCWD, dir, &fd, &err), 0);
    assert_int_equal(rmdir(dir), 0);
    assert_int_equal(file_replace_at(fd, "x", "text", 0600, &err), -1);
    assert_int_equal(err.code, ERROR_FILE_NOT_FOUND);
    close(fd);
}

static void replaces_and_reads(void **state)
{
    char dir[] = "/tmp/cella-files-XXXXXX", text[8];
    struct error err;
    int fd;
    assert_non_null(mkdtemp(dir));
    assert_int_equal(dir_open_at(AT_FDCWD, dir, &fd, &err), 0);
    assert_int_equal(file_replace_at(fd, "x", "one", 0600, &err), 0);
    assert_int_equal(file_replace_at(fd, "x", "two and more", 0600, &err), 0);
    assert_int_equal(file_read_at(fd, "x", text, sizeof(text), &err), 0);
    assert_string_equal(text, "two and"); /* cut at the buffer's size */
    assert_int_equal(file_read_at(fd, "y", text, sizeof(text), &err), -1);
    assert_int_equal(err.code, ERROR_FILE_NOT_FOUND);
    close(fd);
    assert_int_equal(tree_remove_at(AT_FDCWD, dir, &err), 0);
}

static void removes_trees_but_not_what_links_lead_to(void **state)
{
    char dir[] = "/tmp/cella-files-XXXXXX";
    struct error err;
    struct stat st;
    int fd;
    assert_non_null(mkdtemp(dir));
    assert_int_equal(dir_open_at(AT_FDCWD, dir, &fd, &err), 0);
    assert_int_equal(dir_make_at(fd, "keep", 0700, &err), 0);
    assert_int_equal(file_replace_at(fd, "file", "text", 0600, &err), 0);
    assert_int_equal(dir_make_at(fd, "tree", 0700, &err), 0);
    assert_int_equal(dir_make_at(fd, "tree/a", 0700, &err), 0);
    assert_int_equal(dir_make_at(fd, "tree/a/b", 0700, &err), 0);
    assert_int_equal(symlinkat("../keep", fd, "tree/link"), 0);
    assert_int_equal(symlinkat("../../file", fd, "tree/a/link"), 0);
    assert_int_equal(tree_remove_at(fd, "tree", &err), 0);
    assert_int_equal(tree_remove_at(fd, "tree", &err), 0); /* not there: fine */
    assert_int_equal(fstatat(fd, "keep", &st, 0), 0);
    assert_int_equal(fstatat(fd, "file", &st, 0), 0);
    close(fd);
    assert_int_equal(tree_remove_at(AT_FDCWD, dir, &err), 0);
    assert_int_equal(access(dir, F_OK), -1);
}

/* Deeper than there are descriptors. */
static void removes_a_tree_of_any_depth(void **state)
{
    enum { DEPTH = 1000, FILES = 128 };
    struct rlimit before, few = {.rlim_cur = FILES};
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    few.rlim_max = before.rlim_max;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    char dir[] = "/tmp/cella-files-XXXXXX";
    struct error err;
    assert_non_null(mkdtemp(dir));
    int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (int i = 0; i < DEPTH; i++) {
        assert_int_equal(mkdirat(fd, "d", 0700), 0);
        if (i % 100 == 0) { /* names that the removal would use itself, and some leaves */
            assert_int_equal(mkdirat(fd, "moved-0", 0700), 0);
            assert_int_equal(symlinkat("/etc", fd, "moved-1"), 0);
        }
        int below = openat(fd, "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        assert_true(below >= 0);
        close(fd);
        fd = below;
    }
    close(fd);
    assert_int_equal(tree_remove_at(AT_FDCWD, dir, &err), 0);
    assert_int_equal(access(dir, F_OK), -1);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
}

static void links_are_not_opened(void **state)
{
    char dir[] = "/tmp/cella-files-XXXXXX", text[8];
    struct error err;
    int fd, other;
    assert_non_null(mkdtemp(dir));
    assert_int_equal(dir_open_at(AT_FDCWD, dir, &fd, &err), 0);
    assert_int_equal(symlinkat("/etc/passwd", fd, "file"), 0);
    assert_int_equal(symlinkat("/etc", fd, "dir"), 0);
    assert_int_equal(file_read_at(fd, "file", text, sizeof(text), &err), -1);
    assert_int_equal(dir_open_at(fd, "dir", &other, &err), -1);
    close(fd);
    assert_int_equal(tree_remove_at(AT_FDCWD, dir, &err), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_removed_folder_takes_nothing),
        cmocka_unit_test(replaces_and_reads),
        cmocka_unit_test(removes_trees_but_not_what_links_lead_to),
        cmocka_unit_test(removes_a_tree_of_any_depth),
        cmocka_unit_test(links_are_not_opened),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
