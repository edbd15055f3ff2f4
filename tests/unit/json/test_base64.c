/* SPDX-License-Identifier: Apache-2.0 */

#include "json/json.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

static int setup(void **state)
{
    *state = arena_new();
    return 0;
}

static int teardown(void **state)
{
    arena_free(*state);
    return 0;
}

static void test_rfc4648(void **state)
{
    static const struct {
        const char *bytes;
        const char *text;
    } rows[] = {
        {"", ""},
        {"f", "Zg=="},
        {"fo", "Zm8="},
        {"foo", "Zm9v"},
        {"foob", "Zm9vYg=="},
        {"fooba", "Zm9vYmE="},
        {"foobar", "Zm9vYmFy"},
        {"\xfb\xff\xbf", "+/+/"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct slice text = json_base64_encode(*state, slice_of(rows[i].bytes));
        assert_string_equal(text.data, rows[i].text);
        assert_int_equal(text.len, strlen(rows[i].text));
        struct slice bytes = {0};
        assert_int_equal(json_base64_decode(*state, text, &bytes, NULL), 0);
        assert_true(slice_eq(bytes, slice_of(rows[i].bytes)));
    }
}

static void test_line_breaks(void **state)
{
    static const char *const rows[] = {"Zm9v\nYmFy", "Zm9v\r\nYmFy\r\n", "\nZ\nm\n9\nvYmFy",
                                       "Zm9vYm\n\n\nFy"};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct slice bytes;
        assert_int_equal(json_base64_decode(*state, slice_of(rows[i]), &bytes, NULL), 0);
        assert_string_equal(bytes.data, "foobar");
    }
    struct slice bytes;
    assert_int_equal(json_base64_decode(*state, slice_of("Zg=\n=\n"), &bytes, NULL), 0);
    assert_string_equal(bytes.data, "f");
    assert_int_equal(json_base64_decode(*state, slice_of("\r\n"), &bytes, NULL), 0);
    assert_int_equal(bytes.len, 0);
}

static void test_bad(void **state)
{
    static const char *const rows[] = {
        "Z",     "Zg",       "Zg=",  "Zg===", "=",      "====",    "Zm8",   "Zm8==",
        "Zm9v=", "Zm9vZ",    "Zh==", "Zm9=",  "Zm 9v",  " Zm9v",   "Zm9v ", "Zm9-",
        "Zm9_",  "Zg==Zg==", "Z=g=", "Zm9v!", "Zm9\tv", "Zm\3779", "Zg==x", "Zg= =",
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct slice bytes = {"untouched", 9};
        struct error err = {0};
        if (json_base64_decode(*state, slice_of(rows[i]), &bytes, &err) == 0)
            fail_msg("taken for base64: %s", rows[i]);
        assert_int_equal(err.code, ERROR_INVALID_ARGUMENT);
        assert_non_null(strstr(err.message, "not valid base64: "));
        assert_string_equal(bytes.data, "untouched");
    }
    struct slice bytes;
    assert_int_equal(json_base64_decode(*state, (struct slice){"Zm9v\0", 5}, &bytes, NULL), -1);
}

static void test_all_lengths(void **state)
{
    char data[300];
    for (size_t i = 0; i < sizeof(data); i++)
        data[i] = (char)(i * 37);
    for (size_t len = 0; len <= sizeof(data); len++) {
        /* In memory of exactly that size, for the sanitizer to see. */
        _cleanup_free_ char *exact = malloc(len == 0 ? 1 : len);
        memcpy(exact, data, len);
        struct slice text = json_base64_encode(*state, (struct slice){exact, len}), bytes;
        assert_int_equal(json_base64_decode(*state, text, &bytes, NULL), 0);
        assert_int_equal(bytes.len, len);
        assert_memory_equal(bytes.data, data, len);
    }
}

int main(void)
{
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_rfc4648),
        TEST(test_line_breaks),
        TEST(test_bad),
        TEST(test_all_lengths),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
