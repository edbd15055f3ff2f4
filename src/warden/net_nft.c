/* SPDX-License-Identifier: Apache-2.0 */

/* As linux/netfilter/nf_tables.h has it; libnftnl's sources are the only other documentation. */

#include "warden/net_nft.h"

#include <arpa/inet.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netlink.h>
#include <sys/socket.h>

#include "warden/net_filter.h"

enum { REGISTER = NFT_REG32_00 };

/* ---- transactions ---- */

void nft_begin(struct nl_requests *requests, uint16_t type, unsigned flags)
{
    const struct nfgenmsg header = {.nfgen_family = NFPROTO_INET, .version = NFNETLINK_V0};
    nl_begin(requests, (uint16_t)(NFNL_SUBSYS_NFTABLES << 8 | type), flags, &header,
             sizeof(header));
}

static void transaction_edge(struct nl_requests *requests, uint16_t type)
{
    const struct nfgenmsg header = {
        .nfgen_family = AF_UNSPEC, .version = NFNETLINK_V0, .res_id = htons(NFNL_SUBSYS_NFTABLES)};
    nl_begin(requests, type, NL_SILENT, &header, sizeof(header));
    nl_end(requests);
}

void nft_transaction(struct nl_requests *requests)
{
    requests->transaction = true;
    transaction_edge(requests, NFNL_MSG_BATCH_BEGIN);
}

int nft_commit(struct netlink *rules_socket, struct nl_requests *requests, struct error *err)
{
    transaction_edge(requests, NFNL_MSG_BATCH_END);
    return nl_send(rules_socket, requests, err);
}

/* ---- elements ---- */

void nft_data(struct nl_requests *requests, uint16_t type, const void *value, size_t len)
{
    size_t nest = nl_nest(requests, type);
    nl_bytes(requests, NFTA_DATA_VALUE, value, len);
    nl_nest_end(requests, nest);
}

void nft_verdict(struct nl_requests *requests, uint16_t type, int code, const char *chain)
{
    size_t data = nl_nest(requests, type);
    size_t verdict = nl_nest(requests, NFTA_DATA_VERDICT);
    nl_be32(requests, NFTA_VERDICT_CODE, (uint32_t)code);
    if (chain != NULL)
        nl_string(requests, NFTA_VERDICT_CHAIN, chain);
    nl_nest_end(requests, verdict);
    nl_nest_end(requests, data);
}

void nft_change_element(struct nl_requests *requests, bool add, const struct nft_element *element)
{
    nft_begin(requests, add ? NFT_MSG_NEWSETELEM : NFT_MSG_DELSETELEM,
              add ? NLM_F_CREATE | NLM_F_EXCL : 0);
    nl_string(requests, NFTA_SET_ELEM_LIST_TABLE, NET_TABLE);
    nl_string(requests, NFTA_SET_ELEM_LIST_SET, element->set);
    size_t list = nl_nest(requests, NFTA_SET_ELEM_LIST_ELEMENTS);
    size_t item = nl_nest(requests, NFTA_LIST_ELEM);
    nft_data(requests, NFTA_SET_ELEM_KEY, element->key, element->key_len);
    if (element->key_end != NULL)
        nft_data(requests, NFTA_SET_ELEM_KEY_END, element->key_end, element->key_len);
    if (add && element->mark != NULL)
        nft_data(requests, NFTA_SET_ELEM_DATA, element->mark, sizeof(*element->mark));
    if (add && element->chain != NULL)
        nft_verdict(requests, NFTA_SET_ELEM_DATA, NFT_JUMP, element->chain);
    if (add && element->timeout_ms != 0)
        nl_be64(requests, NFTA_SET_ELEM_TIMEOUT, element->timeout_ms);
    nl_nest_end(requests, item);
    nl_nest_end(requests, list);
    nl_end(requests);
}

/* ---- expressions ---- */

struct nft_nests nft_expression(struct nl_requests *requests, const char *name)
{
    struct nft_nests nests = {.item = nl_nest(requests, NFTA_LIST_ELEM)};
    nl_string(requests, NFTA_EXPR_NAME, name);
    nests.data = nl_nest(requests, NFTA_EXPR_DATA);
    return nests;
}

void nft_expression_end(struct nl_requests *requests, struct nft_nests nests)
{
    nl_nest_end(requests, nests.data);
    nl_nest_end(requests, nests.item);
}

void nft_load_payload(struct nl_requests *requests, uint32_t base, uint32_t offset, uint32_t len)
{
    struct nft_nests nests = nft_expression(requests, "payload");
    nl_be32(requests, NFTA_PAYLOAD_DREG, REGISTER);
    nl_be32(requests, NFTA_PAYLOAD_BASE, base);
    nl_be32(requests, NFTA_PAYLOAD_OFFSET, offset);
    nl_be32(requests, NFTA_PAYLOAD_LEN, len);
    nft_expression_end(requests, nests);
}

void nft_mask(struct nl_requests *requests, const void *mask, const void *flip, uint32_t len)
{
    struct nft_nests nests = nft_expression(requests, "bitwise");
    nl_be32(requests, NFTA_BITWISE_SREG, REGISTER);
    nl_be32(requests, NFTA_BITWISE_DREG, REGISTER);
    nl_be32(requests, NFTA_BITWISE_LEN, len);
    nft_data(requests, NFTA_BITWISE_MASK, mask, len);
    nft_data(requests, NFTA_BITWISE_XOR, flip, len);
    nft_expression_end(requests, nests);
}

void nft_compare(struct nl_requests *requests, uint32_t operation, const void *value, size_t len)
{
    struct nft_nests nests = nft_expression(requests, "cmp");
    nl_be32(requests, NFTA_CMP_SREG, REGISTER);
    nl_be32(requests, NFTA_CMP_OP, operation);
    nft_data(requests, NFTA_CMP_DATA, value, len);
    nft_expression_end(requests, nests);
}

void nft_load_meta(struct nl_requests *requests, uint32_t key)
{
    struct nft_nests nests = nft_expression(requests, "meta");
    nl_be32(requests, NFTA_META_DREG, REGISTER);
    nl_be32(requests, NFTA_META_KEY, key);
    nft_expression_end(requests, nests);
}

void nft_store_meta(struct nl_requests *requests, uint32_t key)
{
    struct nft_nests nests = nft_expression(requests, "meta");
    nl_be32(requests, NFTA_META_KEY, key);
    nl_be32(requests, NFTA_META_SREG, REGISTER);
    nft_expression_end(requests, nests);
}
