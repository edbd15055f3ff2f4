/* SPDX-License-Identifier: Apache-2.0 */

/* Whose a device is, while others come and go. */

#include "warden/loopdev.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FILE_SIZE = 1 << 20 };

struct held {
    char path[LOOP_PATH_SIZE];
    int fd, count;
};

static int hold(const char *path, int fd, void *arg)
{
    struct held *held = arg;
    held->count++;
    snprintf(held->path, sizeof(held->path), "%s", path);
    if (held->fd < 0)
        held->fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    return 0;
}

static int count(const char *path, int fd, void *arg)
{
    (*(int *)arg)++;
    return 0;
}

static int devices_of(const char *file)
{
    struct error err;
    int found = 0;
    assert_int_equal(loopdev_each(file, count, &found, &err), 0);
    return found;
}

static void make_file(char *path)
{
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(ftruncate(fd, FILE_SIZE), 0);
    close(fd);
}

/* Whoever had it attached lets go between the look and the use: as another server does that had a
 * copy of the machine's mounts. */
static void one_that_was_found_stays_the_files(void **state)
{
    char file[] = "/tmp/cella-loop-XXXXXX", other[] = "/tmp/cella-loop-XXXXXX";
    char path[LOOP_PATH_SIZE], elsewhere[LOOP_PATH_SIZE];
    struct held held = {.fd = -1};
    struct error err;
    int first = -1, second = -1;
    if (geteuid() != 0 || access("/dev/loop-control", R_OK | W_OK) < 0)
        skip();
    make_file(file);
    make_file(other);
    int attached = loopdev_attach(file, path, &first, &err);
    if (attached < 0 && err.code == ERROR_UNAVAILABLE) {
        unlink(file);
        unlink(other);
        skip();
    }
    assert_int_equal(attached, 0);
    assert_int_equal(loopdev_each(file, hold, &held, &err), 0);
    assert_int_equal(held.count, 1);
    assert_string_equal(held.path, path);

    close(first);
    assert_int_equal(devices_of(file), 1);
    assert_int_equal(loopdev_attach(other, elsewhere, &second, &err), 0);
    assert_string_not_equal(elsewhere, path);
    assert_int_equal(devices_of(file), 1);

    close(held.fd);
    close(second);
    for (int i = 0; devices_of(file) + devices_of(other) > 0; i++) { /* others look at them, too */
        assert_true(i < 30 * 1000);
        usleep(1000);
    }
    unlink(file);
    unlink(other);
}

static void a_file_that_is_not_there_has_none(void **state)
{
    assert_int_equal(devices_of("/nonexistent/file"), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_that_was_found_stays_the_files),
        cmocka_unit_test(a_file_that_is_not_there_has_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
