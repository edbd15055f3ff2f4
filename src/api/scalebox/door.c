/* SPDX-License-Identifier: Apache-2.0 */

/* From a token or a signature to the sandbox that it is for. */

#include "api/scalebox/door.h"

#include <string.h>

#include "api/call.h"
#include "api/e2b/door.h"
#include "api/signed_address.h"
#include "auth/box_token.h"

#define ACTOR      "scalebox"
#define USER       "root"
#define ATTRIBUTES "user.scalebox."

enum { ID_MAX = 40 };

const char *scalebox_token(struct arena *arena, const struct api_call *call, const char *sandbox_id)
{
    char token[BOX_TOKEN_SIZE];
    auth_box_token(call->api->auth, BOX_INSIDE, sandbox_id, &call->principal, token);
    return arena_printf(arena, "%s:%s", sandbox_id, token);
}

bool scalebox_visits(const struct http_exchange *x)
{
    const char *token = http_header(x, "X-Access-Token");
    return token != NULL && strchr(token, ':') != NULL;
}

/* Whom it is done as: X-User, or "Bearer NAME", which is a name here and no key. */
static const char *user_of(struct http_exchange *x)
{
    const char *name = http_header(x, "X-User");
    if (name != NULL && name[0] != '\0')
        return name;
    const char *field = http_header(x, "Authorization");
    struct slice bearer = field == NULL ? (struct slice){NULL, 0} : auth_bearer(field);
    return bearer.data == NULL || bearer.len == 0
               ? USER
               : arena_dup(http_arena(x), bearer.data, bearer.len);
}

static int enter(struct http_exchange *x, const struct api *api, const char *id, const char *user,
                 struct connect_box *ret_box, struct error *err)
{
    if (e2b_box_of(x, api, id, user, ret_box, err) < 0) {
        if (err->code == ERROR_NOT_RUNNING) /* a file or process "not found" is something else */
            return error_set(err, ERROR_UNAVAILABLE,
                             "the sandbox \"%.40s\" is paused: connect to it to go on", id);
        return -1;
    }
    ret_box->actor = ACTOR;
    ret_box->attributes = ATTRIBUTES;
    return 0;
}

int scalebox_box(struct http_exchange *x, const struct api *api, struct connect_box *ret_box,
                 struct error *err)
{
    const char *token = http_header(x, "X-Access-Token");
    const char *colon = token == NULL ? NULL : strchr(token, ':');
    if (colon == NULL || colon == token || colon - token > ID_MAX)
        return error_set(err, ERROR_UNAUTHORIZED,
                         "send the sandbox's token (envd_access_token) as X-Access-Token");
    const char *id = arena_dup(http_arena(x), token, (size_t)(colon - token));
    if (auth_box_check(api->auth, BOX_INSIDE, id, colon + 1, http_request(x)->peer, err) < 0)
        return -1;
    return enter(x, api, id, user_of(x), ret_box, err);
}

/* --- signed addresses --- */

int scalebox_box_signed(struct http_exchange *x, const struct api *api, const char *path,
                        const char *operation, struct connect_box *ret_box, struct error *err)
{
    struct signed_address s = {.token_has_id = true};
    const char *user = NULL, *id;
    if (http_query(x, "signature", &s.signature, err) < 0 ||
        http_query(x, "signature_expiration", &s.expires, err) < 0 ||
        http_query(x, "username", &user, err) < 0)
        return -1;
    if (s.signature == NULL)
        return scalebox_box(x, api, ret_box, err);
    s.text = arena_printf(http_arena(x), "%s:%s:%s", path, operation, user == NULL ? "" : user);
    if (signed_address_find(x, api, &s, &id, err) < 0)
        return -1;
    return enter(x, api, id, user == NULL || user[0] == '\0' ? USER : user, ret_box, err);
}
