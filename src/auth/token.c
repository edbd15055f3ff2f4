/* SPDX-License-Identifier: Apache-2.0 */

/* What is in a token, and whether it counts. */

#include "auth/token.h"

#include <stdio.h>
#include <string.h>

#include "auth/jws.h"
#include "auth/sandbox_token.h"
#include "auth/state.h"
#include "base/cleanup.h"
#include "base/limits.h"
#include "base/names.h"
#include "base/timetext.h"
#include "json/json.h"

#define ISSUER "cella"

/* A clock that was set back a little must not make what was issued before unusable. */
enum { CLOCK_LEEWAY_S = 60, TOKEN_ID_LEN = 20 };

struct claims {
    const char *iss, *aud, *sub, *workspace, *scope, *jti, *sandbox, *issuer;
    int64_t iat, nbf, exp, generation;
};

#define TEXT_CLAIM(name)                                                                           \
    {                                                                                              \
#name, JSON_STRING, .required = true, .offset = offsetof(struct claims, name)              \
    }
#define TIME_CLAIM(name)                                                                           \
    {                                                                                              \
#name, JSON_INT, .required = true, .offset = offsetof(struct claims, name), .min = 0,      \
                         .max = INT32_MAX * INT64_C(1000)                                          \
    }

static const struct json_field claim_fields[] = {
    TEXT_CLAIM(iss),
    TEXT_CLAIM(aud),
    TEXT_CLAIM(sub),
    TEXT_CLAIM(workspace),
    TEXT_CLAIM(scope),
    TEXT_CLAIM(jti),
    TIME_CLAIM(iat),
    TIME_CLAIM(nbf),
    TIME_CLAIM(exp),
    {"sandbox", JSON_STRING, .offset = offsetof(struct claims, sandbox)},
    {"issuer", JSON_STRING, .offset = offsetof(struct claims, issuer)},
    {"generation", JSON_INT, .offset = offsetof(struct claims, generation), .min = 0,
     .max = INT64_MAX},
};

static struct slice secret_of(const struct auth *auth)
{
    return (struct slice){(const char *)auth->token_secret, sizeof(auth->token_secret)};
}

const char *auth_token_issue(const struct auth *auth, struct arena *arena,
                             struct token_claims *claims)
{
    char scope[SCOPES_TEXT_SIZE];
    char *id = arena_alloc(arena, TOKEN_ID_LEN + 1);
    random_id(id, TOKEN_ID_LEN);
    scopes_text(claims->scopes, scope);
    claims->id = id;
    claims->issued_s = time_now_ms() / 1000;

    yyjson_mut_doc *doc = json_doc(arena);
    yyjson_mut_val *root = yyjson_mut_obj(doc);
    yyjson_mut_doc_set_root(doc, root);
    yyjson_mut_obj_add_str(doc, root, "iss", ISSUER);
    yyjson_mut_obj_add_str(doc, root, "aud", claims->audience);
    yyjson_mut_obj_add_str(doc, root, "sub", claims->subject);
    yyjson_mut_obj_add_str(doc, root, "workspace", claims->workspace);
    yyjson_mut_obj_add_str(doc, root, "scope", scope);
    yyjson_mut_obj_add_int(doc, root, "iat", claims->issued_s);
    yyjson_mut_obj_add_int(doc, root, "nbf", claims->issued_s);
    yyjson_mut_obj_add_int(doc, root, "exp", claims->expires_s);
    yyjson_mut_obj_add_str(doc, root, "jti", id);
    if (claims->sandbox != NULL) {
        yyjson_mut_obj_add_str(doc, root, "sandbox", claims->sandbox);
        yyjson_mut_obj_add_int(doc, root, "generation", claims->generation);
    }
    if (claims->issuer != NULL && claims->issuer[0] != '\0')
        yyjson_mut_obj_add_str(doc, root, "issuer", claims->issuer);
    return jws_sign(arena, secret_of(auth), json_write(arena, doc, false));
}

static unsigned read_scopes(const char *text)
{
    unsigned scopes = 0;
    while (*text != '\0') {
        size_t len = strcspn(text, " ");
        scopes |= scope_parse((struct slice){text, len});
        text += len + (text[len] == ' ');
    }
    return scopes;
}

static enum verdict open_token(const struct auth *auth, const char *token, const char *audience,
                               struct arena *arena, struct token_claims *ret_claims,
                               struct error *err)
{
    struct slice payload;
    struct claims claims = {0};
    yyjson_val *root;
    if (jws_open(arena, secret_of(auth), slice_of(token), &payload, err) < 0)
        return VERDICT_WRONG;
    if (json_parse(arena, payload, &root, err) < 0 ||
        json_read(arena, root, "", claim_fields, ARRAY_LEN(claim_fields), &claims, err) < 0 ||
        strcmp(claims.iss, ISSUER) != 0 || strcmp(claims.aud, audience) != 0) {
        error_set(err, ERROR_UNAUTHORIZED, "the token is for something else");
        return VERDICT_OVER;
    }
    int64_t now = time_now_ms() / 1000;
    if (now >= claims.exp || now + CLOCK_LEEWAY_S < claims.nbf) {
        error_set(err, ERROR_UNAUTHORIZED, "the token %s: request another one",
                  now >= claims.exp ? "has expired" : "is not valid yet");
        return VERDICT_OVER;
    }
    if (claims.issuer != NULL && !auth_trusts(auth, claims.issuer)) {
        error_set(err, ERROR_UNAUTHORIZED, "whose token this was made with is trusted no more");
        return VERDICT_OVER;
    }
    *ret_claims = (struct token_claims){
        .id = claims.jti,
        .audience = claims.aud,
        .subject = claims.sub,
        .workspace = claims.workspace,
        .scopes = read_scopes(claims.scope),
        .issued_s = claims.iat,
        .expires_s = claims.exp,
        .sandbox = claims.sandbox,
        .generation = claims.generation,
        .issuer = claims.issuer,
    };
    return VERDICT_RIGHT;
}

int auth_token_verify(const struct auth *auth, const char *token, const char *audience,
                      struct arena *arena, struct token_claims *ret_claims, struct error *err)
{
    return open_token(auth, token, audience, arena, ret_claims, err) == VERDICT_RIGHT ? 0 : -1;
}

enum verdict auth_judge_token(const struct auth *auth, const char *token,
                              struct principal *ret_principal, struct error *err)
{
    struct arena *arena = arena_new();
    struct token_claims claims;
    enum verdict verdict = open_token(auth, token, TOKEN_FOR_API, arena, &claims, err);
    if (verdict == VERDICT_RIGHT && claims.sandbox != NULL &&
        claims.generation != auth_token_generation(auth, claims.sandbox)) {
        error_set(err, ERROR_UNAUTHORIZED, "the tokens of this sandbox were revoked");
        verdict = VERDICT_OVER;
    }
    if (verdict == VERDICT_RIGHT) {
        *ret_principal = (struct principal){
            .scopes = claims.scopes, .expires_ms = claims.expires_s * 1000, .by_token = true};
        snprintf(ret_principal->workspace, sizeof(ret_principal->workspace), "%s",
                 claims.workspace);
        if (claims.issuer != NULL)
            snprintf(ret_principal->issuer, sizeof(ret_principal->issuer), "%s", claims.issuer);
        if (strncmp(claims.subject, JWT_NAME_PREFIX, strlen(JWT_NAME_PREFIX)) == 0) {
            snprintf(ret_principal->name, sizeof(ret_principal->name), "%s", claims.subject);
        } else {
            snprintf(ret_principal->key_id, sizeof(ret_principal->key_id), "%s", claims.subject);
        }
        if (claims.sandbox != NULL)
            snprintf(ret_principal->sandbox, sizeof(ret_principal->sandbox), "%s", claims.sandbox);
    }
    arena_free(arena);
    return verdict;
}
