/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Addresses as people write them: "127.0.0.1:7070", "[::1]:7070", "localhost:7070", "unix:/path".
 */

#include <stdint.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <netinet/in.h>

#include "base/error.h"

struct socket_address {
    union {
        struct sockaddr any;
        struct sockaddr_in in;
        struct sockaddr_in6 in6;
        struct sockaddr_un un;
    } as;
    socklen_t len;
};

int socket_address_parse(const char *text, struct socket_address *ret_address, struct error *err);
int socket_address_unix(const char *path, struct socket_address *ret_address, struct error *err);
/* "127.0.0.1:7070", "[::1]:7070"; "unix" for any that has no port. */
enum { SOCKET_ADDRESS_TEXT_SIZE = INET6_ADDRSTRLEN + 8 };
void socket_address_text(const struct socket_address *address, char out[SOCKET_ADDRESS_TEXT_SIZE]);
uint16_t socket_address_port(const struct socket_address *address);
