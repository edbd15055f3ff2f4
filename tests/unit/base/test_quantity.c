/* SPDX-License-Identifier: Apache-2.0 */

#include "base/quantity.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"

struct row {
    const char *text;
    uint64_t expected;
};

static const struct row cpu_rows[] = {
    {"0", 0},
    {"1", 1000},
    {"2", 2000},
    {"0.5", 500},
    {".5", 500},
    {"1.", 1000},
    {"+1", 1000},
    {"500m", 500},
    {"1000m", 1000},
    {"1500m", 1500},
    {"0.5m", 1},
    {"0.001", 1},
    {"0.0001", 1},
    {"0.0011", 2},
    {"2.0000000000000000000000000000000001", 2001},
    {"1e3", 1000000},
    {"1e-3", 1},
    {"12E-4", 2},
    {"1k", 1000000},
    {"1Ki", 1024000},
    {"00000000000000000000000000000000001", 1000},
    {"9223372036854775807m", INT64_MAX},
    {"9223372036854775.807", INT64_MAX},
    {"1e-99", 1},
    {"0e99", 0},
    {"0.000", 0},
};

static const struct row bytes_rows[] = {
    {"0", 0},
    {"1", 1},
    {"1000000", 1000000},
    {"64Ki", 64 << 10},
    {"512Mi", 512 << 20},
    {"1Gi", 1 << 30},
    {"1.5Gi", 3ULL << 29},
    {"10Gi", 10ULL << 30},
    {"2Ti", 2ULL << 40},
    {"3Pi", 3ULL << 50},
    {"7Ei", 7ULL << 60},
    {"7.999Ei", 9222219115350168962},
    {"1k", 1000},
    {"1500M", 1500000000},
    {"1G", 1000000000},
    {"1T", 1000000000000},
    {"1P", 1000000000000000},
    {"1E", 1000000000000000000},
    {"9.2E", 9200000000000000000},
    {"1e9", 1000000000},
    {"1E9", 1000000000},
    {"12E6", 12000000},
    {"12e+6", 12000000},
    {"1.5e3", 1500},
    {"15e-1", 2},
    {"0.1", 1},
    {"1.1", 2},
    {"512m", 1},
    {"1001m", 2},
    {"0.1Ki", 103},                           /* 102.4 */
    {"0.3Mi", 314573},                        /* 314572.8 */
    {"0.0009765625Ki", 1},                    /* exactly one */
    {"0.00097656250000000000000000001Ki", 2}, /* a trifle more */
    {"0.123456789Gi", 132560718},             /* 132560717.9… */
    {"9223372036854775807", INT64_MAX},
    {"9223372036854775806.5", INT64_MAX},
    {"0.000000000000000001E", 1},
    {"1000000000.0", 1000000000},
    {"1e18", 1000000000000000000},
    {"100000000000000000000e-20", 1},
};

static const char *const bad[] = {
    "",
    " ",
    " 1",
    "1 ",
    "1 Gi",
    "\t1",
    "1\n",
    "-1",
    "-0",
    "-1Gi",
    "--1",
    "+-1",
    "++1",
    "+",
    "-",
    ".",
    "..",
    "1..5",
    "1.5.1",
    "1,5",
    "abc",
    "Gi",
    "m",
    "e9",
    "E",
    "1K",
    "1g",
    "1gi",
    "1GB",
    "1Gib",
    "1GiB",
    "1kb",
    "1KI",
    "1kI",
    "1mi",
    "1u",
    "1n",
    "1mm",
    "1MM",
    "1Mm",
    "1e",
    "1e+",
    "1e-",
    "1e1.5",
    "1e9Gi",
    "1e9m",
    "1E9E",
    "1ee9",
    "1e 9",
    "0x10",
    "0b1",
    "1_000",
    "1'000",
    "inf",
    "Infinity",
    "nan",
    "NaN",
    "1i",
    "1Zi",
    "1Y",
    "½",
    "１",
    "1\xff",
    "9223372036854775808",              /* 2^63 */
    "9223372036854775807.1",            /* rounds up past it */
    "18446744073709551616",             /* 2^64 */
    "99999999999999999999999999999999", /* more than 128 bits would be next */
    "8Ei",
    "8192Pi",
    "9.3E",
    "10E",
    "1e19",
    "1e99",
    "1e100",
    "1e-100",
    "1e999999999999999999999",
    "1e-999999999999999999999",
    "1000000000000000000000000000000000000000000000000000000000000000000000", /* too long */
    "0.00000000000000000000000000000000000000000000000000000000000000000000000001",
};

static void check_rows(const struct row *rows, size_t n,
                       int (*parse)(const char *, uint64_t *, struct error *))
{
    for (size_t i = 0; i < n; i++) {
        uint64_t value = 4711;
        struct error err = {0};
        if (parse(rows[i].text, &value, &err) < 0)
            fail_msg("\"%s\": %s", rows[i].text, err.message);
        if (value != rows[i].expected)
            fail_msg("\"%s\" gave %llu, not %llu", rows[i].text, (unsigned long long)value,
                     (unsigned long long)rows[i].expected);
    }
}

static void test_cpu(void **state)
{
    check_rows(cpu_rows, ARRAY_LEN(cpu_rows), quantity_cpu);
}

static void test_bytes(void **state)
{
    check_rows(bytes_rows, ARRAY_LEN(bytes_rows), quantity_bytes);
}

static void check_refused(const char *text, int (*parse)(const char *, uint64_t *, struct error *))
{
    uint64_t value = 4711;
    struct error err = {0};
    if (parse(text, &value, &err) == 0)
        fail_msg("\"%s\" was taken for %llu", text, (unsigned long long)value);
    assert_int_equal(err.code, ERROR_INVALID_QUANTITY);
    assert_int_equal(value, 4711); /* untouched */
    assert_non_null(strstr(err.message, "write for example"));
}

static void test_refused(void **state)
{
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        check_refused(bad[i], quantity_cpu);
        check_refused(bad[i], quantity_bytes);
    }
    check_refused(NULL, quantity_cpu);
    check_refused("9223372036854775807", quantity_cpu); /* thousandths do not fit */
    check_refused("9223372036854775.8071", quantity_cpu);
}

static void test_message_names_the_text(void **state)
{
    struct error err = {0};
    uint64_t value;
    assert_int_equal(quantity_bytes("12parsecs", &value, &err), -1);
    assert_non_null(strstr(err.message, "\"12parsecs\""));
    assert_non_null(strstr(err.message, "512Mi"));
    assert_int_equal(quantity_cpu("-1", &value, &err), -1);
    assert_non_null(strstr(err.message, "negative"));
    assert_non_null(strstr(err.message, "500m"));
    assert_int_equal(quantity_cpu("-1", &value, NULL), -1);
}

/* Every whole number of a unit is exact, near the top too. */
static void test_powers(void **state)
{
    static const char *const units[] = {"", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"};
    for (unsigned unit = 0; unit < ARRAY_LEN(units); unit++)
        for (unsigned bit = 0; bit + unit * 10 < 63; bit++) {
            char text[64];
            uint64_t value = 0;
            snprintf(text, sizeof(text), "%llu%s", 1ULL << bit, units[unit]);
            assert_int_equal(quantity_bytes(text, &value, NULL), 0);
            assert_true(value == 1ULL << (bit + unit * 10));
        }
}

static void test_shares(void **state)
{
    static const struct {
        const char *text;
        uint64_t whole, part;
    } rows[] = {
        {"25%", 1000, 250}, {"100%", UINT64_MAX, UINT64_MAX},
        {"12.5%", 8, 1},    {"0.0001%", 1000000, 1},
        {"33%", 10, 3},     {"0%", 1000, 0},
        {".5%", 1000, 5},
    };
    static const char *const wrong[] = {
        "%",  "100.1%", "-1%", "1e1%", "5Gi%", "5",    "5 %",
        "%5", "",       "5%%", "+5%",  "1m%",  "1..%", "999999999999999999999999999999%"};
    struct error err;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        uint64_t part = 0;
        assert_true(quantity_is_share(rows[i].text));
        assert_int_equal(quantity_share(rows[i].text, rows[i].whole, &part, &err), 0);
        assert_true(part == rows[i].part);
    }
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        uint64_t part = 7;
        assert_int_equal(quantity_share(wrong[i], 1000, &part, &err), -1);
        assert_int_equal(err.code, ERROR_INVALID_QUANTITY);
        assert_int_equal(part, 7);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cpu),     cmocka_unit_test(test_bytes),
        cmocka_unit_test(test_refused), cmocka_unit_test(test_message_names_the_text),
        cmocka_unit_test(test_powers),  cmocka_unit_test(test_shares),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
