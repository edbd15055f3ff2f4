/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Tokens. The bytes are taken as a token, which must not be right; as the payload of one that is
 * signed, which must come back as it was; as a header, as base64url; and as the fields that carry
 * credentials.
 */

#include "auth/jws.h"

#include <stdlib.h>

#include "auth/auth.h"
#include "auth/throttle.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool truth)
{
    if (!truth)
        abort();
}

static void check_signed(struct arena *arena, struct slice secret, struct slice bytes)
{
    struct slice payload;
    const char *token = jws_sign(arena, secret, bytes);
    if (jws_open(arena, secret, slice_of(token), &payload, NULL) == 0)
        require(slice_eq(payload, bytes));
    else
        require(bytes.len > 1024); /* over TOKEN_MAX */

    struct slice head = base64url_encode(arena, bytes);
    const char *text = arena_printf(arena, "%.*s.e30", (int)head.len, head.data);
    if (jws_open(arena, secret, slice_of(jws_sign_text(arena, secret, text)), &payload, NULL) == 0)
        require(slice_eq(payload, slice_of("{}")));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena *arena = arena_new();
    struct slice bytes = {arena_dup(arena, data, size), size}, payload, decoded;
    struct slice secret = slice_of("a secret that the input does not know");
    struct error err = {0};
    require(jws_open(arena, secret, bytes, &payload, &err) < 0);
    require(err.code == ERROR_UNAUTHORIZED);
    check_signed(arena, secret, bytes);
    if (base64url_decode(arena, bytes, &decoded))
        require(slice_eq(base64url_encode(arena, decoded), bytes));
    struct slice bearer = auth_bearer(bytes.data);
    require(bearer.data == NULL || bearer.len > 0);
    scope_parse(bytes);
    peer_address(bytes.data);
    arena_free(arena);
    return 0;
}
