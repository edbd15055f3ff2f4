/* SPDX-License-Identifier: Apache-2.0 */

#include "json/json.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

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

static yyjson_mut_val *root_of(yyjson_mut_doc *doc)
{
    yyjson_mut_val *root = yyjson_mut_obj(doc);
    yyjson_mut_doc_set_root(doc, root);
    return root;
}

static void test_write(void **state)
{
    yyjson_mut_doc *doc = json_doc(*state);
    yyjson_mut_val *root = root_of(doc);
    yyjson_mut_obj_add_str(doc, root, "a", "x\"\n/");
    yyjson_mut_obj_add_sint(doc, root, "b", -1);
    struct slice text = json_write(*state, doc, false);
    assert_string_equal(text.data, "{\"a\":\"x\\\"\\n/\",\"b\":-1}");
    assert_int_equal(text.len, strlen(text.data));
    text = json_write(*state, doc, true);
    assert_string_equal(text.data, "{\n  \"a\": \"x\\\"\\n/\",\n  \"b\": -1\n}");
}

static void test_large(void **state)
{
    enum { COUNT = 20000 };
    yyjson_mut_doc *doc = json_doc(*state);
    yyjson_mut_val *root = yyjson_mut_arr(doc);
    yyjson_mut_doc_set_root(doc, root);
    for (int i = 0; i < COUNT; i++)
        yyjson_mut_arr_add_strcpy(doc, root, "some text that is copied");
    struct slice text = json_write(*state, doc, false);
    yyjson_val *back;
    assert_int_equal(json_parse(*state, text, &back, NULL), 0);
    assert_int_equal(yyjson_arr_size(back), COUNT);
}

/* Strings that nobody cleaned: a reply is JSON all the same. */
static void test_write_mends_strings(void **state)
{
    yyjson_mut_doc *doc = json_doc(*state);
    yyjson_mut_val *root = root_of(doc);
    yyjson_mut_obj_add_str(doc, root, "good", "ü\"\\");
    yyjson_mut_obj_add_str(doc, root, "cut", "name\xe2\x82");
    yyjson_mut_obj_add_str(doc, root, "bad", "\xff\"\xc0\x80\xed\xa0\x80");
    yyjson_mut_obj_add_real(doc, root, "nan", __builtin_nan(""));
    struct slice text = json_write(*state, doc, false);
    yyjson_val *back;
    struct error err = {0};
    if (json_parse(*state, text, &back, &err) < 0)
        fail_msg("%s", err.message);
    assert_string_equal(yyjson_get_str(yyjson_obj_get(back, "good")), "ü\"\\");
    assert_string_equal(yyjson_get_str(yyjson_obj_get(back, "cut")), "name\uFFFD");
    assert_string_equal(yyjson_get_str(yyjson_obj_get(back, "bad")),
                        "\uFFFD\"\uFFFD\uFFFD\uFFFD\uFFFD\uFFFD");
    assert_true(yyjson_is_null(yyjson_obj_get(back, "nan")));
}

static void test_utf8(void **state)
{
    static const struct {
        const char *text;
        const char *clean; /* NULL: it is clean already */
    } rows[] = {
        {"", NULL},
        {"plain ASCII, longer than a word of eight bytes", NULL},
        {"ü€😀", NULL},
        {"\x7f\xc2\x80\xdf\xbf\xe0\xa0\x80\xef\xbf\xbf\xf0\x90\x80\x80\xf4\x8f\xbf\xbf", NULL},
        {"\xed\x9f\xbf\xee\x80\x80", NULL},
        {"\x80", "\uFFFD"},
        {"\xc0\xaf", "\uFFFD\uFFFD"}, /* overlong */
        {"\xc1\xbf", "\uFFFD\uFFFD"},
        {"\xe0\x80\xaf", "\uFFFD\uFFFD\uFFFD"},
        {"\xf0\x80\x80\xaf", "\uFFFD\uFFFD\uFFFD\uFFFD"},
        {"\xed\xa0\x80", "\uFFFD\uFFFD\uFFFD"},           /* a surrogate */
        {"\xf4\x90\x80\x80", "\uFFFD\uFFFD\uFFFD\uFFFD"}, /* past the last one */
        {"\xf5", "\uFFFD"},
        {"\xff\xfe", "\uFFFD\uFFFD"},
        {"\xc3", "\uFFFD"}, /* cut short */
        {"\xe2\x82", "\uFFFD"},
        {"\xf0\x9f\x98", "\uFFFD"},
        {"a\xc3z", "a\uFFFDz"},
        {"a\xe2\x82z", "a\uFFFDz"},
        {"a\xf0\x9f\x98\xf0\x9f\x98\x80z", "a\uFFFD😀z"},
        {"12345678\xff"
         "12345678",
         "12345678\uFFFD12345678"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        yyjson_mut_doc *doc = json_doc(*state);
        yyjson_mut_val *root = root_of(doc);
        assert_int_equal(json_is_utf8(slice_of(rows[i].text)), rows[i].clean == NULL);
        assert_int_equal(json_add_lossy(doc, root, "t", slice_of(rows[i].text)),
                         rows[i].clean != NULL);
        const char *got = yyjson_mut_get_str(yyjson_mut_obj_get(root, "t"));
        assert_string_equal(got, rows[i].clean == NULL ? rows[i].text : rows[i].clean);
    }
}

static void test_lossy_copies(void **state)
{
    char text[] = "a\0b";
    yyjson_mut_doc *doc = json_doc(*state);
    yyjson_mut_val *root = root_of(doc);
    assert_false(json_add_lossy(doc, root, "t", (struct slice){text, 3}));
    assert_false(json_add_lossy(doc, root, "none", (struct slice){NULL, 0}));
    memset(text, 'X', sizeof(text));
    assert_string_equal(json_write(*state, doc, false).data, "{\"t\":\"a\\u0000b\",\"none\":\"\"}");
}

int main(void)
{
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_write), TEST(test_large),        TEST(test_write_mends_strings),
        TEST(test_utf8),  TEST(test_lossy_copies),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
