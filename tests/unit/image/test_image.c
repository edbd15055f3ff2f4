/* SPDX-License-Identifier: Apache-2.0 */

#include "image/image.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/cleanup.h"

static void test_known(void **state)
{
    static const char *const known[] = {
        NULL,
        "",
        "host",
        "base",
        "code-interpreter-v1",
        "@ai-sandbox/python",
        "@ai-sandbox/python:3.12",
        "@ai-sandbox/node",
        "python",
        "python:3.11-slim",
        "node:18-alpine",
        "node:latest",
        "blaxel/base-image:latest",
        "blaxel/prod-base:latest",
    };
    for (size_t i = 0; i < ARRAY_LEN(known); i++) {
        const char *image = NULL;
        assert_int_equal(image_resolve(known[i], &image, NULL), 0);
        assert_string_equal(image, "host");
    }
}

static void test_unknown(void **state)
{
    static const char *const unknown[] = {
        "ubuntu:22.04",      "Host",  "host ",   "host:latest", "../host", "base\n", "hos",
        "blaxel/base-image", "node:", "node:-x", "node:a/b",    "node:1 ", "nodejs"};
    for (size_t i = 0; i < ARRAY_LEN(unknown); i++) {
        const char *image = "untouched";
        struct error err = {0};
        assert_int_equal(image_resolve(unknown[i], &image, &err), -1);
        assert_int_equal(err.code, ERROR_IMAGE_NOT_FOUND);
        assert_string_equal(image, "untouched");
        assert_non_null(strstr(err.message, unknown[i]));
        assert_non_null(strstr(err.message, "there are: host, base, "));
        assert_non_null(strstr(err.message, "blaxel/prod-base:latest"));
    }
}

static void test_long_reference(void **state)
{
    char reference[5000];
    memset(reference, 'a', sizeof(reference));
    reference[sizeof(reference) - 1] = '\0';
    const char *image;
    struct error err = {0};
    assert_int_equal(image_resolve(reference, &image, &err), -1);
    assert_non_null(strstr(err.message, "there are: host")); /* still says what helps */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_known),
        cmocka_unit_test(test_unknown),
        cmocka_unit_test(test_long_reference),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
