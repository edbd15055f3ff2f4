/* SPDX-License-Identifier: Apache-2.0 */

/* WebSocket frames and keys: the RFC's own examples, and everything a peer may get wrong. */

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "http/ws_frame.h"
#include "http/ws_key.h"

enum { MESSAGE_MAX = 70000 };

/* What a stream of frames comes to: "text(Hello) ping() close(1002)". Bytes arrive `step` at a
 * time, and what is understood must not depend on that. */
static void decode(const char *bytes, size_t len, bool from_client, size_t step, char *out,
                   size_t size)
{
    struct ws_decoder d = {.from_client = from_client, .message_max = MESSAGE_MAX};
    static unsigned char payload[MESSAGE_MAX + 1];
    size_t at = 0, have = 0, payload_len = 0, used_out = 0;
    out[0] = '\0';
    for (;;) {
        size_t used = 0;
        enum ws_step next = ws_decode(&d, bytes + at, have - at, &used);
        assert_true(used <= have - at);
        at += used;
        bool bad = next == WS_BAD;
        if (next == WS_DATA && have > at) {
            size_t n = have - at < d.left ? have - at : (size_t)d.left;
            memcpy(payload + payload_len, bytes + at, n);
            bad = !ws_took(&d, payload + payload_len, n);
            payload_len += n;
            at += n;
        } else if (next == WS_FRAME_END) {
            const char *names[] = {"…", "text", "binary", "",     "",    "",
                                   "",  "",     "close",  "ping", "pong"};
            used_out += (size_t)snprintf(out + used_out, size - used_out, "%s%s(%.*s) ",
                                         names[d.opcode], d.fin ? "" : "-",
                                         payload_len > 40 ? 2 : (int)payload_len, payload);
            payload_len = 0;
        } else if (!bad && have == len)
            return;
        else if (!bad)
            have = have + step < len ? have + step : len;
        if (bad) {
            snprintf(out + used_out, size - used_out, "bad %d", d.close_code);
            assert_non_null(d.problem);
            assert_int_equal(ws_decode(&d, bytes + at, len - at, &used), WS_BAD);
            return;
        }
    }
}

#define BYTES(text) text, sizeof(text) - 1

static const struct {
    const char *bytes;
    size_t len;
    bool from_client;
    const char *want;
} cases[] = {
    /* RFC 6455, 5.7 */
    {BYTES("\x81\x05Hello"), false, "text(Hello) "},
    {BYTES("\x81\x85\x37\xfa\x21\x3d\x7f\x9f\x4d\x51\x58"), true, "text(Hello) "},
    {BYTES("\x01\x03Hel\x80\x02lo"), false, "text-(Hel) text(lo) "},
    {BYTES("\x89\x05Hello"), false, "ping(Hello) "},
    {BYTES("\x8a\x85\x37\xfa\x21\x3d\x7f\x9f\x4d\x51\x58"), true, "pong(Hello) "},
    /* empty ones, and control frames between pieces */
    {BYTES("\x81\x80\0\0\0\0\x82\x80\0\0\0\0"), true, "text() binary() "},
    {BYTES("\x01\x01"
           "a\x89\x00\x00\x01"
           "b\x80\x01"
           "c"),
     false, "text-(a) ping() …-(b) text(c) "},
    /* reserved bits, opcodes, masks */
    {BYTES("\xc1\x00"), false, "bad 1002"},
    {BYTES("\xa1\x00"), false, "bad 1002"},
    {BYTES("\x91\x00"), false, "bad 1002"},
    {BYTES("\x83\x00"), false, "bad 1002"},
    {BYTES("\x87\x00"), false, "bad 1002"},
    {BYTES("\x8b\x00"), false, "bad 1002"},
    {BYTES("\x8f\x00"), false, "bad 1002"},
    {BYTES("\x81\x05Hello"), true, "bad 1002"},
    {BYTES("\x81\x80\0\0\0\0"), false, "bad 1002"},
    /* control frames */
    {BYTES("\x09\x00"), false, "bad 1002"},
    {BYTES("\x89\x7e\x00\x7e"), false, "bad 1002"},
    {BYTES("\x88\x7f"), false, "bad 1002"},
    /* pieces */
    {BYTES("\x80\x00"), false, "bad 1002"},
    {BYTES("\x00\x00"), false, "bad 1002"},
    {BYTES("\x01\x00\x81\x00"), false, "text-() bad 1002"},
    {BYTES("\x02\x00\x02\x00"), false, "binary-() bad 1002"},
    {BYTES("\x01\x00\x80\x00\x80\x00"), false, "text-() text() bad 1002"},
    /* lengths */
    {BYTES("\x82\x7e\x00\x7d"), false, "bad 1002"},
    {BYTES("\x82\x7f\0\0\0\0\0\0\xff\xff"), false, "bad 1002"},
    {BYTES("\x82\x7f\x80\0\0\0\0\0\0\0"), false, "bad 1002"},
    {BYTES("\x82\x7f\0\0\0\0\0\x01\x11\x71"), false, "bad 1009"}, /* 70001 */
    {BYTES("\x82\x7f\x7f\xff\xff\xff\xff\xff\xff\xff"), false, "bad 1009"},
    {BYTES("\x02\x01x\x00\x7f\0\0\0\0\0\x01\x11\x70"), false, "binary-(x) bad 1009"},
    /* text */
    {BYTES("\x81\x02\xc3\xa4"), false, "text(\xc3\xa4) "},
    {BYTES("\x01\x01\xc3\x80\x01\xa4"), false, "text-(\xc3) text(\xa4) "},
    {BYTES("\x01\x02\xf0\x9f\x89\x00\x80\x02\x98\x80"), false,
     "text-(\xf0\x9f) ping() text(\x98\x80) "},
    {BYTES("\x81\x01\xc3"), false, "bad 1007"},
    {BYTES("\x81\x02\xc0\x80"), false, "bad 1007"},
    {BYTES("\x81\x03\xed\xa0\x80"), false, "bad 1007"},
    {BYTES("\x81\x04\xf4\x90\x80\x80"), false, "bad 1007"},
    {BYTES("\x81\x01\xff"), false, "bad 1007"},
    {BYTES("\x81\x01\x80"), false, "bad 1007"},
    {BYTES("\x82\x02\xff\x80"), false, "binary(\xff\x80) "},
    {BYTES("\x01\x01\xc3\x80\x01x"), false, "text-(\xc3) bad 1007"},
};

static void test_cases(void **state)
{
    char out[256];
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        for (size_t step = 1; step < 12; step++) {
            decode(cases[i].bytes, cases[i].len, cases[i].from_client, step, out, sizeof(out));
            if (strcmp(out, cases[i].want) != 0)
                fail_msg("case %zu, step %zu: %s, not %s", i, step, out, cases[i].want);
        }
}

/* Every boundary of the length's encoding, there and back, masked and not. */
static void test_lengths(void **state)
{
    static const size_t lengths[] = {0, 1, 125, 126, 127, 255, 256, 65535, 65536, MESSAGE_MAX};
    static const size_t heads[] = {2, 2, 2, 4, 4, 4, 4, 4, 10, 10};
    static const uint8_t mask[4] = {1, 2, 3, 4};
    for (size_t i = 0; i < ARRAY_LEN(lengths); i++)
        for (int masked = 0; masked < 2; masked++) {
            char *frame = malloc(lengths[i] + WS_HEADER_MAX);
            size_t head = ws_header_encode((unsigned char *)frame, WS_BINARY, true, lengths[i],
                                           masked ? mask : NULL);
            assert_int_equal(head, heads[i] + (masked ? 4 : 0));
            memset(frame + head, 'x', lengths[i]);
            if (masked)
                ws_mask(frame + head, lengths[i], mask, 0);
            char out[64], want[64];
            decode(frame, head + lengths[i], masked, 1000, out, sizeof(out));
            snprintf(want, sizeof(want), "binary(%.*s) ", lengths[i] > 40 ? 2 : (int)lengths[i],
                     "xxxxxxxx");
            assert_string_equal(out, want);
            free(frame);
        }
}

/* In pieces of any size at any place, masking is the same. */
static void test_mask(void **state)
{
    static const uint8_t mask[4] = {0x9a, 0x05, 0xff, 0x33};
    unsigned char whole[67], pieces[67];
    for (size_t i = 0; i < sizeof(whole); i++)
        whole[i] = pieces[i] = (unsigned char)(i * 7);
    for (size_t i = 0; i < sizeof(whole); i++)
        whole[i] ^= mask[i % 4];
    for (size_t at = 0, n = 0; at < sizeof(pieces); at += n) {
        n = n + 1 < sizeof(pieces) - at ? n + 1 : sizeof(pieces) - at;
        ws_mask(pieces + at, n, mask, at);
    }
    assert_memory_equal(whole, pieces, sizeof(whole));
}

static void test_close(void **state)
{
    static const struct {
        const char *payload;
        size_t len;
        int want; /* -1: malformed */
    } closes[] = {
        {BYTES(""), 1005},
        {BYTES("\x03"), -1},
        {BYTES("\x03\xe8"), 1000},
        {BYTES("\x03\xe8"
               "bye"),
         1000},
        {BYTES("\x03\xe7"), -1}, /* 999 */
        {BYTES("\x03\xec"), -1}, /* 1004 */
        {BYTES("\x03\xed"), -1}, /* 1005 */
        {BYTES("\x03\xee"), -1}, /* 1006 */
        {BYTES("\x03\xef"), 1007},
        {BYTES("\x03\xf6"), 1014},
        {BYTES("\x03\xf7"), -1}, /* 1015 */
        {BYTES("\x07\xd0"), -1}, /* 2000 */
        {BYTES("\x0b\xb8"), 3000},
        {BYTES("\x13\x87"), 4999},
        {BYTES("\x13\x88"), -1},
        {BYTES("\x03\xe8\xff"), -1},
        {BYTES("\x03\xe8\xc3"), -1},
    };
    for (size_t i = 0; i < ARRAY_LEN(closes); i++) {
        unsigned code = 0;
        bool fine = ws_close_parse((const unsigned char *)closes[i].payload, closes[i].len, &code);
        if ((fine ? (int)code : -1) != closes[i].want)
            fail_msg("close %zu: %d %u", i, fine, code);
    }
}

static void test_keys(void **state)
{
    char accept[WS_ACCEPT_SIZE], key[WS_KEY_SIZE];
    ws_key_accept("dGhlIHNhbXBsZSBub25jZQ==", accept); /* RFC 6455, 1.3 */
    assert_string_equal(accept, "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
    ws_key_make((const unsigned char *)"the sample nonce", key);
    assert_string_equal(key, "dGhlIHNhbXBsZSBub25jZQ==");
    assert_true(ws_key_valid(key));
    static const char *const bad[] = {
        "",
        "dGhlIHNhbXBsZSBub25jZQ=",
        "dGhlIHNhbXBsZSBub25jZQ",
        "dGhlIHNhbXBsZSBub25jZR==",
        "dGhlIHNhbXBsZSBub25jZQ===",
        "dGhlIHNhbXBsZSBub25jZ===",
        "dGhlIHNhbXBsZS-ub25jZQ==",
        "dGhlIHNhbXBsZSBub25jZQx=",
        "========================",
    };
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        if (ws_key_valid(bad[i]))
            fail_msg("\"%s\" is no key", bad[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cases), cmocka_unit_test(test_lengths), cmocka_unit_test(test_mask),
        cmocka_unit_test(test_close), cmocka_unit_test(test_keys),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
