/* SPDX-License-Identifier: Apache-2.0 */

/*
 * P-256. The certificate lives as long as clients take one for (825 days), and is made anew at a
 * start of the server once a third of that has gone; the authority stays, so that whoever trusts it
 * notices nothing.
 */

#include "auth/server_certificate.h"

#include <arpa/inet.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <string.h>

#include "auth/authority.h"
#include "auth/seal.h"
#include "base/cleanup.h"

enum {
    VALID_BEFORE_S = 24 * 3600,
    VALID_DAYS = 825,
    RENEW_DAYS = 550, /* left of it */
    DAY_S = 24 * 3600,
    SERIAL_SIZE = 16,
};

static void cleanup_x509(X509 **x)
{
    X509_free(*x);
}

static void cleanup_pkey(EVP_PKEY **key)
{
    EVP_PKEY_free(*key);
}

static void cleanup_bio(BIO **bio)
{
    BIO_free(*bio);
}

static int failed(const char *what, struct error *err)
{
    const char *reason = ERR_reason_error_string(ERR_peek_last_error());
    error_set(err, ERROR_INTERNAL, "%s: %s", what, reason == NULL ? "OpenSSL" : reason);
    ERR_clear_error();
    return -1;
}

/* --- names --- */

void server_names_add(struct server_names *names, const char *name, size_t len)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                  "0123456789-._*:";
    if (len == 0 || len >= SERVER_NAME_SIZE || names->count == SERVER_NAMES_MAX)
        return;
    char *at = names->names[names->count];
    memcpy(at, name, len);
    at[len] = '\0';
    if (strspn(at, allowed) != len)
        return;
    for (size_t i = 0; i < names->count; i++)
        if (strcmp(names->names[i], at) == 0)
            return;
    names->count++;
}

static bool is_address(const char *name)
{
    unsigned char room[sizeof(struct in6_addr)];
    return inet_pton(AF_INET, name, room) == 1 || inet_pton(AF_INET6, name, room) == 1;
}

static GENERAL_NAME *general_name(const char *name)
{
    GENERAL_NAME *general = GENERAL_NAME_new();
    if (general != NULL && is_address(name)) {
        ASN1_OCTET_STRING *address = a2i_IPADDRESS(name);
        if (address != NULL) {
            GENERAL_NAME_set0_value(general, GEN_IPADD, address);
            return general;
        }
    } else if (general != NULL) {
        ASN1_IA5STRING *text = ASN1_IA5STRING_new();
        if (text != NULL && ASN1_STRING_set(text, name, -1) == 1) {
            GENERAL_NAME_set0_value(general, GEN_DNS, text);
            return general;
        }
        ASN1_IA5STRING_free(text);
    }
    GENERAL_NAME_free(general);
    return NULL;
}

static bool add_names(X509 *cert, const struct server_names *names)
{
    GENERAL_NAMES *list = sk_GENERAL_NAME_new_null();
    bool ok = list != NULL;
    for (size_t i = 0; ok && i < names->count; i++) {
        GENERAL_NAME *name = general_name(names->names[i]);
        ok = name != NULL && sk_GENERAL_NAME_push(list, name) > 0;
        if (!ok)
            GENERAL_NAME_free(name);
    }
    ok = ok && X509_add1_ext_i2d(cert, NID_subject_alt_name, list, 0, X509V3_ADD_DEFAULT) == 1;
    GENERAL_NAMES_free(list);
    return ok;
}

/* --- PEM --- */

static X509 *read_certificate(const char *pem)
{
    BIO *text = BIO_new_mem_buf(pem, -1);
    X509 *cert = text == NULL ? NULL : PEM_read_bio_X509(text, NULL, NULL, NULL);
    BIO_free(text);
    return cert;
}

static EVP_PKEY *read_key(const char *pem)
{
    BIO *text = BIO_new_mem_buf(pem, -1);
    EVP_PKEY *key = text == NULL ? NULL : PEM_read_bio_PrivateKey(text, NULL, NULL, (void *)"");
    BIO_free(text);
    return key;
}

static void take_text(BIO *from, struct buf *out)
{
    char *data = NULL;
    long len = BIO_get_mem_data(from, &data);
    if (len > 0)
        buf_add(out, data, (size_t)len);
}

int server_authority_make(const char *name, struct buf *certificate, struct buf *key,
                          struct error *err)
{
    _cleanup_wipe_ struct buf der = BUF_INIT(AUTHORITY_TEXT_MAX);
    if (authority_make(name, certificate, &der, err) < 0)
        return -1;
    const unsigned char *at = (const unsigned char *)der.data;
    _cleanup_(cleanup_pkey) EVP_PKEY *pair = d2i_AutoPrivateKey(NULL, &at, (long)der.len);
    _cleanup_(cleanup_bio) BIO *text = BIO_new(BIO_s_secmem());
    bool ok = pair != NULL && text != NULL &&
              PEM_write_bio_PrivateKey(text, pair, NULL, NULL, 0, NULL, NULL) == 1;
    if (ok)
        take_text(text, key);
    return ok ? buf_check(key, "the authority's key", err)
              : failed("writing the authority's key", err);
}

/* --- the certificate --- */

static bool set_serial(X509 *cert)
{
    unsigned char bytes[SERIAL_SIZE];
    if (RAND_bytes(bytes, sizeof(bytes)) != 1)
        return false;
    bytes[0] = (unsigned char)((bytes[0] & 0x7f) | 0x40); /* positive, and all of them long */
    BIGNUM *number = BN_bin2bn(bytes, sizeof(bytes), NULL);
    bool ok = number != NULL && BN_to_ASN1_INTEGER(number, X509_get_serialNumber(cert)) != NULL;
    BN_free(number);
    return ok;
}

static bool add_extension(X509 *cert, X509 *issuer, int nid, const char *value)
{
    X509V3_CTX ctx;
    X509V3_set_ctx(&ctx, issuer, cert, NULL, NULL, 0);
    X509_EXTENSION *extension = X509V3_EXT_conf_nid(NULL, &ctx, nid, value);
    bool ok = extension != NULL && X509_add_ext(cert, extension, -1) == 1;
    X509_EXTENSION_free(extension);
    return ok;
}

static bool sign(X509 *cert, EVP_PKEY *pair, X509 *issuer, EVP_PKEY *issuer_key,
                 const struct server_names *names)
{
    return X509_set_version(cert, X509_VERSION_3) == 1 && set_serial(cert) &&
           X509_NAME_add_entry_by_NID(X509_get_subject_name(cert), NID_commonName, MBSTRING_ASC,
                                      (const unsigned char *)"Cella", -1, -1, 0) == 1 &&
           X509_set_issuer_name(cert, X509_get_subject_name(issuer)) == 1 &&
           X509_gmtime_adj(X509_getm_notBefore(cert), -VALID_BEFORE_S) != NULL &&
           X509_time_adj_ex(X509_getm_notAfter(cert), VALID_DAYS - 1, 0, NULL) != NULL &&
           X509_set_pubkey(cert, pair) == 1 && add_names(cert, names) &&
           add_extension(cert, issuer, NID_basic_constraints, "critical,CA:FALSE") &&
           add_extension(cert, issuer, NID_key_usage, "critical,digitalSignature") &&
           add_extension(cert, issuer, NID_ext_key_usage, "serverAuth") &&
           add_extension(cert, issuer, NID_subject_key_identifier, "hash") &&
           add_extension(cert, issuer, NID_authority_key_identifier, "keyid") &&
           X509_sign(cert, issuer_key, EVP_sha256()) > 0;
}

int server_certificate_make(const char *authority, const char *authority_key,
                            const struct server_names *names, struct buf *pem, struct error *err)
{
    ERR_clear_error();
    _cleanup_(cleanup_x509) X509 *issuer = read_certificate(authority);
    _cleanup_(cleanup_pkey) EVP_PKEY *issuer_key = read_key(authority_key);
    if (issuer == NULL || issuer_key == NULL || X509_check_private_key(issuer, issuer_key) != 1) {
        ERR_clear_error();
        return error_set(err, ERROR_CONFLICT,
                         "the server's certificate authority and its key do not belong together");
    }
    _cleanup_(cleanup_pkey) EVP_PKEY *pair = EVP_EC_gen("P-256");
    _cleanup_(cleanup_x509) X509 *cert = X509_new();
    _cleanup_(cleanup_bio) BIO *text = BIO_new(BIO_s_secmem());
    if (pair == NULL || cert == NULL || text == NULL ||
        !sign(cert, pair, issuer, issuer_key, names) || PEM_write_bio_X509(text, cert) != 1 ||
        PEM_write_bio_X509(text, issuer) != 1 ||
        PEM_write_bio_PrivateKey(text, pair, NULL, NULL, 0, NULL, NULL) != 1)
        return failed("making the server's certificate", err);
    take_text(text, pem);
    return buf_check(pem, "the server's certificate", err);
}

static bool is_for(X509 *cert, const char *name)
{
    if (is_address(name))
        return X509_check_ip_asc(cert, name, 0) == 1;
    if (name[0] != '*')
        return X509_check_host(cert, name, 0, 0, NULL) == 1;
    /* A pattern matches itself only where names are compared as they are written. */
    GENERAL_NAMES *list = X509_get_ext_d2i(cert, NID_subject_alt_name, NULL, NULL);
    bool found = false;
    for (int i = 0; i < sk_GENERAL_NAME_num(list); i++) {
        GENERAL_NAME *general = sk_GENERAL_NAME_value(list, i);
        found |= general->type == GEN_DNS &&
                 strcmp((const char *)ASN1_STRING_get0_data(general->d.dNSName), name) == 0;
    }
    GENERAL_NAMES_free(list);
    return found;
}

bool server_certificate_fits(const char *pem, const char *authority,
                             const struct server_names *names)
{
    _cleanup_(cleanup_x509) X509 *cert = read_certificate(pem);
    _cleanup_(cleanup_x509) X509 *issuer = read_certificate(authority);
    _cleanup_(cleanup_pkey) EVP_PKEY *key = read_key(pem);
    int days = 0, seconds = 0;
    bool fits =
        cert != NULL && issuer != NULL && key != NULL && X509_check_private_key(cert, key) == 1 &&
        X509_verify(cert, X509_get0_pubkey(issuer)) == 1 &&
        ASN1_TIME_diff(&days, &seconds, NULL, X509_get0_notAfter(cert)) == 1 && days >= RENEW_DAYS;
    for (size_t i = 0; fits && i < names->count; i++)
        fits = is_for(cert, names->names[i]);
    ERR_clear_error();
    return fits;
}
