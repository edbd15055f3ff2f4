/* SPDX-License-Identifier: Apache-2.0 */

/* Questions and answers, from friends and from strangers. */

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <string.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "egress/dns_message.h"

#define QUESTION_A                                                                                 \
    "\x07"                                                                                         \
    "eXample"                                                                                      \
    "\x03"                                                                                         \
    "com\0"                                                                                        \
    "\0\x01"                                                                                       \
    "\0\x01"
#define HEADER(flags, answers, authorities, extras)                                                \
    "\x12\x34" flags "\0\x01"                                                                      \
    "\0" answers "\0" authorities "\0" extras
#define BYTES(text) ((struct slice){text, sizeof(text) - 1})

static void test_query(void **state)
{
    struct dns_query query;
    enum dns_rcode rcode;
    struct slice message = BYTES(HEADER("\x01\0", "\0", "\0", "\x01") QUESTION_A "\0"
                                                                                 "\0\x29"
                                                                                 "\x10\0"
                                                                                 "\0\0\0\0"
                                                                                 "\0\0");
    assert_int_equal(dns_query_parse(message, &query, &rcode), DNS_QUERY_GOOD);
    assert_int_equal(query.id, 0x1234);
    assert_string_equal(query.name, "example.com");
    assert_int_equal(query.type, DNS_A);
    assert_true(query.edns);
    assert_true(query.recursion);
    assert_int_equal(query.udp_size, DNS_UDP_MAX);
    for (size_t len = DNS_HEADER_SIZE; len < message.len; len++)
        assert_int_equal(dns_query_parse((struct slice){message.data, len}, &query, &rcode),
                         DNS_QUERY_BAD);
    for (size_t len = 0; len < DNS_HEADER_SIZE; len++)
        assert_int_equal(dns_query_parse((struct slice){message.data, len}, &query, &rcode),
                         DNS_QUERY_DROP);
}

static void test_bad_queries(void **state)
{
    static const struct {
        struct slice message;
        enum dns_query_verdict verdict;
        enum dns_rcode rcode;
    } rows[] = {
        {BYTES(HEADER("\x81\0", "\0", "\0", "\0") QUESTION_A), DNS_QUERY_DROP, 0},
        {BYTES(HEADER("\x11\0", "\0", "\0", "\0") QUESTION_A), DNS_QUERY_BAD, DNS_NOTIMP},
        {BYTES(HEADER("\x01\0", "\x01", "\0", "\0") QUESTION_A), DNS_QUERY_BAD, DNS_FORMERR},
        {BYTES(HEADER("\x01\0", "\0", "\0", "\0") QUESTION_A "x"), DNS_QUERY_BAD, DNS_FORMERR},
        /* another class, a pointer into the header, to itself, a NUL, a dot, a blank in a label */
        {BYTES(HEADER("\x01\0", "\0", "\0", "\0") "\x01"
                                                  "a\0\0\x01\0\x03"),
         DNS_QUERY_BAD, DNS_REFUSED},
        {BYTES(HEADER("\x01\0", "\0", "\0", "\0") "\xc0\x04\0\x01\0\x01"), DNS_QUERY_BAD,
         DNS_FORMERR},
        {BYTES(HEADER("\x01\0", "\0", "\0", "\0") "\xc0\x0c\0\x01\0\x01"), DNS_QUERY_BAD,
         DNS_FORMERR},
        {BYTES(HEADER("\x01\0", "\0", "\0", "\0") "\x03"
                                                  "a\0b\0\0\x01\0\x01"),
         DNS_QUERY_BAD, DNS_FORMERR},
        {BYTES(HEADER("\x01\0", "\0", "\0", "\0") "\x03"
                                                  "a.b\0\0\x01\0\x01"),
         DNS_QUERY_BAD, DNS_FORMERR},
        {BYTES(HEADER("\x01\0", "\0", "\0", "\0") "\x03"
                                                  "a b\0\0\x01\0\x01"),
         DNS_QUERY_BAD, DNS_FORMERR},
        {BYTES(HEADER("\x01\0", "\0", "\0", "\0") "\x40"
                                                  "a"),
         DNS_QUERY_BAD, DNS_FORMERR},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct dns_query query;
        enum dns_rcode rcode = 0;
        assert_int_equal(dns_query_parse(rows[i].message, &query, &rcode), rows[i].verdict);
        assert_int_equal(rcode, rows[i].rcode);
    }
}

/* The longest name there is passes, one byte more does not. */
static void test_long_names(void **state)
{
    for (int extra = 0; extra < 2; extra++) {
        _cleanup_buf_ struct buf message = BUF_INIT(1000);
        struct dns_query query;
        enum dns_rcode rcode;
        buf_add(&message, HEADER("\x01\0", "\0", "\0", "\0"), DNS_HEADER_SIZE);
        for (int i = 0; i < 4; i++) {
            int len = i < 3 ? 63 : 61 + extra;
            buf_addc(&message, (char)len);
            for (int k = 0; k < len; k++)
                buf_addc(&message, 'a');
        }
        buf_add(&message, "\0\0\x01\0\x01", 5);
        assert_int_equal(dns_query_parse((struct slice){message.data, message.len}, &query, &rcode),
                         extra == 0 ? DNS_QUERY_GOOD : DNS_QUERY_BAD);
        if (extra == 0)
            assert_int_equal(strlen(query.name), 253);
    }
}

static void test_question(void **state)
{
    _cleanup_buf_ struct buf out = BUF_INIT(512);
    struct dns_query query;
    enum dns_rcode rcode;
    struct error err;
    assert_int_equal(dns_question_write(&out, 7, "a.b-c.example", DNS_AAAA, &err), 0);
    assert_int_equal(dns_query_parse((struct slice){out.data, out.len}, &query, &rcode),
                     DNS_QUERY_GOOD);
    assert_string_equal(query.name, "a.b-c.example");
    assert_int_equal(query.type, DNS_AAAA);
    buf_clear(&out);
    assert_int_equal(dns_question_write(&out, 7, "a..b", DNS_A, &err), -1);
}

#define RECORD_A(owner, ttl, address)                                                              \
    owner "\0\x01"                                                                                 \
          "\0\x01"                                                                                 \
          "\0\0\0" ttl "\0\x04" address
#define HERE "\xc0\x0c"

static int parse(struct slice message, struct dns_answer *answer)
{
    struct error err;
    return dns_answer_parse(message, 0x1234, "example.com", DNS_A, answer, &err);
}

static void test_answer(void **state)
{
    struct dns_answer answer;
    struct slice message = BYTES(HEADER("\x81\x80", "\x02", "\0", "\0") QUESTION_A RECORD_A(
        HERE, "\x3c", "\x01\x02\x03\x04") RECORD_A(HERE, "\x0a", "\x05\x06\x07\x08"));
    assert_int_equal(parse(message, &answer), 0);
    assert_int_equal(answer.count, 2);
    assert_int_equal(answer.ttl, 10);
    assert_int_equal(answer.addresses[1].family, AF_INET);
    assert_memory_equal(answer.addresses[1].bytes, "\x05\x06\x07\x08", 4);
    for (size_t len = 0; len < message.len; len++)
        assert_int_equal(parse((struct slice){message.data, len}, &answer), -1);
    struct error err;
    assert_int_equal(dns_answer_parse(message, 0x1235, "example.com", DNS_A, &answer, &err), -1);
    assert_int_equal(dns_answer_parse(message, 0x1234, "example.org", DNS_A, &answer, &err), -1);
    assert_int_equal(dns_answer_parse(message, 0x1234, "example.com", DNS_AAAA, &answer, &err), -1);
}

/* example.com is www.example.com is an address; somebody else's addresses do not count. */
static void test_aliases(void **state)
{
    struct dns_answer answer;
    struct slice message =
        BYTES(HEADER("\x81\x80", "\x03", "\0", "\0") QUESTION_A RECORD_A("\x03"
                                                                         "www" HERE,
                                                                         "\x3c", "\x01\x02\x03\x04")
                  RECORD_A("\x04"
                           "evil\0",
                           "\x3c", "\x06\x06\x06\x06") HERE "\0\x05"
                                                            "\0\x01"
                                                            "\0\0\0\x05"
                                                            "\0\x06"
                                                            "\x03"
                                                            "www" HERE);
    assert_int_equal(parse(message, &answer), 0);
    assert_int_equal(answer.count, 1);
    assert_int_equal(answer.ttl, 5);
    assert_memory_equal(answer.addresses[0].bytes, "\x01\x02\x03\x04", 4);
    struct slice loop = BYTES(HEADER("\x81\x80", "\x01", "\0", "\0") QUESTION_A HERE "\0\x05"
                                                                                     "\0\x01"
                                                                                     "\0\0\0\x05"
                                                                                     "\0\x02" HERE);
    assert_int_equal(parse(loop, &answer), 0);
    assert_int_equal(answer.rcode, DNS_SERVFAIL);
    assert_int_equal(answer.count, 0);
}

static void test_negative(void **state)
{
    struct dns_answer answer;
    struct slice message =
        BYTES(HEADER("\x81\x83", "\0", "\x01", "\0") QUESTION_A HERE "\0\x06"
                                                                     "\0\x01"
                                                                     "\0\0\0\x3c"
                                                                     "\0\x16"
                                                                     "\0"
                                                                     "\0"
                                                                     "\0\0\0\x01"
                                                                     "\0\0\0\x01"
                                                                     "\0\0\0\x01"
                                                                     "\0\0\0\x01"
                                                                     "\0\0\0\x07");
    assert_int_equal(parse(message, &answer), 0);
    assert_int_equal(answer.rcode, DNS_NXDOMAIN);
    assert_int_equal(answer.count, 0);
    assert_int_equal(answer.ttl, 7);
}

static void test_truncated(void **state)
{
    struct dns_answer answer;
    assert_int_equal(parse(BYTES(HEADER("\x83\x80", "\x05", "\0", "\0") QUESTION_A), &answer), 0);
    assert_true(answer.truncated);
}

static void test_reply(void **state)
{
    _cleanup_buf_ struct buf out = BUF_INIT(1000);
    struct dns_query query;
    enum dns_rcode rcode;
    const struct dns_address addresses[] = {{.family = AF_INET, .bytes = {9, 9, 9, 9}}};
    assert_int_equal(
        dns_query_parse(BYTES(HEADER("\x01\0", "\0", "\0", "\0") QUESTION_A), &query, &rcode),
        DNS_QUERY_GOOD);
    dns_reply_write(&out, &query, DNS_NOERROR, addresses, 1, 33);
    struct dns_answer answer;
    assert_int_equal(parse((struct slice){out.data, out.len}, &answer), 0);
    assert_int_equal(answer.count, 1);
    assert_int_equal(answer.ttl, 33);
    /* the question comes back as it was asked, case and all */
    assert_memory_equal(out.data + DNS_HEADER_SIZE, QUESTION_A, sizeof(QUESTION_A) - 1);
    buf_clear(&out);
    dns_reply_truncated(&out, &query);
    assert_int_equal(parse((struct slice){out.data, out.len}, &answer), 0);
    assert_true(answer.truncated);
}

#define QUESTION_MX                                                                                \
    "\x07"                                                                                         \
    "example"                                                                                      \
    "\x03"                                                                                         \
    "com\0"                                                                                        \
    "\0\x0f"                                                                                       \
    "\0\x01"

static void test_copy(void **state)
{
    _cleanup_buf_ struct buf out = BUF_INIT(1000);
    struct dns_query query;
    enum dns_rcode rcode;
    struct error err;
    bool truncated;
    uint32_t ttl;
    assert_int_equal(
        dns_query_parse(BYTES("\x99\x99\x01\0\0\x01\0\0\0\0\0\0" QUESTION_MX), &query, &rcode),
        DNS_QUERY_GOOD);
    struct slice good = BYTES(HEADER("\x81\x80", "\x01", "\0", "\x01") QUESTION_MX HERE
                              "\0\x0f"
                              "\0\x01"
                              "\0\0\0\x09"
                              "\0\x04"
                              "\0\x0a" HERE RECORD_A("\x01"
                                                     "x\0",
                                                     "\x01", "\x01\x02\x03\x04"));
    assert_int_equal(dns_answer_copy(good, 0x1234, &query, &out, &truncated, &ttl, &err), 0);
    assert_int_equal(ttl, 9);
    assert_int_equal(out.len, good.len - 17);
    assert_memory_equal(out.data, "\x99\x99\x81\x80\0\x01\0\x01\0\0\0\0", DNS_HEADER_SIZE);
    buf_clear(&out);
    struct slice other = BYTES(HEADER("\x81\x80", "\x01", "\0", "\0")
                                   QUESTION_MX RECORD_A(HERE, "\x01", "\x01\x02\x03\x04"));
    assert_int_equal(dns_answer_copy(other, 0x1234, &query, &out, &truncated, &ttl, &err), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_query),      cmocka_unit_test(test_bad_queries),
        cmocka_unit_test(test_long_names), cmocka_unit_test(test_question),
        cmocka_unit_test(test_answer),     cmocka_unit_test(test_aliases),
        cmocka_unit_test(test_negative),   cmocka_unit_test(test_truncated),
        cmocka_unit_test(test_reply),      cmocka_unit_test(test_copy),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
