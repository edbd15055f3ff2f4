/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* MD5 (RFC 1321): what clients of uploads in parts expect as an etag. It tells transfers that went
 * wrong, nothing more: not for anything that somebody might want to forge. */

#include <stddef.h>
#include <stdint.h>

enum { MD5_SIZE = 16, MD5_TEXT_SIZE = 33 };

struct md5 {
    uint32_t state[4];
    uint64_t length;
    unsigned char block[64];
};

void md5_init(struct md5 *md5);
void md5_add(struct md5 *md5, const void *data, size_t len);
void md5_end(struct md5 *md5, unsigned char out[MD5_SIZE]);
/* 32 hexadecimal digits. */
void md5_text(const unsigned char digest[MD5_SIZE], char out[MD5_TEXT_SIZE]);
