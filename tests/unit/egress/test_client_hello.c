/* SPDX-License-Identifier: Apache-2.0 */

/* First messages of TLS: whole, in pieces, and wrong in every way that could mean two things. */

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <string.h>

#include "base/cleanup.h"
#include "egress/client_hello.h"

/* --- making them --- */

static void add16(struct buf *b, size_t value)
{
    buf_addc(b, (char)(value >> 8));
    buf_addc(b, (char)value);
}

static void add_extension(struct buf *b, unsigned type, const void *body, size_t len)
{
    add16(b, type);
    add16(b, len);
    buf_add(b, body, len);
}

static void add_name(struct buf *b, const char *name, size_t len)
{
    _cleanup_buf_ struct buf body = BUF_INIT(70000);
    add16(&body, len + 3);
    buf_addc(&body, 0);
    add16(&body, len);
    buf_add(&body, name, len);
    add_extension(b, 0, body.data, body.len);
}

/* A message around these extensions; NULL: it has none. */
static void add_message(struct buf *b, const struct buf *extensions)
{
    _cleanup_buf_ struct buf body = BUF_INIT(70000);
    add16(&body, 0x0303);
    for (int i = 0; i < 32; i++)
        buf_addc(&body, (char)i);
    buf_addc(&body, 0); /* session */
    add16(&body, 2);
    add16(&body, 0x1301);
    buf_addc(&body, 1);
    buf_addc(&body, 0);
    if (extensions != NULL) {
        add16(&body, extensions->len);
        buf_add(&body, extensions->data, extensions->len);
    }
    buf_addc(b, 1);
    buf_addc(b, (char)(body.len >> 16));
    add16(b, body.len & 0xffff);
    buf_add(b, body.data, body.len);
}

/* The message in records of so many bytes. */
static void add_records(struct buf *b, const struct buf *message, size_t piece)
{
    for (size_t at = 0; at < message->len; at += piece) {
        size_t n = message->len - at < piece ? message->len - at : piece;
        buf_addc(b, 22);
        add16(b, 0x0301);
        add16(b, n);
        buf_add(b, message->data + at, n);
    }
}

static enum client_hello_state feed(struct client_hello *hello, const char *data, size_t len,
                                    size_t piece)
{
    client_hello_init(hello);
    for (size_t at = 0; at < len && hello->state == CLIENT_HELLO_MORE; at += piece)
        client_hello_feed(hello, data + at, len - at < piece ? len - at : piece);
    client_hello_release(hello);
    return hello->state;
}

static enum client_hello_state feed_extensions(struct client_hello *hello,
                                               const struct buf *extensions)
{
    _cleanup_buf_ struct buf message = BUF_INIT(70000), records = BUF_INIT(100000);
    add_message(&message, extensions);
    add_records(&records, &message, 16384);
    return feed(hello, records.data, records.len, records.len);
}

/* --- tests --- */

static void test_name(void **state)
{
    static const size_t records[] = {1, 2, 7, 100, 16384}, pieces[] = {1, 3, 5, 64, 100000};
    _cleanup_buf_ struct buf extensions = BUF_INIT(1000), message = BUF_INIT(2000);
    add_extension(&extensions, 43, "\x02\x03\x04", 3);
    add_name(&extensions, "Example.COM.", 12);
    add_extension(&extensions, 16, "\x00\x03\x02h2", 5);
    add_message(&message, &extensions);
    for (size_t i = 0; i < ARRAY_LEN(records); i++)
        for (size_t k = 0; k < ARRAY_LEN(pieces); k++) {
            _cleanup_buf_ struct buf stream = BUF_INIT(10000);
            struct client_hello hello;
            add_records(&stream, &message, records[i]);
            buf_adds(&stream, "\x17\x03\x03 early data, which is not looked at");
            assert_int_equal(feed(&hello, stream.data, stream.len, pieces[k]), CLIENT_HELLO_DONE);
            assert_string_equal(hello.name, "Example.COM.");
            assert_false(hello.encrypted);
        }
}

static void test_no_name(void **state)
{
    _cleanup_buf_ struct buf extensions = BUF_INIT(1000);
    struct client_hello hello;
    assert_int_equal(feed_extensions(&hello, NULL), CLIENT_HELLO_DONE);
    assert_string_equal(hello.name, "");
    add_extension(&extensions, 43, "\x02\x03\x04", 3);
    assert_int_equal(feed_extensions(&hello, &extensions), CLIENT_HELLO_DONE);
    assert_string_equal(hello.name, "");
}

static void test_encrypted(void **state)
{
    static const unsigned types[] = {0xfe0d, 0xffce};
    for (size_t i = 0; i < ARRAY_LEN(types); i++) {
        _cleanup_buf_ struct buf extensions = BUF_INIT(1000);
        struct client_hello hello;
        add_name(&extensions, "public.example", 14);
        add_extension(&extensions, types[i], "inner", 5);
        assert_int_equal(feed_extensions(&hello, &extensions), CLIENT_HELLO_DONE);
        assert_true(hello.encrypted);
    }
}

static void test_bad_names(void **state)
{
    char longest[300];
    struct client_hello hello;
    memset(longest, 'a', sizeof(longest));
    _cleanup_buf_ struct buf nul = BUF_INIT(1000), twice = BUF_INIT(1000), empty = BUF_INIT(1000),
                             too_long = BUF_INIT(1000), two = BUF_INIT(1000), kind = BUF_INIT(1000);
    add_name(&nul, "good.example\0.evil", 18);
    add_name(&twice, "good.example", 12);
    add_name(&twice, "evil.example", 12);
    add_name(&empty, "", 0);
    add_name(&too_long, longest, sizeof(longest));
    add_extension(&two, 0, "\x00\x0c\x00\x00\x03one\x00\x00\x03two", 14);
    add_extension(&kind, 0, "\x00\x06\x01\x00\x03one", 8);
    assert_int_equal(feed_extensions(&hello, &nul), CLIENT_HELLO_REFUSED);
    assert_int_equal(feed_extensions(&hello, &twice), CLIENT_HELLO_REFUSED);
    assert_int_equal(feed_extensions(&hello, &empty), CLIENT_HELLO_REFUSED);
    assert_int_equal(feed_extensions(&hello, &too_long), CLIENT_HELLO_REFUSED);
    assert_int_equal(feed_extensions(&hello, &two), CLIENT_HELLO_REFUSED);
    assert_int_equal(feed_extensions(&hello, &kind), CLIENT_HELLO_REFUSED);
}

static void test_no_tls(void **state)
{
    static const char *const streams[] = {
        "GET / HTTP/1.1\r\n\r\n", "SSH-2.0-x\r\n",        "\x05\x01",
        "\x80\x2e\x01\x03\x01",   "\x16\x02\x00\x00\x05", "\x17\x03\x03\x00\x05"};
    struct client_hello hello;
    for (size_t i = 0; i < ARRAY_LEN(streams); i++)
        assert_int_equal(feed(&hello, streams[i], i == 4 ? 5 : strlen(streams[i]), 1),
                         CLIENT_HELLO_REFUSED);
}

/* Wherever it is cut off, it is not done; and nothing behind it in its record. */
static void test_cut_and_trailing(void **state)
{
    _cleanup_buf_ struct buf extensions = BUF_INIT(1000), message = BUF_INIT(2000),
                             records = BUF_INIT(3000), more = BUF_INIT(3000);
    struct client_hello hello;
    add_name(&extensions, "good.example", 12);
    add_message(&message, &extensions);
    add_records(&records, &message, 20);
    for (size_t len = 0; len < records.len; len++)
        assert_int_equal(feed(&hello, records.data, len, 1), CLIENT_HELLO_MORE);
    buf_adds(&message, "\x01 a second one");
    add_records(&more, &message, 16384);
    assert_int_equal(feed(&hello, more.data, more.len, more.len), CLIENT_HELLO_REFUSED);
    assert_int_equal(feed(&hello, more.data, more.len, 1), CLIENT_HELLO_REFUSED);
}

static void test_too_long(void **state)
{
    struct client_hello hello;
    static const unsigned char claims[] = {22, 3, 1, 0x40, 0, 1, 0xff, 0xff, 0xff};
    static const unsigned char empty_record[] = {22, 3, 1, 0, 0};
    static const unsigned char big_record[] = {22, 3, 1, 0x40, 1};
    assert_int_equal(feed(&hello, (const char *)claims, sizeof(claims), 1), CLIENT_HELLO_REFUSED);
    assert_int_equal(feed(&hello, (const char *)empty_record, sizeof(empty_record), 1),
                     CLIENT_HELLO_REFUSED);
    assert_int_equal(feed(&hello, (const char *)big_record, sizeof(big_record), 1),
                     CLIENT_HELLO_REFUSED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_name),      cmocka_unit_test(test_no_name),
        cmocka_unit_test(test_encrypted), cmocka_unit_test(test_bad_names),
        cmocka_unit_test(test_no_tls),    cmocka_unit_test(test_cut_and_trailing),
        cmocka_unit_test(test_too_long),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
