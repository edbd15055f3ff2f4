/* SPDX-License-Identifier: Apache-2.0 */

/* Every schema, without knowing any: filled with values by its own table, encoded, decoded,
 * compared; then damaged in every way that the decoder has to refuse. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/cleanup.h"
#include "base/limits.h"
#include "wire/messages.h"

enum { MESSAGE_MAX = 512 }; /* more than any of the structs */

union message {
    uint64_t align;
    unsigned char bytes[MESSAGE_MAX];
};

enum { FIELD_HEADER = 6 };

static void fill(const struct wire_schema *schema, union message *msg)
{
    static const char strv[] = "one\0\0three"; /* with its own NUL at the end */
    memset(msg, 0, sizeof(*msg));
    for (size_t i = 0; i < schema->count; i++) {
        unsigned char *at = msg->bytes + schema->fields[i].offset;
        uint64_t number = UINT64_C(0x0102030405060708) + i;
        const char *text = "text";
        struct slice bytes = {"b\0\377", 3}, list = {strv, sizeof(strv)};
        switch (schema->fields[i].kind) {
        case WIRE_U64:
            memcpy(at, &number, sizeof(number));
            break;
        case WIRE_STR:
            memcpy(at, &text, sizeof(text));
            break;
        case WIRE_BYTES:
            memcpy(at, &bytes, sizeof(bytes));
            break;
        case WIRE_STRV:
            memcpy(at, &list, sizeof(list));
            break;
        }
    }
}

static void assert_same(const struct wire_schema *schema, const union message *a,
                        const union message *b)
{
    for (size_t i = 0; i < schema->count; i++) {
        const unsigned char *x = a->bytes + schema->fields[i].offset;
        const unsigned char *y = b->bytes + schema->fields[i].offset;
        if (schema->fields[i].kind == WIRE_U64) {
            assert_memory_equal(x, y, sizeof(uint64_t));
        } else if (schema->fields[i].kind == WIRE_STR) {
            const char *s, *t;
            memcpy(&s, x, sizeof(s));
            memcpy(&t, y, sizeof(t));
            assert_int_equal(s == NULL, t == NULL);
            if (s != NULL)
                assert_string_equal(s, t);
        } else {
            struct slice s, t;
            memcpy(&s, x, sizeof(s));
            memcpy(&t, y, sizeof(t));
            assert_true(slice_eq(s, t));
        }
    }
}

static struct slice payload_of(const struct buf *frame)
{
    struct frame_header header;
    struct slice payload;
    struct error err;
    assert_int_equal(wire_next(frame, &header, &payload, &err), 1);
    assert_int_equal(header.length, payload.len);
    return payload;
}

/* Decoding from memory of exactly that size, so that a sanitizer sees any step beside it. */
static int decode_copy(const struct wire_schema *schema, const char *data, size_t len,
                       union message *ret_msg, struct error *err)
{
    _cleanup_free_ char *copy = malloc(len + (len == 0));
    memcpy(copy, data, len);
    return wire_decode(schema, (struct slice){copy, len}, ret_msg, err);
}

static void refused(const struct wire_schema *schema, const char *data, size_t len,
                    const char *what)
{
    union message msg;
    struct error err = {0};
    if (decode_copy(schema, data, len, &msg, &err) == 0)
        fail_msg("%s: %s was taken", schema->name, what);
    assert_int_equal(err.code, ERROR_INVALID_ARGUMENT);
    if (strncmp(err.message, schema->name, strlen(schema->name)) != 0)
        fail_msg("'%s' does not name %s", err.message, schema->name);
}

static void test_tables(void **state)
{
    uint16_t seen[256];
    size_t count = 0;
    for (const struct wire_schema *const *at = wire_schemas; *at != NULL; at++) {
        const struct wire_schema *schema = *at;
        assert_true(schema->size <= MESSAGE_MAX);
        assert_true(schema->count <= 64);
        for (size_t i = 0; i < count; i++)
            assert_int_not_equal(seen[i], schema->type);
        seen[count++] = schema->type;
        for (size_t i = 0; i < schema->count; i++) {
            assert_true(schema->fields[i].offset < schema->size);
            for (size_t k = 0; k < i; k++) {
                assert_int_not_equal(schema->fields[k].tag, schema->fields[i].tag);
                assert_int_not_equal(schema->fields[k].offset, schema->fields[i].offset);
            }
        }
    }
    assert_true(count > 20);
}

static void test_round_trip(void **state)
{
    for (const struct wire_schema *const *at = wire_schemas; *at != NULL; at++) {
        union message sent, got;
        struct error err = {0};
        _cleanup_buf_ struct buf frame = BUF_INIT(WIRE_PAYLOAD_MAX);
        fill(*at, &sent);
        wire_encode(&frame, *at, 0xfedcba98, &sent);
        assert_false(frame.failed);
        struct slice payload = payload_of(&frame);
        struct frame_header header;
        assert_int_equal(frame_header_decode((const unsigned char *)frame.data, &header, &err), 0);
        assert_int_equal(header.type, (*at)->type);
        assert_int_equal(header.id, 0xfedcba98);
        if (wire_decode(*at, payload, &got, &err) < 0)
            fail_msg("%s", err.message);
        assert_same(*at, &sent, &got);
    }
}

/* Cut at each byte: either a shorter message that is whole in itself (optional fields left out,
 * at a border between fields), or refused; never something read beyond the end. */
static void test_truncation(void **state)
{
    for (const struct wire_schema *const *at = wire_schemas; *at != NULL; at++) {
        const struct wire_schema *schema = *at;
        union message sent, got;
        _cleanup_buf_ struct buf frame = BUF_INIT(WIRE_PAYLOAD_MAX);
        fill(schema, &sent);
        wire_encode(&frame, schema, 1, &sent);
        struct slice payload = payload_of(&frame);
        for (size_t len = 0; len < payload.len; len++) {
            size_t border = 0, fields = 0; /* is this cut between two fields, and after which? */
            while (border < len) {
                const unsigned char *field = (const unsigned char *)payload.data + border;
                border += FIELD_HEADER + (size_t)(field[2] | field[3] << 8);
                fields++;
            }
            bool whole = border == len;
            for (size_t i = fields; i < schema->count; i++)
                whole = whole && !schema->fields[i].required;
            if (!whole)
                refused(schema, payload.data, len, "a cut message");
            else
                assert_int_equal(decode_copy(schema, payload.data, len, &got, NULL), 0);
        }
    }
}

static void add_field(struct buf *out, uint16_t tag, uint32_t len, const void *data, size_t given)
{
    unsigned char header[FIELD_HEADER] = {(unsigned char)tag,         (unsigned char)(tag >> 8),
                                          (unsigned char)len,         (unsigned char)(len >> 8),
                                          (unsigned char)(len >> 16), (unsigned char)(len >> 24)};
    buf_add(out, header, sizeof(header));
    buf_add(out, data, given);
}

static void test_unknown_and_twice(void **state)
{
    for (const struct wire_schema *const *at = wire_schemas; *at != NULL; at++) {
        const struct wire_schema *schema = *at;
        union message sent;
        _cleanup_buf_ struct buf frame = BUF_INIT(WIRE_PAYLOAD_MAX);
        fill(schema, &sent);
        wire_encode(&frame, schema, 1, &sent);
        struct slice payload = payload_of(&frame);
        static const uint16_t strangers[] = {0, 200, 0xffff};
        for (size_t i = 0; i < ARRAY_LEN(strangers); i++) {
            _cleanup_buf_ struct buf more = BUF_INIT(WIRE_PAYLOAD_MAX);
            buf_add(&more, payload.data, payload.len);
            add_field(&more, strangers[i], 8, "12345678", 8);
            refused(schema, more.data, more.len, "an unknown field");
        }
        for (size_t border = 0; border < payload.len;) {
            const unsigned char *field = (const unsigned char *)payload.data + border;
            size_t len = FIELD_HEADER + (size_t)(field[2] | field[3] << 8);
            _cleanup_buf_ struct buf more = BUF_INIT(WIRE_PAYLOAD_MAX);
            buf_add(&more, payload.data, payload.len);
            buf_add(&more, field, len);
            refused(schema, more.data, more.len, "a field that is there twice");

            _cleanup_buf_ struct buf fewer = BUF_INIT(WIRE_PAYLOAD_MAX);
            buf_add(&fewer, payload.data, border);
            buf_add(&fewer, field + len, payload.len - border - len);
            size_t index = 0;
            while (schema->fields[index].tag != (field[0] | field[1] << 8))
                index++;
            if (schema->fields[index].required)
                refused(schema, fewer.data, fewer.len, "a message without a required field");
            border += len;
        }
    }
}

static void test_bad_lengths(void **state)
{
    for (const struct wire_schema *const *at = wire_schemas; *at != NULL; at++) {
        const struct wire_schema *schema = *at;
        for (size_t i = 0; i < schema->count; i++) {
            const struct wire_field *field = &schema->fields[i];
            static const uint32_t lies[] = {7, 9, 1000, 0x7fffffff, 0xfffffff9, 0xffffffff};
            for (size_t k = 0; k < ARRAY_LEN(lies); k++) {
                _cleanup_buf_ struct buf bad = BUF_INIT(WIRE_PAYLOAD_MAX);
                add_field(&bad, field->tag, lies[k], "1234567", 7);
                if (lies[k] != 7 || field->kind != WIRE_BYTES)
                    refused(schema, bad.data, bad.len, "a bad length");
            }
            if (field->kind == WIRE_U64)
                continue;
            _cleanup_buf_ struct buf bad = BUF_INIT(2 << 20);
            _cleanup_free_ char *zeros = calloc(1, field->max + 1);
            add_field(&bad, field->tag, field->max + 1, zeros, field->max + 1);
            refused(schema, bad.data, bad.len, "a field over its maximum");
        }
    }
}

static void test_bad_strings(void **state)
{
    static const struct {
        enum wire_kind kind;
        const char *bytes;
        size_t len;
    } rows[] = {
        {WIRE_STR, "", 0},     {WIRE_STR, "ab", 2},  {WIRE_STR, "a\0b", 4},    {WIRE_STR, "a\0", 3},
        {WIRE_STR, "\0\0", 2}, {WIRE_STRV, "ab", 2}, {WIRE_STRV, "ab\0cd", 5},
    };
    for (const struct wire_schema *const *at = wire_schemas; *at != NULL; at++)
        for (size_t i = 0; i < (*at)->count; i++)
            for (size_t k = 0; k < ARRAY_LEN(rows); k++) {
                if ((*at)->fields[i].kind != rows[k].kind)
                    continue;
                _cleanup_buf_ struct buf bad = BUF_INIT(1000);
                add_field(&bad, (*at)->fields[i].tag, (uint32_t)rows[k].len, rows[k].bytes,
                          rows[k].len);
                refused(*at, bad.data, bad.len, "a bad string");
            }
}

static void test_absent(void **state)
{
    struct agent_exec exec;
    memset(&exec, 0xff, sizeof(exec));
    assert_int_equal(wire_decode(&agent_exec_schema, (struct slice){0}, &exec, NULL), 0);
    assert_null(exec.command);
    assert_null(exec.cwd);
    assert_int_equal(exec.argv.len, 0);
    assert_int_equal(exec.timeout_ms, 0);
}

static void test_errors(void **state)
{
    for (int code = 1; code < ERROR_NUMBERS; code++) {
        if (!error_known((unsigned)code))
            continue;
        struct error err = {.code = (enum error_code)code, .sys = code * 3}, got = {0};
        memset(err.message, 'x', sizeof(err.message) - 1);
        _cleanup_buf_ struct buf frame = BUF_INIT(4096);
        wire_encode_error(&frame, 5, &err);
        assert_int_equal(wire_take_error(payload_of(&frame), &got), -1);
        assert_int_equal(got.code, err.code);
        assert_int_equal(got.sys, err.sys);
        assert_string_equal(got.message, err.message);
    }
    /* Codes that are none become INTERNAL; what is no error message is one itself. */
    static const uint64_t strangers[] = {0, ERROR_NUMBERS - 1, ERROR_NUMBERS, UINT64_MAX};
    for (size_t i = 0; i < ARRAY_LEN(strangers); i++) {
        struct error got = {0};
        struct wire_error msg = {.code = strangers[i], .message = "m"};
        _cleanup_buf_ struct buf frame = BUF_INIT(4096);
        wire_encode(&frame, &wire_error_schema, 1, &msg);
        assert_int_equal(wire_take_error(payload_of(&frame), &got), -1);
        assert_int_equal(got.code, ERROR_INTERNAL);
    }
    struct error got = {0};
    assert_int_equal(wire_take_error((struct slice){"junk", 4}, &got), -1);
    assert_int_equal(got.code, ERROR_INVALID_ARGUMENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tables),      cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_truncation),  cmocka_unit_test(test_unknown_and_twice),
        cmocka_unit_test(test_bad_lengths), cmocka_unit_test(test_bad_strings),
        cmocka_unit_test(test_absent),      cmocka_unit_test(test_errors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
