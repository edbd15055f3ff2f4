/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Certificates for hosts, signed when they are first asked for: one key pair for all of an
 * authority's hosts, since all of them are this process. Clients are used to certificates that are
 * replaced often, and none lives longer than a week here.
 */

#include "egress/ca.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <uthash.h>

#include "base/cleanup.h"
#include "network/host.h"

enum {
    HOSTS_KEPT_MAX = 64,
    KEEP_S = 24 * 3600,
    VALID_BEFORE_S = 24 * 3600, /* a clock inside that is slow */
    VALID_S = 7 * 24 * 3600,
    CN_MAX = 64,
};

struct leaf {
    char host[NET_NAME_MAX + 1];
    SSL_CTX *ctx;
    time_t made;
    UT_hash_handle hh;
};

struct ca {
    X509 *certificate;
    EVP_PKEY *key;
    EVP_PKEY *leaf_key;
    struct leaf *leaves; /* by host, oldest first */
};

static int failed(const char *what, struct error *err)
{
    const char *reason = ERR_reason_error_string(ERR_peek_last_error());
    error_set(err, ERROR_INVALID_ARGUMENT, "%s: %s", what, reason == NULL ? "OpenSSL" : reason);
    ERR_clear_error();
    return -1;
}

static void leaf_free(struct ca *ca, struct leaf *leaf)
{
    HASH_DEL(ca->leaves, leaf);
    SSL_CTX_free(leaf->ctx);
    free(leaf);
}

int ca_new(const char *certificate, struct slice key, struct ca **ret_ca, struct error *err)
{
    struct ca *ca = calloc(1, sizeof(*ca));
    const unsigned char *der = (const unsigned char *)key.data;
    if (ca == NULL)
        return error_sys(err, "keeping a certificate authority");
    ERR_clear_error();
    BIO *text = BIO_new_mem_buf(certificate, -1);
    if (text != NULL)
        ca->certificate = PEM_read_bio_X509(text, NULL, NULL, NULL);
    BIO_free(text);
    ca->key = d2i_AutoPrivateKey(NULL, &der, (long)key.len);
    ca->leaf_key = EVP_EC_gen("P-256");
    if (ca->certificate == NULL || ca->key == NULL || ca->leaf_key == NULL ||
        X509_check_private_key(ca->certificate, ca->key) != 1) {
        ca_free(ca);
        return failed("a sandbox's certificate authority", err);
    }
    *ret_ca = ca;
    return 0;
}

void ca_free(struct ca *ca)
{
    if (ca == NULL)
        return;
    while (ca->leaves != NULL)
        leaf_free(ca, ca->leaves);
    X509_free(ca->certificate);
    EVP_PKEY_free(ca->key);
    EVP_PKEY_free(ca->leaf_key);
    free(ca);
}

/* --- a certificate --- */

static bool add_extension(X509 *cert, X509 *issuer, int nid, const char *value)
{
    X509V3_CTX ctx;
    X509V3_set_ctx(&ctx, issuer, cert, NULL, NULL, 0);
    X509_EXTENSION *extension = X509V3_EXT_conf_nid(NULL, &ctx, nid, value);
    bool ok = extension != NULL && X509_add_ext(cert, extension, -1) == 1;
    X509_EXTENSION_free(extension);
    return ok;
}

static bool set_serial(X509 *cert)
{
    unsigned char bytes[16];
    if (RAND_bytes(bytes, sizeof(bytes)) != 1)
        return false;
    bytes[0] = (unsigned char)((bytes[0] & 0x7f) | 0x40); /* positive, and all of them long */
    BIGNUM *number = BN_bin2bn(bytes, sizeof(bytes), NULL);
    bool ok = number != NULL && BN_to_ASN1_INTEGER(number, X509_get_serialNumber(cert)) != NULL;
    BN_free(number);
    return ok;
}

/* The names of a certificate. Names in a subject end at 64 characters; the other has them all. */
static bool set_names(X509 *cert, const char *host)
{
    char alternative[NET_NAME_MAX + 8];
    X509_NAME *subject = X509_get_subject_name(cert);
    snprintf(alternative, sizeof(alternative), "DNS:%s", host);
    if (strlen(host) <= CN_MAX &&
        X509_NAME_add_entry_by_NID(subject, NID_commonName, MBSTRING_ASC,
                                   (const unsigned char *)host, -1, -1, 0) != 1)
        return false;
    return add_extension(cert, NULL, NID_subject_alt_name, alternative);
}

static X509 *sign(struct ca *ca, const char *host)
{
    X509 *cert = X509_new();
    if (cert != NULL && X509_set_version(cert, X509_VERSION_3) == 1 && set_serial(cert) &&
        X509_gmtime_adj(X509_getm_notBefore(cert), -VALID_BEFORE_S) != NULL &&
        X509_gmtime_adj(X509_getm_notAfter(cert), VALID_S) != NULL &&
        X509_set_issuer_name(cert, X509_get_subject_name(ca->certificate)) == 1 &&
        X509_set_pubkey(cert, ca->leaf_key) == 1 && set_names(cert, host) &&
        add_extension(cert, ca->certificate, NID_basic_constraints, "critical,CA:FALSE") &&
        add_extension(cert, ca->certificate, NID_key_usage, "critical,digitalSignature") &&
        add_extension(cert, ca->certificate, NID_ext_key_usage, "serverAuth") &&
        add_extension(cert, ca->certificate, NID_authority_key_identifier, "keyid:always") &&
        X509_sign(cert, ca->key, EVP_sha256()) > 0)
        return cert;
    X509_free(cert);
    return NULL;
}

/* --- a context --- */

/* Whoever offers protocols has to offer this one. */
static int choose_protocol(SSL *ssl, const unsigned char **out, unsigned char *out_len,
                           const unsigned char *in, unsigned in_len, void *arg)
{
    static const unsigned char ours[] = "\x08http/1.1";
    unsigned char *chosen;
    if (SSL_select_next_proto(&chosen, out_len, ours, sizeof(ours) - 1, in, in_len) !=
        OPENSSL_NPN_NEGOTIATED)
        return SSL_TLSEXT_ERR_ALERT_FATAL;
    *out = chosen;
    return SSL_TLSEXT_ERR_OK;
}

static SSL_CTX *make_context(struct ca *ca, const char *host)
{
    SSL_CTX *ctx = SSL_CTX_new(TLS_server_method());
    X509 *cert = sign(ca, host);
    bool ok =
        ctx != NULL && cert != NULL && SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION) == 1 &&
        SSL_CTX_use_certificate(ctx, cert) == 1 && SSL_CTX_use_PrivateKey(ctx, ca->leaf_key) == 1;
    X509_free(cert);
    if (!ok) {
        SSL_CTX_free(ctx);
        return NULL;
    }
    SSL_CTX_set_alpn_select_cb(ctx, choose_protocol, NULL);
    SSL_CTX_set_mode(ctx, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_AUTO_RETRY);
    SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_options(ctx,
                        SSL_OP_IGNORE_UNEXPECTED_EOF | SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_TICKET);
    return ctx;
}

SSL_CTX *ca_context(struct ca *ca, const char *host, struct error *err)
{
    struct leaf *leaf;
    const time_t now = time(NULL);
    HASH_FIND_STR(ca->leaves, host, leaf);
    if (leaf != NULL && now >= leaf->made && now - leaf->made < KEEP_S)
        return leaf->ctx;
    if (leaf != NULL)
        leaf_free(ca, leaf);
    else if (HASH_COUNT(ca->leaves) >= HOSTS_KEPT_MAX)
        leaf_free(ca, ca->leaves);
    ERR_clear_error();
    leaf = calloc(1, sizeof(*leaf));
    if (leaf == NULL || strlen(host) >= sizeof(leaf->host) ||
        (leaf->ctx = make_context(ca, host)) == NULL) {
        free(leaf);
        failed("making a certificate", err);
        return NULL;
    }
    snprintf(leaf->host, sizeof(leaf->host), "%s", host);
    leaf->made = now;
    HASH_ADD_STR(ca->leaves, host, leaf);
    return leaf->ctx;
}
