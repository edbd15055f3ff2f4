/* SPDX-License-Identifier: Apache-2.0 */

/*
 * OpenSSL right on the socket. Every call clears OpenSSL's queue of errors first, which belongs to
 * the thread and may hold what somebody else has left.
 *
 * Records are read ahead: one system call for a record (and maybe the next one) instead of two. So
 * bytes may be here that no event tells of, which is what tls_pending() is for.
 */

#include "http/tls.h"

#include <arpa/inet.h>
#include <errno.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include "base/cleanup.h"

enum {
    RECORD_MAX = 16 * 1024,
    JOIN_MAX = 4096, /* pieces smaller than this share a record */
};

struct tls_context {
    SSL_CTX *ctx;
};

struct tls {
    SSL *ssl;
    uint32_t wants;
    bool broken;   /* no record can be sent any more, nor a goodbye */
    size_t unsent; /* bytes of a record that the socket did not take yet */
};

/* --- contexts --- */

static const unsigned char protocols[] = "\x08http/1.1";

static int choose_protocol(SSL *ssl, const unsigned char **out, unsigned char *out_len,
                           const unsigned char *in, unsigned in_len, void *arg)
{
    unsigned char *chosen;
    if (SSL_select_next_proto(&chosen, out_len, protocols, sizeof(protocols) - 1, in, in_len) !=
        OPENSSL_NPN_NEGOTIATED)
        return SSL_TLSEXT_ERR_ALERT_FATAL;
    *out = chosen;
    return SSL_TLSEXT_ERR_OK;
}

/* What both ends have in common. */
static struct tls_context *context_new(const SSL_METHOD *method)
{
    struct tls_context *context = calloc(1, sizeof(*context));
    ERR_clear_error();
    if (context != NULL)
        context->ctx = SSL_CTX_new(method);
    if (context == NULL || context->ctx == NULL ||
        SSL_CTX_set_min_proto_version(context->ctx, TLS1_2_VERSION) != 1) {
        tls_context_free(context);
        return NULL;
    }
    SSL_CTX_set_mode(context->ctx, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_AUTO_RETRY |
                                       SSL_MODE_ENABLE_PARTIAL_WRITE |
                                       SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    SSL_CTX_set_options(context->ctx, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
    SSL_CTX_set_session_cache_mode(context->ctx, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_read_ahead(context->ctx, 1);
    return context;
}

static int pem_failed(const char *what, struct error *err)
{
    const char *reason = ERR_reason_error_string(ERR_peek_last_error());
    error_set(err, ERROR_INVALID_ARGUMENT, "%s: %s", what,
              reason == NULL ? "there is none" : reason);
    ERR_clear_error();
    return -1;
}

static int use_chain(SSL_CTX *ctx, struct slice pem, struct error *err)
{
    BIO *text = BIO_new_mem_buf(pem.data, (int)pem.len);
    X509 *cert = text == NULL ? NULL : PEM_read_bio_X509(text, NULL, NULL, NULL);
    bool ok = cert != NULL && SSL_CTX_use_certificate(ctx, cert) == 1;
    X509_free(cert);
    while (ok && (cert = PEM_read_bio_X509(text, NULL, NULL, NULL)) != NULL)
        if (SSL_CTX_add0_chain_cert(ctx, cert) != 1) {
            X509_free(cert);
            ok = false;
        }
    BIO_free(text);
    return ok ? 0 : pem_failed("the TLS certificate cannot be used", err);
}

static int use_key(SSL_CTX *ctx, struct slice pem, struct error *err)
{
    ERR_clear_error(); /* the end of the chain is one */
    BIO *text = BIO_new_mem_buf(pem.data, (int)pem.len);
    /* Without a callback OpenSSL would ask the terminal for a password. */
    EVP_PKEY *key = text == NULL ? NULL : PEM_read_bio_PrivateKey(text, NULL, NULL, (void *)"");
    bool ok =
        key != NULL && SSL_CTX_use_PrivateKey(ctx, key) == 1 && SSL_CTX_check_private_key(ctx) == 1;
    EVP_PKEY_free(key);
    BIO_free(text);
    return ok ? 0 : pem_failed("the TLS certificate's key cannot be used", err);
}

int tls_context_server(struct slice pem, struct tls_context **ret_context, struct error *err)
{
    struct tls_context *context = context_new(TLS_server_method());
    if (context == NULL)
        return error_set(err, ERROR_INTERNAL, "OpenSSL does not start");
    if (use_chain(context->ctx, pem, err) != 0 || use_key(context->ctx, pem, err) != 0) {
        tls_context_free(context);
        return -1;
    }
    SSL_CTX_set_alpn_select_cb(context->ctx, choose_protocol, NULL);
    SSL_CTX_set_options(context->ctx, SSL_OP_CIPHER_SERVER_PREFERENCE | SSL_OP_PRIORITIZE_CHACHA);
    SSL_CTX_set_num_tickets(context->ctx, 1);
    *ret_context = context;
    return 0;
}

static int believe(SSL_CTX *ctx, const char *pem, struct error *err)
{
    BIO *text = BIO_new_mem_buf(pem, -1);
    X509_STORE *store = SSL_CTX_get_cert_store(ctx);
    X509 *cert;
    unsigned count = 0;
    while (text != NULL && (cert = PEM_read_bio_X509(text, NULL, NULL, NULL)) != NULL) {
        count += X509_STORE_add_cert(store, cert) == 1;
        X509_free(cert);
    }
    BIO_free(text);
    if (count == 0)
        return pem_failed("the certificate authority cannot be used", err);
    ERR_clear_error();
    return 0;
}

int tls_context_client(const char *extra, struct tls_context **ret_context, struct error *err)
{
    struct tls_context *context = context_new(TLS_client_method());
    if (context == NULL)
        return error_set(err, ERROR_INTERNAL, "OpenSSL does not start");
    SSL_CTX_set_default_verify_paths(context->ctx); /* a machine may have none */
    SSL_CTX_set_verify(context->ctx, SSL_VERIFY_PEER, NULL);
    if ((extra != NULL && believe(context->ctx, extra, err) != 0) ||
        SSL_CTX_set_alpn_protos(context->ctx, protocols, sizeof(protocols) - 1) != 0) {
        tls_context_free(context);
        return -1;
    }
    *ret_context = context;
    return 0;
}

void tls_context_free(struct tls_context *context)
{
    if (context == NULL)
        return;
    SSL_CTX_free(context->ctx);
    free(context);
}

/* --- connections --- */

static bool expect_host(SSL *ssl, const char *host)
{
    unsigned char address[sizeof(struct in6_addr)];
    if (inet_pton(AF_INET, host, address) == 1 || inet_pton(AF_INET6, host, address) == 1)
        return X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), host) == 1;
    SSL_set_hostflags(ssl, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
    return SSL_set_tlsext_host_name(ssl, host) == 1 && SSL_set1_host(ssl, host) == 1;
}

struct tls *tls_new(struct tls_context *context, int fd, const char *host)
{
    struct tls *tls = calloc(1, sizeof(*tls));
    ERR_clear_error();
    if (tls != NULL)
        tls->ssl = SSL_new(context->ctx);
    if (tls == NULL || tls->ssl == NULL || SSL_set_fd(tls->ssl, fd) != 1 ||
        (host != NULL && !expect_host(tls->ssl, host))) {
        ERR_clear_error();
        tls_free(tls);
        return NULL;
    }
    if (host != NULL)
        SSL_set_connect_state(tls->ssl);
    else
        SSL_set_accept_state(tls->ssl);
    return tls;
}

void tls_free(struct tls *tls)
{
    if (tls == NULL)
        return;
    SSL_free(tls->ssl);
    free(tls);
}

uint32_t tls_wants(const struct tls *tls)
{
    return tls->wants;
}

const char *tls_problem(const struct tls *tls)
{
    long verdict = SSL_get_verify_result(tls->ssl);
    if (verdict != X509_V_OK)
        return X509_verify_cert_error_string(verdict);
    const char *reason = ERR_reason_error_string(ERR_peek_last_error());
    return reason == NULL ? "the connection was closed" : reason;
}

int tls_handshake(struct tls *tls)
{
    ERR_clear_error();
    int r = SSL_do_handshake(tls->ssl);
    if (r == 1)
        return 0;
    int why = SSL_get_error(tls->ssl, r);
    tls->wants = why == SSL_ERROR_WANT_WRITE ? EPOLLOUT : EPOLLIN;
    if (why == SSL_ERROR_WANT_READ || why == SSL_ERROR_WANT_WRITE)
        errno = EAGAIN;
    else {
        tls->broken = true;
        errno = EPROTO;
    }
    return -1;
}

/* Turns what a call said into errno. wait: what it may be told to try again after. */
static ssize_t failed(struct tls *tls, int result, int wait)
{
    int why = SSL_get_error(tls->ssl, result);
    if (why == wait) {
        errno = EAGAIN;
        return -1;
    }
    /* Also one that wants us to write before it can be read from, and does not read: it asks for
     * new keys without end. */
    tls->broken = true;
    ERR_clear_error();
    errno = ECONNRESET;
    return -1;
}

ssize_t tls_recv(struct tls *tls, void *to, size_t len)
{
    size_t n = 0;
    ERR_clear_error();
    int r = SSL_read_ex(tls->ssl, to, len, &n);
    if (r == 1)
        return (ssize_t)n;
    if (SSL_get_error(tls->ssl, r) == SSL_ERROR_ZERO_RETURN)
        return 0;
    return failed(tls, r, SSL_ERROR_WANT_READ);
}

static ssize_t send_record(struct tls *tls, const void *data, size_t len)
{
    size_t n = 0;
    ERR_clear_error();
    int r = SSL_write_ex(tls->ssl, data, len, &n);
    tls->unsent = r == 1 ? 0 : len;
    return r == 1 ? (ssize_t)n : failed(tls, r, SSL_ERROR_WANT_WRITE);
}

ssize_t tls_send(struct tls *tls, const struct iovec *iov, size_t count)
{
    while (count > 0 && iov->iov_len == 0) {
        iov++;
        count--;
    }
    if (count == 0)
        return 0;
    if (count == 1 || (iov->iov_len > JOIN_MAX && tls->unsent == 0) ||
        (tls->unsent != 0 && tls->unsent <= iov->iov_len))
        return send_record(tls, iov->iov_base,
                           tls->unsent != 0            ? tls->unsent
                           : iov->iov_len < RECORD_MAX ? iov->iov_len
                                                       : RECORD_MAX);
    /* A head and its body, a chunk and its frame: one record, one system call. */
    char record[RECORD_MAX];
    size_t most = tls->unsent != 0 ? tls->unsent : sizeof(record), len = 0;
    for (size_t i = 0; i < count && len < most; i++) {
        size_t n = iov[i].iov_len < most - len ? iov[i].iov_len : most - len;
        memcpy(record + len, iov[i].iov_base, n);
        len += n;
    }
    return send_record(tls, record, len);
}

bool tls_pending(const struct tls *tls)
{
    return SSL_has_pending(tls->ssl) == 1;
}

void tls_close(struct tls *tls)
{
    if (tls->broken || tls->unsent != 0 || !SSL_is_init_finished(tls->ssl))
        return;
    ERR_clear_error();
    SSL_shutdown(tls->ssl);
    ERR_clear_error();
}
