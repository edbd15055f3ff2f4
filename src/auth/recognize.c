/* SPDX-License-Identifier: Apache-2.0 */

/* Credentials by their looks, and where looks are anybody's by what was signed. */

#include "auth/recognize.h"

#include <string.h>

#include "auth/box_token.h"
#include "auth/issuer_config.h"
#include "auth/state.h"
#include "auth/token.h"

static bool is_key(const char *text)
{
    return strncmp(text, "cella_", 6) == 0;
}

/* By its claims alone: one that cannot be checked now may count later. */
static bool is_jwt_for_us(const struct auth *auth, struct arena *arena, const char *text)
{
    struct jwt jwt;
    if (auth->issuers == NULL || jwt_parse(arena, slice_of(text), &jwt, NULL) < 0)
        return false;
    yyjson_val *name = yyjson_obj_get(jwt.claims, "iss");
    const struct issuer *issuer =
        yyjson_is_str(name) ? issuers_find(auth->issuers, yyjson_get_str(name)) : NULL;
    return issuer != NULL && jwt_is_for(jwt.claims, &issuer->rules);
}

bool auth_recognizes(const struct auth *auth, struct arena *arena, const char *credential)
{
    char plain[AUTH_KEY_SIZE];
    struct token_claims claims;
    if (is_key(credential) || (auth_key_from_e2b(credential, plain) && is_key(plain)))
        return true;
    if (auth == NULL || strchr(credential, '.') == NULL) /* no token is without */
        return false;
    return auth_token_verify(auth, credential, TOKEN_FOR_API, arena, &claims, NULL) == 0 ||
           is_jwt_for_us(auth, arena, credential);
}

bool auth_recognizes_box(const struct auth *auth, const char *sandbox_id, const char *token)
{
    return auth_box_is_token(auth, BOX_INSIDE, sandbox_id, token) ||
           auth_box_is_token(auth, BOX_TRAFFIC, sandbox_id, token);
}
