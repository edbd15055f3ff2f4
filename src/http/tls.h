/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * TLS on a non-blocking socket, in the manner of the calls that it stands in for: tls_recv() and
 * tls_send() return and set errno as recv(2) and sendmsg(2) do, so that whoever reads and writes a
 * socket does the same with either. Nothing here waits.
 *
 * Both ends: the server's, with a certificate, and a client's, which checks one. HTTP/1.1 is the
 * only protocol offered and taken; TLS 1.2 and up.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "base/error.h"
#include "base/slice.h"

struct tls;
struct tls_context; /* what connections have in common */

enum { TLS_FIRST_BYTE = 0x16 }; /* of a client that speaks TLS; no HTTP request begins with it */

/* pem: the certificate, those that it was signed by, and its key, in PEM. INVALID_ARGUMENT says
 * what is wrong with it. */
int tls_context_server(struct slice pem, struct tls_context **ret_context, struct error *err);
/* Believes this machine's authorities (SSL_CERT_FILE, …) and those in extra (PEM; NULL: none). */
int tls_context_client(const char *extra, struct tls_context **ret_context, struct error *err);
void tls_context_free(struct tls_context *context); /* NULL is fine */

/* fd stays the caller's. host: for a client, the name or address that the certificate has to be
 * for. NULL when there is no memory. The context may go before it. */
struct tls *tls_new(struct tls_context *context, int fd, const char *host);
void tls_free(struct tls *tls); /* NULL is fine */

/* 0: done; -1 with errno: EAGAIN (tls_wants() says for what), else it failed: the other side was
 * told, and tls_problem() tells us. */
int tls_handshake(struct tls *tls);
uint32_t tls_wants(const struct tls *tls); /* EPOLLIN or EPOLLOUT */
/* In words, as "certificate has expired". */
const char *tls_problem(const struct tls *tls);

/* After the handshake. 0: the other side said goodbye; a connection that just ends is ECONNRESET.
 * EAGAIN is for EPOLLIN in tls_recv() and for EPOLLOUT in tls_send(). After EAGAIN, tls_send() has
 * to be called with the same bytes again (wherever they lie). */
ssize_t tls_recv(struct tls *tls, void *to, size_t len);
ssize_t tls_send(struct tls *tls, const struct iovec *iov, size_t count);
/* Bytes have come from the socket that tls_recv() was not asked for yet: no event will tell. Maybe
 * not a whole record. */
bool tls_pending(const struct tls *tls);
/* Says goodbye, if the socket takes it at once. */
void tls_close(struct tls *tls);
