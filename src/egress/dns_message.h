/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DNS messages (RFC 1035), as far as a resolver for sandboxes needs them: one question, addresses
 * out of an answer whatever chain of aliases leads to them, and answers that are made here. Nothing
 * that a stranger wrote is passed on without having been read: names hold letters, digits, hyphens
 * and underscores and are lower case, compression pointers only lead backwards.
 *
 * Pure: bytes in, structs out.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/slice.h"

enum {
    DNS_HEADER_SIZE = 12,
    DNS_NAME_SIZE = 254,     /* as text, with its NUL */
    DNS_QUESTION_MAX = 259,  /* name as labels, type and class */
    DNS_MESSAGE_MAX = 65535, /* over TCP */
    DNS_UDP_PLAIN_MAX = 512, /* for a client that says nothing else */
    DNS_UDP_MAX = 1232,      /* what passes everywhere without fragments */
    DNS_ADDRESSES_MAX = 32,  /* taken out of one answer */
    DNS_ALIASES_MAX = 16,    /* CNAMEs followed in one answer */
    DNS_RECORDS_MAX = 256,   /* looked at in one answer */
};

enum dns_type {
    DNS_A = 1,
    DNS_NS = 2,
    DNS_CNAME = 5,
    DNS_SOA = 6,
    DNS_MX = 15,
    DNS_TXT = 16,
    DNS_AAAA = 28,
    DNS_SRV = 33,
    DNS_OPT = 41,
    DNS_SVCB = 64,
    DNS_HTTPS = 65,
    DNS_CAA = 257,
};

enum dns_rcode {
    DNS_NOERROR = 0,
    DNS_FORMERR = 1,
    DNS_SERVFAIL = 2,
    DNS_NXDOMAIN = 3,
    DNS_NOTIMP = 4,
    DNS_REFUSED = 5,
};

struct dns_query {
    uint16_t id;
    uint16_t type;
    bool recursion;                           /* was asked for: said back */
    bool edns;                                /* the client speaks EDNS: it gets an OPT back */
    uint16_t udp_size;                        /* the largest answer it takes over UDP */
    char name[DNS_NAME_SIZE];                 /* canonical; "" is the root */
    unsigned char question[DNS_QUESTION_MAX]; /* as it came: clients compare it, case and all */
    size_t question_len;
};

/* What to do with a client's message: */
enum dns_query_verdict {
    DNS_QUERY_GOOD, /* *ret_query is filled */
    DNS_QUERY_BAD,  /* answer with ret_query->id and *ret_rcode: no question could be read */
    DNS_QUERY_DROP, /* no query at all: whoever answers those can be made to answer himself */
};

enum dns_query_verdict dns_query_parse(struct slice message, struct dns_query *ret_query,
                                       enum dns_rcode *ret_rcode);

/* A question of our own. The name is canonical text. INVALID_ARGUMENT when it is none. */
int dns_question_write(struct buf *out, uint16_t id, const char *name, uint16_t type,
                       struct error *err);

struct dns_address {
    int family; /* AF_INET, AF_INET6 */
    unsigned char bytes[16];
};

struct dns_answer {
    enum dns_rcode rcode;
    bool truncated; /* ask again over TCP; nothing else is set */
    uint32_t ttl;   /* the smallest on the way; of a negative answer, what its SOA says, or 0 */
    size_t count;
    struct dns_address addresses[DNS_ADDRESSES_MAX];
};

/*
 * The addresses that a server gave for (name, type A or AAAA), following aliases inside the answer;
 * SERVFAIL where they lead in a circle.
 * -1: not an answer to this question (id, name, type), or not one that can be read: whoever asked
 * goes on waiting for the right one.
 */
int dns_answer_parse(struct slice message, uint16_t id, const char *name, uint16_t type,
                     struct dns_answer *ret_answer, struct error *err);

/*
 * An answer to any other type, for a client: the server's records of that type (and aliases), with
 * the client's id and question, and nothing beside them. -1 as above; *ret_truncated: as above.
 */
int dns_answer_copy(struct slice message, uint16_t id, const struct dns_query *query,
                    struct buf *out, bool *ret_truncated, uint32_t *ret_ttl, struct error *err);

/* An answer made here: to the query, with this code and these addresses, all owned by the name
 * that was asked for. */
void dns_reply_write(struct buf *out, const struct dns_query *query, enum dns_rcode rcode,
                     const struct dns_address *addresses, size_t count, uint32_t ttl);
/* The answer to DNS_QUERY_BAD, and one that says: too long for UDP, ask over TCP. */
void dns_reply_bad(struct buf *out, uint16_t id, enum dns_rcode rcode);
void dns_reply_truncated(struct buf *out, const struct dns_query *query);
