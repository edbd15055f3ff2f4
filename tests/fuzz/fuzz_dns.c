/* SPDX-License-Identifier: Apache-2.0 */

/* DNS: a question that is understood can be answered, and an answer holds what it says. */

#include "egress/dns_message.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_query(struct slice message)
{
    struct dns_query query;
    enum dns_rcode rcode;
    if (dns_query_parse(message, &query, &rcode) != DNS_QUERY_GOOD)
        return;
    _cleanup_buf_ struct buf out = BUF_INIT(DNS_MESSAGE_MAX);
    struct dns_query again;
    struct dns_answer answer;
    struct error err;
    if (strlen(query.name) >= DNS_NAME_SIZE || query.udp_size < DNS_UDP_PLAIN_MAX)
        abort();
    dns_reply_write(&out, &query, DNS_NXDOMAIN, NULL, 0, 0);
    /* What we answer is an answer to what was asked, to us too. */
    if (dns_answer_parse((struct slice){out.data, out.len}, query.id, query.name, query.type,
                         &answer, &err) != 0 ||
        answer.rcode != DNS_NXDOMAIN)
        abort();
    /* And the question that we would ask ourselves is the same one. */
    buf_clear(&out);
    if (dns_question_write(&out, query.id, query.name, query.type, &err) != 0 ||
        dns_query_parse((struct slice){out.data, out.len}, &again, &rcode) != DNS_QUERY_GOOD ||
        strcmp(again.name, query.name) != 0)
        abort();
}

static void check_answer(struct slice message)
{
    static const char *const names[] = {"example.com", "", "a.example"};
    static const uint16_t types[] = {DNS_A, DNS_AAAA};
    uint16_t id =
        message.len < 2
            ? 0
            : (uint16_t)((unsigned char)message.data[0] << 8 | (unsigned char)message.data[1]);
    for (size_t i = 0; i < ARRAY_LEN(names) * ARRAY_LEN(types); i++) {
        struct dns_answer answer;
        struct error err;
        if (dns_answer_parse(message, id, names[i / 2], types[i % 2], &answer, &err) == 0 &&
            answer.count > DNS_ADDRESSES_MAX)
            abort();
    }
}

static void check_copy(struct slice message)
{
    static const char question[] = "\x12\x34\x01\0\0\x01\0\0\0\0\0\0\x07"
                                   "example\x03"
                                   "com\0\0\x0f\0\x01";
    struct dns_query query;
    enum dns_rcode rcode;
    struct error err;
    bool truncated;
    uint32_t ttl;
    _cleanup_buf_ struct buf out = BUF_INIT(DNS_MESSAGE_MAX);
    if (dns_query_parse((struct slice){question, sizeof(question) - 1}, &query, &rcode) !=
        DNS_QUERY_GOOD)
        abort();
    if (dns_answer_copy(message, 0x1234, &query, &out, &truncated, &ttl, &err) == 0 && !truncated &&
        out.len > message.len)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct slice message = {(const char *)data, size};
    check_query(message);
    check_answer(message);
    check_copy(message);
    return 0;
}
