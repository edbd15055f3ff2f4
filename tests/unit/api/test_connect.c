/* SPDX-License-Identifier: Apache-2.0 */

/* Envelopes of Connect's streams, and which code an error is. */

#include "helpers.h"

#include "api/connect/connect.h"
#include "api/connect/frame.h"
#include "base/cleanup.h"

#define BYTES(text) ((struct slice){text, sizeof(text) - 1})

static void test_envelopes(void **state)
{
    static const struct {
        struct slice body;
        const char *message; /* NULL: refused */
    } rows[] = {
        {BYTES("\0\0\0\0\2{}"), "{}"},
        {BYTES("\0\0\0\0\0"), ""},
        {BYTES(""), NULL},
        {BYTES("\0\0\0\0"), NULL},     /* cut off in the header */
        {BYTES("\0\0\0\0\3{}"), NULL}, /* in the message */
        {BYTES("\0\0\0\0\1{}"), NULL}, /* something behind it */
        {BYTES("\0\xff\xff\xff\xff{}"), NULL},
        {BYTES("\1\0\0\0\2{}"), NULL}, /* compressed */
        {BYTES("\2\0\0\0\2{}"), NULL}, /* an end, where nothing has begun */
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct slice message;
        struct error err = {0};
        int rc = connect_frame_take(rows[i].body, &message, &err);
        assert_int_equal(rc, rows[i].message == NULL ? -1 : 0);
        if (rc == 0)
            assert_true(slice_eq(message, slice_of(rows[i].message)));
        else
            assert_int_equal(err.code, ERROR_INVALID_ARGUMENT);
    }
}

static void test_heads(void **state)
{
    static const struct {
        const char *head;
        enum error_code code;
        size_t len;
    } rows[] = {
        {"\0\0\0\0\0", ERROR_NONE, 0},
        {"\0\0\0\1\2", ERROR_NONE, 258},
        {"\0\0\0\4\0", ERROR_NONE, 1024},
        {"\0\0\0\4\1", ERROR_PAYLOAD_TOO_LARGE, 0},
        {"\0\xff\xff\xff\xff", ERROR_PAYLOAD_TOO_LARGE, 0},
        {"\1\0\0\0\0", ERROR_INVALID_ARGUMENT, 0},
        {"\2\0\0\0\0", ERROR_INVALID_ARGUMENT, 0},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct error err = {0};
        size_t len = 0;
        int rc = connect_frame_head(rows[i].head, 1024, &len, &err);
        assert_int_equal(rc, rows[i].code == ERROR_NONE ? 0 : -1);
        assert_int_equal(err.code, rows[i].code);
        assert_int_equal(len, rows[i].len);
    }
}

static void test_what_is_added_is_taken(void **state)
{
    _cleanup_buf_ struct buf out = BUF_INIT(100);
    struct slice message;
    connect_frame_add(&out, 0, slice_of("{\"a\":1}"));
    assert_int_equal(connect_frame_take((struct slice){out.data, out.len}, &message, NULL), 0);
    assert_true(slice_eq(message, slice_of("{\"a\":1}")));
}

static void test_codes(void **state)
{
    static const struct {
        enum error_code code;
        const char *text;
        int status;
    } rows[] = {
        {ERROR_FILE_NOT_FOUND, "not_found", 404},
        {ERROR_PROCESS_NOT_FOUND, "not_found", 404},
        {ERROR_ALREADY_EXISTS, "already_exists", 409},
        {ERROR_IS_A_DIRECTORY, "invalid_argument", 400},
        {ERROR_INVALID_JSON, "invalid_argument", 400},
        {ERROR_UNAUTHORIZED, "unauthenticated", 401},
        {ERROR_UNAVAILABLE, "unavailable", 503},
        {ERROR_TIMEOUT, "deadline_exceeded", 504},
        {ERROR_LIMIT_EXCEEDED, "resource_exhausted", 429},
        {ERROR_QUOTA_EXCEEDED, "internal", 507},
        {ERROR_PAYLOAD_TOO_LARGE, "invalid_argument", 413},
        {ERROR_NOT_IMPLEMENTED, "unimplemented", 404},
        {ERROR_ROUTE_NOT_FOUND, "unimplemented", 404},
        {ERROR_INTERNAL, "internal", 500},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        assert_string_equal(connect_code(rows[i].code), rows[i].text);
        assert_int_equal(connect_status(rows[i].code), rows[i].status);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_envelopes),
        cmocka_unit_test(test_heads),
        cmocka_unit_test(test_what_is_added_is_taken),
        cmocka_unit_test(test_codes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
