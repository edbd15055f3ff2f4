/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Making a certificate authority: a key pair and a certificate for a trust store.
 *
 * A sandbox's is for its own trust store. Only the egress process signs with the key (egress/ca.h),
 * for hosts whose requests get a secret; what it signs is believed in that sandbox and nowhere
 * else. The server's signs its own certificate (auth/server_certificate.h).
 */

#include "base/buf.h"
#include "base/error.h"

enum { AUTHORITY_TEXT_MAX = 8 * 1024 }; /* of the certificate, and of the key */

/* Appends the certificate as PEM, and the key as PKCS #8 in DER: wipe that buffer (auth/seal.h).
 * name: for people, at most 64 bytes of it. */
int authority_make(const char *name, struct buf *certificate, struct buf *key, struct error *err);

/* The name that OpenSSL finds a certificate by in a folder: "a1b2c3d4". INTERNAL when it is none.
 */
enum { AUTHORITY_HASH_SIZE = 9 };
int authority_hash(const char *certificate, char out[AUTHORITY_HASH_SIZE], struct error *err);
