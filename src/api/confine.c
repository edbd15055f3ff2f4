/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The walls of a bound token, in one place and closed by default: auth_check() refuses it on every
 * row that does not say ROUTE_INSIDE, and here the rest is settled, which sandbox the row is about.
 */

#include "api/confine.h"

#include <string.h>

#include "api/aisandbox/door.h"
#include "sandbox/sandbox.h"

bool confine_allows(const struct principal *principal, const char *sandbox_id)
{
    return principal->sandbox[0] == '\0' || strcmp(principal->sandbox, sandbox_id) == 0;
}

static int not_found(const char *name, struct error *err)
{
    return error_set(err, ERROR_SANDBOX_NOT_FOUND, "there is no sandbox \"%.127s\"", name);
}

static int settle_name(struct http_exchange *x, const struct api_call *call, struct slice *value,
                       struct slice *raw, struct error *err)
{
    const char *name = aisandbox_plain(value->data);
    struct sandbox_info info;
    if (sandboxes_get(call->api->sandboxes, call->workspace, name, http_arena(x), &info, err) < 0)
        return -1;
    if (!confine_allows(&call->principal, info.id))
        return not_found(name, err); /* as if it were in another workspace */
    *value = slice_of(arena_strdup(http_arena(x), info.id));
    *raw = *value;
    return 0;
}

int confine(struct http_exchange *x, const struct route *route, const struct api_call *call,
            struct route_params *params, struct error *err)
{
    if (call->principal.sandbox[0] == '\0' ||
        (route->scope & (ROUTE_OF_CALLER | ROUTE_NAMED_IN_BODY)) != 0)
        return 0;
    for (size_t i = 0; i < params->count; i++)
        if (strcmp(params->items[i].name, "name") == 0)
            return settle_name(x, call, &params->items[i].value, &params->items[i].raw, err);
    return error_set(err, ERROR_FORBIDDEN,
                     "the token is bound to one sandbox, and this names none");
}
