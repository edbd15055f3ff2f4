/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The certificate authorities of sandboxes (auth/authority.h): one each at most, made when it is
 * asked for. Its key lies sealed in the database and is opened for the egress process alone. It
 * goes with its sandbox.
 */

#include "auth/auth.h"
#include "base/arena.h"
#include "base/buf.h"

/* The certificate of a sandbox's authority as PEM, in the arena; NULL: it has none. */
const char *auth_ca_certificate(const struct auth *auth, const char *sandbox_id,
                                struct arena *arena);
/* Makes one, unless there is one. name: for people. SANDBOX_NOT_FOUND. Waits for the store. */
int auth_ca_make(struct auth *auth, const char *sandbox_id, const char *name, struct error *err);
/* The same one as another sandbox's: a clone has its files, which trust it. Fine when there is
 * none. */
int auth_ca_copy(struct auth *auth, const char *from_id, const char *to_id, struct error *err);
/* Fine when there is none. */
int auth_ca_delete(struct auth *auth, const char *sandbox_id, struct error *err);
/* Appends the key; wipe the buffer (auth/seal.h). SECRET_NOT_FOUND when there is none. */
int auth_ca_key(const struct auth *auth, const char *sandbox_id, struct buf *out,
                struct error *err);
/* Out of memory with those whose sandbox is gone: the store has none of them any more. */
void auth_ca_sweep(struct auth *auth, bool (*exists)(void *ctx, const char *sandbox_id), void *ctx);
