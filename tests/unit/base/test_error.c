/* SPDX-License-Identifier: Apache-2.0 */

#include "base/error.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <string.h>

/* What the numbers have meant since they went over the wire for the first time, in their order.
 * Agents that were started then still send them: lines are appended here, and never changed. */
static const char *const wire_numbers[] = {
    "NONE",
    "INTERNAL",
    "INVALID_ARGUMENT",
    "INVALID_JSON",
    "UNKNOWN_FIELD",
    "INVALID_NAME",
    "INVALID_QUANTITY",
    "INVALID_DURATION",
    "INVALID_PATH",
    "INVALID_MULTIPART",
    "INVALID_HTTP",
    "CONFLICTING_CREDENTIALS",
    "UNAUTHORIZED",
    "FORBIDDEN",
    "PERMISSION_DENIED",
    "CALLBACK_REFUSED",
    "SHELL_NOT_ALLOWED",
    "ROUTE_NOT_FOUND",
    "SANDBOX_NOT_FOUND",
    "GROUP_NOT_FOUND",
    "WORKSPACE_NOT_FOUND",
    "KEY_NOT_FOUND",
    "FILE_NOT_FOUND",
    "UPLOAD_NOT_FOUND",
    "PROCESS_NOT_FOUND",
    "MONITOR_NOT_FOUND",
    "IMAGE_NOT_FOUND",
    "PREVIEW_NOT_FOUND",
    "TOKEN_NOT_FOUND",
    "TERMINAL_NOT_FOUND",
    "POOL_NOT_FOUND",
    "SECRET_NOT_FOUND",
    "METHOD_NOT_ALLOWED",
    "REQUEST_TIMEOUT",
    "ALREADY_EXISTS",
    "ALREADY_RUNNING",
    "SANDBOX_EXPIRED",
    "NOT_RUNNING",
    "IS_A_DIRECTORY",
    "NOT_A_DIRECTORY",
    "NOT_A_FILE",
    "DIRECTORY_NOT_EMPTY",
    "WORKSPACE_NOT_EMPTY",
    "CONFLICT",
    "NO_STDIN",
    "STDIN_CLOSED",
    "RESOURCE_IN_USE",
    "INSUFFICIENT_RESOURCES",
    "REVISION_CONFLICT",
    "REVISION_MISMATCH",
    "LENGTH_REQUIRED",
    "PAYLOAD_TOO_LARGE",
    "URI_TOO_LONG",
    "UNSUPPORTED_MEDIA_TYPE",
    "RANGE_NOT_SATISFIABLE",
    "EXPECTATION_FAILED",
    "WAIT_TIMEOUT",
    "UPGRADE_REQUIRED",
    "LIMIT_EXCEEDED",
    "TOO_MANY_ATTEMPTS",
    "HEADERS_TOO_LARGE",
    "NOT_IMPLEMENTED",
    "PORT_NOT_LISTENING",
    "UPSTREAM_FAILED",
    "UNAVAILABLE",
    "TIMEOUT",
    "HTTP_VERSION",
    "QUOTA_EXCEEDED",
    "CANCELLED",
    "NETWORK_REFUSED",
    "NETWORK_UNAVAILABLE",
    "PORT_NOT_PUBLISHED",
    "PORT_IN_USE",
    "CODE_LANGUAGE_UNKNOWN",
    "CODE_CONTEXT_NOT_FOUND",
    "CODE_INTERPRETER_MISSING",
    "CODE_KERNEL_FAILED",
    "WATCHER_NOT_FOUND",
    "SNAPSHOT_NOT_FOUND",
    "CODE_INTERPRETER_UNFIT",
    "EXECUTION_NOT_FOUND",
    "HISTORY_DISABLED",
    "ROLLBACK_BLOCKED",
    "CONTAINER_CREATION_FAILED",
    "CONTAINER_START_FAILED",
    "EXECUTION_FAILED",
    "EXECUTION_TIMEOUT",
    "EXECUTION_OUT_OF_MEMORY",
    "RATE_LIMITED",
    "TOO_MANY_STREAMS",
    "TOO_MANY_SANDBOXES",
    "AUDIT_UNAVAILABLE",
    "AGENT_INCOMPATIBLE",
    "MEMORY_LIMITED",
    "OVERLOADED",
};

static void test_numbers_never_change(void **state)
{
    for (size_t number = 1; number < sizeof(wire_numbers) / sizeof(wire_numbers[0]); number++)
        if (error_known(number)) /* else its code is gone, and nothing else may have it */
            assert_string_equal(error_name((enum error_code)number), wire_numbers[number]);
    for (size_t number = sizeof(wire_numbers) / sizeof(wire_numbers[0]); number < ERROR_NUMBERS;
         number++)
        assert_false(error_known(number)); /* a new one is to be added above */
}

static void test_every_code_has_a_row(void **state)
{
    assert_false(error_known(ERROR_NONE));
    assert_false(error_known(UINT64_MAX));
    for (int code = 1; code < ERROR_NUMBERS; code++) {
        if (!error_known((unsigned)code))
            continue;
        assert_non_null(error_name(code));
        assert_int_equal(error_from_name(error_name(code)), code);
        assert_in_range(error_http_status(code), 400, 599);
        assert_in_range(error_exit_status(code), 1, 125);
    }
    assert_int_equal(error_http_status(ERROR_SANDBOX_NOT_FOUND), 404);
    assert_string_equal(error_name(ERROR_SANDBOX_NOT_FOUND), "SANDBOX_NOT_FOUND");
}

static void test_categories(void **state)
{
    assert_int_equal(error_category(ERROR_INVALID_JSON), CATEGORY_CLIENT);
    assert_int_equal(error_category(ERROR_TOO_MANY_ATTEMPTS), CATEGORY_CLIENT);
    assert_int_equal(error_category(ERROR_IMAGE_NOT_FOUND), CATEGORY_CONTAINER);
    assert_int_equal(error_category(ERROR_CONTAINER_START_FAILED), CATEGORY_CONTAINER);
    assert_int_equal(error_category(ERROR_EXECUTION_TIMEOUT), CATEGORY_EXECUTION);
    assert_int_equal(error_category(ERROR_INTERNAL), CATEGORY_SYSTEM);
    assert_int_equal(error_category(ERROR_INSUFFICIENT_RESOURCES), CATEGORY_SYSTEM);
    assert_int_equal(error_category((enum error_code)12345), CATEGORY_SYSTEM);
    for (int category = CATEGORY_CLIENT; category <= CATEGORY_SYSTEM; category++)
        assert_non_null(error_category_name((enum error_category)category));
}

static void test_strangers_are_internal(void **state)
{
    assert_string_equal(error_name((enum error_code)ERROR_NUMBERS), "INTERNAL");
    assert_string_equal(error_name((enum error_code) - 1), "INTERNAL");
    assert_int_equal(error_http_status((enum error_code)12345), 500);
    assert_int_equal(error_from_name("NO_SUCH_CODE"), ERROR_INTERNAL);
    assert_int_equal(error_from_name(""), ERROR_INTERNAL);
    assert_int_equal(error_from_errno(ENOTTY), ERROR_INTERNAL);
}

static void test_set(void **state)
{
    struct error err = {.sys = 7};
    assert_int_equal(error_set(&err, ERROR_INVALID_NAME, "bad %s %d", "name", 3), -1);
    assert_int_equal(err.code, ERROR_INVALID_NAME);
    assert_int_equal(err.sys, 0);
    assert_string_equal(err.message, "bad name 3");
    assert_int_equal(error_set(NULL, ERROR_INTERNAL, "x"), -1);
}

static void test_sys(void **state)
{
    struct error err = {0};
    errno = ENOENT;
    assert_int_equal(error_sys(&err, "opening %s", "/x"), -1);
    assert_int_equal(err.code, ERROR_FILE_NOT_FOUND);
    assert_int_equal(err.sys, ENOENT);
    assert_string_equal(err.message, "opening /x: No such file or directory");
    errno = EDQUOT;
    error_sys(&err, "writing");
    assert_int_equal(err.code, ERROR_QUOTA_EXCEEDED);
    errno = ENOENT;
    error_sys_as(&err, ERROR_IMAGE_NOT_FOUND, "opening");
    assert_int_equal(err.code, ERROR_IMAGE_NOT_FOUND);
    assert_int_equal(err.sys, ENOENT);
    assert_int_equal(error_sys(NULL, "x"), -1);
    assert_int_equal(error_sys_as(NULL, ERROR_INTERNAL, "x"), -1);
}

static void test_prefix(void **state)
{
    struct error err = {0};
    error_set(&err, ERROR_TIMEOUT, "too late");
    assert_int_equal(error_prefix(&err, "sandbox %s", "a"), -1);
    assert_string_equal(err.message, "sandbox a: too late");
    assert_int_equal(err.code, ERROR_TIMEOUT);
    assert_int_equal(error_prefix(NULL, "x"), -1);
}

static void test_long_messages_are_cut(void **state)
{
    char text[2 * ERROR_MESSAGE_MAX];
    memset(text, 'a', sizeof(text));
    text[sizeof(text) - 1] = '\0';
    struct error err = {0};
    errno = EIO;
    error_sys(&err, "%s", text);
    assert_int_equal(strlen(err.message), ERROR_MESSAGE_MAX - 1);
    error_prefix(&err, "%s", text);
    assert_int_equal(strlen(err.message), ERROR_MESSAGE_MAX - 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_numbers_never_change),
        cmocka_unit_test(test_every_code_has_a_row),
        cmocka_unit_test(test_categories),
        cmocka_unit_test(test_strangers_are_internal),
        cmocka_unit_test(test_set),
        cmocka_unit_test(test_sys),
        cmocka_unit_test(test_prefix),
        cmocka_unit_test(test_long_messages_are_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
