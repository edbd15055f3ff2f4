/* SPDX-License-Identifier: Apache-2.0 */

#include "base/names.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"

static void test_good_names(void **state)
{
    static const char *const good[] = {
        "a",
        "0",
        "my-box",
        "a--b",
        "1-2",
        "abcdefghijklmnopqrstuvwxyz0123456789",
        "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", /* 63 */
    };
    for (size_t i = 0; i < ARRAY_LEN(good); i++)
        assert_int_equal(name_check(good[i], NULL), 0);
}

static void test_bad_names(void **state)
{
    static const struct {
        const char *name;
        const char *says;
    } bad[] = {
        {NULL, "empty"},
        {"", "empty"},
        {"-", "begins"},
        {"-a", "begins"},
        {"a-", "ends"},
        {"My-box", "capital letter at position 1"},
        {"boX", "position 3"},
        {"a_b", "position 2"},
        {"a.b", "position 2"},
        {"a b", "position 2"},
        {"a/b", "position 2"},
        {"..", "position 1"},
        {"a\n", "position 2"},
        {"bücher", "position 2"},
        {"a\x7f", "position 2"},
        {"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "64 characters"},
    };
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct error err = {0};
        assert_int_equal(name_check(bad[i].name, &err), -1);
        assert_int_equal(err.code, ERROR_INVALID_NAME);
        if (strstr(err.message, bad[i].says) == NULL)
            fail_msg("\"%s\": %s", bad[i].name, err.message);
    }
}

static void test_secret_names(void **state)
{
    static const char *const good[] = {"a", "OPENAI_API_KEY", "my.secret-1", "9"};
    static const char *const bad[] = {
        NULL,
        "",
        "-",
        "_a",
        ".a",
        "a b",
        "a/b",
        "a\n",
        "{}",
        "b\xc3\xbc",
        "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"};
    for (size_t i = 0; i < ARRAY_LEN(good); i++)
        assert_int_equal(secret_name_check(good[i], NULL), 0);
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct error err = {0};
        assert_int_equal(secret_name_check(bad[i], &err), -1);
        assert_int_equal(err.code, ERROR_INVALID_NAME);
    }
}

static void test_random_id(void **state)
{
    bool seen[256] = {false};
    char last[201] = "";
    for (int i = 0; i < 500; i++) {
        char id[201];
        memset(id, 'X', sizeof(id));
        size_t len = i % 2 == 0 ? SANDBOX_ID_LEN : 200;
        random_id(id, len);
        assert_int_equal(strlen(id), len);
        assert_true(islower((unsigned char)id[0]));
        for (size_t j = 0; j < len; j++) {
            assert_true(islower((unsigned char)id[j]) || isdigit((unsigned char)id[j]));
            seen[(unsigned char)id[j]] = true;
        }
        assert_string_not_equal(id, last);
        memcpy(last, id, len + 1);
    }
    int kinds = 0;
    for (int i = 0; i < 256; i++)
        kinds += seen[i];
    assert_int_equal(kinds, 32);
    char none[1] = {'X'};
    random_id(none, 0);
    assert_string_equal(none, "");
}

static void test_random_name(void **state)
{
    char last[NAME_MAX_LEN + 1] = "";
    for (int i = 0; i < 500; i++) {
        char name[NAME_MAX_LEN + 1];
        random_name(name);
        assert_int_equal(name_check(name, NULL), 0);
        assert_string_not_equal(name, last);
        memcpy(last, name, sizeof(last));
    }
}

static void test_paths(void **state)
{
    static const struct {
        const char *path;
        const char *plain;
    } rows[] = {
        {"/", "/"},
        {"//", "/"},
        {".", "/"},
        {"/.", "/"},
        {"./", "/"},
        {"a", "/a"},
        {"/a", "/a"},
        {"/a/", "/a"},
        {"//a//b//", "/a/b"},
        {"a/./b", "/a/b"},
        {"/a/../b", "/b"},
        {"a/..", "/"},
        {"/a/b/../../c", "/c"},
        {"/a/b/..", "/a"},
        {"/...", "/..."},
        {"/..a/b..", "/..a/b.."},
        {"/.hidden", "/.hidden"},
        {"/a b/ü", "/a b/ü"},
        {"/\xff\n", "/\xff\n"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char out[PATH_BYTES_MAX + 1];
        assert_int_equal(path_normalize(rows[i].path, strlen(rows[i].path), out, NULL), 0);
        assert_string_equal(out, rows[i].plain);
    }
}

static void test_bad_paths(void **state)
{
    static const struct {
        const char *path;
        size_t len;
        const char *says;
    } rows[] = {
        {"", 0, "empty"},
        {"..", 2, "out of the root"},
        {"/..", 3, "out of the root"},
        {"../a", 4, "out of the root"},
        {"a/../../b", 9, "out of the root"},
        {"/a/./../..", 10, "out of the root"},
        {"/../../../etc/passwd", 20, "out of the root"},
        {"a\0b", 3, "NUL"},
        {"\0", 1, "NUL"},
        {"a\0", 2, "NUL"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char out[PATH_BYTES_MAX + 1] = "untouched";
        struct error err = {0};
        assert_int_equal(path_normalize(rows[i].path, rows[i].len, out, &err), -1);
        assert_int_equal(err.code, ERROR_INVALID_PATH);
        assert_non_null(strstr(err.message, rows[i].says));
        assert_string_equal(out, "untouched");
    }
}

static void test_long_paths(void **state)
{
    char path[PATH_BYTES_MAX + 2], out[PATH_BYTES_MAX + 1];
    memset(path, 'a', sizeof(path));
    path[0] = '/';
    assert_int_equal(path_normalize(path, PATH_BYTES_MAX, out, NULL), 0);
    assert_int_equal(strlen(out), PATH_BYTES_MAX);
    assert_int_equal(path_normalize(path, PATH_BYTES_MAX + 1, out, NULL), -1);
    path[0] = 'a'; /* relative: the slash that comes before it is one too many */
    assert_int_equal(path_normalize(path, PATH_BYTES_MAX - 1, out, NULL), 0);
    assert_int_equal(path_normalize(path, PATH_BYTES_MAX, out, NULL), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_good_names),   cmocka_unit_test(test_bad_names),
        cmocka_unit_test(test_secret_names), cmocka_unit_test(test_random_id),
        cmocka_unit_test(test_random_name),  cmocka_unit_test(test_paths),
        cmocka_unit_test(test_bad_paths),    cmocka_unit_test(test_long_paths),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
