/* SPDX-License-Identifier: Apache-2.0 */

/* Text from strangers, and columns that stay columns. */

#include "cli/table.h"

#include "cmocka_all.h"

static void test_plain(void **state)
{
    static const struct {
        const char *text;
        size_t len;
        const char *plain;
    } rows[] = {
        {"plain text", 10, "plain text"},
        {"grüße 日本", 14, "grüße 日本"},
        {"a\nb\tc\r", 6, "a\\nb\\tc\\r"},
        {"\033[31mred", 8, "\\x1b[31mred"},
        {"nul\0nul", 7, "nul\\x00nul"},
        {"\x7f", 1, "\\x7f"},
        {"\xff\xfe", 2, "\\xff\\xfe"},
        {"cut \xe6\x97", 6, "cut \\xe6\\x97"},
        {"\xc2\x9b", 2, "\\u{9b}"}, /* CSI as one character */
        {"a\xe2\x80\xae"
         "b",
         5, "a\\u{202e}b"}, /* right to left from here */
        {"", 0, ""},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct buf out = BUF_INIT(256);
        text_add_plain(&out, (struct slice){rows[i].text, rows[i].len});
        assert_string_equal(out.data, rows[i].plain);
        buf_release(&out);
    }
}

static void test_width(void **state)
{
    assert_int_equal(text_width(slice_of("abc")), 3);
    assert_int_equal(text_width(slice_of("grüße")), 5);
    assert_int_equal(text_width(slice_of("日本")), 4);
    assert_int_equal(text_width(slice_of("e\xcc\x81")), 1); /* e and an accent over it */
    assert_int_equal(text_width(slice_of("")), 0);
}

static void test_columns(void **state)
{
    static const char *const titles[] = {"NAME", "N", "WHAT"};
    struct table *table = table_new(titles, 3);
    struct buf out = BUF_INIT(1024);
    table_text(table, "日本");
    table_printf(table, "%d", 12345);
    table_text(table, "a b");
    table_text(table, "longer-name");
    table_text(table, NULL);
    table_text(table, "x\ny");
    table_write(table, &out);
    assert_string_equal(out.data, "NAME         N      WHAT\n"
                                  "日本         12345  a b\n"
                                  "longer-name  -      x\\ny\n");
    buf_release(&out);
    table_free(table);
}

static void test_no_rows(void **state)
{
    static const char *const titles[] = {"A", "B"};
    struct table *table = table_new(titles, 2);
    struct buf out = BUF_INIT(1024);
    table_write(table, &out);
    assert_string_equal(out.data, "A  B\n");
    buf_release(&out);
    table_free(table);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plain),
        cmocka_unit_test(test_width),
        cmocka_unit_test(test_columns),
        cmocka_unit_test(test_no_rows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
