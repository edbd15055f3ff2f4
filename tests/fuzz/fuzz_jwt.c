/* SPDX-License-Identifier: Apache-2.0 */

/* JWTs of strangers: the bytes as a token, as its header, and as its claims, of which rules and a
 * mapping then make what they can. None of it may be right without a signature, which nobody looks
 * for here. */

#include "auth/jwt.h"

#include <stdlib.h>

#include "auth/issuer_config.h"
#include "auth/jws.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool truth)
{
    if (!truth)
        abort();
}

static void map_claims(yyjson_val *claims)
{
    static const char *const audiences[] = {"cella", NULL};
    const struct jwt_rules rules = {audiences, 60};
    const struct issuer issuer = {
        .name = "a", .workspace = "default", .role_claim = "/a/b", .default_role = "read"};
    const struct issuer other = {.name = "a", .workspace_claim = "workspace", .role_claim = "role"};
    struct principal who;
    int64_t expires;
    if (jwt_check_claims(claims, &rules, 1700000000, &expires, NULL) == 0)
        require(expires >= 1700000000 - 60);
    if (issuer_principal(&issuer, claims, &who, NULL) == 0)
        require(who.by_jwt && who.scopes != 0 && (who.scopes & SCOPE_SERVER) == 0);
    if (issuer_principal(&other, claims, &who, NULL) == 0)
        require(who.scopes != 0 && (who.scopes & SCOPE_SERVER) == 0);
}

static void take(struct arena *arena, struct slice token)
{
    struct error err = {0};
    struct jwt jwt;
    if (jwt_parse(arena, token, &jwt, &err) < 0) {
        require(err.code == ERROR_UNAUTHORIZED);
        return;
    }
    require(yyjson_is_obj(jwt.claims) && jwt.signature.len > 0);
    map_claims(jwt.claims);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena *arena = arena_new();
    struct slice bytes = {arena_dup(arena, data, size), size};
    struct slice coded = base64url_encode(arena, bytes);
    take(arena, bytes);
    take(arena, slice_of(arena_printf(arena, "%.*s.e30.c2ln", (int)coded.len, coded.data)));
    take(arena, slice_of(arena_printf(arena, "eyJhbGciOiJSUzI1NiJ9.%.*s.c2ln", (int)coded.len,
                                      coded.data)));
    arena_free(arena);
    return 0;
}
