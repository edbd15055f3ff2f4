/* SPDX-License-Identifier: Apache-2.0 */

#include "sandbox/metrics_file.h"

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
#include <unistd.h>

enum { WIDTH = 10, TIME = 1700000100 };

struct place {
    char path[64];
    int data, dir;
};

static struct series_image image;

static int setup(void **state)
{
    struct place *p = calloc(1, sizeof(*p));
    snprintf(p->path, sizeof(p->path), "/tmp/cella-metrics-XXXXXX");
    assert_non_null(mkdtemp(p->path));
    p->data = open(p->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_int_equal(mkdirat(p->data, "db", 0700), 0);
    assert_int_equal(metrics_dir_open(p->data, &p->dir, NULL), 0);
    *state = p;
    return 0;
}

static int teardown(void **state)
{
    struct place *p = *state;
    metrics_file_remove(p->dir, "box");
    metrics_file_remove(p->dir, "other");
    close(p->dir);
    assert_int_equal(unlinkat(p->data, "db/metrics", AT_REMOVEDIR), 0);
    assert_int_equal(unlinkat(p->data, "db", AT_REMOVEDIR), 0);
    close(p->data);
    rmdir(p->path);
    free(p);
    return 0;
}

static void write_point(struct place *p, uint32_t width, const char *id, uint32_t time)
{
    struct metrics_write write = {.count = 1,
                                  .places = {{SERIES_MINUTES, {time - time % 60, 2500, 3, 4}}}};
    struct error err = {0};
    snprintf(write.id, sizeof(write.id), "%s", id);
    if (metrics_file_write(p->dir, width, &write, &err) < 0)
        fail_msg("%s", err.message);
}

static size_t count_points(struct place *p, uint32_t width, const char *id)
{
    size_t count = 0;
    metrics_file_read(p->dir, width, id, &image);
    for (size_t i = 0; i < SERIES_SLOTS; i++)
        count += image.points[i].time != 0;
    return count;
}

static void what_is_written_is_there(void **state)
{
    struct place *p = *state;
    struct stat st;
    assert_int_equal(count_points(p, WIDTH, "box"), 0); /* no file is an empty one */
    for (uint32_t i = 0; i < 100; i++)
        write_point(p, WIDTH, "box", TIME + i * 60);
    assert_int_equal(count_points(p, WIDTH, "box"), 100);
    for (uint32_t i = 0; i < 3 * SERIES_MINUTE_SLOTS; i++)
        write_point(p, WIDTH, "box", TIME + i * 60);
    assert_int_equal(count_points(p, WIDTH, "box"), SERIES_MINUTE_SLOTS);
    assert_int_equal(fstatat(p->dir, "box", &st, 0), 0);
    assert_int_equal(st.st_size, sizeof(struct series_image));
    assert_int_equal(st.st_mode & 0777, 0600);
    write_point(p, 30, "box", TIME); /* samples at another interval */
    assert_int_equal(count_points(p, 30, "box"), SERIES_MINUTE_SLOTS);
}

static void strange_files_begin_anew(void **state)
{
    struct place *p = *state;
    static const char *const contents[] = {"", "x", "cellaM1"};
    for (size_t i = 0; i < sizeof(contents) / sizeof(contents[0]); i++) {
        int fd = openat(p->dir, "box", O_WRONLY | O_CREAT | O_TRUNC, 0600);
        assert_int_equal(write(fd, contents[i], strlen(contents[i])), (int)strlen(contents[i]));
        close(fd);
        assert_int_equal(count_points(p, WIDTH, "box"), 0);
        write_point(p, WIDTH, "box", TIME);
        assert_int_equal(count_points(p, WIDTH, "box"), 1);
    }
}

static bool keep_box(void *ctx, const char *id)
{
    return strcmp(id, "box") == 0;
}

static void sweeping(void **state)
{
    struct place *p = *state;
    write_point(p, WIDTH, "box", TIME);
    write_point(p, WIDTH, "other", TIME);
    metrics_dir_sweep(p->dir, keep_box, NULL);
    assert_int_equal(count_points(p, WIDTH, "box"), 1);
    assert_int_equal(faccessat(p->dir, "other", F_OK, 0), -1);
    metrics_file_remove(p->dir, "box");
    assert_int_equal(count_points(p, WIDTH, "box"), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_is_written_is_there, setup, teardown),
        cmocka_unit_test_setup_teardown(strange_files_begin_anew, setup, teardown),
        cmocka_unit_test_setup_teardown(sweeping, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
