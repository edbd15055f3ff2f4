/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * SHA-1, for two that ask for it by name: the handshake of WebSockets, and git's names of objects.
 * Nothing that needs a hash to be strong may use this one.
 */

#include <stddef.h>
#include <stdint.h>

enum { SHA1_BLOCK = 64, SHA1_SIZE = 20 };

struct sha1 {
    uint32_t state[5];
    uint64_t len;
    unsigned char block[SHA1_BLOCK];
};

void sha1_init(struct sha1 *sha1);
void sha1_add(struct sha1 *sha1, const void *data, size_t len);
void sha1_end(struct sha1 *sha1, unsigned char digest[SHA1_SIZE]);
