/* SPDX-License-Identifier: Apache-2.0 */

/* Copies of layers by the plain backend, which needs no privilege for files of one's own: what is
 * the same for both backends, and every kind of file. */

#include "warden/storage.h"

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
#include <sys/xattr.h>
#include <unistd.h>

#include "warden/files.h"

struct fixture {
    char data[32];
    struct storage storage;
    int upper; /* of the layer "one" */
};

enum { QUOTA = 1 << 30 };

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));
    bool fresh;
    snprintf(f->data, sizeof(f->data), "/tmp/cella-clone-XXXXXX");
    assert_non_null(mkdtemp(f->data));
    assert_int_equal(storage_mount(&f->storage, f->data, STORAGE_PLAIN, 0, NULL), 0);
    assert_int_equal(storage_open(&f->storage, NULL), 0);
    assert_int_equal(storage_create(&f->storage, "one", QUOTA, &fresh, NULL), 0);
    assert_int_equal(dir_open_at(f->storage.fd, "one/root/upper", &f->upper, NULL), 0);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    close(f->upper);
    storage_close(&f->storage);
    assert_int_equal(tree_remove_at(AT_FDCWD, f->data, NULL), 0);
    free(f);
    return 0;
}

static void write_file(int dirfd, const char *name, const char *text)
{
    int fd = openat(dirfd, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    close(fd);
}

static void assert_text(int dirfd, const char *name, const char *text)
{
    char got[256];
    assert_int_equal(file_read_at(dirfd, name, got, sizeof(got), NULL), 0);
    assert_string_equal(got, text);
}

static int copy(struct fixture *f, const char *id, const struct copy_watch *watch, uint64_t quota,
                struct error *err)
{
    struct clone_place place = CLONE_PLACE_INIT;
    int r = storage_clone_begin(&f->storage, id, watch, &place, err);
    if (r == 0)
        r = storage_clone_copy(&f->storage, "one", &place, watch, err);
    if (r == 0)
        r = storage_clone_finish(&f->storage, "one", &place, quota, "two", err);
    storage_clone_release(&place);
    return r;
}

static int copy_and_commit(struct fixture *f, const char *id, int *ret_upper)
{
    char path[64];
    struct error err = {0};
    if (copy(f, id, NULL, QUOTA, &err) < 0 || storage_clone_commit(&f->storage, id, &err) < 0)
        fail_msg("%s", err.message);
    storage_clone_tidy(&f->storage);
    snprintf(path, sizeof(path), "%s/root/upper", id);
    return dir_open_at(f->storage.fd, path, ret_upper, NULL);
}

static void every_kind_of_file(void **state)
{
    struct fixture *f = *state;
    struct stat st, other;
    const struct timespec times[] = {{1, 2}, {981173106, 789}};
    char target[16] = "", value[8];
    int upper;
    write_file(f->upper, "file", "text");
    assert_int_equal(fchmodat(f->upper, "file", 06751, 0), 0);
    bool xattrs = true;
    char path[64];
    snprintf(path, sizeof(path), "/proc/self/fd/%d/file", f->upper);
    if (setxattr(path, "user.note", "\0\1", 2, 0) < 0)
        xattrs = false; /* not on every file system */
    assert_int_equal(linkat(f->upper, "file", f->upper, "hard", 0), 0);
    assert_int_equal(symlinkat("/nowhere", f->upper, "link"), 0);
    assert_int_equal(mkfifoat(f->upper, "pipe", 0600), 0);
    assert_int_equal(mkdirat(f->upper, "dir", 01777), 0);
    assert_int_equal(fchmodat(f->upper, "dir", 01777, 0), 0);
    write_file(f->upper, "dir/in", "inside");
    write_file(f->upper, "sparse", "");
    int fd = openat(f->upper, "sparse", O_WRONLY | O_CLOEXEC);
    assert_int_equal(ftruncate(fd, 1 << 30), 0);
    assert_int_equal(pwrite(fd, "middle", 6, 1 << 29), 6);
    close(fd);
    assert_int_equal(utimensat(f->upper, "file", times, 0), 0);
    assert_int_equal(utimensat(f->upper, "dir", times, 0), 0);

    assert_int_equal(copy_and_commit(f, "two", &upper), 0);
    assert_text(upper, "file", "text");
    assert_text(upper, "dir/in", "inside");
    assert_int_equal(fstatat(upper, "file", &st, 0), 0);
    assert_int_equal(st.st_mode & 07777, 06751);
    assert_int_equal(st.st_mtim.tv_sec, 981173106);
    assert_int_equal(st.st_mtim.tv_nsec, 789);
    assert_int_equal(st.st_nlink, 2);
    assert_int_equal(fstatat(upper, "hard", &other, 0), 0);
    assert_true(st.st_ino == other.st_ino);
    assert_int_equal(readlinkat(upper, "link", target, sizeof(target)), 8);
    assert_int_equal(fstatat(upper, "pipe", &st, 0), 0);
    assert_true(S_ISFIFO(st.st_mode));
    assert_int_equal(fstatat(upper, "dir", &st, 0), 0);
    assert_int_equal(st.st_mode & 07777, 01777);
    assert_int_equal(st.st_mtim.tv_sec, 981173106);
    assert_int_equal(fstatat(upper, "sparse", &st, 0), 0);
    assert_int_equal(st.st_size, 1 << 30);
    assert_true(st.st_blocks < 2048);
    fd = openat(upper, "sparse", O_RDONLY | O_CLOEXEC);
    assert_int_equal(pread(fd, target, 6, 1 << 29), 6);
    assert_memory_equal(target, "middle", 6);
    close(fd);
    snprintf(path, sizeof(path), "/proc/self/fd/%d/file", upper);
    if (xattrs) {
        assert_int_equal(getxattr(path, "user.note", value, sizeof(value)), 2);
        assert_memory_equal(value, "\0\1", 2);
    }
    close(upper);
}

static void its_own_name(void **state)
{
    struct fixture *f = *state;
    int upper;
    assert_int_equal(mkdirat(f->upper, "etc", 0755), 0);
    write_file(f->upper, "etc/hostname", "one\n");
    write_file(f->upper, "etc/hosts", "127.0.0.1 localhost\n127.0.1.1 one\n10.0.0.1 mine\n");
    assert_int_equal(copy_and_commit(f, "two", &upper), 0);
    assert_text(upper, "etc/hostname", "two\n");
    assert_text(upper, "etc/hosts", "127.0.0.1 localhost\n127.0.1.1 two\n10.0.0.1 mine\n");
    close(upper);
}

/* A layer's user can make anything of /etc; none of it may lead elsewhere, or hang. */
static void names_that_lead_elsewhere(void **state)
{
    struct fixture *f = *state;
    char outside[64], path[64];
    int upper;
    snprintf(outside, sizeof(outside), "%s/outside", f->data);
    assert_int_equal(mkdir(outside, 0755), 0);
    snprintf(path, sizeof(path), "%s/hostname", outside);
    write_file(AT_FDCWD, path, "outside\n");
    assert_int_equal(symlinkat(outside, f->upper, "etc"), 0);
    assert_int_equal(copy_and_commit(f, "two", &upper), 0);
    assert_text(AT_FDCWD, path, "outside\n");
    close(upper);

    assert_int_equal(unlinkat(f->upper, "etc", 0), 0);
    assert_int_equal(mkdirat(f->upper, "etc", 0755), 0);
    write_file(f->upper, "etc/hostname", "one\n");
    assert_int_equal(symlinkat(path, f->upper, "etc/hosts"), 0);
    assert_int_equal(mkfifoat(f->upper, "etc/.cella-clone", 0600), 0);
    assert_int_equal(copy_and_commit(f, "three", &upper), 0);
    assert_text(AT_FDCWD, path, "outside\n");
    assert_text(upper, "etc/hostname", "two\n");
    close(upper);

    assert_int_equal(unlinkat(f->upper, "etc/hostname", 0), 0);
    assert_int_equal(mkfifoat(f->upper, "etc/hostname", 0600), 0);
    assert_int_equal(copy_and_commit(f, "four", &upper), 0);
    close(upper);
}

static void work_folders_are_cleared(void **state)
{
    struct fixture *f = *state;
    struct stat st;
    int upper;
    assert_int_equal(mkdirat(f->storage.fd, "one/root/work/work", 0700), 0);
    assert_int_equal(mkdirat(f->storage.fd, "one/root/work/work/incompat", 0700), 0);
    write_file(f->storage.fd, "one/usr/work/#1", "half");
    assert_int_equal(copy_and_commit(f, "two", &upper), 0);
    close(upper);
    assert_int_equal(fstatat(f->storage.fd, "two/root/work", &st, 0), 0);
    assert_int_equal(fstatat(f->storage.fd, "two/root/work/work", &st, 0), -1);
    assert_int_equal(fstatat(f->storage.fd, "two/usr/work/#1", &st, 0), -1);
    assert_int_equal(fstatat(f->storage.fd, "one/root/work/work/incompat", &st, 0), 0);
}

static bool at_the_third(void *arg)
{
    return ++*(int *)arg >= 3;
}

static void given_up_and_swept(void **state)
{
    struct fixture *f = *state;
    struct error err = {0};
    int files = 0;
    struct copy_watch watch = {.stop = at_the_third, .arg = &files};
    write_file(f->upper, "a", "a");
    write_file(f->upper, "b", "b");
    assert_int_equal(copy(f, "two", &watch, QUOTA, &err), -1);
    assert_int_equal(err.code, ERROR_CANCELLED);
    assert_false(storage_exists(&f->storage, "two"));
    assert_true(storage_exists(&f->storage, STORAGE_CLONES));
    assert_int_equal(storage_clone_sweep(&f->storage, &err), 0);
    assert_false(storage_exists(&f->storage, STORAGE_CLONES));

    /* Left half made, and put aside. */
    files = 0;
    assert_int_equal(copy(f, "two", &watch, QUOTA, &err), -1);
    storage_clone_abandon(&f->storage, "two");
    storage_clone_tidy(&f->storage);
    assert_false(storage_exists(&f->storage, STORAGE_CLONES));
    assert_int_equal(storage_destroy(&f->storage, "two", &err), 0);

    /* Left whole, and put aside. */
    assert_int_equal(copy(f, "two", NULL, QUOTA, &err), 0);
    storage_clone_abandon(&f->storage, "two");
    assert_false(storage_exists(&f->storage, "two"));
    assert_int_equal(storage_destroy(&f->storage, "two", &err), 0);
    assert_false(storage_exists(&f->storage, "two" STORAGE_DELETED));
}

static bool at_once(void *arg)
{
    return true;
}

/* A child of a warden that was killed comes late, and the next warden makes the same copy. */
static void a_late_child_leaves_the_place_alone(void **state)
{
    struct fixture *f = *state;
    struct error err = {0};
    struct clone_place place = CLONE_PLACE_INIT, late = CLONE_PLACE_INIT;
    const struct copy_watch watch = {.stop = at_once};
    write_file(f->upper, "a", "a");
    assert_int_equal(storage_clone_begin(&f->storage, "two", NULL, &place, &err), 0);
    assert_int_equal(storage_clone_copy(&f->storage, "one", &place, NULL, &err), 0);
    assert_int_equal(storage_clone_begin(&f->storage, "two", &watch, &late, &err), -1);
    assert_int_equal(err.code, ERROR_CANCELLED);
    storage_clone_release(&late);
    if (storage_clone_finish(&f->storage, "one", &place, QUOTA, "two", &err) < 0 ||
        storage_clone_commit(&f->storage, "two", &err) < 0)
        fail_msg("%s", err.message);
    storage_clone_release(&place);
    assert_true(storage_exists(&f->storage, "two"));
}

static void too_big(void **state)
{
    struct fixture *f = *state;
    struct error err = {0};
    char *bytes = calloc(1, 8 << 20);
    memset(bytes, 'x', 8 << 20);
    int fd = openat(f->upper, "big", O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    assert_int_equal(write(fd, bytes, 8 << 20), 8 << 20);
    fsync(fd); /* blocks are counted when they are there */
    close(fd);
    free(bytes);
    assert_int_equal(copy(f, "two", NULL, 1 << 20, &err), -1);
    assert_int_equal(err.code, ERROR_RESOURCE_IN_USE);
    assert_int_equal(storage_fits(&f->storage, "one", 1 << 20, &err), -1);
    assert_int_equal(storage_fits(&f->storage, "one", 64 << 20, &err), 0);
    assert_int_equal(storage_fits(&f->storage, "nobody", 1 << 20, &err), 0);
    assert_int_equal(storage_clone_discard(&f->storage, "two", &err), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(every_kind_of_file, setup, teardown),
        cmocka_unit_test_setup_teardown(its_own_name, setup, teardown),
        cmocka_unit_test_setup_teardown(names_that_lead_elsewhere, setup, teardown),
        cmocka_unit_test_setup_teardown(work_folders_are_cleared, setup, teardown),
        cmocka_unit_test_setup_teardown(given_up_and_swept, setup, teardown),
        cmocka_unit_test_setup_teardown(a_late_child_leaves_the_place_alone, setup, teardown),
        cmocka_unit_test_setup_teardown(too_big, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
