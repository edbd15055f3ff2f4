/* SPDX-License-Identifier: Apache-2.0 */

#include "egress/redact.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/cleanup.h"

static void redacted(const char *secret, const char *text, size_t piece, const char *expected)
{
    _cleanup_buf_ struct buf out = BUF_INIT(4096);
    struct redact redact = {.secret = slice_of(secret)};
    size_t len = strlen(text);
    for (size_t i = 0; i < len; i += piece)
        redact_feed(&redact, text + i, piece < len - i ? piece : len - i, &out);
    redact_end(&redact, &out);
    assert_string_equal(out.data, expected);
}

/* In pieces of every size, the same. */
static void test_rows(void **state)
{
    static const struct {
        const char *secret, *text, *expected;
    } rows[] = {
        {"sk-12345", "", ""},
        {"sk-12345", "nothing here", "nothing here"},
        {"sk-12345", "sk-12345", "********"},
        {"sk-12345", "a sk-12345 b sk-12345", "a ******** b ********"},
        {"sk-12345", "sk-1234", "sk-1234"},
        {"sk-12345", "sk-sk-12345", "sk-********"},
        {"sk-12345", "sk-1234sk-12345sk-1", "sk-1234********sk-1"},
        {"aaaaaaab", "aaaaaaaaaaaab", "aaaaa********"},
        {"abababac", "ababababac", "ab********"},
        {"abcabcabd", "abcabcabcabd", "abc*********"},
        {"short", "a short one is left", "a short one is left"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        for (size_t piece = 1; piece <= 24; piece++)
            redacted(rows[i].secret, rows[i].text, piece, rows[i].expected);
}

/* What is held back is only what could be the beginning. */
static void test_passes_on_at_once(void **state)
{
    _cleanup_buf_ struct buf out = BUF_INIT(4096);
    struct redact redact = {.secret = slice_of("sk-12345")};
    redact_feed(&redact, "data: tick\n\n", 12, &out);
    assert_int_equal(out.len, 12);
    redact_feed(&redact, "data: sk", 8, &out);
    assert_int_equal(out.len, 18);
    redact_end(&redact, &out);
    assert_string_equal(out.data, "data: tick\n\ndata: sk");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_passes_on_at_once),
    };
    return cmocka_run_group_tests_name("egress/redact", tests, NULL, NULL);
}
