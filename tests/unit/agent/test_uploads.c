/* SPDX-License-Identifier: Apache-2.0 */

/* UPLOAD_*: parts in any order, whole files, nothing left behind. */

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
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#include "agent/uploads.h"
#include "base/cleanup.h"
#include "base/limits.h"
#include "fixture.h"

enum { ID_SIZE = 40 };

static void start(struct client *c, const char *path, char id[ID_SIZE])
{
    struct upload_about about;
    client_send(c, &upload_start_schema, 1, &(struct file_write){path, 0640});
    client_expect(c, &upload_about_schema, 1, &about);
    assert_string_equal(about.path, path);
    snprintf(id, ID_SIZE, "%s", about.id);
}

static void send_part(struct client *c, const char *id, uint64_t number, const char *text)
{
    client_send(c, &upload_part_schema, 2, &(struct upload_part){id, number});
    if (*text != '\0')
        client_send_raw(c, FILE_DATA, 2, text, strlen(text));
    client_send(c, &file_end_schema, 2, NULL);
}

static void part(struct client *c, const char *id, uint64_t number, const char *text,
                 const char *etag)
{
    struct upload_part_about about;
    send_part(c, id, number, text);
    client_expect(c, &upload_part_about_schema, 2, &about);
    assert_int_equal(about.number, number);
    assert_int_equal(about.size, strlen(text));
    if (etag != NULL)
        assert_string_equal(about.etag, etag);
}

static void complete(struct client *c, const char *id, const char *list, size_t len)
{
    client_send(c, &upload_complete_schema, 3,
                &(struct upload_complete){id, (struct slice){list, len}});
}

static bool exists(const struct fixture *f, const char *name)
{
    struct stat st;
    return lstat(fixture_path(f, name), &st) == 0;
}

static void assert_content(const struct fixture *f, const char *name, const char *text)
{
    char have[256] = {0};
    int fd = open(fixture_path(f, name), O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_true(read(fd, have, sizeof(have) - 1) >= 0);
    close(fd);
    assert_string_equal(have, text);
}

static void test_complete(void **state)
{
    const struct fixture *f = *state;
    struct client c = client_open(f);
    struct file_entry entry;
    struct stat st;
    char id[ID_SIZE];
    start(&c, fixture_path(f, "new/dir/big"), id);
    part(&c, id, 3, "c", "4a8a08f09d37b73795649038408b5f33");
    part(&c, id, 1, "wrong", NULL);
    part(&c, id, 10000, "z", NULL);
    part(&c, id, 1, "a", "0cc175b9c0f1b6a831c399e269772661");
    part(&c, id, 2, "", "d41d8cd98f00b204e9800998ecf8427e");
    assert_false(exists(f, "new"));
    complete(&c, id, NULL, 0);
    client_expect(&c, &file_entry_schema, 3, &entry);
    assert_int_equal(entry.size, 3);
    assert_content(f, "new/dir/big", "acz");
    assert_int_equal(stat(fixture_path(f, "new/dir/big"), &st), 0);
    assert_int_equal(st.st_mode & 07777, 0640);
    assert_false(exists(f, ".state"));
    complete(&c, id, NULL, 0);
    client_expect_error(&c, 3, ERROR_UPLOAD_NOT_FOUND, NULL);
    client_close(&c);
}

static void test_named_parts(void **state)
{
    const struct fixture *f = *state;
    struct client c = client_open(f);
    struct file_entry entry;
    char id[ID_SIZE];
    start(&c, fixture_path(f, "big"), id);
    complete(&c, id, NULL, 0);
    client_expect_error(&c, 3, ERROR_INVALID_ARGUMENT, NULL); /* no parts */
    part(&c, id, 1, "a", NULL);
    part(&c, id, 2, "b", NULL);
    part(&c, id, 5, "e", NULL);
    static const char *const bad[] = {"3", "0", "10001", "x", "", "1:beef", "2:0cc175b9", "1 "};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        complete(&c, id, bad[i], strlen(bad[i]) + 1);
        client_expect_error(&c, 3, ERROR_INVALID_ARGUMENT, NULL);
    }
    complete(&c, id, "1\0001", 4);
    client_expect_error(&c, 3, ERROR_INVALID_ARGUMENT, NULL); /* twice */
    assert_false(exists(f, "big"));
    static const char list[] = "5\0001:0cc175b9c0f1b6a831c399e269772661";
    complete(&c, id, list, sizeof(list));
    client_expect(&c, &file_entry_schema, 3, &entry);
    assert_content(f, "big", "ae");
    client_close(&c);
}

static void test_replaces_and_refuses(void **state)
{
    const struct fixture *f = *state;
    struct client c = client_open(f);
    struct file_entry entry;
    struct stat before, after;
    char id[ID_SIZE];
    mkdir(fixture_path(f, "dir"), 0755);
    client_send(&c, &upload_start_schema, 1,
                &(struct file_write){fixture_path(f, "dir"), FILE_MODE_DEFAULT});
    client_expect_error(&c, 1, ERROR_IS_A_DIRECTORY, NULL);
    client_send(&c, &upload_start_schema, 1, &(struct file_write){"relative", FILE_MODE_DEFAULT});
    client_expect_error(&c, 1, ERROR_INVALID_PATH, NULL);
    assert_false(exists(f, ".state"));

    start(&c, fixture_path(f, "file"), id);
    int fd = open(fixture_path(f, "file"), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_int_equal(fchown(fd, 12, 34), 0);
    assert_int_equal(fstat(fd, &before), 0);
    close(fd);
    part(&c, id, 1, "new", NULL);
    complete(&c, id, NULL, 0);
    client_expect(&c, &file_entry_schema, 3, &entry);
    assert_content(f, "file", "new");
    assert_int_equal(stat(fixture_path(f, "file"), &after), 0);
    assert_int_equal(after.st_uid, 12);

    static const char *const ids[] = {"0123456789abcdef", "../../etc", "", "x"};
    for (size_t i = 0; i < ARRAY_LEN(ids); i++) {
        send_part(&c, ids[i], 1, "text");
        client_expect_error(&c, 2, ERROR_UPLOAD_NOT_FOUND, NULL);
        client_send(&c, &upload_abort_schema, 4, &(struct upload_ref){ids[i]});
        client_expect_error(&c, 4, ERROR_UPLOAD_NOT_FOUND, NULL);
    }
    send_part(&c, "0123456789abcdef", 0, "text");
    client_expect_error(&c, 2, ERROR_INVALID_ARGUMENT, NULL);
    client_close(&c);
}

static void test_parts_list_and_abort(void **state)
{
    const struct fixture *f = *state;
    struct client c = client_open(f);
    struct upload_about about;
    struct upload_part_about info;
    char id[ID_SIZE];
    client_send(&c, &upload_list_schema, 5, NULL);
    client_expect(&c, &wire_ok_schema, 5, NULL);
    start(&c, fixture_path(f, "big"), id);
    part(&c, id, 2, "bb", NULL);
    part(&c, id, 1, "a", NULL);
    client_send(&c, &upload_parts_schema, 5, &(struct upload_ref){id});
    client_expect(&c, &upload_about_schema, 5, &about);
    assert_int_equal(about.mode, 0640);
    for (uint64_t number = 1; number <= 2; number++) {
        client_expect(&c, &upload_part_about_schema, 5, &info);
        assert_int_equal(info.number, number);
        assert_int_equal(info.size, number);
    }
    client_expect(&c, &wire_ok_schema, 5, NULL);
    client_send(&c, &upload_list_schema, 5, NULL);
    client_expect(&c, &upload_about_schema, 5, &about);
    assert_string_equal(about.id, id);
    client_expect(&c, &wire_ok_schema, 5, NULL);
    client_send(&c, &upload_abort_schema, 5, &(struct upload_ref){id});
    client_expect(&c, &wire_ok_schema, 5, NULL);
    assert_false(exists(f, ".state"));
    client_close(&c);
}

/* While a part is on its way in, completing has to wait; aborting does not. */
static void test_part_under_way(void **state)
{
    const struct fixture *f = *state;
    static const char chunk[WIRE_DATA_CHUNK];
    struct client c = client_open(f), slow = client_open(f);
    char id[ID_SIZE];
    start(&c, fixture_path(f, "big"), id);
    part(&c, id, 1, "a", NULL);
    client_send(&slow, &upload_part_schema, 2, &(struct upload_part){id, 3});
    /* More than the socket holds: when all is sent, the worker has begun to take it. */
    for (int i = 0; i < 16; i++)
        client_send_raw(&slow, FILE_DATA, 2, chunk, WIRE_DATA_CHUNK);
    complete(&c, id, "1", 2);
    client_expect_error(&c, 3, ERROR_CONFLICT, NULL);
    client_send(&c, &upload_abort_schema, 5, &(struct upload_ref){id});
    client_expect(&c, &wire_ok_schema, 5, NULL);
    client_send(&slow, &file_end_schema, 2, NULL);
    struct slice payload;
    assert_int_equal(client_next(&slow, &payload).type, WIRE_ERROR);
    assert_false(exists(f, ".state"));
    client_close(&slow);
    client_close(&c);
}

static void test_limit_and_age(void **state)
{
    const struct fixture *f = *state;
    struct client c = client_open(f);
    char ids[UPLOADS_MAX][ID_SIZE], path[512];
    for (int i = 0; i < UPLOADS_MAX; i++)
        start(&c, fixture_path(f, "big"), ids[i]);
    client_send(&c, &upload_start_schema, 1,
                &(struct file_write){fixture_path(f, "big"), FILE_MODE_DEFAULT});
    client_expect_error(&c, 1, ERROR_LIMIT_EXCEEDED, NULL);
    /* All but one have grown old. */
    struct timespec old[2] = {{.tv_sec = time(NULL) - UPLOAD_IDLE_S - 10}, {0}};
    old[1] = old[0];
    for (int i = 1; i < UPLOADS_MAX; i++) {
        snprintf(path, sizeof(path), "%s/.state/uploads/%s", f->dir, ids[i]);
        assert_int_equal(utimensat(AT_FDCWD, path, old, 0), 0);
    }
    char state_dir[128];
    snprintf(state_dir, sizeof(state_dir), "%s/.state", f->dir);
    assert_int_equal(uploads_expire(state_dir, false), 1);
    part(&c, ids[0], 1, "still", NULL);
    send_part(&c, ids[1], 1, "gone");
    client_expect_error(&c, 2, ERROR_UPLOAD_NOT_FOUND, NULL);
    assert_int_equal(uploads_expire(state_dir, true), 0);
    assert_false(exists(f, ".state"));
    client_close(&c);
}

int main(void)
{
    if (geteuid() != 0)
        return 77; /* skipped: owners need root */
#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_complete),
        TEST(test_named_parts),
        TEST(test_replaces_and_refuses),
        TEST(test_parts_list_and_abort),
        TEST(test_part_under_way),
        TEST(test_limit_and_age),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
