/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Which texts are addresses follows the rules by which browsers read URLs (a host whose last label
 * is a number is an IPv4 address, or wrong), since those accept every spelling that the C library's
 * inet_aton() does.
 */

#include "network/host.h"

#include <string.h>

enum { LABEL_MAX = 63, SHOWN_MAX = 80 };

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Bytes that a message can show: what a stranger sent may be a terminal's control sequence. */
static const char *shown(struct slice text, char out[SHOWN_MAX + 1])
{
    size_t len = text.len < SHOWN_MAX ? text.len : SHOWN_MAX;
    for (size_t i = 0; i < len; i++)
        out[i] =
            text.data[i] > ' ' && text.data[i] < 0x7f && text.data[i] != '"' ? text.data[i] : '?';
    out[len] = '\0';
    return out;
}

static int refuse(struct slice text, const char *why, struct error *err)
{
    char name[SHOWN_MAX + 1];
    return error_set(err, ERROR_INVALID_ARGUMENT, "\"%s\" is no host: %s", shown(text, name), why);
}

/* ---- IPv4, however it is spelt ---- */

/* One part: decimal, octal with a leading 0, hexadecimal with 0x. -1: it is no number; -2: it is
 * one that fits nowhere. */
static int64_t part_value(struct slice part)
{
    unsigned base = 10;
    uint64_t value = 0;
    if (part.len == 0)
        return -1;
    if (part.len >= 2 && part.data[0] == '0' && (part.data[1] | 0x20) == 'x') {
        base = 16;
        part = (struct slice){part.data + 2, part.len - 2};
    } else if (part.len >= 2 && part.data[0] == '0') {
        base = 8;
    }
    bool fits = true;
    for (size_t i = 0; i < part.len; i++) {
        char c = part.data[i];
        char lower = (char)(c | 0x20);
        unsigned digit = is_digit(c)                    ? (unsigned)(c - '0')
                         : lower >= 'a' && lower <= 'f' ? (unsigned)(lower - 'a') + 10
                                                        : 99;
        if (digit > 15 || (base != 16 && digit > 9))
            return -1;
        fits = fits && digit < base;
        value = value * base + digit;
        if (value > UINT32_MAX) {
            fits = false;
            value = 0;
        }
    }
    return fits ? (int64_t)value : -2;
}

static struct slice last_label(struct slice text)
{
    size_t from = text.len;
    while (from > 0 && text.data[from - 1] != '.')
        from--;
    return (struct slice){text.data + from, text.len - from};
}

static bool ends_in_number(struct slice text)
{
    struct slice last = last_label(text);
    return last.len > 0 && part_value(last) != -1;
}

static int parse_ipv4(struct slice text, struct net_address *ret_address, struct error *err)
{
    static const char why[] = "it ends in a number and is no IPv4 address";
    uint64_t parts[4], address = 0;
    size_t count = 0, from = 0;
    for (size_t i = 0; i <= text.len; i++) {
        if (i < text.len && text.data[i] != '.')
            continue;
        int64_t value = part_value((struct slice){text.data + from, i - from});
        if (count == 4 || value < 0)
            return refuse(text, why, err);
        parts[count++] = (uint64_t)value;
        from = i + 1;
    }
    for (size_t i = 0; i + 1 < count; i++) {
        if (parts[i] > 255)
            return refuse(text, why, err);
        address |= parts[i] << (24 - 8 * i);
    }
    if (parts[count - 1] >> (8 * (5 - count)) != 0)
        return refuse(text, why, err);
    address |= parts[count - 1];
    const unsigned char bytes[4] = {(unsigned char)(address >> 24), (unsigned char)(address >> 16),
                                    (unsigned char)(address >> 8), (unsigned char)address};
    *ret_address = net_address_of(NET_IPV4, bytes);
    return 0;
}

/* ---- names ---- */

static const char *bad_byte(unsigned char c)
{
    if (c >= 0x80)
        return "names beyond ASCII are written as DNS has them (xn--…)";
    if (c == '\0')
        return "it holds a NUL";
    if (c <= ' ' || c == 0x7f)
        return "it holds a space or control character";
    return "names have letters, digits, hyphens, underscores and dots";
}

static bool is_name_byte(char c)
{
    return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' || c == '_';
}

static const char *check_label(struct slice label)
{
    if (label.len == 0)
        return "a part between two dots is empty";
    if (label.len > LABEL_MAX)
        return "a part between two dots is longer than 63 characters";
    if (label.data[0] == '-' || label.data[label.len - 1] == '-')
        return "a part between two dots begins or ends with a hyphen";
    return NULL;
}

static int parse_name(struct slice text, char out[NET_NAME_MAX + 1], struct error *err)
{
    size_t from = 0;
    if (text.len > NET_NAME_MAX)
        return refuse(text, "names have at most 253 characters", err);
    for (size_t i = 0; i <= text.len; i++) {
        char c = i < text.len ? text.data[i] : '.';
        if (c != '.' && !is_name_byte(c))
            return refuse(text, bad_byte((unsigned char)c), err);
        out[i] = c >= 'A' && c <= 'Z' ? (char)(c | 0x20) : c;
        if (c != '.')
            continue;
        const char *why = check_label((struct slice){text.data + from, i - from});
        if (why != NULL)
            return refuse(text, why, err);
        from = i + 1;
    }
    out[text.len] = '\0';
    return 0;
}

static int parse_ipv6(struct slice text, struct net_address *ret_address, struct error *err)
{
    struct error ignored;
    struct slice inner = text;
    if (text.data[0] == '[') {
        if (text.len < 4 || text.data[text.len - 1] != ']')
            return refuse(text, "a bracket is not closed", err);
        inner = (struct slice){text.data + 1, text.len - 2};
    }
    if (memchr(inner.data, ':', inner.len) == NULL ||
        net_address_parse(inner, ret_address, &ignored) < 0)
        return refuse(text, "that is no IPv6 address", err);
    return 0;
}

int net_host_parse(struct slice text, struct net_host *ret_host, struct error *err)
{
    struct net_host host = {.kind = NET_HOST_ADDRESS};
    if (text.len == 0)
        return refuse(text, "it is empty", err);
    if (text.data[0] == '[' || memchr(text.data, ':', text.len) != NULL) {
        if (parse_ipv6(text, &host.address, err) < 0)
            return -1;
        *ret_host = host;
        return 0;
    }
    if (text.len > 1 && text.data[text.len - 1] == '.')
        text.len--;
    if (ends_in_number(text)) {
        if (parse_ipv4(text, &host.address, err) < 0)
            return -1;
    } else {
        host.kind = NET_HOST_NAME;
        if (parse_name(text, host.name, err) < 0)
            return -1;
    }
    *ret_host = host;
    return 0;
}

int net_port_parse(struct slice text, uint16_t *ret_port, struct error *err)
{
    unsigned long port = 0;
    bool good = text.len >= 1 && text.len <= 5 && text.data[0] != '0';
    for (size_t i = 0; good && i < text.len; i++) {
        good = is_digit(text.data[i]);
        port = port * 10 + (unsigned long)(text.data[i] - '0');
    }
    if (!good || port > 65535) {
        char name[SHOWN_MAX + 1];
        return error_set(err, ERROR_INVALID_ARGUMENT, "\"%s\" is no port: they go from 1 to 65535",
                         shown(text, name));
    }
    *ret_port = (uint16_t)port;
    return 0;
}

int net_authority_parse(struct slice text, uint16_t otherwise, struct net_host *ret_host,
                        uint16_t *ret_port, struct error *err)
{
    struct net_host host;
    uint16_t port = otherwise;
    size_t head = text.len;
    while (head > 0 && text.data[head - 1] != ':' && text.data[head - 1] != ']')
        head--;
    bool has_port = head > 0 && text.data[head - 1] == ':';
    if (has_port &&
        net_port_parse((struct slice){text.data + head, text.len - head}, &port, err) < 0)
        return -1;
    struct slice name = {text.data, has_port ? head - 1 : text.len};
    if (name.len > 0 && name.data[0] != '[' && memchr(name.data, ':', name.len) != NULL)
        return refuse(text, "an IPv6 address stands in brackets", err);
    if (net_host_parse(name, &host, err) < 0)
        return -1;
    *ret_host = host;
    *ret_port = port;
    return 0;
}
