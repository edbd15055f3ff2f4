/* SPDX-License-Identifier: Apache-2.0 */

/* P-256, signed by itself, for ten years, and with a path length of zero: it can sign for hosts,
 * and for nobody who signs. */

#include "auth/authority.h"

#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"

enum { VALID_BEFORE_S = 24 * 3600, VALID_DAYS = 3650, SERIAL_SIZE = 16, NAME_MAX_LEN = 64 };

static void cleanup_x509(X509 **x)
{
    X509_free(*x);
}

static void cleanup_pkey(EVP_PKEY **key)
{
    EVP_PKEY_free(*key);
}

static bool add_extension(X509 *cert, int nid, const char *value)
{
    X509V3_CTX ctx;
    X509V3_set_ctx(&ctx, cert, cert, NULL, NULL, 0);
    X509_EXTENSION *extension = X509V3_EXT_conf_nid(NULL, &ctx, nid, value);
    bool ok = extension != NULL && X509_add_ext(cert, extension, -1) == 1;
    X509_EXTENSION_free(extension);
    return ok;
}

static bool set_names(X509 *cert, const char *name)
{
    unsigned char serial[SERIAL_SIZE];
    if (RAND_bytes(serial, sizeof(serial)) != 1)
        return false;
    serial[0] = (unsigned char)((serial[0] & 0x7f) | 0x40);
    BIGNUM *number = BN_bin2bn(serial, sizeof(serial), NULL);
    X509_NAME *subject = X509_get_subject_name(cert);
    bool ok = number != NULL && BN_to_ASN1_INTEGER(number, X509_get_serialNumber(cert)) != NULL &&
              X509_NAME_add_entry_by_NID(subject, NID_commonName, MBSTRING_ASC,
                                         (const unsigned char *)name,
                                         (int)strnlen(name, NAME_MAX_LEN), -1, 0) == 1 &&
              X509_set_issuer_name(cert, subject) == 1;
    BN_free(number);
    return ok;
}

static X509 *make_certificate(EVP_PKEY *key, const char *name)
{
    X509 *cert = X509_new();
    if (cert != NULL && X509_set_version(cert, X509_VERSION_3) == 1 && set_names(cert, name) &&
        X509_gmtime_adj(X509_getm_notBefore(cert), -VALID_BEFORE_S) != NULL &&
        X509_time_adj_ex(X509_getm_notAfter(cert), VALID_DAYS, 0, NULL) != NULL &&
        X509_set_pubkey(cert, key) == 1 &&
        add_extension(cert, NID_basic_constraints, "critical,CA:TRUE,pathlen:0") &&
        add_extension(cert, NID_key_usage, "critical,keyCertSign,cRLSign") &&
        add_extension(cert, NID_subject_key_identifier, "hash") &&
        X509_sign(cert, key, EVP_sha256()) > 0)
        return cert;
    X509_free(cert);
    return NULL;
}

/* What a BIO in memory holds. */
static void take_text(BIO *from, struct buf *out)
{
    char *data = NULL;
    long len = BIO_get_mem_data(from, &data);
    if (len > 0)
        buf_add(out, data, (size_t)len);
}

int authority_make(const char *name, struct buf *certificate, struct buf *key, struct error *err)
{
    ERR_clear_error();
    _cleanup_(cleanup_pkey) EVP_PKEY *pair = EVP_EC_gen("P-256");
    _cleanup_(cleanup_x509) X509 *cert = pair == NULL ? NULL : make_certificate(pair, name);
    PKCS8_PRIV_KEY_INFO *info = pair == NULL ? NULL : EVP_PKEY2PKCS8(pair);
    BIO *text = BIO_new(BIO_s_mem()), *der = BIO_new(BIO_s_secmem());
    bool ok = cert != NULL && info != NULL && text != NULL && der != NULL &&
              PEM_write_bio_X509(text, cert) == 1 && i2d_PKCS8_PRIV_KEY_INFO_bio(der, info) == 1;
    if (ok) {
        take_text(text, certificate);
        take_text(der, key);
    }
    PKCS8_PRIV_KEY_INFO_free(info);
    BIO_free(text);
    BIO_free(der);
    if (!ok) {
        ERR_clear_error();
        return error_set(err, ERROR_INTERNAL, "making a certificate authority failed");
    }
    if (buf_check(certificate, "the certificate", err) < 0)
        return -1;
    return buf_check(key, "the key", err);
}

int authority_hash(const char *certificate, char out[AUTHORITY_HASH_SIZE], struct error *err)
{
    BIO *text = BIO_new_mem_buf(certificate, -1);
    _cleanup_(cleanup_x509) X509 *cert =
        text == NULL ? NULL : PEM_read_bio_X509(text, NULL, NULL, NULL);
    BIO_free(text);
    ERR_clear_error();
    if (cert == NULL)
        return error_set(err, ERROR_INTERNAL, "this is no certificate");
    snprintf(out, AUTHORITY_HASH_SIZE, "%08lx", X509_subject_name_hash(cert));
    return 0;
}
