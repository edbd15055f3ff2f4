/* SPDX-License-Identifier: Apache-2.0 */

/*
 * OpenSSL between two buffers in memory; this file carries bytes from there to the socket and back.
 * So a coroutine waits as it does for any socket, and what was read before TLS was thought of is
 * simply put in first. Nothing waits between a call of OpenSSL's and the look at its error queue,
 * which belongs to the thread, not to the coroutine.
 */

#include "egress/tls.h"

#include <errno.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "egress/ca.h"
#include "loop/co.h"
#include "loop/net.h"

enum { PIECE = 16 * 1024 };

struct tls_roots {
    SSL_CTX *ctx;
};

struct tls {
    struct loop *loop;
    int fd;
    SSL *ssl;
    BIO *in, *out; /* belong to ssl */
    bool sending;  /* a coroutine empties `out` */
    struct co_cond sent;
};

/* --- errors --- */

/* What OpenSSL has to say, in words without numbers. */
static int tls_failed(struct tls *t, const char *doing, struct error *err)
{
    long verdict = t == NULL ? X509_V_OK : SSL_get_verify_result(t->ssl);
    const char *reason = ERR_reason_error_string(ERR_peek_last_error());
    if (verdict != X509_V_OK)
        reason = X509_verify_cert_error_string(verdict);
    error_set(err, ERROR_UPSTREAM_FAILED, "%s: %s%s", doing,
              verdict != X509_V_OK ? "the certificate: " : "", reason == NULL ? "TLS" : reason);
    ERR_clear_error();
    return -1;
}

/* --- whom to believe --- */

int tls_roots_new(const char *file, struct tls_roots **ret_roots, struct error *err)
{
    static const unsigned char protocols[] = "\x08http/1.1";
    struct tls_roots *roots = calloc(1, sizeof(*roots));
    if (roots == NULL)
        return error_sys(err, "keeping certificate authorities");
    ERR_clear_error();
    roots->ctx = SSL_CTX_new(TLS_client_method());
    if (roots->ctx == NULL || SSL_CTX_set_min_proto_version(roots->ctx, TLS1_2_VERSION) != 1 ||
        SSL_CTX_set_alpn_protos(roots->ctx, protocols, sizeof(protocols) - 1) != 0 ||
        (file == NULL ? SSL_CTX_set_default_verify_paths(roots->ctx)
                      : SSL_CTX_load_verify_file(roots->ctx, file)) != 1) {
        tls_roots_free(roots);
        return tls_failed(
            NULL, file == NULL ? "loading this machine's certificate authorities" : file, err);
    }
    SSL_CTX_set_verify(roots->ctx, SSL_VERIFY_PEER, NULL);
    SSL_CTX_set_mode(roots->ctx, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_AUTO_RETRY);
    SSL_CTX_set_session_cache_mode(roots->ctx, SSL_SESS_CACHE_OFF);
    /* Servers that just hang up are many. What has a length is checked against it. */
    SSL_CTX_set_options(roots->ctx, SSL_OP_IGNORE_UNEXPECTED_EOF | SSL_OP_NO_RENEGOTIATION);
    *ret_roots = roots;
    return 0;
}

void tls_roots_free(struct tls_roots *roots)
{
    if (roots == NULL)
        return;
    SSL_CTX_free(roots->ctx);
    free(roots);
}

/* --- bytes to and from the socket --- */

/* Sends what OpenSSL has written. Records must not be mixed, so one coroutine at a time. */
static int flush(struct tls *t, int64_t timeout_ms, struct error *err)
{
    char piece[PIECE];
    while (t->sending)
        if (co_cond_wait(t->loop, &t->sent, timeout_ms, err) < 0)
            return -1;
    t->sending = true;
    int n, r = 0;
    while (r == 0 && (n = BIO_read(t->out, piece, sizeof(piece))) > 0)
        r = net_write(t->loop, t->fd, piece, (size_t)n, timeout_ms, err);
    t->sending = false;
    co_cond_wake(&t->sent);
    return r;
}

/* Hands OpenSSL what comes next. */
static int fill(struct tls *t, int64_t timeout_ms, struct error *err)
{
    char piece[PIECE];
    ssize_t n = net_read(t->loop, t->fd, piece, sizeof(piece), timeout_ms, err);
    if (n < 0)
        return -1;
    if (n == 0)
        BIO_set_mem_eof_return(t->in, 0); /* an end, and not "nothing yet" */
    else if (BIO_write(t->in, piece, (int)n) != n)
        return error_set(err, ERROR_LIMIT_EXCEEDED, "TLS: no memory");
    return 0;
}

/* After a call that returned `result` and is to be made again: what it waits for. *ret_ended: it
 * waits for nothing, because the other side has said goodbye. */
static int wait_for(struct tls *t, int result, const char *doing, int64_t timeout_ms,
                    bool *ret_ended, struct error *err)
{
    int why = SSL_get_error(t->ssl, result);
    *ret_ended = why == SSL_ERROR_ZERO_RETURN;
    if (why != SSL_ERROR_WANT_READ && why != SSL_ERROR_WANT_WRITE && !*ret_ended) {
        tls_failed(t, doing, err);
        struct error ignored;
        flush(t, timeout_ms, &ignored); /* the alert that says so */
        return -1;
    }
    if (flush(t, timeout_ms, err) < 0)
        return -1;
    return why == SSL_ERROR_WANT_READ ? fill(t, timeout_ms, err) : 0;
}

/* --- beginning and end --- */

static struct tls *tls_new(struct loop *loop, int fd, SSL_CTX *ctx, struct error *err)
{
    struct tls *t = calloc(1, sizeof(*t));
    if (t == NULL) {
        error_sys(err, "TLS");
        return NULL;
    }
    *t = (struct tls){.loop = loop, .fd = fd};
    ERR_clear_error();
    t->ssl = SSL_new(ctx);
    t->in = BIO_new(BIO_s_mem());
    t->out = BIO_new(BIO_s_mem());
    if (t->ssl == NULL || t->in == NULL || t->out == NULL) {
        BIO_free(t->in);
        BIO_free(t->out);
        SSL_free(t->ssl);
        free(t);
        error_set(err, ERROR_LIMIT_EXCEEDED, "TLS: no memory");
        return NULL;
    }
    BIO_set_mem_eof_return(t->in, -1);
    SSL_set_bio(t->ssl, t->in, t->out);
    return t;
}

void tls_free(struct tls *tls)
{
    if (tls == NULL)
        return;
    SSL_free(tls->ssl);
    free(tls);
}

static int shake_hands(struct tls *t, int64_t timeout_ms, struct error *err)
{
    for (;;) {
        bool ended;
        ERR_clear_error();
        int r = SSL_do_handshake(t->ssl);
        if (r == 1)
            return flush(t, timeout_ms, err);
        if (wait_for(t, r, "the TLS handshake", timeout_ms, &ended, err) < 0)
            return -1;
        if (ended)
            return error_set(err, ERROR_UPSTREAM_FAILED, "the TLS handshake was broken off");
    }
}

int tls_connect(struct loop *loop, int fd, struct tls_roots *roots, const char *host,
                int64_t timeout_ms, struct tls **ret_tls, struct error *err)
{
    struct tls *t = tls_new(loop, fd, roots->ctx, err);
    if (t == NULL)
        return -1;
    SSL_set_connect_state(t->ssl);
    SSL_set_hostflags(t->ssl, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
    if (SSL_set_tlsext_host_name(t->ssl, host) != 1 || SSL_set1_host(t->ssl, host) != 1)
        tls_failed(t, "asking for the host", err);
    else if (shake_hands(t, timeout_ms, err) == 0) {
        *ret_tls = t;
        return 0;
    }
    tls_free(t);
    return -1;
}

int tls_accept(struct loop *loop, int fd, struct slice early, struct ca *ca, const char *host,
               int64_t timeout_ms, struct tls **ret_tls, struct error *err)
{
    SSL_CTX *ctx = ca_context(ca, host, err);
    struct tls *t = ctx == NULL ? NULL : tls_new(loop, fd, ctx, err);
    if (t == NULL)
        return -1;
    SSL_set_accept_state(t->ssl);
    if (early.len > 0 && BIO_write(t->in, early.data, (int)early.len) != (int)early.len)
        error_set(err, ERROR_LIMIT_EXCEEDED, "TLS: no memory");
    else if (shake_hands(t, timeout_ms, err) == 0) {
        *ret_tls = t;
        return 0;
    }
    tls_free(t);
    return -1;
}

/* --- the stream --- */

ssize_t tls_read(struct tls *tls, void *to, size_t len, int64_t timeout_ms, struct error *err)
{
    for (;;) {
        bool ended;
        ERR_clear_error();
        int r = SSL_read(tls->ssl, to, len > INT32_MAX ? INT32_MAX : (int)len);
        if (r > 0)
            return r;
        if (wait_for(tls, r, "reading TLS", timeout_ms, &ended, err) < 0)
            return -1;
        if (ended)
            return 0;
    }
}

int tls_write(struct tls *tls, const void *from, size_t len, int64_t timeout_ms, struct error *err)
{
    const char *at = from;
    while (len > 0) {
        bool ended;
        ERR_clear_error();
        int r = SSL_write(tls->ssl, at, len > PIECE ? PIECE : (int)len);
        if (r > 0) {
            at += r;
            len -= (size_t)r;
            if (flush(tls, timeout_ms, err) < 0)
                return -1;
            continue;
        }
        if (wait_for(tls, r, "writing TLS", timeout_ms, &ended, err) < 0)
            return -1;
        if (ended)
            return error_set(err, ERROR_UNAVAILABLE, "the other side has closed the connection");
    }
    return 0;
}

int tls_end(struct tls *tls, int64_t timeout_ms, struct error *err)
{
    ERR_clear_error();
    SSL_shutdown(tls->ssl);
    ERR_clear_error();
    return flush(tls, timeout_ms, err);
}
