/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * TLS on a connected socket, for coroutines: to a server whose certificate is checked, or from a
 * client that trusts a sandbox's own authority (egress/ca.h). HTTP/1.1 only is offered and taken.
 *
 * One coroutine may read while another one writes. Failures are UPSTREAM_FAILED for what is wrong
 * with the other side's TLS (the message says what, as "certificate has expired"), else as in
 * loop/net.h.
 */

#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/slice.h"
#include "loop/loop.h"

struct ca;
struct tls;

/* Whom to believe: the authorities in a PEM file, or (NULL) those of this machine. */
struct tls_roots;
int tls_roots_new(const char *file, struct tls_roots **ret_roots, struct error *err);
void tls_roots_free(struct tls_roots *roots); /* NULL is fine */

/* fd stays the caller's. host is the name that is asked for and that the certificate has to be for.
 */
int tls_connect(struct loop *loop, int fd, struct tls_roots *roots, const char *host,
                int64_t timeout_ms, struct tls **ret_tls, struct error *err);
/* early: what was read from the client already. */
int tls_accept(struct loop *loop, int fd, struct slice early, struct ca *ca, const char *host,
               int64_t timeout_ms, struct tls **ret_tls, struct error *err);
/* Nobody may be waiting in it. NULL is fine. */
void tls_free(struct tls *tls);

/* As net_read() and net_write(). */
ssize_t tls_read(struct tls *tls, void *to, size_t len, int64_t timeout_ms, struct error *err);
int tls_write(struct tls *tls, const void *from, size_t len, int64_t timeout_ms, struct error *err);
/* Says goodbye, so that the other side knows that nothing is missing. */
int tls_end(struct tls *tls, int64_t timeout_ms, struct error *err);
