/* SPDX-License-Identifier: Apache-2.0 */

/* Tokens of one sandbox: made, and revoked all at once by counting on. */

#include "auth/sandbox_token.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "auth/state.h"
#include "auth/token.h"
#include "base/cleanup.h"
#include "base/timetext.h"

struct token_generation {
    char sandbox_id[32];
    int64_t number;
    UT_hash_handle hh;
};

static struct token_generation *find(const struct auth *auth, const char *id)
{
    struct token_generation *entry;
    HASH_FIND_STR(auth->generations, id, entry);
    return entry;
}

int64_t auth_token_generation(const struct auth *auth, const char *sandbox_id)
{
    const struct token_generation *entry = find(auth, sandbox_id);
    return entry == NULL ? 0 : entry->number;
}

static int keep(void *ctx, const char *id, int64_t number, struct error *err)
{
    struct auth *auth = ctx;
    struct token_generation *entry = find(auth, id);
    if (entry == NULL) {
        entry = calloc(1, sizeof(*entry));
        if (entry == NULL)
            return error_sys(err, "keeping which tokens count");
        snprintf(entry->sandbox_id, sizeof(entry->sandbox_id), "%s", id);
        HASH_ADD_STR(auth->generations, sandbox_id, entry);
    }
    entry->number = number;
    return 0;
}

int auth_load_generations(struct auth *auth, struct error *err)
{
    return store_load_token_generations(auth->store, keep, auth, err);
}

static void drop(struct auth *auth, struct token_generation *entry)
{
    HASH_DEL(auth->generations, entry);
    free(entry);
}

void auth_forget_generations(struct auth *auth)
{
    while (auth->generations != NULL)
        drop(auth, auth->generations);
}

/* --- making one --- */

int auth_sandbox_token(const struct auth *auth, struct arena *arena, const struct principal *by,
                       const struct sandbox_token_request *request, const char **ret_token,
                       int64_t *ret_expires_ms, struct error *err)
{
    char more[SCOPES_TEXT_SIZE];
    int64_t ends_s = time_now_ms() / 1000 + request->lifetime_s;
    if ((request->scopes & ~(unsigned)(SCOPE_READ | SCOPE_WRITE)) != 0)
        return error_set(err, ERROR_INVALID_ARGUMENT,
                         "a token of one sandbox has the scopes read and write at most");
    scopes_text(request->scopes & ~by->scopes, more);
    if (more[0] != '\0')
        return error_set(err, ERROR_FORBIDDEN,
                         "\"%s\" does not have %s itself, so it cannot grant it", by->name, more);
    int64_t most_s = auth_gives_until_ms(by) / 1000;
    if (most_s != 0 && most_s < ends_s)
        ends_s = most_s;
    struct token_claims claims = {
        .audience = TOKEN_FOR_API,
        .subject = by->by_jwt || by->key_id[0] == '\0' ? by->name : by->key_id,
        .workspace = request->workspace,
        .scopes = request->scopes,
        .expires_s = ends_s,
        .sandbox = request->sandbox_id,
        .generation = auth_token_generation(auth, request->sandbox_id),
        .issuer = by->issuer,
    };
    *ret_token = auth_token_issue(auth, arena, &claims);
    *ret_expires_ms = ends_s * 1000;
    return 0;
}

/* --- revoking them --- */

static void forget_gone(struct auth *auth, bool (*exists)(void *ctx, const char *sandbox_id),
                        void *ctx)
{
    struct token_generation *entry, *next;
    HASH_ITER(hh, auth->generations, entry, next)
    {
        if (!exists(ctx, entry->sandbox_id))
            drop(auth, entry);
    }
}

int auth_sandbox_tokens_revoke(struct auth *auth, const char *sandbox_id,
                               bool (*exists)(void *ctx, const char *sandbox_id), void *ctx,
                               struct error *err)
{
    /* In memory first: what is made while the store is at work has the new number already, and two
     * who revoke at once count twice. */
    int64_t next = auth_token_generation(auth, sandbox_id) + 1;
    forget_gone(auth, exists, ctx);
    if (keep(auth, sandbox_id, next, err) < 0)
        return -1;
    token_cache_clear(&auth->verified);
    return store_put_token_generation(auth->store, sandbox_id, next, err);
}
