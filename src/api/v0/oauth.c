/* SPDX-License-Identifier: Apache-2.0 */

/*
 * POST /v0/oauth/token: a client's id and secret against a token (RFC 6749 §4.4). The answers are
 * those of the RFC, errors too (§5.2): the libraries that call this know no other. A client is an
 * API key: its id is the key's id, its secret the key.
 */

#include "api/handlers.h"

#include <string.h>
#include <strings.h>

#include "api/call.h"
#include "api/record.h"
#include "auth/token.h"
#include "base/cleanup.h"
#include "base/limits.h"

enum { BODY_MAX = 16 * 1024 };

/* An error of the RFC, on its way to the client. */
struct refusal {
    int status;
    const char *code;
    const char *description; /* without quotes, as the RFC has it */
};

struct token_request {
    const char *grant_type, *client_id, *client_secret, *scope; /* NULL: not there */
};

static const struct {
    const char *name;
    size_t offset;
} request_fields[] = {
    {"grant_type", offsetof(struct token_request, grant_type)},
    {"client_id", offsetof(struct token_request, client_id)},
    {"client_secret", offsetof(struct token_request, client_secret)},
    {"scope", offsetof(struct token_request, scope)},
};

static bool refuse(struct refusal *refusal, int status, const char *code, const char *description)
{
    *refusal = (struct refusal){status, code, description};
    return false;
}

static bool refuse_request(struct refusal *refusal, const char *description)
{
    return refuse(refusal, 400, "invalid_request", description);
}

/* --- reading --- */

static const char **member(struct token_request *request, size_t i)
{
    return (const char **)((char *)request + request_fields[i].offset);
}

/* Parameters that are not known are to be ignored, those that are known come once (§3.2). */
static bool read_form(struct http_exchange *x, const char *form, struct token_request *request,
                      struct refusal *refusal)
{
    for (size_t i = 0; i < ARRAY_LEN(request_fields); i++) {
        const char *name = request_fields[i].name, *again = NULL;
        if (http_form_field(http_arena(x), form, name, 0, member(request, i), NULL) < 0 ||
            http_form_field(http_arena(x), form, name, 1, &again, NULL) < 0)
            return refuse_request(refusal, "the form has a broken escape");
        if (again != NULL)
            return refuse_request(refusal, arena_printf(http_arena(x), "%s comes twice", name));
    }
    return true;
}

static bool read_json(struct http_exchange *x, struct slice body, struct token_request *request,
                      struct refusal *refusal)
{
    yyjson_val *root;
    if (json_parse(http_arena(x), body, &root, NULL) < 0)
        return refuse_request(refusal, "the body is no JSON, nor does it say that it is a form");
    for (size_t i = 0; i < ARRAY_LEN(request_fields); i++) {
        yyjson_val *value = yyjson_obj_get(root, request_fields[i].name);
        if (value == NULL || yyjson_is_null(value))
            continue;
        if (!yyjson_is_str(value) || strlen(yyjson_get_str(value)) != yyjson_get_len(value))
            return refuse_request(
                refusal, arena_printf(http_arena(x), "%s is no text", request_fields[i].name));
        *member(request, i) = yyjson_get_str(value);
    }
    return true;
}

/* Authorization: Basic base64(id:secret), each form-encoded (§2.3.1). */
static bool read_basic(struct http_exchange *x, struct token_request *request,
                       struct refusal *refusal)
{
    const char *field = http_header(x, "Authorization");
    if (field == NULL || strncasecmp(field, "Basic ", 6) != 0)
        return true;
    field += 6 + strspn(field + 6, " ");
    struct slice pair, id, secret;
    const char *colon = NULL;
    if (json_base64_decode(http_arena(x), slice_of(field), &pair, NULL) == 0 && pair.len > 0)
        colon = memchr(pair.data, ':', pair.len);
    if (colon == NULL ||
        http_decode(http_arena(x), (struct slice){pair.data, (size_t)(colon - pair.data)}, &id,
                    NULL) < 0 ||
        http_decode(http_arena(x),
                    (struct slice){colon + 1, (size_t)(pair.data + pair.len - colon - 1)}, &secret,
                    NULL) < 0)
        return refuse(refusal, 401, "invalid_client",
                      "Authorization: Basic holds no base64 of id:secret");
    if (request->client_secret != NULL ||
        (request->client_id != NULL && strcmp(request->client_id, id.data) != 0))
        return refuse_request(refusal, "the client's id and secret come in the Authorization field "
                                       "and in the body: send them once");
    request->client_id = id.data;
    request->client_secret = secret.data;
    return true;
}

static bool read_request(struct http_exchange *x, struct slice body, struct token_request *request,
                         struct refusal *refusal)
{
    bool form = http_content_is(x, "application/x-www-form-urlencoded");
    if (body.len > 0 &&
        !(form ? read_form(x, body.data, request, refusal) : read_json(x, body, request, refusal)))
        return false;
    if (!read_basic(x, request, refusal))
        return false;
    if (request->grant_type == NULL)
        return refuse_request(refusal, "grant_type is missing: send client_credentials");
    if (strcmp(request->grant_type, "client_credentials") != 0)
        return refuse(refusal, 400, "unsupported_grant_type",
                      "the only grant_type here is client_credentials");
    if (request->client_id == NULL || request->client_secret == NULL)
        return refuse(refusal, 401, "invalid_client",
                      "client_id and client_secret are missing: the id of an API key, and the key");
    return true;
}

/* --- answering --- */

/* Fewer scopes than the client has, when it asks for that. */
static bool narrow_scopes(const char *wanted, unsigned *scopes, struct refusal *refusal)
{
    unsigned asked = 0;
    if (wanted == NULL || wanted[0] == '\0')
        return true;
    while (*wanted != '\0') {
        size_t len = strcspn(wanted, " ");
        unsigned one = scope_parse((struct slice){wanted, len});
        if (one == 0 || (one & ~*scopes) != 0)
            return refuse(refusal, 400, "invalid_scope",
                          "scope names one that does not exist, or that the client does not have");
        asked |= one;
        wanted += len + (wanted[len] == ' ');
    }
    *scopes = asked;
    return true;
}

static bool check_client(struct http_exchange *x, const struct api_call *call,
                         const struct token_request *request, struct principal *ret_client,
                         struct refusal *refusal)
{
    struct error err;
    struct auth *auth = call->api->auth;
    const char *peer = http_request(x)->peer;
    if (auth_check_client(auth, request->client_id, request->client_secret, peer, ret_client,
                          &err) == 0)
        return true;
    if (err.code != ERROR_TOO_MANY_ATTEMPTS)
        return refuse(refusal, 401, "invalid_client",
                      "no client has this id and secret, or its key has expired");
    http_set_header(x, "Retry-After", "%d", auth_retry_after(auth, peer));
    return refuse(refusal, 429, "temporarily_unavailable",
                  "too many wrong secrets came from this address");
}

static int reply_refusal(struct http_exchange *x, const struct refusal *refusal, struct error *err)
{
    yyjson_mut_val *root;
    yyjson_mut_doc *doc = api_json_new(http_arena(x), &root);
    yyjson_mut_obj_add_str(doc, root, "error", refusal->code);
    yyjson_mut_obj_add_str(doc, root, "error_description", refusal->description);
    if (refusal->status == 401)
        http_set_header(x, "WWW-Authenticate", "Basic realm=\"cella\"");
    return api_reply_json(x, refusal->status, doc, err);
}

static int reply_token(struct http_exchange *x, const struct api_call *call,
                       const struct principal *client, unsigned scopes, struct error *err)
{
    int64_t now = time_now_ms() / 1000, ends = now + TOKEN_LIFETIME_S;
    char scope[SCOPES_TEXT_SIZE];
    if (client->expires_ms != 0 && client->expires_ms / 1000 < ends)
        ends = client->expires_ms / 1000;
    struct token_claims claims = {
        .audience = TOKEN_FOR_API,
        .subject = client->key_id,
        .workspace = client->workspace,
        .scopes = scopes,
        .expires_s = ends,
    };
    scopes_text(scopes, scope);
    yyjson_mut_val *root;
    yyjson_mut_doc *doc = api_json_new(http_arena(x), &root);
    yyjson_mut_obj_add_str(doc, root, "access_token",
                           auth_token_issue(call->api->auth, http_arena(x), &claims));
    yyjson_mut_obj_add_str(doc, root, "token_type", "Bearer");
    yyjson_mut_obj_add_int(doc, root, "expires_in", ends - now);
    yyjson_mut_obj_add_str(doc, root, "scope", scope);
    return api_reply_json(x, 200, doc, err);
}

int v0_oauth_token(struct http_exchange *x, const struct route_params *params, void *ctx,
                   struct error *err)
{
    const struct api_call *call = ctx;
    struct token_request request = {0};
    struct refusal refusal;
    struct principal client;
    struct slice body = {"", 0};
    if (http_request(x)->content_length != 0 && http_body_all(x, BODY_MAX, &body, err) < 0)
        return -1;
    http_set_header(x, "Cache-Control", "no-store");
    http_set_header(x, "Pragma", "no-cache");
    if (!read_request(x, body, &request, &refusal) ||
        !check_client(x, call, &request, &client, &refusal))
        return reply_refusal(x, &refusal, err);
    record_client(x, &client);
    unsigned scopes = client.scopes;
    if (!narrow_scopes(request.scope, &scopes, &refusal))
        return reply_refusal(x, &refusal, err);
    return reply_token(x, call, &client, scopes, err);
}
