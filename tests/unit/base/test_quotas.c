/* SPDX-License-Identifier: Apache-2.0 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "base/quotas.h"

/* Every row of the table can be set, lifted, and is refused below its smallest value. */
static void test_every_kind(void **state)
{
    for (int i = 0; i < QUOTA_COUNT; i++) {
        const struct quota_kind *kind = &quota_kinds[i];
        struct quotas quotas;
        struct error err = {0};
        quotas_default(&quotas);
        assert_int_equal(quotas.of[i], kind->fallback);
        assert_int_equal(quotas_set(&quotas, kind->name, "100k", &err), 0);
        assert_int_equal(quotas.of[i], kind->unit == QUOTA_UNIT_CORES ? 100000000 : 100000);
        assert_int_equal(quotas_set(&quotas, kind->name, "off", &err), 0);
        assert_int_equal(quotas.of[i], 0);
        static const char *const wrong[] = {"0", "", "-1", "many", "1x"};
        for (size_t k = 0; k < sizeof(wrong) / sizeof(wrong[0]); k++) {
            assert_int_equal(quotas_set(&quotas, kind->name, wrong[k], &err), -1);
            assert_int_equal(err.code, ERROR_INVALID_ARGUMENT);
            assert_non_null(strstr(err.message, kind->name));
            assert_int_equal(quotas.of[i], 0);
        }
    }
    struct quotas quotas = {0};
    struct error err = {0};
    assert_int_equal(quotas_set(&quotas, "ram", "1", &err), -1);
    assert_non_null(strstr(err.message, "memory"));
}

static void test_check(void **state)
{
    struct quotas quotas = {.of = {[QUOTA_MEMORY] = 1 << 30}};
    struct error err = {0};
    assert_int_equal(
        quota_check(&quotas, QUOTA_MEMORY, "w", 1 << 29, 1 << 29, ERROR_LIMIT_EXCEEDED, &err), 0);
    assert_int_equal(
        quota_check(&quotas, QUOTA_MEMORY, "w", 1 << 29, (1 << 29) + 1, ERROR_LIMIT_EXCEEDED, &err),
        -1);
    assert_int_equal(err.code, ERROR_LIMIT_EXCEEDED);
    assert_non_null(strstr(err.message, "\"memory\": the limit is 1 GiB, 512 MiB are in use"));
    /* What is over a quota that was lowered stays; only more of it is refused. */
    assert_int_equal(
        quota_check(&quotas, QUOTA_MEMORY, "w", UINT64_C(1) << 31, 0, ERROR_LIMIT_EXCEEDED, &err),
        0);
    assert_int_equal(
        quota_check(&quotas, QUOTA_MEMORY, "w", 0, UINT64_MAX, ERROR_LIMIT_EXCEEDED, &err), -1);
    assert_int_equal(
        quota_check(&quotas, QUOTA_DISK, "w", UINT64_MAX, 1, ERROR_LIMIT_EXCEEDED, &err),
        0); /* no limit */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_kind),
        cmocka_unit_test(test_check),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
