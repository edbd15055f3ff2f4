/* SPDX-License-Identifier: Apache-2.0 */

#include "api/aisandbox/docker_units.h"

#include "helpers.h"

#include <math.h>

#include "base/cleanup.h"

#define KIB (UINT64_C(1) << 10)
#define MIB (UINT64_C(1) << 20)
#define GIB (UINT64_C(1) << 30)

static void test_memory(void **state)
{
    static const struct {
        const char *text;
        uint64_t bytes;
    } rows[] = {
        {"512m", 512 * MIB},
        {"512M", 512 * MIB},
        {"512mb", 512 * MIB},
        {"512MiB", 512 * MIB},
        {"1g", GIB},
        {"1.5g", GIB + 512 * MIB},
        {"64k", 64 * KIB},
        {"100b", 100},
        {"100", 100},
        {"0", 0},
        {"0.0000001k", 1},
        {"2t", 2048 * GIB},
        {"1p", 1024 * 1024 * GIB},
        {"9223372036854775807", INT64_MAX},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        uint64_t bytes = 7;
        struct error err = {0};
        if (docker_memory(rows[i].text, &bytes, &err) < 0)
            fail_msg("%s: %s", rows[i].text, err.message);
        assert_int_equal(bytes, rows[i].bytes);
    }
}

static void test_cpus(void **state)
{
    static const struct {
        const char *text;
        uint64_t millis;
    } rows[] = {{"0.5", 500}, {"2", 2000}, {"1.25", 1250}, {"0.0001", 1}, {"0", 0}, {"64", 64000}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        uint64_t millis = 7;
        assert_int_equal(docker_cpus(rows[i].text, &millis, NULL), 0);
        assert_int_equal(millis, rows[i].millis);
    }
}

static void check_refused(int (*read)(const char *, uint64_t *, struct error *), const char *text)
{
    uint64_t value = 7;
    struct error err = {0};
    if (read(text, &value, &err) == 0)
        fail_msg("\"%s\" was taken for %llu", text, (unsigned long long)value);
    assert_int_equal(err.code, ERROR_INVALID_QUANTITY);
    assert_int_equal(value, 7);
    assert_non_null(strstr(err.message, "write for example"));
}

static void test_refused(void **state)
{
    static const char *const memory[] = {
        "",
        "m",
        "-1",
        "+1",
        " 1",
        "1 m",
        "1.m",
        ".5m",
        "1.5",
        "1.5b",
        "1x",
        "1mm",
        "1ib",
        "1i",
        "1e3",
        "0x10",
        "1m ",
        "8192p",
        "9223372036854775808",
        "99999999999999999999999",
        "1.0000000001g",
        "1111111111111111111111111111111111111111111111111111111111111111"};
    static const char *const cpus[] = {"", "0,5", "half", "-1", "1m", "500m", "1e3", "1/2", "1."};
    for (size_t i = 0; i < ARRAY_LEN(memory); i++)
        check_refused(docker_memory, memory[i]);
    for (size_t i = 0; i < ARRAY_LEN(cpus); i++)
        check_refused(docker_cpus, cpus[i]);
}

static void test_written(void **state)
{
    struct arena *arena = *state;
    assert_string_equal(docker_memory_text(128 * MIB, arena), "128m");
    assert_string_equal(docker_memory_text(GIB + 512 * MIB, arena), "1.5g");
    assert_string_equal(docker_memory_text(0, arena), "0b");
    assert_string_equal(docker_memory_text(17, arena), "17b");
    assert_string_equal(docker_memory_text(96 * KIB, arena), "96k");
    assert_string_equal(docker_memory_text(MIB + 1, arena), "1.01m");
    assert_string_equal(docker_cpus_text(0.2, arena), "0.2");
    assert_string_equal(docker_cpus_text(0.25, arena), "0.25");
    assert_string_equal(docker_cpus_text(2, arena), "2");
    assert_string_equal(docker_cpus_text(1.05, arena), "1.05");
    assert_string_equal(docker_cpus_text(NAN, arena), "0");
    assert_string_equal(docker_cpus_text(-1, arena), "0");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_memory),
        cmocka_unit_test(test_cpus),
        cmocka_unit_test(test_refused),
        api_test(test_written),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
