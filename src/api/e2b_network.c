/* SPDX-License-Identifier: Apache-2.0 */

/* A table of two lists, and the one rule that means everything. */

#include "api/e2b_network.h"

#include <string.h>

#include "api/v0/network_json.h"

static const char everything[] = "0.0.0.0/0", everything6[] = "::/0";

static int read_list(struct arena *arena, yyjson_val *network, const char *name,
                     struct slice *ret_list, struct error *err)
{
    yyjson_val *list = yyjson_obj_get(network, name);
    const char *where = arena_printf(arena, "network.%s", name);
    if (list == NULL || yyjson_is_null(list))
        return 0;
    if (!yyjson_is_arr(list))
        return error_set(err, ERROR_INVALID_ARGUMENT, "%s must be an array of strings", where);
    return network_list_from_json(arena, list, where, ret_list, err);
}

static bool denies_everything(struct slice deny)
{
    strv_each (rule, deny)
        if (strcmp(rule, everything) == 0 || strcmp(rule, everything6) == 0)
            return true;
    return false;
}

int e2b_network_request(struct arena *arena, yyjson_val *network, bool internet,
                        struct network_request *ret_request, struct error *err)
{
    struct network_request request = {.given = NETWORK_MODE | NETWORK_ALLOW | NETWORK_DENY,
                                      .mode = NET_ISOLATED,
                                      .replace = true};
    if (network != NULL && !yyjson_is_obj(network))
        return error_set(err, ERROR_INVALID_ARGUMENT, "network must be an object");
    if (read_list(arena, network, "allowOut", &request.allow, err) < 0 ||
        read_list(arena, network, "denyOut", &request.deny, err) < 0)
        return -1;
    if (!internet || denies_everything(request.deny)) {
        request.mode = NET_ALLOWLIST;
        request.deny = (struct slice){0}; /* what is allowed wins, and nothing else is */
    }
    *ret_request = request;
    return 0;
}
