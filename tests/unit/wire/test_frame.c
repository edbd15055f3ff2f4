/* SPDX-License-Identifier: Apache-2.0 */

/* Frames: headers, cutting a stream into them, and the blocking calls. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/cleanup.h"
#include "base/limits.h"
#include "wire/messages.h"

static void test_header(void **state)
{
    static const struct frame_header rows[] = {
        {0, 0, 0}, {1, 2, 3}, {WIRE_PAYLOAD_MAX, 0xffff, 0xffffffff}, {0x1234, 0xabcd, 0x89abcdef}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        unsigned char bytes[FRAME_HEADER_SIZE];
        struct frame_header got;
        frame_header_encode(bytes, &rows[i]);
        assert_int_equal(frame_header_decode(bytes, &got, NULL), 0);
        assert_int_equal(got.length, rows[i].length);
        assert_int_equal(got.type, rows[i].type);
        assert_int_equal(got.id, rows[i].id);
    }
    /* The layout is the contract. */
    unsigned char bytes[FRAME_HEADER_SIZE];
    frame_header_encode(bytes, &(struct frame_header){0x00010203, 0x0405, 0x06070809});
    assert_memory_equal(bytes, "\x03\x02\x01\x00\x05\x04\x00\x00\x09\x08\x07\x06", 12);
}

static void test_bad_header(void **state)
{
    static const unsigned char rows[][FRAME_HEADER_SIZE] = {
        {0x01, 0x00, 0x10, 0x00}, /* one byte over the limit */
        {0xff, 0xff, 0xff, 0xff}, {0, 0, 0, 0x80},
        {0, 0, 0, 0, 1, 0, 1, 0}, {0, 0, 0, 0, 1, 0, 0, 1},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct frame_header got;
        struct error err = {0};
        assert_int_equal(frame_header_decode(rows[i], &got, &err), -1);
        assert_int_equal(err.code, ERROR_INVALID_ARGUMENT);
        _cleanup_buf_ struct buf in = BUF_INIT(100);
        struct slice payload;
        buf_add(&in, rows[i], FRAME_HEADER_SIZE);
        assert_int_equal(wire_next(&in, &got, &payload, &err), -1);
    }
}

/* A stream that arrives byte by byte gives the same frames. */
static void test_next(void **state)
{
    _cleanup_buf_ struct buf stream = BUF_INIT(1 << 20), in = BUF_INIT(1 << 20);
    struct agent_ref ref = {.pid = 42};
    wire_encode(&stream, &wire_ok_schema, 1, NULL);
    wire_encode(&stream, &agent_get_schema, 2, &ref);
    wire_encode_raw(&stream, FILE_DATA, 3, "\0raw", 4);
    wire_encode_raw(&stream, FILE_DATA, 4, "", 0);
    static const size_t lengths[] = {0, 14, 4, 0};
    uint32_t next = 0;
    for (size_t i = 0; i < stream.len; i++) {
        struct frame_header header;
        struct slice payload;
        struct error err;
        buf_add(&in, stream.data + i, 1);
        if (wire_next(&in, &header, &payload, &err) == 0)
            continue;
        assert_int_equal(header.id, next + 1);
        assert_int_equal(payload.len, lengths[next]);
        next++;
        buf_consume(&in, FRAME_HEADER_SIZE + header.length);
        assert_int_equal(in.len, 0);
    }
    assert_int_equal(next, 4);
}

/* What does not fit leaves no half frame behind. */
static void test_no_half_frames(void **state)
{
    _cleanup_free_ char *text = calloc(1, WIRE_PAYLOAD_MAX + 1);
    memset(text, 'x', COMMAND_MAX);
    struct agent_exec exec = {.command = text};
    _cleanup_buf_ struct buf small = BUF_INIT(1000);
    wire_encode(&small, &wire_ok_schema, 1, NULL);
    wire_encode(&small, &agent_exec_schema, 2, &exec);
    assert_true(small.failed);
    assert_int_equal(small.len, FRAME_HEADER_SIZE);

    _cleanup_buf_ struct buf raw = BUF_INIT(4 << 20);
    wire_encode_raw(&raw, FILE_DATA, 1, text, WIRE_PAYLOAD_MAX);
    assert_false(raw.failed);
    size_t len = raw.len;
    wire_encode_raw(&raw, FILE_DATA, 1, text, WIRE_PAYLOAD_MAX + 1);
    assert_true(raw.failed);
    assert_int_equal(raw.len, len);
    struct error err = {0};
    assert_int_equal(wire_write(-1, &raw, &err), -1);
    assert_int_equal(err.code, ERROR_PAYLOAD_TOO_LARGE);
}

static void test_read_write(void **state)
{
    int ends[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    _cleanup_buf_ struct buf out = BUF_INIT(1000), in = BUF_INIT(WIRE_PAYLOAD_MAX);
    struct frame_header header;
    struct slice payload;
    struct error err = {0};
    wire_encode_raw(&out, FILE_DATA, 7, "data", 4);
    wire_encode(&out, &file_end_schema, 8, NULL);
    assert_int_equal(wire_write(ends[0], &out, &err), 0);
    assert_int_equal(wire_read(ends[1], &in, &header, &payload, &err), 0);
    assert_int_equal(header.id, 7);
    assert_memory_equal(payload.data, "data", 4);
    assert_int_equal(wire_read(ends[1], &in, &header, &payload, &err), 0);
    assert_int_equal(header.type, FILE_END);
    assert_int_equal(payload.len, 0);

    assert_int_equal(write(ends[0], out.data, 14), 14); /* cut inside the payload */
    close(ends[0]);
    assert_int_equal(wire_read(ends[1], &in, &header, &payload, &err), -1);
    assert_int_equal(err.code, ERROR_UNAVAILABLE);
    assert_int_equal(wire_read(ends[1], &in, &header, &payload, &err), -1);
    assert_int_equal(err.code, ERROR_UNAVAILABLE);
    close(ends[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_header),     cmocka_unit_test(test_bad_header),
        cmocka_unit_test(test_next),       cmocka_unit_test(test_no_half_frames),
        cmocka_unit_test(test_read_write),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
