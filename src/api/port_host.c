/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Reading names strictly: one sandbox's port has one name, so that two of them are never one origin
 * to a browser and two to us.
 */

#include "api/port_host.h"

#include <string.h>
#include <strings.h>

#include "base/names.h"

enum { HOST_NAME_MAX_LEN = 253 };

/* Decimal digits without a zero in front, up to a '-'; NULL when that is not so. */
static const char *take_port(const char *at, uint16_t *ret_port)
{
    unsigned port = 0;
    if (*at == '0')
        return NULL;
    for (; *at >= '0' && *at <= '9' && port <= UINT16_MAX; at++)
        port = port * 10 + (unsigned)(*at - '0');
    if (port == 0 || port > UINT16_MAX || *at != '-')
        return NULL;
    *ret_port = (uint16_t)port;
    return at + 1;
}

static const char *take_id(const char *at, char out[SANDBOX_ID_LEN + 1])
{
    for (size_t i = 0; i < SANDBOX_ID_LEN; i++, at++) {
        char c = *at >= 'A' && *at <= 'Z' ? (char)(*at - 'A' + 'a') : *at;
        if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9')))
            return NULL;
        out[i] = c;
    }
    out[SANDBOX_ID_LEN] = '\0';
    return *at == '.' ? at + 1 : NULL;
}

bool port_host_parse(const char *host, const char *domain, struct port_host *ret_host)
{
    struct port_host found;
    size_t len = strlen(domain);
    const char *at = take_port(host, &found.port);
    if (at == NULL || (at = take_id(at, found.sandbox_id)) == NULL ||
        strncasecmp(at, domain, len) != 0)
        return false;
    at += len;
    if (*at == '.')
        at++;
    if (*at == ':')
        at += 1 + strspn(at + 1, "0123456789");
    if (*at != '\0')
        return false;
    *ret_host = found;
    return true;
}

int port_domain_check(const char *domain, struct error *err)
{
    /* "65535-" and an id and a dot stand before it. */
    if (strlen(domain) > HOST_NAME_MAX_LEN - SANDBOX_ID_LEN - 7)
        return error_set(err, ERROR_INVALID_ARGUMENT, "\"%.40s…\" is too long for a domain",
                         domain);
    for (const char *at = domain;; at++) {
        char label[NAME_MAX_LEN + 1];
        size_t len = strcspn(at, ".");
        if (len > NAME_MAX_LEN)
            len = NAME_MAX_LEN;
        memcpy(label, at, len);
        label[len] = '\0';
        if (name_check(label, NULL) < 0)
            return error_set(err, ERROR_INVALID_ARGUMENT,
                             "\"%.100s\" is not a domain: lower-case names with dots between them, "
                             "such as sandboxes.example",
                             domain);
        at += len;
        if (*at != '.')
            return *at == '\0' ? 0
                               : error_set(err, ERROR_INVALID_ARGUMENT,
                                           "\"%.100s\": a name in it is longer than %d", domain,
                                           NAME_MAX_LEN);
    }
}
