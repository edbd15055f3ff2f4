/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Requests to the kernel's network, as many in one call as belong together.
 *
 *     nl_begin(&requests, RTM_NEWLINK, flags, &header, sizeof(header));
 *     nl_string(&requests, IFLA_IFNAME, "eth0");
 *     size_t nest = nl_nest(&requests, IFLA_LINKINFO);
 *     …
 *     nl_nest_end(&requests, nest);
 *     nl_end(&requests);
 *     nl_send(&netlink, &requests, err);
 *
 * Everything is appended to one buffer whose maximum says how much that may be; nl_send() waits for
 * the kernel's word on each of the requests.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"

enum { NL_REQUESTS_MAX = 1024 * 1024 }; /* the longest policy takes half of it */

/* A socket belongs to the network namespace that it was made in. */
struct netlink {
    int fd;
    uint32_t sequence;
};

#define NETLINK_INIT                                                                               \
    {                                                                                              \
        .fd = -1                                                                                   \
    }

struct nl_requests {
    struct buf bytes;
    size_t begin;   /* of the last one */
    unsigned count; /* how many are answered */
    bool transaction;
};

#define NL_REQUESTS_INIT                                                                           \
    {                                                                                              \
        .bytes = BUF_INIT(NL_REQUESTS_MAX)                                                         \
    }

int nl_open(int protocol, struct netlink *ret_netlink, struct error *err);
void nl_close(struct netlink *netlink);

/* `flags` besides NLM_F_REQUEST and NLM_F_ACK, or with NL_SILENT without the latter. */
enum { NL_SILENT = 0x10000 };
void nl_begin(struct nl_requests *requests, uint16_t type, unsigned flags, const void *header,
              size_t size);
void nl_end(struct nl_requests *requests);

void nl_bytes(struct nl_requests *requests, uint16_t type, const void *data, size_t len);
void nl_string(struct nl_requests *requests, uint16_t type, const char *text);
void nl_u32(struct nl_requests *requests, uint16_t type, uint32_t value);
void nl_be32(struct nl_requests *requests, uint16_t type, uint32_t value);
void nl_be64(struct nl_requests *requests, uint16_t type, uint64_t value);
size_t nl_nest(struct nl_requests *requests, uint16_t type);
void nl_nest_end(struct nl_requests *requests, size_t nest);

void nl_release(struct nl_requests *requests);

/* 0 when the kernel has done all of it; else the error of the first that it would not do (err->sys
 * is its errno). Whether the others were done is the protocol's affair. */
int nl_send(struct netlink *netlink, const struct nl_requests *requests, struct error *err);

/* Sends one request that is answered by messages, and calls fn with each of them. */
typedef void (*nl_message_fn)(uint16_t type, const void *payload, size_t len, void *arg);
int nl_dump(struct netlink *netlink, const struct nl_requests *requests, nl_message_fn fn,
            void *arg, struct error *err);

/* The attribute of that type in a run of attributes; NULL: there is none. */
const void *nl_find(const void *attributes, size_t len, uint16_t type, size_t *ret_len);
