/* SPDX-License-Identifier: Apache-2.0 */

#include "audit/log.h"

#include "fixture.h"

static void test_right(void **state)
{
    struct audit_options o;
    assert_int_equal(audit_options_parse(NULL, &o, NULL), 0);
    assert_false(o.off || o.no_reads || o.go_on);
    assert_int_equal(o.files, 16);
    assert_int_equal(audit_options_parse("on", &o, NULL), 0);
    assert_false(o.off);
    assert_int_equal(audit_options_parse("off", &o, NULL), 0);
    assert_true(o.off);
    assert_int_equal(audit_options_parse("reads=no,full=go-on,size=1Mi,files=3,age=2d", &o, NULL),
                     0);
    assert_true(o.no_reads && o.go_on && !o.off);
    assert_int_equal(o.file_bytes, 1 << 20);
    assert_int_equal(o.files, 3);
    assert_int_equal(o.keep_ms, INT64_C(2) * 24 * 3600 * 1000);
    assert_int_equal(audit_options_parse("reads=all", &o, NULL), 0);
    assert_true(o.all_reads && !o.no_reads);
}

static void test_wrong(void **state)
{
    static const char *const rows[] = {"no",        "reads",      "reads=",   "reads=maybe",
                                       "full=yes",  "size=1",     "size=x",   "size=99Ti",
                                       "files=1",   "files=x",    "files=-3", "files=99999",
                                       "age=never", "colour=red", "on,off",   "size=1Mi,off"};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct audit_options o;
        struct error err = {0};
        assert_int_equal(audit_options_parse(rows[i], &o, &err), -1);
        assert_int_equal(err.code, ERROR_INVALID_ARGUMENT);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_right), cmocka_unit_test(test_wrong)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
