/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Reading and writing of DNS messages. A reader is a position in a message that fails once and
 * then stays failed, so that the code reads as the format does and checks at the end.
 */

#include "egress/dns_message.h"

#include <string.h>
#include <sys/socket.h>

#include "base/cleanup.h"

enum {
    FLAG_RESPONSE = 0x8000,
    FLAG_OPCODE = 0x7800,
    FLAG_TRUNCATED = 0x0200,
    FLAG_RECURSION_DESIRED = 0x0100,
    FLAG_RECURSION_AVAILABLE = 0x0080,
    RCODE_MASK = 0x000f,
    CLASS_IN = 1,
    LABEL_MAX = 63,
    WIRE_NAME_MAX = 255,
    POINTERS_MAX = 32,
    OWN_NAME = 0xc000 | DNS_HEADER_SIZE, /* a pointer to the question's name */
    EXTRA_MAX = 8,                       /* records that a query may bring along */
};

struct reader {
    const unsigned char *data;
    size_t len;
    size_t at;
    bool failed;
};

struct header {
    uint16_t id, flags, questions, answers, authorities, extras;
};

struct record {
    char name[DNS_NAME_SIZE];
    uint16_t type, klass;
    uint32_t ttl;
    size_t data; /* offset */
    uint16_t data_len;
};

/* --- reading --- */

static bool take(struct reader *r, size_t n)
{
    if (r->failed || r->len - r->at < n)
        r->failed = true;
    return !r->failed;
}

static uint16_t read16(struct reader *r)
{
    if (!take(r, 2))
        return 0;
    r->at += 2;
    return (uint16_t)(r->data[r->at - 2] << 8 | r->data[r->at - 1]);
}

static uint32_t read32(struct reader *r)
{
    uint32_t high = read16(r);
    return high << 16 | read16(r);
}

static struct header read_header(struct reader *r)
{
    struct header h;
    h.id = read16(r);
    h.flags = read16(r);
    h.questions = read16(r);
    h.answers = read16(r);
    h.authorities = read16(r);
    h.extras = read16(r);
    return h;
}

/* The canonical form of a byte of a name; 0 for one that no name of ours has. A dot inside a label
 * would make two names look alike, a NUL would end one early. */
static char canonical(unsigned char c)
{
    if (c >= 'A' && c <= 'Z')
        return (char)(c + ('a' - 'A'));
    if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_')
        return (char)c;
    return 0;
}

static bool add_label(char *name, size_t *len, const unsigned char *label, size_t label_len)
{
    if (*len + label_len + 1 >= DNS_NAME_SIZE)
        return false;
    if (*len > 0)
        name[(*len)++] = '.';
    for (size_t i = 0; i < label_len; i++)
        if ((name[(*len)++] = canonical(label[i])) == 0)
            return false;
    return true;
}

/* A name as text. Pointers lead backwards only, so that there is no loop; each one has to lead in
 * front of the last one. */
static void read_name(struct reader *r, char name[DNS_NAME_SIZE])
{
    size_t at = r->at, len = 0, floor = r->at, wire = 1;
    bool jumped = false;
    for (unsigned pointers = 0; !r->failed;) {
        if (at >= r->len)
            break;
        unsigned char c = r->data[at];
        if (c == 0) {
            name[len] = '\0';
            if (!jumped)
                r->at = at + 1;
            return;
        }
        if (c >= 0xc0) {
            size_t to = r->len - at < 2 ? r->len : (size_t)(c & 0x3f) << 8 | r->data[at + 1];
            if (to < DNS_HEADER_SIZE || to >= floor || ++pointers > POINTERS_MAX)
                break;
            if (!jumped)
                r->at = at + 2;
            jumped = true;
            floor = at = to;
            continue;
        }
        wire += c + 1u;
        if (c > LABEL_MAX || wire > WIRE_NAME_MAX || r->len - at < c + 1u ||
            !add_label(name, &len, r->data + at + 1, c))
            break;
        at += c + 1u;
    }
    r->failed = true;
    name[0] = '\0';
}

static struct record read_record(struct reader *r)
{
    struct record record = {0};
    read_name(r, record.name);
    record.type = read16(r);
    record.klass = read16(r);
    record.ttl = read32(r);
    record.data_len = read16(r);
    record.data = r->at;
    if (take(r, record.data_len))
        r->at += record.data_len;
    return record;
}

static struct reader reader_of(struct slice message)
{
    return (struct reader){.data = (const unsigned char *)message.data, .len = message.len};
}

/* --- queries --- */

static enum dns_query_verdict bad(enum dns_rcode rcode, enum dns_rcode *ret_rcode)
{
    *ret_rcode = rcode;
    return DNS_QUERY_BAD;
}

static void read_extras(struct reader *r, unsigned count, struct dns_query *query)
{
    query->udp_size = DNS_UDP_PLAIN_MAX;
    for (unsigned i = 0; i < count && !r->failed; i++) {
        struct record record = read_record(r);
        if (record.type != DNS_OPT)
            continue;
        query->edns = true;
        query->udp_size = record.klass; /* that is where EDNS keeps it */
    }
    if (query->udp_size < DNS_UDP_PLAIN_MAX)
        query->udp_size = DNS_UDP_PLAIN_MAX;
    if (query->udp_size > DNS_UDP_MAX)
        query->udp_size = DNS_UDP_MAX;
}

enum dns_query_verdict dns_query_parse(struct slice message, struct dns_query *ret_query,
                                       enum dns_rcode *ret_rcode)
{
    struct reader r = reader_of(message);
    struct header h = read_header(&r);
    struct dns_query *query = ret_query;
    *query = (struct dns_query){.id = h.id, .recursion = h.flags & FLAG_RECURSION_DESIRED};
    if (r.failed || h.flags & FLAG_RESPONSE)
        return DNS_QUERY_DROP;
    if (h.flags & FLAG_OPCODE)
        return bad(DNS_NOTIMP, ret_rcode);
    if (h.questions != 1 || h.answers != 0 || h.authorities != 0 || h.extras > EXTRA_MAX)
        return bad(DNS_FORMERR, ret_rcode);
    read_name(&r, query->name);
    query->type = read16(&r);
    uint16_t klass = read16(&r);
    size_t end = r.at;
    if (r.failed || end - DNS_HEADER_SIZE > sizeof(query->question))
        return bad(DNS_FORMERR, ret_rcode);
    read_extras(&r, h.extras, query);
    if (r.failed || r.at != r.len)
        return bad(DNS_FORMERR, ret_rcode);
    if (klass != CLASS_IN)
        return bad(DNS_REFUSED, ret_rcode);
    query->question_len = end - DNS_HEADER_SIZE;
    memcpy(query->question, r.data + DNS_HEADER_SIZE, query->question_len);
    return DNS_QUERY_GOOD;
}

/* --- writing --- */

static void write16(struct buf *out, uint16_t value)
{
    buf_addc(out, (char)(value >> 8));
    buf_addc(out, (char)value);
}

static void write32(struct buf *out, uint32_t value)
{
    write16(out, (uint16_t)(value >> 16));
    write16(out, (uint16_t)value);
}

static void write_header(struct buf *out, const struct header *h)
{
    const uint16_t words[] = {h->id, h->flags, h->questions, h->answers, h->authorities, h->extras};
    for (size_t i = 0; i < ARRAY_LEN(words); i++)
        write16(out, words[i]);
}

static void write_opt(struct buf *out)
{
    buf_addc(out, 0); /* the root */
    write16(out, DNS_OPT);
    write16(out, DNS_UDP_MAX);
    write32(out, 0);
    write16(out, 0);
}

int dns_question_write(struct buf *out, uint16_t id, const char *name, uint16_t type,
                       struct error *err)
{
    const struct header h = {
        .id = id, .flags = FLAG_RECURSION_DESIRED, .questions = 1, .extras = 1};
    write_header(out, &h);
    if (strlen(name) >= DNS_NAME_SIZE)
        return error_set(err, ERROR_INVALID_ARGUMENT, "a name is too long for DNS");
    for (const char *at = name; *at != '\0';) {
        size_t len = strcspn(at, ".");
        if (len == 0 || len > LABEL_MAX)
            return error_set(err, ERROR_INVALID_ARGUMENT, "\"%.80s\" is no name of DNS", name);
        buf_addc(out, (char)len);
        buf_add(out, at, len);
        at += len + (at[len] == '.');
    }
    buf_addc(out, 0);
    write16(out, type);
    write16(out, CLASS_IN);
    write_opt(out);
    return buf_check(out, "a question", err);
}

static uint16_t reply_flags(const struct dns_query *query, enum dns_rcode rcode)
{
    return (uint16_t)(FLAG_RESPONSE | FLAG_RECURSION_AVAILABLE |
                      (query->recursion ? FLAG_RECURSION_DESIRED : 0) | rcode);
}

void dns_reply_write(struct buf *out, const struct dns_query *query, enum dns_rcode rcode,
                     const struct dns_address *addresses, size_t count, uint32_t ttl)
{
    const struct header h = {.id = query->id,
                             .flags = reply_flags(query, rcode),
                             .questions = 1,
                             .answers = (uint16_t)count,
                             .extras = query->edns};
    write_header(out, &h);
    buf_add(out, query->question, query->question_len);
    for (size_t i = 0; i < count; i++) {
        uint16_t len = addresses[i].family == AF_INET ? 4 : 16;
        write16(out, OWN_NAME);
        write16(out, len == 4 ? DNS_A : DNS_AAAA);
        write16(out, CLASS_IN);
        write32(out, ttl);
        write16(out, len);
        buf_add(out, addresses[i].bytes, len);
    }
    if (query->edns)
        write_opt(out);
}

void dns_reply_bad(struct buf *out, uint16_t id, enum dns_rcode rcode)
{
    const struct header h = {.id = id, .flags = (uint16_t)(FLAG_RESPONSE | rcode)};
    write_header(out, &h);
}

void dns_reply_truncated(struct buf *out, const struct dns_query *query)
{
    const struct header h = {.id = query->id,
                             .flags = reply_flags(query, DNS_NOERROR) | FLAG_TRUNCATED,
                             .questions = 1,
                             .extras = query->edns};
    write_header(out, &h);
    buf_add(out, query->question, query->question_len);
    if (query->edns)
        write_opt(out);
}

/* --- answers --- */

static int unreadable(struct error *err)
{
    return error_set(err, ERROR_UPSTREAM_FAILED, "an answer of the name server makes no sense");
}

/* Header and question of an answer to (id, name, type); leaves the reader behind them. */
static int read_answer_head(struct reader *r, uint16_t id, const char *name, uint16_t type,
                            struct header *ret_header, struct error *err)
{
    char asked[DNS_NAME_SIZE];
    *ret_header = read_header(r);
    if (r->failed || ret_header->id != id || !(ret_header->flags & FLAG_RESPONSE) ||
        ret_header->flags & FLAG_OPCODE || ret_header->questions != 1)
        return unreadable(err);
    read_name(r, asked);
    uint16_t asked_type = read16(r), klass = read16(r);
    if (r->failed || strcmp(asked, name) != 0 || asked_type != type || klass != CLASS_IN)
        return unreadable(err);
    return 0;
}

static void lower(uint32_t *ttl, uint32_t value)
{
    if (value > INT32_MAX) /* RFC 2181: as if it were zero */
        value = 0;
    if (value < *ttl)
        *ttl = value;
}

/* One pass over the records for what `owner` has: addresses are collected, an alias is followed.
 * Returns whether there was an alias. */
static bool collect(struct reader r, unsigned count, uint16_t type, char owner[DNS_NAME_SIZE],
                    struct dns_answer *answer)
{
    bool followed = false;
    size_t want = type == DNS_A ? 4 : 16;
    char next[DNS_NAME_SIZE] = "";
    for (unsigned i = 0; i < count; i++) {
        struct record record = read_record(&r);
        if (r.failed || record.klass != CLASS_IN || strcmp(record.name, owner) != 0)
            continue;
        if (record.type == type && record.data_len == want && answer->count < DNS_ADDRESSES_MAX) {
            struct dns_address *to = &answer->addresses[answer->count++];
            to->family = type == DNS_A ? AF_INET : AF_INET6;
            memcpy(to->bytes, r.data + record.data, want);
            lower(&answer->ttl, record.ttl);
        } else if (record.type == DNS_CNAME && !followed) {
            struct reader target = {.data = r.data, .len = r.len, .at = record.data};
            read_name(&target, next);
            followed = !target.failed && target.at == record.data + record.data_len;
            lower(&answer->ttl, record.ttl);
        }
    }
    if (followed)
        memcpy(owner, next, sizeof(next));
    return followed && answer->count == 0;
}

/* How long it may be remembered that there is nothing: the smaller of the SOA's own time to live
 * and its last field (RFC 2308). */
static uint32_t negative_ttl(struct reader *r, unsigned count)
{
    for (unsigned i = 0; i < count && !r->failed; i++) {
        struct record record = read_record(r);
        if (r->failed || record.type != DNS_SOA || record.data_len < 4)
            continue;
        struct reader minimum = {
            .data = r->data, .len = r->len, .at = record.data + record.data_len - 4u};
        uint32_t ttl = record.ttl;
        lower(&ttl, read32(&minimum));
        return ttl > INT32_MAX ? 0 : ttl;
    }
    return 0;
}

int dns_answer_parse(struct slice message, uint16_t id, const char *name, uint16_t type,
                     struct dns_answer *ret_answer, struct error *err)
{
    struct reader r = reader_of(message);
    struct header h;
    struct dns_answer answer = {.ttl = UINT32_MAX};
    char owner[DNS_NAME_SIZE];
    if (read_answer_head(&r, id, name, type, &h, err) != 0)
        return -1;
    answer.rcode = (enum dns_rcode)(h.flags & RCODE_MASK);
    answer.truncated = h.flags & FLAG_TRUNCATED;
    if (answer.truncated) {
        *ret_answer = answer;
        return 0;
    }
    if (h.answers > DNS_RECORDS_MAX || h.authorities > DNS_RECORDS_MAX)
        return unreadable(err);
    struct reader records = r;
    for (unsigned i = 0; i < h.answers; i++)
        read_record(&r);
    if (r.failed)
        return unreadable(err);
    memcpy(owner, name, strlen(name) + 1);
    for (unsigned hops = 0; collect(records, h.answers, type, owner, &answer); hops++)
        if (hops ==
            DNS_ALIASES_MAX) { /* a circle: an answer, and no better one is to be expected */
            *ret_answer = (struct dns_answer){.rcode = DNS_SERVFAIL};
            return 0;
        }
    if (answer.count == 0)
        answer.ttl = negative_ttl(&r, h.authorities);
    *ret_answer = answer;
    return 0;
}

int dns_answer_copy(struct slice message, uint16_t id, const struct dns_query *query,
                    struct buf *out, bool *ret_truncated, uint32_t *ret_ttl, struct error *err)
{
    struct reader r = reader_of(message);
    struct header h;
    uint32_t ttl = UINT32_MAX;
    if (read_answer_head(&r, id, query->name, query->type, &h, err) != 0)
        return -1;
    size_t question_end = r.at;
    /* Pointers in the records count from the start, so what stands before them keeps its size. */
    if (question_end != DNS_HEADER_SIZE + query->question_len || h.answers > DNS_RECORDS_MAX)
        return unreadable(err);
    *ret_truncated = h.flags & FLAG_TRUNCATED;
    if (*ret_truncated)
        return 0;
    for (unsigned i = 0; i < h.answers; i++) {
        struct record record = read_record(&r);
        if (r.failed || record.klass != CLASS_IN ||
            (record.type != query->type && record.type != DNS_CNAME))
            return unreadable(err);
        lower(&ttl, record.ttl);
    }
    const struct header answer = {.id = query->id,
                                  .flags = reply_flags(query, h.flags & RCODE_MASK),
                                  .questions = 1,
                                  .answers = h.answers,
                                  .extras = query->edns};
    write_header(out, &answer);
    buf_add(out, query->question, query->question_len);
    buf_add(out, r.data + question_end, r.at - question_end);
    if (query->edns)
        write_opt(out);
    *ret_ttl = h.answers == 0 ? 0 : ttl;
    return buf_check(out, "an answer", err);
}
