/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Reading addresses. Names other than localhost are not looked up here: a resolver blocks, and
 * whoever needs one asks it on a worker thread.
 */

#include "loop/address.h"

#include <arpa/inet.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

static int parse_port(const char *text, uint16_t *ret_port)
{
    unsigned port = 0;
    if (*text == '\0')
        return -1;
    for (; *text != '\0'; text++) {
        if (*text < '0' || *text > '9')
            return -1;
        port = port * 10 + (unsigned)(*text - '0');
        if (port > 65535)
            return -1;
    }
    *ret_port = (uint16_t)port;
    return 0;
}

int socket_address_unix(const char *path, struct socket_address *ret_address, struct error *err)
{
    size_t len = strlen(path);
    struct socket_address address = {.as.un.sun_family = AF_UNIX};
    if (len == 0 || len >= sizeof(address.as.un.sun_path))
        return error_set(err, ERROR_INVALID_ARGUMENT, "a unix socket's path has 1 to %zu bytes: %s",
                         sizeof(address.as.un.sun_path) - 1, path);
    memcpy(address.as.un.sun_path, path, len);
    address.len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len + 1);
    *ret_address = address;
    return 0;
}

int socket_address_parse(const char *text, struct socket_address *ret_address, struct error *err)
{
    if (strncmp(text, "unix:", 5) == 0)
        return socket_address_unix(text + 5, ret_address, err);

    char host[INET6_ADDRSTRLEN + 2];
    uint16_t port;
    const char *colon = strrchr(text, ':');
    size_t len = colon == NULL ? 0 : (size_t)(colon - text);
    if (colon == NULL || len >= sizeof(host) || parse_port(colon + 1, &port) != 0)
        return error_set(err, ERROR_INVALID_ARGUMENT,
                         "an address looks like 127.0.0.1:7070, [::1]:7070 or unix:/path, not %s",
                         text);
    memcpy(host, text, len);
    host[len] = '\0';
    if (strcmp(host, "localhost") == 0)
        snprintf(host, sizeof(host), "127.0.0.1");

    struct socket_address address = {0};
    if (host[0] == '[' && host[strlen(host) - 1] == ']') {
        host[strlen(host) - 1] = '\0';
        address.as.in6 = (struct sockaddr_in6){.sin6_family = AF_INET6, .sin6_port = htons(port)};
        address.len = sizeof(address.as.in6);
        if (inet_pton(AF_INET6, host + 1, &address.as.in6.sin6_addr) == 1) {
            *ret_address = address;
            return 0;
        }
    } else {
        address.as.in = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons(port)};
        address.len = sizeof(address.as.in);
        if (inet_pton(AF_INET, host, &address.as.in.sin_addr) == 1) {
            *ret_address = address;
            return 0;
        }
    }
    return error_set(err, ERROR_INVALID_ARGUMENT, "not a numeric address: %s", text);
}

void socket_address_text(const struct socket_address *address, char out[SOCKET_ADDRESS_TEXT_SIZE])
{
    char host[INET6_ADDRSTRLEN] = "";
    bool six = address->as.any.sa_family == AF_INET6;
    if (!six && address->as.any.sa_family != AF_INET) {
        snprintf(out, SOCKET_ADDRESS_TEXT_SIZE, "unix");
        return;
    }
    inet_ntop(address->as.any.sa_family,
              six ? (const void *)&address->as.in6.sin6_addr : &address->as.in.sin_addr, host,
              sizeof(host));
    snprintf(out, SOCKET_ADDRESS_TEXT_SIZE, six ? "[%s]:%u" : "%s:%u", host,
             socket_address_port(address));
}

uint16_t socket_address_port(const struct socket_address *address)
{
    switch (address->as.any.sa_family) {
    case AF_INET:
        return ntohs(address->as.in.sin_port);
    case AF_INET6:
        return ntohs(address->as.in6.sin6_port);
    default:
        return 0;
    }
}
