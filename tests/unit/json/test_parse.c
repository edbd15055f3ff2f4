/* SPDX-License-Identifier: Apache-2.0 */

#include "json/json.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/limits.h"

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

static void test_values(void **state)
{
    static const char text[] =
        " {\"a\": [1, -2, 2.5, true, null], \"b\\n\": \"x\\u0000\\u00fc\"}\n";
    yyjson_val *root = NULL;
    struct error err = {0};
    assert_int_equal(json_parse(*state, slice_of(text), &root, &err), 0);
    yyjson_val *a = yyjson_obj_get(root, "a");
    assert_int_equal(yyjson_arr_size(a), 5);
    assert_int_equal(yyjson_get_int(yyjson_arr_get(a, 1)), -2);
    assert_true(yyjson_is_null(yyjson_arr_get(a, 4)));
    yyjson_val *b = yyjson_obj_get(root, "b\n");
    assert_int_equal(yyjson_get_len(b), 4);
    assert_memory_equal(yyjson_get_str(b), "x\0ü", 5);
}

/* The text is the caller's: it is not touched, and may go. */
static void test_text_is_copied(void **state)
{
    char text[] = "{\"key\\t\": \"va\\nlue\"}", was[sizeof(text)];
    memcpy(was, text, sizeof(text));
    yyjson_val *root = NULL;
    assert_int_equal(json_parse(*state, slice_of(text), &root, NULL), 0);
    assert_memory_equal(text, was, sizeof(text));
    memset(text, 'X', sizeof(text) - 1);
    assert_string_equal(yyjson_get_str(yyjson_obj_get(root, "key\t")), "va\nlue");
}

static void test_scalars(void **state)
{
    static const char *const good[] = {"0", "-1", "1e5", "\"\"", "true", "null", "[]", "{}", " 1 "};
    for (size_t i = 0; i < ARRAY_LEN(good); i++) {
        yyjson_val *root = NULL;
        assert_int_equal(json_parse(*state, slice_of(good[i]), &root, NULL), 0);
        assert_non_null(root);
    }
}

static void test_bad(void **state)
{
    static const struct {
        const char *text;
        const char *at;
    } rows[] = {
        {"", "line 1, column 1"},
        {" ", "line 1"},
        {"{", "line 1, column 2"},
        {"}", "line 1, column 1"},
        {"[1,2", "line 1, column 5"},
        {"[1,]", "line 1"},
        {"{\"a\":1,}", "line 1"},
        {"{\"a\" 1}", "line 1, column 6"},
        {"{a:1}", "line 1, column 2"},
        {"{'a':1}", "line 1, column 2"},
        {"{\n  \"a\": 1,\n  \"b\": x\n}", "line 3, column 8"},
        {"{} {}", "line 1, column 4"},
        {"{}x", "line 1, column 3"},
        {"1 2", "line 1, column 3"},
        {"// hi\n{}", "line 1, column 1"},
        {"[1 /* hi */]", "line 1, column 4"},
        {"NaN", "line 1, column 1"},
        {"[Infinity]", "line 1, column 2"},
        {"1e999", "line 1"},
        {"01", "line 1"},
        {"+1", "line 1, column 1"},
        {".5", "line 1, column 1"},
        {"1.", "line 1"},
        {"0x10", "line 1"},
        {"tru", "line 1"},
        {"\"abc", "line 1"},
        {"\"a\nb\"", "line 1"},
        {"\"\\x\"", "line 1"},
        {"\"\\ud800\"", "line 1"},
        {"\"\xff\"", "line 1"},
        {"\"\xc0\x80\"", "line 1"},
        {"\xef\xbb\xbf{}", "line 1, column 1"},
        {"\"ü\", x", "line 1, column 4"}, /* characters, not bytes */
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        yyjson_val *root = NULL;
        struct error err = {0};
        if (json_parse(*state, slice_of(rows[i].text), &root, &err) == 0)
            fail_msg("taken for JSON: %s", rows[i].text);
        assert_int_equal(err.code, ERROR_INVALID_JSON);
        assert_null(root);
        if (strstr(err.message, rows[i].at) == NULL)
            fail_msg("%s: %s", rows[i].text, err.message);
    }
    yyjson_val *root = NULL;
    assert_int_equal(json_parse(*state, (struct slice){"{}\0", 3}, &root, NULL), -1);
    assert_int_equal(json_parse(*state, (struct slice){NULL, 0}, &root, NULL), -1);
}

static int parse_nested(struct arena *arena, char open, char close, size_t depth, size_t closed,
                        struct error *err)
{
    size_t len = 0;
    _cleanup_free_ char *text = malloc(8 * depth + closed + 1);
    for (size_t i = 0; i < depth; i++) {
        text[len++] = open;
        if (open == '{' && i + 1 < depth)
            len += (size_t)snprintf(text + len, 5, "\"a\":");
    }
    memset(text + len, close, closed);
    yyjson_val *root;
    return json_parse(arena, (struct slice){text, len + closed}, &root, err);
}

static void test_depth(void **state)
{
    struct error err = {0};
    assert_int_equal(parse_nested(*state, '[', ']', JSON_DEPTH_MAX, JSON_DEPTH_MAX, &err), 0);
    assert_int_equal(parse_nested(*state, '{', '}', JSON_DEPTH_MAX, JSON_DEPTH_MAX, &err), 0);
    assert_int_equal(parse_nested(*state, '[', ']', JSON_DEPTH_MAX + 1, JSON_DEPTH_MAX + 1, &err),
                     -1);
    assert_int_equal(err.code, ERROR_INVALID_JSON);
    assert_non_null(strstr(err.message, "64 levels deep at line 1, column 65"));
    assert_int_equal(parse_nested(*state, '{', '}', 1000000, 1000000, &err), -1);
    assert_int_equal(parse_nested(*state, '[', ']', 1000000, 0, &err), -1);
    assert_non_null(strstr(err.message, "levels deep"));
}

/* Brackets in strings are not levels, whatever is escaped before the quote. */
static void test_depth_ignores_strings(void **state)
{
    char text[512] = "[\"\\\\\", \"\\\"";
    size_t len = strlen(text);
    memset(text + len, '[', 200);
    snprintf(text + len + 200, sizeof(text) - len - 200, "\\\\\\\"\", \"\\\\\\\\\", []]");
    yyjson_val *root;
    struct error err = {0};
    if (json_parse(*state, slice_of(text), &root, &err) < 0)
        fail_msg("%s", err.message);
    assert_int_equal(yyjson_arr_size(root), 4);
}

static void test_duplicate_keys(void **state)
{
    static const struct {
        const char *text;
        const char *at;
    } rows[] = {
        {"{\"a\":1,\"a\":1}", "column 8"},
        {"{\"a\":1,\n \"b\":2, \"a\":3}", "line 2, column 9"},
        {"[1, {\"x\": {\"b\":1, \"\":2, \"\":3}}]", "column 25"},
        {"{\"a\":1,\"\\u0061\":1}", "column 8"}, /* the same once unescaped */
        {"{\"\\u0000\":1,\"\\u0000\":1}", "column 13"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        yyjson_val *root = NULL;
        struct error err = {0};
        assert_int_equal(json_parse(*state, slice_of(rows[i].text), &root, &err), -1);
        assert_int_equal(err.code, ERROR_INVALID_JSON);
        assert_non_null(strstr(err.message, "duplicate key"));
        if (strstr(err.message, rows[i].at) == NULL)
            fail_msg("%s: %s", rows[i].text, err.message);
    }
    yyjson_val *root;
    static const char *const good[] = {"{\"a\":{\"a\":{\"a\":1}},\"b\":{\"a\":1}}",
                                       "{\"a\":1,\"A\":2}",
                                       "{\"a\":1,\"a\\u0000\":2,\"a\\u0000b\":3}"};
    for (size_t i = 0; i < ARRAY_LEN(good); i++)
        assert_int_equal(json_parse(*state, slice_of(good[i]), &root, NULL), 0);
}

static int parse_many(struct arena *arena, int n, const char *last, struct error *err)
{
    size_t cap = (size_t)n * 32 + 64, len = 1;
    _cleanup_free_ char *text = malloc(cap);
    text[0] = '{';
    for (int i = 0; i < n; i++)
        len += (size_t)snprintf(text + len, cap - len, "\"key-%d\":%d,", i, i);
    len += (size_t)snprintf(text + len, cap - len, "\"%s\":0}", last);
    yyjson_val *root;
    return json_parse(arena, (struct slice){text, len}, &root, err);
}

static void test_many_keys(void **state)
{
    struct error err = {0};
    for (int n = 1; n < 40; n++) {
        assert_int_equal(parse_many(*state, n, "other", &err), 0);
        assert_int_equal(parse_many(*state, n, "key-0", &err), -1);
    }
    assert_int_equal(parse_many(*state, 200000, "other", &err), 0);
    assert_int_equal(parse_many(*state, 200000, "key-777", &err), -1);
    assert_non_null(strstr(err.message, "duplicate key"));
}

int main(void)
{
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_values),         TEST(test_text_is_copied),
        TEST(test_scalars),        TEST(test_bad),
        TEST(test_depth),          TEST(test_depth_ignores_strings),
        TEST(test_duplicate_keys), TEST(test_many_keys),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
