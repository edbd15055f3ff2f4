/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A few hundred lines instead of a library: what the warden asks of the kernel's network is a dozen
 * requests of fixed shapes, and a privileged process should not link what it does not use.
 *
 * The socket is kept for as long as its namespace: closing one of nf_tables' makes the kernel look
 * for what it may have owned, which takes 10 ms.
 */

#include "warden/netlink.h"

#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netlink.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/cleanup.h"

enum { ANSWER_SECONDS = 30, ANSWER_SIZE = 64 * 1024 };

int nl_open(int protocol, struct netlink *ret_netlink, struct error *err)
{
    const struct timeval limit = {.tv_sec = ANSWER_SECONDS};
    const int on = 1;
    const int room = NL_REQUESTS_MAX; /* a transaction is sent in one piece */
    _cleanup_fd_ int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, protocol);
    if (fd < 0)
        return error_sys(err, "a netlink socket");
    if (protocol == NETLINK_NETFILTER)
        (void)setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &room, sizeof(room));
    /* An answer without the request that it is about: those can be large. */
    if (setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)) < 0 ||
        setsockopt(fd, SOL_NETLINK, NETLINK_CAP_ACK, &on, sizeof(on)) < 0)
        return error_sys(err, "setting up a netlink socket");
    *ret_netlink = (struct netlink){.fd = steal_fd(&fd)};
    return 0;
}

void nl_close(struct netlink *netlink)
{
    cleanup_fd(&netlink->fd);
    netlink->fd = -1;
}

/* ---- making requests ---- */

static void add_padded(struct buf *bytes, const void *data, size_t len)
{
    static const char zeros[NLMSG_ALIGNTO];
    buf_add(bytes, data, len);
    buf_add(bytes, zeros, NLMSG_ALIGN(len) - len);
}

void nl_begin(struct nl_requests *requests, uint16_t type, unsigned flags, const void *header,
              size_t size)
{
    bool answered = !(flags & NL_SILENT);
    const struct nlmsghdr message = {
        .nlmsg_type = type,
        .nlmsg_flags =
            (uint16_t)((flags & ~NL_SILENT) | NLM_F_REQUEST | (answered ? NLM_F_ACK : 0)),
    };
    requests->begin = requests->bytes.len;
    requests->count += answered;
    add_padded(&requests->bytes, &message, sizeof(message));
    add_padded(&requests->bytes, header, size);
}

void nl_end(struct nl_requests *requests)
{
    struct buf *bytes = &requests->bytes;
    uint32_t len = (uint32_t)(bytes->len - requests->begin);
    if (!bytes->failed)
        memcpy(bytes->data + requests->begin, &len, sizeof(len));
}

void nl_bytes(struct nl_requests *requests, uint16_t type, const void *data, size_t len)
{
    const struct nlattr attribute = {.nla_len = (uint16_t)(NLA_HDRLEN + len), .nla_type = type};
    add_padded(&requests->bytes, &attribute, sizeof(attribute));
    add_padded(&requests->bytes, data, len);
}

void nl_string(struct nl_requests *requests, uint16_t type, const char *text)
{
    nl_bytes(requests, type, text, strlen(text) + 1);
}

void nl_u32(struct nl_requests *requests, uint16_t type, uint32_t value)
{
    nl_bytes(requests, type, &value, sizeof(value));
}

void nl_be32(struct nl_requests *requests, uint16_t type, uint32_t value)
{
    nl_u32(requests, type, htonl(value));
}

void nl_be64(struct nl_requests *requests, uint16_t type, uint64_t value)
{
    uint64_t swapped = htobe64(value);
    nl_bytes(requests, type, &swapped, sizeof(swapped));
}

size_t nl_nest(struct nl_requests *requests, uint16_t type)
{
    size_t at = requests->bytes.len;
    const struct nlattr attribute = {.nla_len = NLA_HDRLEN,
                                     .nla_type = (uint16_t)(type | NLA_F_NESTED)};
    add_padded(&requests->bytes, &attribute, sizeof(attribute));
    return at;
}

void nl_nest_end(struct nl_requests *requests, size_t nest)
{
    struct buf *bytes = &requests->bytes;
    uint16_t len = (uint16_t)(bytes->len - nest);
    if (!bytes->failed)
        memcpy(bytes->data + nest, &len, sizeof(len));
}

void nl_release(struct nl_requests *requests)
{
    buf_release(&requests->bytes);
}

/* ---- the kernel's word ---- */

/* Numbers them, and returns the first number. */
static uint32_t number(struct netlink *netlink, const struct nl_requests *requests)
{
    uint32_t first = netlink->sequence + 1;
    size_t at = 0;
    while (at + sizeof(struct nlmsghdr) <= requests->bytes.len) {
        struct nlmsghdr header;
        memcpy(&header, requests->bytes.data + at, sizeof(header));
        header.nlmsg_seq = ++netlink->sequence;
        memcpy(requests->bytes.data + at, &header, sizeof(header));
        at += NLMSG_ALIGN(header.nlmsg_len);
    }
    return first;
}

/* A transaction holds as a whole, so one answer is enough, the last one's: hundreds would not find
 * room in the socket. What fails is answered anyway. Returns the number of that last one. */
static uint32_t ask_for_one_answer(const struct nl_requests *requests)
{
    struct nlmsghdr header, *last = NULL;
    for (size_t at = 0; at + sizeof(header) <= requests->bytes.len;
         at += NLMSG_ALIGN(header.nlmsg_len)) {
        struct nlmsghdr *here = (struct nlmsghdr *)(void *)(requests->bytes.data + at);
        memcpy(&header, here, sizeof(header));
        if (!(header.nlmsg_flags & NLM_F_ACK))
            continue;
        if (last != NULL)
            last->nlmsg_flags &= (uint16_t)~NLM_F_ACK;
        last = here;
    }
    return last == NULL ? 0 : last->nlmsg_seq;
}

static int send_all(struct netlink *netlink, const struct nl_requests *requests, struct error *err)
{
    struct sockaddr_nl kernel = {.nl_family = AF_NETLINK};
    const struct buf *bytes = &requests->bytes;
    if (sendto(netlink->fd, bytes->data, bytes->len, 0, (struct sockaddr *)&kernel,
               sizeof(kernel)) != (ssize_t)bytes->len)
        return error_sys(err, "asking the kernel");
    return 0;
}

struct answers {
    uint32_t first; /* number of the first request */
    uint32_t last;  /* of a transaction: of the one that is answered in any case */
    unsigned left;
    int failure; /* errno of the first one that failed */
    bool done;   /* a list has ended */
    nl_message_fn fn;
    void *arg;
};

static void take_error(struct answers *answers, const struct nlmsghdr *header, bool transaction)
{
    struct nlmsgerr word;
    if (header->nlmsg_len < NLMSG_LENGTH(sizeof(word)))
        return;
    memcpy(&word, NLMSG_DATA(header), sizeof(word));
    if (word.error != 0 && answers->failure == 0)
        answers->failure = -word.error;
    /* Of a transaction's own begin nothing is heard unless nothing else will be. */
    if (transaction && header->nlmsg_seq != answers->first && header->nlmsg_seq != answers->last)
        return;
    if (transaction)
        answers->left = 0;
    else if (answers->left > 0)
        answers->left--;
}

static void take_messages(struct answers *answers, const char *data, size_t len, bool transaction)
{
    while (len >= sizeof(struct nlmsghdr)) {
        const struct nlmsghdr *header = (const struct nlmsghdr *)data;
        size_t whole = NLMSG_ALIGN(header->nlmsg_len);
        if (header->nlmsg_len < sizeof(*header) || header->nlmsg_len > len)
            return;
        if (header->nlmsg_seq < answers->first) {
            /* of an earlier call that nobody waited for to the end */
        } else if (header->nlmsg_type == NLMSG_ERROR) {
            take_error(answers, header, transaction);
        } else if (header->nlmsg_type == NLMSG_DONE) {
            answers->done = true;
        } else if (answers->fn != NULL) {
            answers->fn(header->nlmsg_type, NLMSG_DATA(header), NLMSG_PAYLOAD(header, 0),
                        answers->arg);
        }
        len -= whole < len ? whole : len;
        data += whole;
    }
}

static int receive(struct netlink *netlink, struct answers *answers, bool transaction,
                   struct error *err)
{
    _Alignas(struct nlmsghdr) char data[ANSWER_SIZE];
    ssize_t n;
    do
        n = recv(netlink->fd, data, sizeof(data), 0);
    while (n < 0 && errno == EINTR);
    if (n < 0)
        return error_sys(err, "the kernel's answer");
    take_messages(answers, data, (size_t)n, transaction);
    return 0;
}

static int judge(const struct answers *answers, struct error *err)
{
    if (answers->failure == 0)
        return 0;
    errno = answers->failure;
    return error_sys(err, "the kernel refuses");
}

int nl_send(struct netlink *netlink, const struct nl_requests *requests, struct error *err)
{
    if (buf_check(&requests->bytes, "a request to the kernel", err) < 0)
        return -1;
    struct answers answers = {.first = number(netlink, requests), .left = requests->count};
    if (requests->transaction)
        answers.last = ask_for_one_answer(requests);
    if (send_all(netlink, requests, err) < 0)
        return -1;
    while (answers.left > 0)
        if (receive(netlink, &answers, requests->transaction, err) < 0)
            return -1;
    return judge(&answers, err);
}

int nl_dump(struct netlink *netlink, const struct nl_requests *requests, nl_message_fn fn,
            void *arg, struct error *err)
{
    if (buf_check(&requests->bytes, "a request to the kernel", err) < 0)
        return -1;
    struct answers answers = {.first = number(netlink, requests), .left = 1, .fn = fn, .arg = arg};
    if (send_all(netlink, requests, err) < 0)
        return -1;
    while (answers.left > 0 && !answers.done)
        if (receive(netlink, &answers, false, err) < 0)
            return -1;
    return judge(&answers, err);
}

const void *nl_find(const void *attributes, size_t len, uint16_t type, size_t *ret_len)
{
    const char *at = attributes;
    while (len >= sizeof(struct nlattr)) {
        struct nlattr attribute;
        memcpy(&attribute, at, sizeof(attribute));
        size_t whole = NLA_ALIGN((size_t)attribute.nla_len);
        if (attribute.nla_len < NLA_HDRLEN || attribute.nla_len > len)
            return NULL;
        if ((attribute.nla_type & NLA_TYPE_MASK) == type) {
            *ret_len = attribute.nla_len - (size_t)NLA_HDRLEN;
            return at + NLA_HDRLEN;
        }
        len -= whole < len ? whole : len;
        at += whole;
    }
    return NULL;
}
