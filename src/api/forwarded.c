/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Reading what proxies say. Whoever is behind one chooses most of these bytes, so nothing in them
 * is an error of the request: what cannot be read makes its sender somebody unknown, and never
 * somebody who may do more.
 */

#include "api/forwarded.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/slice.h"

int proxies_add(struct proxies *proxies, const char *text, struct error *err)
{
    struct proxies all = *proxies;
    while (*text != '\0') {
        size_t len = strcspn(text, ",");
        if (all.count == TRUSTED_PROXIES_MAX)
            return error_set(err, ERROR_LIMIT_EXCEEDED, "there are more than %d",
                             TRUSTED_PROXIES_MAX);
        if (net_prefix_parse(slice_trim((struct slice){text, len}), &all.items[all.count++], err) <
            0)
            return -1;
        text += len + (text[len] == ',');
    }
    *proxies = all;
    return 0;
}

/* --- one address --- */

struct hop {
    struct net_address address;
    unsigned port; /* 0: it was not told */
};

static bool read_port(struct slice text, unsigned *ret_port)
{
    unsigned port = 0;
    if (text.len == 0 || text.len > 5)
        return false;
    for (size_t i = 0; i < text.len; i++) {
        if (text.data[i] < '0' || text.data[i] > '9')
            return false;
        port = port * 10 + (unsigned)(text.data[i] - '0');
    }
    *ret_port = port;
    return port <= 65535;
}

/* "192.0.2.1", "192.0.2.1:4711", "2001:db8::1", "[2001:db8::1]", "[2001:db8::1]:4711" */
static bool read_hop(struct slice text, struct hop *ret_hop)
{
    struct hop hop = {.port = 0};
    struct slice host = text, port = {NULL, 0};
    const char *end;
    if (text.len > 0 && text.data[0] == '[') {
        end = memchr(text.data, ']', text.len);
        if (end == NULL)
            return false;
        host = (struct slice){text.data + 1, (size_t)(end - text.data) - 1};
        port = (struct slice){end + 1, text.len - host.len - 2};
        if (memchr(host.data, ':', host.len) == NULL)
            return false;
    } else if (text.len > 0 && (end = memchr(text.data, ':', text.len)) != NULL &&
               memchr(end + 1, ':', text.len - (size_t)(end + 1 - text.data)) == NULL) {
        host.len = (size_t)(end - text.data);
        port = (struct slice){end, text.len - host.len};
    }
    if (port.len > 0 &&
        (port.data[0] != ':' || !read_port((struct slice){port.data + 1, port.len - 1}, &hop.port)))
        return false;
    if (net_address_parse(host, &hop.address, NULL) < 0)
        return false;
    *ret_hop = hop;
    return true;
}

static bool is_trusted(const struct proxies *proxies, const struct net_address *address)
{
    for (size_t i = 0; i < proxies->count; i++)
        if (net_prefix_has(&proxies->items[i], address))
            return true;
    return false;
}

static bool is_this_machine(const struct net_address *address)
{
    static const struct net_prefix own[] = {{{NET_IPV4, {127}}, 8},
                                            {{NET_IPV6, {[15] = 1}}, 128},
                                            {{NET_IPV4, {0}}, 8},
                                            {{NET_IPV6, {0}}, 128}};
    for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
        if (net_prefix_has(&own[i], address))
            return true;
    return false;
}

/* --- lists of them --- */

enum form { FORM_PLAIN, FORM_PAIRS }; /* X-Forwarded-For, Forwarded */

static const char *const field_names[] = {
    [FORM_PLAIN] = "X-Forwarded-For",
    [FORM_PAIRS] = "Forwarded",
};

/* Cuts the last item off at `by`; what stands in quotes is one piece. Quotes are counted from the
 * right as well, so that one that somebody left open does not swallow what was added behind it.
 * false: there is no item left. */
static bool cut_last(struct slice *rest, char by, struct slice *ret_item)
{
    bool quoted = false;
    size_t start = rest->len;
    if (rest->data == NULL)
        return false;
    while (start > 0 && (quoted || rest->data[start - 1] != by))
        quoted ^= rest->data[--start] == '"';
    *ret_item = slice_trim((struct slice){rest->data + start, rest->len - start});
    *rest = start == 0 ? (struct slice){NULL, 0} : (struct slice){rest->data, start - 1};
    return true;
}

/* The value of for= in "for=192.0.2.1;proto=https", without its quotes. Of two of them none. */
static bool read_pairs(struct slice item, struct slice *ret_for)
{
    struct slice pair, found = {NULL, 0};
    while (cut_last(&item, ';', &pair)) {
        if (pair.len < 4 || strncasecmp(pair.data, "for=", 4) != 0)
            continue;
        if (found.data != NULL)
            return false;
        found = (struct slice){pair.data + 4, pair.len - 4};
    }
    if (found.len >= 2 && found.data[0] == '"' && found.data[found.len - 1] == '"')
        found = (struct slice){found.data + 1, found.len - 2};
    *ret_for = found;
    return found.data != NULL;
}

enum said { SAID_NOTHING, SAID_UNKNOWN, SAID_HOP };

/* Goes on to the left in one field; *hop is the last one that was read. true: it is who asks. */
static bool walk(const struct proxies *proxies, enum form form, const char *value, enum said *said,
                 struct hop *hop)
{
    struct slice rest = slice_of(value), item;
    while (cut_last(&rest, ',', &item)) {
        if (item.len == 0) /* as RFC 9110 has lists: it is not there */
            continue;
        *said = (form == FORM_PLAIN || read_pairs(item, &item)) && read_hop(item, hop)
                    ? SAID_HOP
                    : SAID_UNKNOWN;
        if (*said == SAID_UNKNOWN || !is_trusted(proxies, &hop->address))
            return true;
    }
    return false;
}

/* The fields of one name are one list, the last of them its end. */
static enum said read_fields(const struct proxies *proxies, enum form form,
                             const struct http_header *headers, size_t count, struct hop *ret_hop)
{
    enum said said = SAID_NOTHING;
    while (count-- > 0)
        if (strcasecmp(headers[count].name, field_names[form]) == 0 &&
            walk(proxies, form, headers[count].value, &said, ret_hop))
            break;
    return said;
}

const char *forwarded_peer(struct arena *arena, const struct proxies *proxies, const char *peer,
                           const struct http_header *headers, size_t count)
{
    struct hop from, plain = {.port = 0}, pairs = {.port = 0};
    char text[NET_ADDRESS_TEXT];
    if (!read_hop(slice_of(peer), &from) || !is_trusted(proxies, &from.address))
        return peer;
    enum said one = read_fields(proxies, FORM_PLAIN, headers, count, &plain);
    enum said two = read_fields(proxies, FORM_PAIRS, headers, count, &pairs);
    if (one == SAID_NOTHING && two == SAID_NOTHING)
        return peer;
    const struct hop *hop = one != SAID_NOTHING ? &plain : &pairs;
    if (one == SAID_UNKNOWN || two == SAID_UNKNOWN || is_this_machine(&hop->address) ||
        (one == two && !net_address_eq(&plain.address, &pairs.address)))
        return FORWARDED_UNKNOWN;
    net_address_text(&hop->address, text);
    return arena_printf(arena, hop->address.family == NET_IPV6 ? "[%s]:%u" : "%s:%u", text,
                        hop->port);
}

void forwarded_settle(struct http_exchange *x, const struct proxies *proxies)
{
    const struct http_request *request = http_request(x);
    if (proxies != NULL && proxies->count > 0)
        http_set_peer(x, forwarded_peer(http_arena(x), proxies, request->peer, request->headers,
                                        request->header_count));
}
