/* SPDX-License-Identifier: Apache-2.0 */

#include "warden/image.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "warden/files.h"

struct tree {
    char dir[64];
    int usr, mask;
};

static void add(int dirfd, const char *path, mode_t mode)
{
    int fd = openat(dirfd, path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(fchmod(fd, mode), 0);
    close(fd);
}

static void add_dir(int dirfd, const char *path, mode_t mode)
{
    assert_int_equal(mkdirat(dirfd, path, 0700), 0);
    assert_int_equal(fchmodat(dirfd, path, mode, 0), 0);
}

static int set_up(void **state)
{
    if (geteuid() != 0)
        return 0;
    struct tree *tree = calloc(1, sizeof(*tree));
    snprintf(tree->dir, sizeof(tree->dir), "/tmp/cella-image-XXXXXX");
    assert_non_null(mkdtemp(tree->dir));
    char path[80];
    snprintf(path, sizeof(path), "%s/usr", tree->dir);
    mkdir(path, 0755);
    tree->usr = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    snprintf(path, sizeof(path), "%s/mask", tree->dir);
    mkdir(path, 0755);
    tree->mask = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    *state = tree;
    return 0;
}

static int tear_down(void **state)
{
    struct tree *tree = *state;
    if (tree == NULL)
        return 0;
    close(tree->usr);
    close(tree->mask);
    int r = tree_remove_at(AT_FDCWD, tree->dir, NULL);
    free(tree);
    return r;
}

static bool is_whiteout(int dirfd, const char *path)
{
    struct stat st;
    return fstatat(dirfd, path, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISCHR(st.st_mode) &&
           st.st_rdev == makedev(0, 0);
}

static int make_mask(int usr, int mask, struct error *err)
{
    _cleanup_buf_ struct buf hidden = BUF_INIT(IMAGE_HIDDEN_MAX);
    if (image_mask_find(usr, &hidden, err) < 0)
        return -1;
    return image_mask_make(usr, mask, &hidden, err);
}

static void hides_what_is_not_everybodys(void **state)
{
    const struct tree *tree = *state;
    struct error err = {0};
    struct stat st;
    if (tree == NULL)
        skip(); /* whiteouts are device nodes: only root makes them */
    add_dir(tree->usr, "bin", 0755);
    add(tree->usr, "bin/open", 0755);
    add(tree->usr, "bin/secret", 0750);
    add_dir(tree->usr, "bin/deep", 0775);
    assert_int_equal(fchownat(tree->usr, "bin/deep", 7, 8, 0), 0);
    add(tree->usr, "bin/deep/key", 0600);
    add_dir(tree->usr, "closed", 0750);
    add(tree->usr, "closed/readable", 0644);
    add_dir(tree->usr, "unsearchable", 0754);
    assert_int_equal(symlinkat("/etc/shadow", tree->usr, "bin/link"), 0);
    assert_int_equal(make_mask(tree->usr, tree->mask, &err), 0);

    assert_true(is_whiteout(tree->mask, "bin/secret"));
    assert_true(is_whiteout(tree->mask, "bin/deep/key"));
    assert_true(is_whiteout(tree->mask, "closed")); /* the folder as a whole */
    assert_true(is_whiteout(tree->mask, "unsearchable"));
    assert_int_equal(fstatat(tree->mask, "bin/open", &st, 0), -1);
    assert_int_equal(fstatat(tree->mask, "bin/link", &st, AT_SYMLINK_NOFOLLOW), -1);
    /* A folder of the mask covers the one below: it has to look the same. */
    assert_int_equal(fstatat(tree->mask, "bin/deep", &st, 0), 0);
    assert_int_equal(st.st_mode & 07777, 0775);
    assert_int_equal(st.st_uid, 7);
    assert_int_equal(st.st_gid, 8);
}

/* Makes and removes a folder with something to hide, until it is ended. */
static void come_and_go(int dirfd)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (;;) {
        mkdirat(dirfd, "package", 0755);
        mkdirat(dirfd, "package/part", 0755);
        int fd = openat(dirfd, "package/part/key", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
        close(fd);
        unlinkat(dirfd, "package/part/key", 0);
        unlinkat(dirfd, "package/part", AT_REMOVEDIR);
        unlinkat(dirfd, "package", AT_REMOVEDIR);
    }
}

static void what_goes_meanwhile_is_no_failure(void **state)
{
    enum { ROUNDS = 300 };
    const struct tree *tree = *state;
    struct error err = {0};
    int failed = 0;
    if (tree == NULL)
        skip();
    add(tree->usr, "secret", 0600);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0)
        come_and_go(tree->usr);
    for (int i = 0; i < ROUNDS && failed == 0; i++) {
        int fd = -1;
        failed |= mkdirat(tree->mask, "round", 0755) | dir_open_at(tree->mask, "round", &fd, &err) |
                  make_mask(tree->usr, fd, &err);
        failed |= !is_whiteout(fd, "secret");
        failed |= close(fd) | tree_remove_at(tree->mask, "round", &err);
    }
    kill(pid, SIGKILL);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    if (failed != 0)
        fail_msg("%s", err.message);
}

static void the_root_has_what_it_needs(void **state)
{
    static const struct {
        const char *path;
        mode_t mode;
        uid_t owner;
    } rows[] = {
        {"tmp", S_IFDIR | 01777, 0},         {"workspace", S_IFDIR | 01777, 0},
        {"home/user", S_IFDIR | 0755, 1000}, {"root", S_IFDIR | 0700, 0},
        {"etc/passwd", S_IFREG | 0644, 0},   {"etc/shadow", S_IFREG | 0600, 0},
        {"etc/sudoers", S_IFREG | 0440, 0},  {"proc", S_IFDIR | 0555, 0},
    };
    const struct tree *tree = *state;
    struct error err = {0};
    if (tree == NULL)
        skip();
    mode_t mask = umask(0);
    int r = image_skel_make(tree->mask, &err);
    umask(mask);
    assert_int_equal(r, 0);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct stat st;
        assert_int_equal(fstatat(tree->mask, rows[i].path, &st, AT_SYMLINK_NOFOLLOW), 0);
        assert_int_equal(st.st_mode, rows[i].mode);
        assert_int_equal(st.st_uid, rows[i].owner);
    }
    char target[16] = {0};
    assert_true(readlinkat(tree->mask, "bin", target, sizeof(target) - 1) > 0);
    assert_string_equal(target, "usr/bin");
    struct stat st;
    assert_int_equal(fstatat(tree->mask, "etc/ssl/private", &st, 0), -1);
    assert_int_equal(fstatat(tree->mask, "etc/machine-id", &st, 0), -1);
}

/* --- the list that servers share --- */

static void change_byte(const struct tree *tree, off_t at)
{
    char path[100], byte;
    snprintf(path, sizeof(path), "%s/host-image-hidden", tree->dir);
    int fd = open(path, O_RDWR | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(pread(fd, &byte, 1, at), 1);
    byte ^= 1;
    assert_int_equal(pwrite(fd, &byte, 1, at), 1);
    close(fd);
}

static void a_list_is_found_again(void **state)
{
    enum { STAMP = 7 };
    static const char paths[] = "bin/secret\0lib/key";
    const struct tree *tree = *state;
    _cleanup_buf_ struct buf list = BUF_INIT(1000), got = BUF_INIT(1000), small = BUF_INIT(3);
    if (tree == NULL)
        skip();
    assert_false(image_cache_load(tree->dir, STAMP, &got));
    buf_add(&list, paths, sizeof(paths));
    image_cache_save(tree->dir, STAMP, &list);
    assert_true(image_cache_load(tree->dir, STAMP, &got));
    assert_int_equal(got.len, sizeof(paths));
    assert_memory_equal(got.data, paths, sizeof(paths));
    buf_clear(&got);
    assert_false(image_cache_load(tree->dir, STAMP + 1, &got));
    assert_false(image_cache_load(tree->dir, STAMP, &small));
    change_byte(tree, 24 + 4); /* behind the header */
    assert_false(image_cache_load(tree->dir, STAMP, &got));
    assert_int_equal(got.len, 0);
    change_byte(tree, 24 + 4);
    assert_int_equal(chmod(tree->dir, 0777), 0); /* anybody could have put it there */
    assert_false(image_cache_load(tree->dir, STAMP, &got));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(hides_what_is_not_everybodys, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_goes_meanwhile_is_no_failure, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_root_has_what_it_needs, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_list_is_found_again, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
