/* SPDX-License-Identifier: Apache-2.0 */

#include "audit/chain.h"

#include "fixture.h"

/* Computed by sha256sum: 32 zero bytes and the text. */
static void test_known_hash(void **state)
{
    struct audit_chain chain;
    _cleanup_buf_ struct buf lines = BUF_INIT(4096);
    assert_int_equal(audit_chain_init(&chain, NULL), 0);
    buf_adds(&lines, "{\"seq\":1,\"time\":\"2026-01-02T03:04:05.678Z\",\"event\":\"x\"");
    audit_chain_seal(&chain, &lines, 0);
    assert_string_equal(lines.data + lines.len - 67,
                        "6a867cae4a0ab1d5b57ed7b55ee17855bf08ec477171962ea7450127898142f5\"}\n");
    assert_int_equal(chain.seq, 1);
    audit_chain_release(&chain);
}

static void test_lines(void **state)
{
    static const char hash[] = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
    static const struct {
        const char *front;
        bool is_line;
    } rows[] = {
        {"{\"seq\":1,\"time\":\"2026-01-02T03:04:05.678Z\"", true},
        {"{\"seq\":18446744073709551,\"time\":\"2026-01-02T03:04:05.678Z\",\"a\":1", true},
        {"{\"seq\":0,\"time\":\"2026-01-02T03:04:05.678Z\"", false},
        {"{\"seq\":,\"time\":\"2026-01-02T03:04:05.678Z\"", false},
        {"{\"seq\":99999999999999999999,\"time\":\"2026-01-02T03:04:05.678Z\"", false},
        {"{\"seq\":1,\"time\":\"2026-01-02T03:04:05\"", false},
        {"{\"seq\":1", false},
        {"", false},
        {"x", false},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char text[512];
        struct audit_line line;
        int n = snprintf(text, sizeof(text), "%s,\"hash\":\"%s\"}", rows[i].front, hash);
        assert_int_equal(audit_line_parse((struct slice){text, (size_t)n}, &line), rows[i].is_line);
        /* Cut anywhere it is none. */
        for (int cut = 0; cut < n; cut++)
            assert_false(audit_line_parse((struct slice){text, (size_t)cut}, &line));
    }
}

static void test_text(void **state)
{
    static const struct {
        const char *text, *written;
        size_t max;
    } rows[] = {
        {"plain", ",\"k\":\"plain\"", 100},
        {"", "", 100},
        {"a\"b\\c", ",\"k\":\"a\\\"b\\\\c\"", 100},
        {"\n\t\x01\x7f", ",\"k\":\"\\n\\t\\u0001\\u007f\"", 100},
        {"gr\xc3\xbc\xc3\x9f", ",\"k\":\"gr\xc3\xbc\xc3\x9f\"", 100},
        {"\xff\xc3", ",\"k\":\"\xef\xbf\xbd\xef\xbf\xbd\"", 100},
        {"\xed\xa0\x80", ",\"k\":\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"", 100},
        {"\xf0\x9f\x98\x80", ",\"k\":\"\xf0\x9f\x98\x80\"", 100},
        {"abcdef", ",\"k\":\"abc\xe2\x80\xa6\"", 3},
        {"ab\xc3\xbc!", ",\"k\":\"ab\xe2\x80\xa6\"", 3}, /* not in the middle of a character */
        {"\",\"hash\":\"", ",\"k\":\"\\\",\\\"hash\\\":\\\"\"", 100},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        _cleanup_buf_ struct buf line = BUF_INIT(4096);
        audit_add_text(&line, "k", slice_of(rows[i].text), rows[i].max);
        assert_string_equal(line.data, rows[i].written);
    }
}

static void test_numbers(void **state)
{
    _cleanup_buf_ struct buf line = BUF_INIT(4096);
    char time[AUDIT_TIME_LEN + 1];
    audit_add_number(&line, "n", -7);
    audit_add_us(&line, "ms", 1234567);
    audit_add_us(&line, "none", -1);
    assert_string_equal(line.data, ",\"n\":-7,\"ms\":1234.567,\"none\":0.000");
    audit_time_text(1767323045678, time);
    assert_string_equal(time, "2026-01-02T03:04:05.678Z");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_known_hash),
        cmocka_unit_test(test_lines),
        cmocka_unit_test(test_text),
        cmocka_unit_test(test_numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
