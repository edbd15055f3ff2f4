/* SPDX-License-Identifier: Apache-2.0 */

#include "warden/names.h"

#include <arpa/inet.h>
#include <stdio.h>

void names_hostname(const char *hostname, char out[NAMES_TEXT_MAX])
{
    snprintf(out, NAMES_TEXT_MAX, "%s\n", hostname);
}

void names_hosts(const char *hostname, char out[NAMES_TEXT_MAX])
{
    snprintf(out, NAMES_TEXT_MAX,
             "127.0.0.1 localhost\n127.0.1.1 %s\n::1 localhost ip6-localhost ip6-loopback\n",
             hostname);
}

void names_resolver(uint32_t address, char out[NAMES_TEXT_MAX])
{
    char text[INET_ADDRSTRLEN];
    struct in_addr in = {.s_addr = htonl(address)};
    snprintf(out, NAMES_TEXT_MAX, "nameserver %s\n", inet_ntop(AF_INET, &in, text, sizeof(text)));
}
