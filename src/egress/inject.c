/* SPDX-License-Identifier: Apache-2.0 */

/* The headers of a sandbox, as cellad has sent them. */

#include "egress/inject.h"

#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

enum { PARTS = 4 }; /* strings per header */

static void wipe(char *text)
{
    if (text != NULL)
        explicit_bzero(text, strlen(text));
    free(text);
}

static void inject_free(struct inject *inject)
{
    for (size_t i = 0; i < inject->count; i++) {
        free(inject->headers[i].name);
        wipe(inject->headers[i].value);
        wipe(inject->headers[i].secret);
    }
    free(inject->headers);
    ca_free(inject->ca);
    free(inject);
}

struct inject *inject_ref(struct inject *inject)
{
    inject->refs++;
    return inject;
}

void inject_unref(struct inject *inject)
{
    if (inject != NULL && --inject->refs == 0)
        inject_free(inject);
}

/* A field's value that ends where it says, whoever wrote it. */
static bool is_field_value(const char *text)
{
    for (; *text != '\0'; text++)
        if ((unsigned char)*text < 0x20 || (unsigned char)*text >= 0x7f)
            return false;
    return true;
}

static bool is_field_name(const char *text)
{
    static const char token[] = "!#$%&'*+-.^_`|~0123456789"
                                "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    return text[0] != '\0' && text[strspn(text, token)] == '\0';
}

static int take_header(struct inject_header *header, const char *const parts[PARTS],
                       struct error *err)
{
    if (net_rule_parse(slice_of(parts[0]), &header->host, err) < 0)
        return -1;
    if (!net_rule_names(&header->host) || !is_field_name(parts[1]) || !is_field_value(parts[2]))
        return error_set(err, ERROR_INVALID_ARGUMENT, "a header for \"%.253s\" is none", parts[0]);
    header->name = strdup(parts[1]);
    header->value = strdup(parts[2]);
    header->secret = strdup(parts[3]);
    if (header->name == NULL || header->value == NULL || header->secret == NULL)
        return error_sys(err, "keeping a header");
    return 0;
}

static int take_headers(struct inject *inject, struct slice list, struct error *err)
{
    const char *parts[PARTS];
    size_t strings = 0, have = 0;
    strv_each (text, list)
        strings++;
    if (strings % PARTS != 0)
        return error_set(err, ERROR_INVALID_ARGUMENT, "the list of headers is not whole");
    inject->headers = calloc(strings / PARTS + 1, sizeof(*inject->headers));
    if (inject->headers == NULL)
        return error_sys(err, "keeping headers");
    strv_each (text, list) {
        parts[have++] = text;
        if (have < PARTS)
            continue;
        have = 0;
        if (take_header(&inject->headers[inject->count++], parts, err) < 0)
            return -1;
    }
    return 0;
}

bool inject_same(const struct inject *a, const struct inject *b)
{
    if (a == NULL || b == NULL)
        return a == b;
    return memcmp(a->digest, b->digest, sizeof(a->digest)) == 0;
}

/* Cellad sends the same again whenever it is not sure: nothing open has to suffer for it. */
static void take_digest(struct inject *inject, const struct egress_secrets *message)
{
    EVP_MD_CTX *ctx = EVP_MD_CTX_new();
    struct slice certificate = slice_of(message->ca_certificate);
    uint64_t sizes[] = {message->headers.len, certificate.len, message->ca_key.len};
    if (ctx == NULL || EVP_DigestInit_ex(ctx, EVP_sha256(), NULL) != 1 ||
        EVP_DigestUpdate(ctx, sizes, sizeof(sizes)) != 1 ||
        EVP_DigestUpdate(ctx, message->headers.data, message->headers.len) != 1 ||
        EVP_DigestUpdate(ctx, certificate.data, certificate.len) != 1 ||
        EVP_DigestUpdate(ctx, message->ca_key.data, message->ca_key.len) != 1 ||
        EVP_DigestFinal_ex(ctx, inject->digest, NULL) != 1)
        abort();
    EVP_MD_CTX_free(ctx);
}

int inject_new(const struct egress_secrets *message, struct inject **ret_inject, struct error *err)
{
    struct inject *inject = calloc(1, sizeof(*inject));
    if (inject == NULL)
        return error_sys(err, "keeping headers");
    inject->refs = 1;
    take_digest(inject, message);
    if (take_headers(inject, message->headers, err) < 0 ||
        (message->ca_certificate != NULL &&
         ca_new(message->ca_certificate, message->ca_key, &inject->ca, err) < 0)) {
        inject_unref(inject);
        return -1;
    }
    *ret_inject = inject;
    return 0;
}

const struct inject_header *inject_next(const struct inject *inject, const char *host,
                                        const struct inject_header *after)
{
    if (inject == NULL)
        return NULL;
    for (size_t i = after == NULL ? 0 : (size_t)(after - inject->headers) + 1; i < inject->count;
         i++)
        if (net_rule_has_name(&inject->headers[i].host, host))
            return &inject->headers[i];
    return NULL;
}

bool inject_ends_tls(const struct inject *inject, const char *host)
{
    return inject != NULL && inject->ca != NULL && inject_next(inject, host, NULL) != NULL;
}
