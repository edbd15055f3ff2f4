/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What is known, and who waits for whom. The exchange with a server is in resolver_ask.c.
 */

#include "egress/resolver.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/limits.h"
#include "egress/resolver_ask.h"
#include "loop/co.h"
#include "network/host.h"

enum {
    DNS_PORT = 53,
    KEEP_MIN_S = 1,
    KEEP_MAX_S = 300,
    KEEP_NOTHING_MAX_S = 30, /* that there is no such name */
    WAIT_MS = 15 * 1000,     /* for somebody else's question */
};

struct resolver_key {
    uint16_t type;
    char name[DNS_NAME_SIZE]; /* zeros behind it */
};

struct resolver_known {
    struct resolver_key key;
    bool asking; /* not known yet: somebody asks */
    unsigned waiting;
    struct co_cond answered;
    int64_t until_ms;
    struct dns_answer answer;
    UT_hash_handle hh; /* in the order of adding */
};

/* --- servers --- */

int resolver_add_server(struct resolver *resolver, const char *text, struct error *err)
{
    struct net_host host;
    uint16_t port;
    if (resolver->server_count == RESOLVER_SERVERS_MAX)
        return error_set(err, ERROR_LIMIT_EXCEEDED, "there are at most %d name servers",
                         RESOLVER_SERVERS_MAX);
    /* An IPv6 address in a file stands without brackets. */
    struct net_address plain;
    if (net_address_parse(slice_of(text), &plain, NULL) == 0) {
        host = (struct net_host){.kind = NET_HOST_ADDRESS, .address = plain};
        port = DNS_PORT;
    } else if (net_authority_parse(slice_of(text), DNS_PORT, &host, &port, err) != 0)
        return -1;
    if (host.kind != NET_HOST_ADDRESS)
        return error_set(err, ERROR_INVALID_ARGUMENT,
                         "\"%.60s\" is no address of a name server: write ADDRESS or ADDRESS:PORT",
                         text);
    resolver->servers[resolver->server_count++] =
        (struct resolver_server){.address = host.address, .port = port};
    return 0;
}

int resolver_read_servers(struct resolver *resolver, const char *path, struct error *err)
{
    char line[512], address[64];
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return error_sys(err, "reading %s", path);
    while (fgets(line, sizeof(line), file) != NULL)
        if (sscanf(line, " nameserver %63s", address) == 1)
            resolver_add_server(resolver, address, NULL);
    fclose(file);
    return 0;
}

void resolver_describe(const struct resolver *resolver, char *out, size_t size)
{
    size_t at = 0;
    out[0] = '\0';
    for (size_t i = 0; i < resolver->server_count && at < size; i++) {
        char address[NET_ADDRESS_TEXT];
        net_address_text(&resolver->servers[i].address, address);
        int n = snprintf(out + at, size - at, "%s%s", i == 0 ? "" : ", ", address);
        at += n > 0 ? (size_t)n : 0;
    }
}

/* --- what is known --- */

static void forget(struct resolver *resolver, struct resolver_known *known)
{
    HASH_DELETE(hh, resolver->known, known);
    free(known);
}

void resolver_release(struct resolver *resolver)
{
    struct resolver_known *known, *next;
    HASH_ITER(hh, resolver->known, known, next)
    forget(resolver, known);
}

static struct resolver_key key_of(const char *name, uint16_t type)
{
    struct resolver_key key;
    memset(&key, 0, sizeof(key));
    key.type = type;
    memcpy(key.name, name, strnlen(name, sizeof(key.name) - 1));
    return key;
}

static struct resolver_known *find(const struct resolver *resolver, const char *name, uint16_t type)
{
    const struct resolver_key key = key_of(name, type);
    struct resolver_known *known;
    HASH_FIND(hh, resolver->known, &key, sizeof(key), known);
    return known;
}

/* The oldest goes; those that somebody works on stay. */
static void make_room(struct resolver *resolver)
{
    struct resolver_known *known, *next;
    HASH_ITER(hh, resolver->known, known, next)
    {
        if (HASH_COUNT(resolver->known) < EGRESS_NAMES_MAX)
            return;
        if (!known->asking && known->waiting == 0)
            forget(resolver, known);
    }
}

static struct resolver_known *add(struct resolver *resolver, const char *name, uint16_t type)
{
    make_room(resolver);
    struct resolver_known *known = calloc(1, sizeof(*known));
    if (known == NULL)
        abort();
    known->key = key_of(name, type);
    HASH_ADD(hh, resolver->known, key, sizeof(known->key), known);
    return known;
}

static bool is_fresh(const struct resolver *resolver, const struct resolver_known *known)
{
    return known != NULL && !known->asking && loop_now(resolver->loop) < known->until_ms;
}

bool resolver_knows(const struct resolver *resolver, const char *name, uint16_t type)
{
    return is_fresh(resolver, find(resolver, name, type));
}

/* As it is now: some of its time has gone by. */
static void tell(const struct resolver *resolver, const struct resolver_known *known,
                 struct dns_answer *ret_answer)
{
    *ret_answer = known->answer;
    ret_answer->ttl = (uint32_t)((known->until_ms - loop_now(resolver->loop) + 999) / 1000);
}

static uint32_t keep_for(const struct dns_answer *answer)
{
    uint32_t most = answer->count > 0 ? KEEP_MAX_S : KEEP_NOTHING_MAX_S;
    uint32_t ttl = answer->ttl < KEEP_MIN_S ? KEEP_MIN_S : answer->ttl;
    return ttl < most ? ttl : most;
}

/* Waits until somebody else has the answer. 0: look again. */
static int wait_for(struct resolver *resolver, struct resolver_known *known, struct error *err)
{
    known->waiting++;
    int rc = co_cond_wait(resolver->loop, &known->answered, WAIT_MS, err);
    known->waiting--;
    if (!known->asking && known->waiting == 0 && known->until_ms == 0)
        forget(resolver, known);
    return rc;
}

/* Whoever waited for a question that came to nothing is told so, and does not ask it again. */
static int ask_and_keep(struct resolver *resolver, struct resolver_known *known,
                        struct dns_answer *ret_answer, struct error *err)
{
    struct error why = {0};
    struct dns_answer answer;
    known->asking = true;
    int rc = resolver_ask_addresses(resolver, known->key.name, known->key.type, &answer, &why);
    known->asking = false;
    known->until_ms = 0;
    if (rc == 0) {
        bool known_for_long = answer.rcode == DNS_NOERROR || answer.rcode == DNS_NXDOMAIN;
        known->answer = answer;
        known->until_ms = loop_now(resolver->loop) +
                          (int64_t)(known_for_long ? keep_for(&answer) : KEEP_MIN_S) * 1000;
        tell(resolver, known, ret_answer);
    } else if (why.code != ERROR_CANCELLED) {
        known->answer = (struct dns_answer){.rcode = DNS_SERVFAIL};
        known->until_ms = loop_now(resolver->loop) + KEEP_MIN_S * 1000;
    }
    co_cond_wake_all(&known->answered);
    if (known->until_ms == 0 && known->waiting == 0)
        forget(resolver, known);
    return rc == 0 ? 0 : error_set(err, why.code, "%s", why.message);
}

int resolver_addresses(struct resolver *resolver, const char *name, uint16_t type,
                       struct dns_answer *ret_answer, struct error *err)
{
    for (;;) {
        struct resolver_known *known = find(resolver, name, type);
        if (is_fresh(resolver, known)) {
            tell(resolver, known, ret_answer);
            return 0;
        }
        if (known == NULL)
            known = add(resolver, name, type);
        if (!known->asking)
            return ask_and_keep(resolver, known, ret_answer, err);
        if (wait_for(resolver, known, err) != 0)
            return -1;
    }
}

int resolver_records(struct resolver *resolver, const struct dns_query *query, struct buf *out,
                     struct error *err)
{
    return resolver_ask_records(resolver, query, out, err);
}
