/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Host names as strangers spell them (in a rule, a DNS question, a Host field, a server name of
 * TLS), made into one form: lower case, no final dot, ASCII. What is an address in any spelling
 * that some program accepts ("127.1", "0x7f000001", "2130706433", "0177.0.0.1", "[::1]") is one
 * here, never a name; and what ends in a number without being an address is nothing at all.
 *
 * Names beyond ASCII are refused: whoever has such a name writes what is asked of DNS (xn--…).
 * There is no mapping here that could differ from a client's.
 */

#include "network/address.h"

enum { NET_NAME_MAX = 253 };

enum net_host_kind { NET_HOST_NAME, NET_HOST_ADDRESS };

struct net_host {
    enum net_host_kind kind;
    char name[NET_NAME_MAX + 1]; /* canonical; of a name */
    struct net_address address;  /* of an address */
};

/* All of the text, which may hold any bytes, is the host: no port. INVALID_ARGUMENT says what is
 * wrong with it. */
int net_host_parse(struct slice text, struct net_host *ret_host, struct error *err);

/* "host", "host:port", "[::1]:port", as in a Host field or the authority of a URI. The port is
 * `otherwise` where none is named. */
int net_authority_parse(struct slice text, uint16_t otherwise, struct net_host *ret_host,
                        uint16_t *ret_port, struct error *err);

/* 1 to 65535, decimal, without a leading zero. */
int net_port_parse(struct slice text, uint16_t *ret_port, struct error *err);
