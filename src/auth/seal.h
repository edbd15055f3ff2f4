/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Sealing what lies in the database: AES-256-GCM under a key that lies in another file (secret-key
 * in the data folder, root's). Whoever has the database alone has nothing; whoever can write to it
 * cannot move a sealed text to another place either, because the place is sealed with it.
 *
 * A sealed text is a version byte, a random nonce, the encrypted bytes and a tag.
 */

#include "base/buf.h"
#include "base/error.h"
#include "base/slice.h"

enum { SEAL_KEY_SIZE = 32, SEAL_OVERHEAD = 1 + 12 + 16 };

/* Appends the sealed form of `plain`; `place` says what it is (bytes that unseal() must be given
 * again). */
int seal(const unsigned char key[SEAL_KEY_SIZE], struct slice place, struct slice plain,
         struct buf *out, struct error *err);

/* Appends what was sealed. INTERNAL when it is not what this key sealed for this place; `out` is as
 * it was then. */
int unseal(const unsigned char key[SEAL_KEY_SIZE], struct slice place, struct slice sealed,
           struct buf *out, struct error *err);

/* Overwrites a buffer that held a secret, and releases it. */
void buf_wipe(struct buf *b);
#define _cleanup_wipe_ _cleanup_(buf_wipe)
