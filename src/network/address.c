/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The table of ranges is the wall around every sandbox; both the kernel's rules and the egress
 * process get it from here.
 */

#include "network/address.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#define V4(a, b, c, d, bits_, name_, open)                                                         \
    {                                                                                              \
        .prefix = {.address = {NET_IPV4, {a, b, c, d}}, .bits = (bits_)}, .name = (name_),         \
        .may_be_opened = (open)                                                                    \
    }
#define V6(a, b, c, d, bits_, name_, open)                                                         \
    {                                                                                              \
        .prefix = {.address = {NET_IPV6,                                                           \
                               {(a) >> 8, (a)&0xff, (b) >> 8, (b)&0xff, (c) >> 8, (c)&0xff,        \
                                (d) >> 8, (d)&0xff}},                                              \
                   .bits = (bits_)},                                                               \
        .name = (name_), .may_be_opened = (open)                                                   \
    }

const struct net_range net_ranges[] = {
    V4(0, 0, 0, 0, 8, "this network", false),
    V4(10, 0, 0, 0, 8, "private", true),
    V4(100, 64, 0, 0, 10, "shared by carriers", true),
    V4(127, 0, 0, 0, 8, "loopback", false),
    V4(169, 254, 0, 0, 16, "link-local, metadata services", false),
    V4(168, 63, 129, 16, 32, "metadata services", false), /* Azure's, and a public address */
    V4(172, 16, 0, 0, 12, "private", true),
    V4(192, 0, 0, 0, 24, "protocol assignments", false),
    V4(192, 0, 2, 0, 24, "documentation", false),
    V4(192, 88, 99, 0, 24, "6to4 relays", false),
    V4(192, 168, 0, 0, 16, "private", true),
    V4(198, 18, 0, 0, 15, "benchmarks", true),
    V4(198, 51, 100, 0, 24, "documentation", false),
    V4(203, 0, 113, 0, 24, "documentation", false),
    V4(224, 0, 0, 0, 3, "multicast, reserved", false),
    /* What was never given out, in three pieces around 2000::/3. */
    V6(0x0000, 0, 0, 0, 3, "reserved, IPv4 inside IPv6, loopback", false),
    V6(0x4000, 0, 0, 0, 2, "reserved", false),
    V6(0x8000, 0, 0, 0, 2, "reserved", false),
    V6(0xc000, 0, 0, 0, 3, "reserved", false),
    V6(0xe000, 0, 0, 0, 4, "reserved", false),
    V6(0xf000, 0, 0, 0, 5, "reserved", false),
    V6(0xf800, 0, 0, 0, 6, "reserved", false),
    V6(0xfd00, 0x00c1, 0, 0, 32, "metadata services", false),
    V6(0xfd00, 0x0ec2, 0, 0, 32, "metadata services", false),
    V6(0xfd20, 0x00ce, 0, 0, 32, "metadata services", false),
    V6(0xfc00, 0, 0, 0, 7, "private", true),
    V6(0xfe00, 0, 0, 0, 7, "link-local, multicast", false),
    /* In 2000::/3: tunnels, which carry an IPv4 address inside, and what is nobody's. */
    V6(0x2001, 0, 0, 0, 23, "protocol assignments, Teredo", false),
    V6(0x2001, 0x0db8, 0, 0, 32, "documentation", false),
    V6(0x2002, 0, 0, 0, 16, "6to4", false),
    V6(0x3fff, 0, 0, 0, 20, "documentation", false),
};
const size_t net_range_count = sizeof(net_ranges) / sizeof(net_ranges[0]);

static unsigned family_bits(enum net_family family)
{
    return family == NET_IPV4 ? 32 : 128;
}

static bool is_mapped(const unsigned char *bytes)
{
    static const unsigned char mapped[12] = {[10] = 0xff, [11] = 0xff};
    return memcmp(bytes, mapped, sizeof(mapped)) == 0;
}

struct net_address net_address_of(enum net_family family, const void *bytes)
{
    struct net_address address = {.family = family};
    const unsigned char *from = bytes;
    if (family == NET_IPV6 && is_mapped(from)) {
        address.family = NET_IPV4;
        from += 12;
    }
    memcpy(address.bytes, from, family_bits(address.family) / 8);
    return address;
}

bool net_address_of_socket(const struct sockaddr *from, struct net_address *ret_address)
{
    if (from->sa_family == AF_INET) {
        const struct sockaddr_in *in = (const struct sockaddr_in *)(const void *)from;
        *ret_address = net_address_of(NET_IPV4, &in->sin_addr);
    } else if (from->sa_family == AF_INET6) {
        const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)(const void *)from;
        *ret_address = net_address_of(NET_IPV6, &in6->sin6_addr);
    } else {
        return false;
    }
    return true;
}

bool net_address_eq(const struct net_address *a, const struct net_address *b)
{
    return a->family == b->family && memcmp(a->bytes, b->bytes, sizeof(a->bytes)) == 0;
}

int net_address_parse(struct slice text, struct net_address *ret_address, struct error *err)
{
    char copy[NET_ADDRESS_TEXT];
    unsigned char bytes[16];
    if (text.len < sizeof(copy) && memchr(text.data, '\0', text.len) == NULL) {
        memcpy(copy, text.data, text.len);
        copy[text.len] = '\0';
        if (inet_pton(AF_INET, copy, bytes) == 1) {
            *ret_address = net_address_of(NET_IPV4, bytes);
            return 0;
        }
        if (inet_pton(AF_INET6, copy, bytes) == 1) {
            *ret_address = net_address_of(NET_IPV6, bytes);
            return 0;
        }
    }
    return error_set(err, ERROR_INVALID_ARGUMENT,
                     "\"%.*s\" is not an address: write for example 203.0.113.7 or 2001:db8::7",
                     (int)(text.len < 64 ? text.len : 64), text.data);
}

void net_address_text(const struct net_address *address, char out[NET_ADDRESS_TEXT])
{
    inet_ntop(address->family == NET_IPV4 ? AF_INET : AF_INET6, address->bytes, out,
              NET_ADDRESS_TEXT);
}

/* ---- prefixes ---- */

static bool same_bits(const unsigned char *a, const unsigned char *b, unsigned bits)
{
    unsigned whole = bits / 8, rest = bits % 8;
    if (memcmp(a, b, whole) != 0)
        return false;
    return rest == 0 || ((a[whole] ^ b[whole]) & (0xff << (8 - rest)) & 0xff) == 0;
}

bool net_prefix_has(const struct net_prefix *prefix, const struct net_address *address)
{
    return prefix->address.family == address->family &&
           same_bits(prefix->address.bytes, address->bytes, prefix->bits);
}

bool net_prefix_within(const struct net_prefix *inner, const struct net_prefix *outer)
{
    return inner->bits >= outer->bits && net_prefix_has(outer, &inner->address);
}

bool net_prefix_overlap(const struct net_prefix *a, const struct net_prefix *b)
{
    return net_prefix_within(a, b) || net_prefix_within(b, a);
}

void net_prefix_text(const struct net_prefix *prefix, char out[NET_PREFIX_TEXT])
{
    net_address_text(&prefix->address, out);
    if (prefix->bits == family_bits(prefix->address.family))
        return;
    size_t len = strlen(out);
    snprintf(out + len, NET_PREFIX_TEXT - len, "/%u", prefix->bits);
}

static int check_rest(const struct net_prefix *prefix, struct error *err)
{
    struct net_prefix meant = *prefix;
    char text[NET_PREFIX_TEXT];
    for (unsigned bit = prefix->bits; bit < family_bits(prefix->address.family); bit++)
        meant.address.bytes[bit / 8] &= (unsigned char)~(0x80 >> bit % 8);
    if (net_address_eq(&meant.address, &prefix->address))
        return 0;
    net_prefix_text(&meant, text);
    return error_set(err, ERROR_INVALID_ARGUMENT,
                     "bits behind the first %u are set: did you mean %s?", prefix->bits, text);
}

/* One to three digits, without a leading zero. */
static int parse_bits(struct slice text, unsigned max, unsigned *ret_bits, struct error *err)
{
    unsigned bits = 0;
    bool good = text.len >= 1 && text.len <= 3 && (text.len == 1 || text.data[0] != '0');
    for (size_t i = 0; good && i < text.len; i++) {
        good = text.data[i] >= '0' && text.data[i] <= '9';
        bits = bits * 10 + (unsigned)(text.data[i] - '0');
    }
    if (!good || bits > max)
        return error_set(err, ERROR_INVALID_ARGUMENT,
                         "\"/%.*s\" is not the length of a prefix: it goes from /0 to /%u",
                         (int)(text.len < 16 ? text.len : 16), text.data, max);
    *ret_bits = bits;
    return 0;
}

static struct slice without_brackets(struct slice text)
{
    if (text.len > 2 && text.data[0] == '[' && text.data[text.len - 1] == ']' &&
        memchr(text.data, ':', text.len) != NULL)
        return (struct slice){text.data + 1, text.len - 2};
    return text;
}

int net_prefix_parse(struct slice text, struct net_prefix *ret_prefix, struct error *err)
{
    struct net_prefix prefix;
    const char *slash = text.len == 0 ? NULL : memchr(text.data, '/', text.len);
    size_t head = slash == NULL ? text.len : (size_t)(slash - text.data);
    struct slice address = without_brackets((struct slice){text.data, head});
    if (net_address_parse(address, &prefix.address, err) < 0)
        return -1;
    unsigned max = family_bits(prefix.address.family);
    prefix.bits = max;
    if (slash != NULL && prefix.address.family == NET_IPV4 &&
        memchr(address.data, ':', address.len) != NULL)
        return error_set(err, ERROR_INVALID_ARGUMENT,
                         "an IPv4 address is written as one: 192.0.2.0/24");
    if (slash != NULL &&
        parse_bits((struct slice){slash + 1, text.len - head - 1}, max, &prefix.bits, err) < 0)
        return -1;
    if (check_rest(&prefix, err) < 0)
        return -1;
    *ret_prefix = prefix;
    return 0;
}

/* ---- what is cut off ---- */

const struct net_range *net_address_range(const struct net_address *address)
{
    for (size_t i = 0; i < net_range_count; i++)
        if (net_prefix_has(&net_ranges[i].prefix, address))
            return &net_ranges[i];
    return NULL;
}

/* The first one: what cannot be opened comes before the range that it is a part of. */
static const struct net_range *range_around(const struct net_prefix *prefix)
{
    for (size_t i = 0; i < net_range_count; i++)
        if (net_prefix_within(prefix, &net_ranges[i].prefix))
            return &net_ranges[i];
    return NULL;
}

int net_exceptions_add(struct net_exceptions *exceptions, struct slice text, struct error *err)
{
    struct net_prefix prefix;
    if (net_prefix_parse(text, &prefix, err) < 0)
        return -1;
    if (exceptions->count == NET_EXCEPTIONS_MAX)
        return error_set(err, ERROR_LIMIT_EXCEEDED, "at most %d private ranges can be opened",
                         NET_EXCEPTIONS_MAX);
    const struct net_range *range = range_around(&prefix);
    if (range != NULL && range->may_be_opened) {
        exceptions->items[exceptions->count++] = prefix;
        return 0;
    }
    return error_set(err, ERROR_INVALID_ARGUMENT,
                     "\"%.*s\" is no part of a private range that can be opened to sandboxes "
                     "(10.0.0.0/8, 172.16.0.0/12, 192.168.0.0/16, 100.64.0.0/10, 198.18.0.0/15, "
                     "fc00::/7)",
                     (int)(text.len < 64 ? text.len : 64), text.data);
}

bool net_exceptions_have(const struct net_exceptions *exceptions, const struct net_address *address)
{
    for (size_t i = 0; exceptions != NULL && i < exceptions->count; i++)
        if (net_prefix_has(&exceptions->items[i], address))
            return true;
    return false;
}

bool net_address_forbidden(const struct net_address *address,
                           const struct net_exceptions *exceptions)
{
    const struct net_range *range = net_address_range(address);
    return range != NULL && !(range->may_be_opened && net_exceptions_have(exceptions, address));
}
