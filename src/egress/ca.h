/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The certificate authority of one sandbox, which that sandbox trusts and nobody else: it lets the
 * egress process answer for the few hosts whose requests get a secret. Its key never leaves the
 * server; it is made by cellad (auth/authority.h) and kept there.
 */

#include <openssl/types.h>

#include "base/error.h"
#include "base/slice.h"

struct ca;

/* certificate: PEM; key: PKCS #8, DER. INVALID_ARGUMENT when they are not what they should be, or
 * not of each other. */
int ca_new(const char *certificate, struct slice key, struct ca **ret_ca, struct error *err);
void ca_free(struct ca *ca); /* NULL is fine */

/* What a TLS server that is `host` for this sandbox works with. Borrowed (SSL_new() holds it);
 * made once per host and kept for a day. NULL with the error set. */
SSL_CTX *ca_context(struct ca *ca, const char *host, struct error *err);
