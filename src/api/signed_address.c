/* SPDX-License-Identifier: Apache-2.0 */

/* From a signature to the sandbox whose token made it. */

#include "api/signed_address.h"

#include <stdlib.h>
#include <string.h>

#include "api/call.h"
#include "auth/box_token.h"
#include "loop/co.h"

enum { TRIED_AT_ONCE = 64 }; /* some 200 µs: then others have their turn */

static const char refused[] = "the signature is no sandbox's for this path";

int signed_address_check_expiry(const struct signed_address *address, struct error *err)
{
    uint64_t seconds;
    if (address->expires == NULL)
        return 0;
    if (!api_parse_uint(address->expires, 0, INT64_MAX / 1000, &seconds))
        return error_set(err, ERROR_INVALID_ARGUMENT,
                         "signature_expiration: \"%.40s\" is no time in seconds", address->expires);
    if ((int64_t)seconds * 1000 < time_now_ms())
        return error_set(err, ERROR_UNAUTHORIZED, "the signature is already expired");
    return 0;
}

bool signed_address_fits(const struct api *api, const struct signed_address *address,
                         struct arena *arena, const char *sandbox_id)
{
    const char *text = address->text;
    if (address->token_has_id)
        text = arena_printf(arena, "%s:%s", text, sandbox_id);
    return auth_box_signed(api->auth, sandbox_id, text, address->expires, address->signature);
}

/* --- hints --- */

/* A signature's characters are those of a hash, so some of them are as good as any other hash. */
static struct signed_hint *hint_of(const struct signed_hints *hints, const char *signature)
{
    size_t n = 0;
    for (size_t i = AUTH_SIGNATURE_PREFIX; i < AUTH_SIGNATURE_PREFIX + 4; i++)
        n = n * 31 + (unsigned char)signature[i];
    return hints->rows == NULL ? NULL : &hints->rows[n % SIGNED_HINTS];
}

static void remember(struct signed_hints *hints, const char *signature, const char *id)
{
    if (hints->rows == NULL)
        hints->rows = calloc(SIGNED_HINTS, sizeof(*hints->rows));
    struct signed_hint *hint = hint_of(hints, signature);
    if (hint == NULL)
        return;
    memcpy(hint->signature, signature + AUTH_SIGNATURE_PREFIX, sizeof(hint->signature));
    memcpy(hint->id, id, strnlen(id, SANDBOX_ID_LEN) + 1);
}

void signed_hints_release(struct signed_hints *hints)
{
    free(hints->rows);
    hints->rows = NULL;
}

static const char *find_by_hint(const struct api *api, const struct signed_address *address,
                                struct arena *arena)
{
    const struct signed_hint *hint = hint_of(api->signed_hints, address->signature);
    if (hint == NULL || hint->id[0] == '\0' ||
        !auth_signature_begins(address->signature, hint->signature, sizeof(hint->signature)) ||
        !sandboxes_has(api->sandboxes, hint->id) ||
        !signed_address_fits(api, address, arena, hint->id))
        return NULL;
    return arena_strdup(arena, hint->id);
}

/* --- all of them --- */

/* *ret_id stays NULL when it is nobody's. */
static int try_all(struct http_exchange *x, const struct api *api,
                   const struct signed_address *address, const char **ret_id, struct error *err)
{
    struct arena *arena = http_arena(x), *scratch = NULL;
    size_t count = 0;
    const char **ids = sandboxes_ids(api->sandboxes, arena, &count);
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < count && *ret_id == NULL; i++) {
        if (i % TRIED_AT_ONCE == 0) {
            arena_free(scratch);
            scratch = arena_new();
            rc = i == 0 ? 0 : co_sleep(api->loop, 0, err);
        }
        if (rc == 0 && signed_address_fits(api, address, scratch, ids[i]))
            *ret_id = ids[i];
    }
    arena_free(scratch);
    return rc;
}

/* One after the other: of many that come at once from one address, those that come after too many
 * wrong ones are not tried, whoever was first to ask. */
static int search(struct http_exchange *x, const struct api *api,
                  const struct signed_address *address, const char **ret_id, struct error *err)
{
    struct signed_hints *hints = api->signed_hints;
    const char *peer = http_request(x)->peer;
    if (hints->searches == SIGNED_SEARCHES_MAX)
        return error_set(err, ERROR_UNAVAILABLE,
                         "too many signed addresses are being looked for: try again");
    if (hints->searches++ > 0 && co_cond_wait(api->loop, &hints->turn, -1, err) < 0) {
        hints->searches--; /* it was not its turn */
        return -1;
    }
    int rc = auth_box_may_try(api->auth, peer, err);
    if (rc == 0)
        rc = try_all(x, api, address, ret_id, err);
    if (rc == 0 && *ret_id == NULL)
        rc = auth_box_refuse(api->auth, peer, refused, err);
    hints->searches--;
    co_cond_wake(&hints->turn);
    return rc;
}

int signed_address_find(struct http_exchange *x, const struct api *api,
                        const struct signed_address *address, const char **ret_id,
                        struct error *err)
{
    const char *peer = http_request(x)->peer, *id = NULL;
    if (signed_address_check_expiry(address, err) < 0)
        return -1;
    if (!auth_signature_has_form(address->signature))
        return auth_box_refuse(api->auth, peer, refused, err);
    id = find_by_hint(api, address, http_arena(x));
    if (id == NULL) {
        if (search(x, api, address, &id, err) < 0)
            return -1;
        remember(api->signed_hints, address->signature, id);
    }
    *ret_id = id;
    return 0;
}
