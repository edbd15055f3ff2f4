/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Address ranges, as tables. For IPv6 the default is no: only 2000::/3 was ever given out. All that
 * sandboxes are cut off from (network/address.c, which is below none of this) is refused here, too:
 * the unit test holds one against the other.
 */

#include "http/address_policy.h"

#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdint.h>
#include <string.h>

#include "base/cleanup.h"

struct range {
    unsigned char prefix[16];
    unsigned bits;
};

static const struct range special4[] = {
    {{0}, 8},                 /* this network */
    {{10}, 8},                /* private */
    {{100, 64}, 10},          /* shared by carriers */
    {{127}, 8},               /* loopback */
    {{168, 63, 129, 16}, 32}, /* metadata services: Azure's, and a public address */
    {{169, 254}, 16},         /* link-local; metadata services */
    {{172, 16}, 12},          /* private */
    {{192, 0, 0}, 24},        /* protocol assignments */
    {{192, 0, 2}, 24},        /* documentation */
    {{192, 88, 99}, 24},      /* 6to4 relays */
    {{192, 168}, 16},         /* private */
    {{198, 18}, 15},          /* benchmarks */
    {{198, 51, 100}, 24},     /* documentation */
    {{203, 0, 113}, 24},      /* documentation */
    {{224}, 4},               /* multicast */
    {{240}, 4},               /* reserved, and broadcast */
};

static const struct range unicast6 = {{0x20}, 3};
static const struct range special6[] = {
    {{0x20, 0x01, 0x00}, 23},             /* protocol assignments; Teredo */
    {{0x20, 0x01, 0x0d, 0xb8}, 32},       /* documentation */
    {{0x20, 0x02}, 16},                   /* 6to4: an IPv4 address inside */
    {{0x26, 0x20, 0x4f, 0x80, 0x00}, 48}, /* AS112 */
    {{0x3f, 0xff, 0x00}, 20},             /* documentation */
};

static bool in_range(const unsigned char *address, const struct range *range)
{
    unsigned whole = range->bits / 8, rest = range->bits % 8;
    if (memcmp(address, range->prefix, whole) != 0)
        return false;
    unsigned char mask = (unsigned char)(0xff << (8 - rest));
    return rest == 0 || ((address[whole] ^ range->prefix[whole]) & mask) == 0;
}

static bool in_any(const unsigned char *address, const struct range *ranges, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (in_range(address, &ranges[i]))
            return true;
    return false;
}

static const unsigned char *bytes_of(const struct sockaddr *address, size_t *ret_len)
{
    const struct sockaddr_in *in = (const struct sockaddr_in *)(const void *)address;
    const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)(const void *)address;
    if (address->sa_family == AF_INET) {
        *ret_len = 4;
        return (const unsigned char *)&in->sin_addr;
    }
    if (address->sa_family == AF_INET6) {
        *ret_len = 16;
        return (const unsigned char *)&in6->sin6_addr;
    }
    return NULL;
}

bool address_is_public(const struct sockaddr *address)
{
    size_t len;
    const unsigned char *bytes = bytes_of(address, &len);
    if (bytes == NULL)
        return false;
    if (len == 4)
        return !in_any(bytes, special4, ARRAY_LEN(special4));
    return in_range(bytes, &unicast6) && !in_any(bytes, special6, ARRAY_LEN(special6));
}

bool address_is_ours(const struct sockaddr *address)
{
    size_t len, other_len;
    const unsigned char *bytes = bytes_of(address, &len), *other;
    struct ifaddrs *all;
    if (bytes == NULL || getifaddrs(&all) < 0)
        return true;
    bool found = false;
    for (struct ifaddrs *i = all; i != NULL && !found; i = i->ifa_next)
        if (i->ifa_addr != NULL && (other = bytes_of(i->ifa_addr, &other_len)) != NULL)
            found = other_len == len && memcmp(other, bytes, len) == 0;
    freeifaddrs(all);
    return found;
}
