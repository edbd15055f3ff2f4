/* SPDX-License-Identifier: Apache-2.0 */

/* Reading whom to trust, and from claims to a workspace and a role. */

#include "auth/issuer_config.h"

#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "auth/auth.h"
#include "auth/issuers.h"
#include "auth/workspaces.h"
#include "base/cleanup.h"
#include "base/limits.h"
#include "base/names.h"
#include "json/json.h"

#define OWN_ISSUER "cella" /* auth/token.c signs as this */

enum { LEEWAY_DEFAULT_S = 60, URL_MAX = 2048, ISSUER_NAME_MAX = 512 };

/* An issuer as it stands in the configuration. */
struct wish {
    const char *issuer, *url, *ca, *workspace, *workspace_claim, *role_claim, *default_role;
    yyjson_val *audience, *jwks, *algorithms, *workspaces, *roles;
    int64_t leeway, refresh, stale;
};

#define TEXT_FIELD(key, member)                                                                    \
    {                                                                                              \
        key, JSON_STRING, .offset = offsetof(struct wish, member)                                  \
    }
#define VALUE_FIELD(key, kind_, member)                                                            \
    {                                                                                              \
        key, kind_, .offset = offsetof(struct wish, member)                                        \
    }

static const struct json_field wish_fields[] = {
    {"issuer", JSON_STRING, .required = true, .offset = offsetof(struct wish, issuer)},
    {"audience", JSON_ANY, .required = true, .offset = offsetof(struct wish, audience)},
    TEXT_FIELD("jwksUrl", url),
    TEXT_FIELD("jwksCa", ca),
    {"jwksRefreshSeconds", JSON_INT, .offset = offsetof(struct wish, refresh), .min = 1,
     .max = JWKS_FRESH_MAX_S},
    {"jwksStaleSeconds", JSON_INT, .offset = offsetof(struct wish, stale), .min = 1,
     .max = JWKS_STALE_MAX_S},
    VALUE_FIELD("jwks", JSON_OBJECT, jwks),
    VALUE_FIELD("algorithms", JSON_ARRAY, algorithms),
    {"leewaySeconds", JSON_INT, .offset = offsetof(struct wish, leeway), .min = 0,
     .max = JWT_LEEWAY_MAX_S},
    TEXT_FIELD("workspace", workspace),
    TEXT_FIELD("workspaceClaim", workspace_claim),
    VALUE_FIELD("workspaces", JSON_OBJECT, workspaces),
    TEXT_FIELD("roleClaim", role_claim),
    VALUE_FIELD("roles", JSON_OBJECT, roles),
    TEXT_FIELD("defaultRole", default_role),
};

static int wrong(const char *where, const char *what, struct error *err)
{
    return error_set(err, ERROR_INVALID_ARGUMENT, "%s%s", where, what);
}

/* --- its members --- */

static bool is_text(yyjson_val *value)
{
    return yyjson_is_str(value) && yyjson_get_len(value) > 0 &&
           strlen(yyjson_get_str(value)) == yyjson_get_len(value);
}

/* A text, or a list of them. */
static int read_audiences(struct arena *arena, yyjson_val *value, const char *where,
                          const char *const **ret_list, struct error *err)
{
    static const char what[] = ".audience is neither a text nor a list of texts";
    size_t count = yyjson_is_arr(value) ? yyjson_arr_size(value) : 1, i, n;
    const char **list = arena_alloc(arena, (count + 1) * sizeof(*list));
    yyjson_val *item;
    if (count == 0 || (!yyjson_is_arr(value) && !is_text(value)))
        return wrong(where, what, err);
    list[0] = yyjson_get_str(value);
    yyjson_arr_foreach(value, i, n, item)
    {
        if (!is_text(item))
            return wrong(where, what, err);
        list[i] = yyjson_get_str(item);
    }
    list[count] = NULL;
    *ret_list = list;
    return 0;
}

static int read_algorithms(yyjson_val *list, const char *where, unsigned *ret_bits,
                           struct error *err)
{
    unsigned bits = 0;
    yyjson_val *item;
    size_t i, count;
    if (list == NULL) {
        *ret_bits = (1U << JWT_ALGORITHM_COUNT) - 1;
        return 0;
    }
    yyjson_arr_foreach(list, i, count, item)
    {
        enum jwt_algorithm algorithm;
        if (!is_text(item) || !jwt_algorithm_parse(yyjson_get_str(item), &algorithm))
            return wrong(where, ".algorithms: only RS256, ES256, EdDSA and HS256 are known", err);
        bits |= 1U << algorithm;
    }
    if (bits == 0)
        return wrong(where, ".algorithms is empty: leave it out for all", err);
    *ret_bits = bits;
    return 0;
}

static int read_map(struct arena *arena, yyjson_val *object, const char *where, const char *name,
                    struct claim_map *ret_map, struct error *err)
{
    size_t size = object == NULL ? 0 : yyjson_obj_size(object), i, count;
    struct claim_map map = {arena_alloc(arena, (size + 1) * sizeof(char *)),
                            arena_alloc(arena, (size + 1) * sizeof(char *)), 0};
    yyjson_val *key, *value;
    if (size > JWT_MAPPED_MAX)
        return error_set(err, ERROR_INVALID_ARGUMENT, "%s.%s has more than %d rows", where, name,
                         JWT_MAPPED_MAX);
    json_obj_foreach(object, i, count, key, value)
    {
        if (!is_text(key) || !is_text(value))
            return error_set(err, ERROR_INVALID_ARGUMENT, "%s.%s: a row is not text to text", where,
                             name);
        map.from[map.count] = yyjson_get_str(key);
        map.to[map.count++] = yyjson_get_str(value);
    }
    *ret_map = map;
    return 0;
}

static bool is_role(const char *name)
{
    return scope_parse(slice_of(name)) != 0;
}

static int check_names(const struct issuer *issuer, const char *where, struct error *err)
{
    for (size_t i = 0; i < issuer->roles.count; i++)
        if (!is_role(issuer->roles.to[i]))
            return wrong(where, ".roles: a role is none of read, write, admin and server", err);
    if (issuer->default_role != NULL && !is_role(issuer->default_role))
        return wrong(where, ".defaultRole is none of read, write, admin and server", err);
    for (size_t i = 0; i < issuer->workspaces.count; i++)
        if (name_check(issuer->workspaces.to[i], err) < 0)
            return error_prefix(err, "%s.workspaces", where);
    if (name_check(issuer->workspace, err) < 0)
        return error_prefix(err, "%s.workspace", where);
    return 0;
}

static bool starts_with(const char *text, const char *prefix)
{
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

/* How many certificates there are in a PEM text; 0 when one of them cannot be read. */
static size_t jwks_authorities(const char *pem)
{
    size_t count = 0;
    X509 *certificate;
    BIO *bio = BIO_new_mem_buf(pem, -1);
    while (bio != NULL && (certificate = PEM_read_bio_X509(bio, NULL, NULL, NULL)) != NULL) {
        X509_free(certificate);
        count++;
    }
    unsigned long problem = ERR_peek_last_error();
    if (ERR_GET_REASON(problem) != PEM_R_NO_START_LINE) /* which is how a text ends */
        count = 0;
    ERR_clear_error();
    BIO_free(bio);
    return count;
}

/* https, or this machine: who can change the answer on the way can let himself in. */
static bool is_url(const char *url)
{
    static const char *const starts[] = {
        "https://",          "http://127.0.0.1:", "http://127.0.0.1/", "http://localhost:",
        "http://localhost/", "http://[::1]:",     "http://[::1]/"};
    if (strlen(url) > URL_MAX || strpbrk(url, "@\\ \t\r\n#") != NULL)
        return false;
    for (size_t i = 0; i < ARRAY_LEN(starts); i++)
        if (starts_with(url, starts[i]))
            return true;
    return false;
}

static int read_url(const struct wish *wish, const char *where, struct issuer *issuer,
                    struct error *err)
{
    if (!is_url(wish->url))
        return wrong(where, ".jwksUrl is no https URL, nor one of this machine", err);
    if (wish->ca != NULL && !starts_with(wish->url, "https://"))
        return wrong(where, ".jwksCaFile is for an https URL, and jwksUrl is none", err);
    if (wish->ca != NULL && jwks_authorities(wish->ca) == 0)
        return wrong(where, ".jwksCaFile holds no certificate in PEM", err);
    if (wish->stale < wish->refresh)
        return wrong(where, ".jwksStaleSeconds is less than jwksRefreshSeconds", err);
    issuer->url = wish->url;
    issuer->authorities = wish->ca;
    issuer->refresh_ms = wish->refresh * 1000;
    issuer->stale_ms = wish->stale * 1000;
    return 0;
}

static int read_keys(struct arena *arena, const struct wish *wish, const char *where,
                     struct issuer *issuer, struct error *err)
{
    if ((wish->url == NULL) == (wish->jwks == NULL))
        return wrong(where, " needs one of jwksUrl, jwksFile and jwks", err);
    if (wish->url != NULL)
        return read_url(wish, where, issuer, err);
    if (wish->ca != NULL)
        return wrong(where, ".jwksCaFile stands beside no jwksUrl", err);
    size_t len = 0;
    char *text = yyjson_val_write(wish->jwks, 0, &len);
    if (text == NULL)
        return wrong(where, ".jwks cannot be read", err);
    int rc = jwks_parse((struct slice){text, len}, true, &issuer->keys, err);
    explicit_bzero(text, len);
    free(text);
    return rc < 0 ? error_prefix(err, "%s.jwks", where) : 0;
}

static void make_tag(const char *name, char out[ISSUER_TAG_LEN + 1])
{
    unsigned char digest[EVP_MAX_MD_SIZE];
    if (EVP_Digest(name, strlen(name), digest, NULL, EVP_sha256(), NULL) != 1)
        abort(); /* out of memory */
    snprintf(out, ISSUER_TAG_LEN + 1, "%02x%02x%02x%02x", digest[0], digest[1], digest[2],
             digest[3]);
}

static int read_issuer(struct arena *arena, yyjson_val *object, const char *where,
                       struct issuer *issuer, struct error *err)
{
    struct wish wish = {.workspace = WORKSPACE_DEFAULT,
                        .role_claim = "role",
                        .leeway = LEEWAY_DEFAULT_S,
                        .refresh = JWKS_FRESH_S,
                        .stale = JWKS_STALE_S};
    if (json_read(arena, object, where, wish_fields, ARRAY_LEN(wish_fields), &wish, err) < 0)
        return -1;
    if (wish.issuer[0] == '\0' || strlen(wish.issuer) > ISSUER_NAME_MAX ||
        strcmp(wish.issuer, OWN_ISSUER) == 0)
        return wrong(where, ".issuer is empty, too long, or this server's own (\"cella\")", err);
    issuer->name = wish.issuer;
    make_tag(wish.issuer, issuer->tag);
    issuer->rules.leeway_s = wish.leeway;
    issuer->workspace = wish.workspace;
    issuer->workspace_claim = wish.workspace_claim;
    issuer->role_claim = wish.role_claim;
    issuer->default_role = wish.default_role;
    if (read_audiences(arena, wish.audience, where, &issuer->rules.audiences, err) < 0 ||
        read_algorithms(wish.algorithms, where, &issuer->algorithms, err) < 0 ||
        read_map(arena, wish.workspaces, where, "workspaces", &issuer->workspaces, err) < 0 ||
        read_map(arena, wish.roles, where, "roles", &issuer->roles, err) < 0 ||
        check_names(issuer, where, err) < 0)
        return -1;
    return read_keys(arena, &wish, where, issuer, err);
}

/* --- all of it --- */

static int read_issuers(struct issuers *issuers, struct slice config, struct error *err)
{
    struct document {
        yyjson_val *issuers;
    } document = {NULL};
    static const struct json_field fields[] = {
        {"issuers", JSON_ARRAY, .required = true, .offset = offsetof(struct document, issuers)},
    };
    yyjson_val *root, *item;
    size_t i, count;
    char where[32];
    if (json_parse(issuers->arena, config, &root, err) < 0 ||
        json_read(issuers->arena, root, "", fields, 1, &document, err) < 0)
        return -1;
    if (yyjson_arr_size(document.issuers) > JWT_ISSUERS_MAX)
        return error_set(err, ERROR_INVALID_ARGUMENT, "issuers: there are more than %d",
                         JWT_ISSUERS_MAX);
    yyjson_arr_foreach(document.issuers, i, count, item)
    {
        snprintf(where, sizeof(where), "issuers[%zu]", i);
        struct issuer *issuer = &issuers->items[issuers->count++];
        if (read_issuer(issuers->arena, item, where, issuer, err) < 0)
            return -1;
        if (issuers_find(issuers, issuer->name) != issuer)
            return wrong(where, ".issuer is there twice", err);
    }
    return 0;
}

int issuers_parse(struct slice config, struct issuers **ret_issuers, struct error *err)
{
    struct issuers *issuers = calloc(1, sizeof(*issuers));
    if (issuers == NULL)
        return error_sys(err, "reading issuers");
    issuers->arena = arena_new();
    issuers->references = 1;
    if (config.len > 0 && read_issuers(issuers, config, err) < 0) {
        issuers_unref(issuers);
        return -1;
    }
    *ret_issuers = issuers;
    return 0;
}

void issuers_unref(struct issuers *issuers)
{
    if (issuers == NULL || --issuers->references > 0)
        return;
    for (size_t i = 0; i < issuers->count; i++)
        jwks_free(issuers->items[i].keys);
    arena_free(issuers->arena);
    free(issuers);
}

struct issuer *issuers_find(struct issuers *issuers, const char *name)
{
    for (size_t i = 0; i < issuers->count; i++)
        if (issuers->items[i].name != NULL && strcmp(issuers->items[i].name, name) == 0)
            return &issuers->items[i];
    return NULL;
}

/* --- from claims to a caller --- */

static const char *mapped(const struct claim_map *map, struct slice from)
{
    for (size_t i = 0; i < map->count; i++)
        if (slice_eq(slice_of(map->from[i]), from))
            return map->to[i];
    return NULL;
}

/* Without a map the names are the roles themselves; server has to be given by name. */
static unsigned scopes_of(const struct issuer *issuer, struct slice role)
{
    const char *name = mapped(&issuer->roles, role);
    if (name != NULL)
        return scope_parse(slice_of(name));
    unsigned scopes = issuer->roles.count > 0 ? 0 : scope_parse(role);
    return (scopes & SCOPE_SERVER) != 0 ? 0 : scopes;
}

/* A list, or a text with blanks between, as OAuth writes scopes. */
static unsigned read_roles(const struct issuer *issuer, yyjson_val *value)
{
    unsigned scopes = 0;
    yyjson_val *item;
    size_t i, count;
    yyjson_arr_foreach(value, i, count, item)
    {
        if (yyjson_is_str(item))
            scopes |= scopes_of(issuer, (struct slice){yyjson_get_str(item), yyjson_get_len(item)});
    }
    const char *at = is_text(value) ? yyjson_get_str(value) : "";
    while (*at != '\0') {
        size_t len = strcspn(at, " ");
        scopes |= scopes_of(issuer, (struct slice){at, len});
        at += len + (at[len] == ' ');
    }
    return scopes;
}

static const char *workspace_of(const struct issuer *issuer, yyjson_val *claims)
{
    if (issuer->workspace_claim == NULL)
        return issuer->workspace;
    yyjson_val *value = jwt_claim(claims, issuer->workspace_claim);
    if (!is_text(value))
        return NULL;
    if (issuer->workspaces.count > 0)
        return mapped(&issuer->workspaces, slice_of(yyjson_get_str(value)));
    return yyjson_get_str(value);
}

/* "jwt:" and the subject, which may hold anything. */
static void name_caller(const char *subject, char out[64])
{
    int len = snprintf(out, 64, JWT_NAME_PREFIX "%s", subject);
    for (int i = 0; i < len && i < 63; i++)
        if (out[i] <= ' ' || out[i] > '~' || out[i] == '"' || out[i] == '\\')
            out[i] = '_';
}

/* Callers are counted and cut off by the id of their key; this is instead of one, and no key's. */
static void identify(const char *issuer, const char *subject, char out[16])
{
    unsigned char digest[EVP_MAX_MD_SIZE];
    EVP_MD_CTX *md = EVP_MD_CTX_new();
    if (md == NULL || EVP_DigestInit_ex(md, EVP_sha256(), NULL) != 1 ||
        EVP_DigestUpdate(md, issuer, strlen(issuer) + 1) != 1 ||
        EVP_DigestUpdate(md, subject, strlen(subject)) != 1 ||
        EVP_DigestFinal_ex(md, digest, NULL) != 1)
        abort(); /* out of memory */
    EVP_MD_CTX_free(md);
    snprintf(out, 16, "jwt-%02x%02x%02x%02x%02x", digest[0], digest[1], digest[2], digest[3],
             digest[4]);
}

int issuer_principal(const struct issuer *issuer, yyjson_val *claims,
                     struct principal *ret_principal, struct error *err)
{
    struct principal principal = {.by_token = true, .by_jwt = true};
    yyjson_val *subject = yyjson_obj_get(claims, "sub");
    if (!is_text(subject))
        return error_set(err, ERROR_UNAUTHORIZED, "the token is not valid: it has no sub");
    const char *workspace = workspace_of(issuer, claims);
    if (workspace == NULL || strlen(workspace) >= sizeof(principal.workspace))
        return error_set(err, ERROR_FORBIDDEN,
                         "the token's %.100s names no workspace of this server",
                         issuer->workspace_claim);
    principal.scopes = read_roles(issuer, jwt_claim(claims, issuer->role_claim));
    if (principal.scopes == 0 && issuer->default_role != NULL)
        principal.scopes = scope_parse(slice_of(issuer->default_role));
    if (principal.scopes == 0)
        return error_set(err, ERROR_FORBIDDEN, "the token's %.100s names no role that counts here",
                         issuer->role_claim);
    snprintf(principal.workspace, sizeof(principal.workspace), "%s",
             workspace_canonical(workspace));
    name_caller(yyjson_get_str(subject), principal.name);
    identify(issuer->name, yyjson_get_str(subject), principal.key_id);
    memcpy(principal.issuer, issuer->tag, sizeof(principal.issuer));
    *ret_principal = principal;
    return 0;
}
