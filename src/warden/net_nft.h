/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * nf_tables' messages, as far as net_filter.c needs them: transactions, elements of sets and maps,
 * and the expressions that rules are made of. All of them are about our own table, and use one
 * register.
 */

#include "warden/netlink.h"

/* A message of nf_tables; nl_end() ends it. */
void nft_begin(struct nl_requests *requests, uint16_t type, unsigned flags);

/* What is between these two is done all or not at all. */
void nft_transaction(struct nl_requests *requests);
int nft_commit(struct netlink *rules_socket, struct nl_requests *requests, struct error *err);

struct nft_element {
    const char *set;
    const void *key;
    size_t key_len;
    const void *key_end;  /* of a range of keys */
    const uint32_t *mark; /* of a map, unless … */
    const char *chain;    /* … it jumps */
    uint64_t timeout_ms;  /* 0: none */
};

void nft_change_element(struct nl_requests *requests, bool add, const struct nft_element *element);

/* ---- expressions ---- */

struct nft_nests {
    size_t item, data;
};

struct nft_nests nft_expression(struct nl_requests *requests, const char *name);
void nft_expression_end(struct nl_requests *requests, struct nft_nests nests);

/* Attributes of them: a value, a verdict (chain NULL: it leads nowhere). */
void nft_data(struct nl_requests *requests, uint16_t type, const void *value, size_t len);
void nft_verdict(struct nl_requests *requests, uint16_t type, int code, const char *chain);

/* What is in the register is a part of the packet, or something about it (enum nft_meta_keys) … */
void nft_load_payload(struct nl_requests *requests, uint32_t base, uint32_t offset, uint32_t len);
void nft_load_meta(struct nl_requests *requests, uint32_t key);
/* … and is changed: the bits of the mask stay, then those of `flip` are turned … */
void nft_mask(struct nl_requests *requests, const void *mask, const void *flip, uint32_t len);
/* … is said of the packet from now on … */
void nft_store_meta(struct nl_requests *requests, uint32_t key);
/* … or compared (enum nft_cmp_ops). */
void nft_compare(struct nl_requests *requests, uint32_t operation, const void *value, size_t len);
