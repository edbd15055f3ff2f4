/* SPDX-License-Identifier: Apache-2.0 */

/* Authorities in memory, sealed as they are in the database. */

#include "auth/sandbox_ca.h"

#include <stdio.h>
#include <stdlib.h>

#include "auth/authority.h"
#include "auth/state.h"
#include "base/cleanup.h"
#include "base/limits.h"

struct sandbox_ca {
    char id[2 * SANDBOX_ID_LEN];
    char *certificate;
    struct buf sealed;
    UT_hash_handle hh;
};

static struct sandbox_ca *find(const struct auth *auth, const char *id)
{
    struct sandbox_ca *ca;
    HASH_FIND_STR(auth->cas, id, ca);
    return ca;
}

static void ca_remove(struct auth *auth, struct sandbox_ca *ca)
{
    HASH_DEL(auth->cas, ca);
    buf_release(&ca->sealed);
    free(ca->certificate);
    free(ca);
}

void auth_forget_cas(struct auth *auth)
{
    while (auth->cas != NULL)
        ca_remove(auth, auth->cas);
}

static int load_ca(void *ctx, const struct store_sandbox_ca *row, struct error *err)
{
    struct auth *auth = ctx;
    struct sandbox_ca *ca = calloc(1, sizeof(*ca));
    char *certificate = strdup(row->certificate);
    if (ca == NULL || certificate == NULL) {
        free(ca);
        free(certificate);
        return error_sys(err, "keeping a certificate authority");
    }
    ca->certificate = certificate;
    snprintf(ca->id, sizeof(ca->id), "%s", row->sandbox_id);
    buf_init(&ca->sealed, AUTHORITY_TEXT_MAX + SEAL_OVERHEAD);
    buf_add(&ca->sealed, row->sealed_key.data, row->sealed_key.len);
    HASH_ADD_STR(auth->cas, id, ca);
    return buf_check(&ca->sealed, "the key of a certificate authority", err);
}

int auth_load_cas(struct auth *auth, struct error *err)
{
    return store_load_sandbox_cas(auth->store, load_ca, auth, err);
}

static void place_of(const char *id, char out[64])
{
    snprintf(out, 64, "ca/%.40s", id);
}

/* Stores it and takes it over, unless somebody was faster while the store was at work. */
static int keep(struct auth *auth, const char *id, const char *certificate, const struct buf *key,
                struct error *err)
{
    _cleanup_buf_ struct buf sealed = BUF_INIT(AUTHORITY_TEXT_MAX + SEAL_OVERHEAD);
    char place[64];
    place_of(id, place);
    if (seal(auth->seal_key, slice_of(place), (struct slice){key->data, key->len}, &sealed, err) <
        0)
        return -1;
    const struct store_sandbox_ca row = {id, certificate, {sealed.data, sealed.len}};
    if (store_put_sandbox_ca(auth->store, &row, err) < 0)
        return -1;
    struct sandbox_ca *before = find(auth, id);
    if (before != NULL)
        ca_remove(auth, before);
    return load_ca(auth, &row, err);
}

const char *auth_ca_certificate(const struct auth *auth, const char *sandbox_id,
                                struct arena *arena)
{
    const struct sandbox_ca *ca = find(auth, sandbox_id);
    return ca == NULL ? NULL : arena_strdup(arena, ca->certificate);
}

int auth_ca_make(struct auth *auth, const char *sandbox_id, const char *name, struct error *err)
{
    _cleanup_buf_ struct buf certificate = BUF_INIT(AUTHORITY_TEXT_MAX);
    _cleanup_wipe_ struct buf key = BUF_INIT(AUTHORITY_TEXT_MAX);
    if (find(auth, sandbox_id) != NULL)
        return 0;
    char text[64];
    snprintf(text, sizeof(text), "Cella sandbox %.40s", name);
    if (authority_make(text, &certificate, &key, err) < 0)
        return -1;
    return keep(auth, sandbox_id, certificate.data, &key, err);
}

int auth_ca_copy(struct auth *auth, const char *from_id, const char *to_id, struct error *err)
{
    _cleanup_wipe_ struct buf key = BUF_INIT(AUTHORITY_TEXT_MAX);
    const struct sandbox_ca *from = find(auth, from_id);
    if (from == NULL)
        return 0;
    _cleanup_free_ char *certificate = strdup(from->certificate);
    if (certificate == NULL)
        return error_sys(err, "copying a certificate authority");
    if (auth_ca_key(auth, from_id, &key, err) < 0)
        return -1;
    return keep(auth, to_id, certificate, &key, err);
}

int auth_ca_delete(struct auth *auth, const char *sandbox_id, struct error *err)
{
    if (store_delete_sandbox_ca(auth->store, sandbox_id, err) < 0)
        return -1;
    struct sandbox_ca *ca = find(auth, sandbox_id);
    if (ca != NULL)
        ca_remove(auth, ca);
    return 0;
}

int auth_ca_key(const struct auth *auth, const char *sandbox_id, struct buf *out, struct error *err)
{
    const struct sandbox_ca *ca = find(auth, sandbox_id);
    char place[64];
    if (ca == NULL)
        return error_set(err, ERROR_SECRET_NOT_FOUND, "the sandbox has no certificate authority");
    place_of(sandbox_id, place);
    return unseal(auth->seal_key, slice_of(place), (struct slice){ca->sealed.data, ca->sealed.len},
                  out, err);
}

void auth_ca_sweep(struct auth *auth, bool (*exists)(void *ctx, const char *sandbox_id), void *ctx)
{
    struct sandbox_ca *ca, *next;
    HASH_ITER(hh, auth->cas, ca, next)
    {
        if (!exists(ctx, ca->id))
            ca_remove(auth, ca);
    }
}
