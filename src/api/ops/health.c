/* SPDX-License-Identifier: Apache-2.0 */

/* Whether the server is up: the only thing it tells a stranger. */

#include "api/handlers.h"

#include "api/call.h"

int ops_health(struct http_exchange *x, const struct route_params *params, void *ctx,
               struct error *err)
{
    yyjson_mut_val *root;
    yyjson_mut_doc *doc = api_json_new(http_arena(x), &root);
    yyjson_mut_obj_add_str(doc, root, "status", "ok");
    yyjson_mut_obj_add_str(doc, root, "version", CELLA_VERSION);
    return api_reply_json(x, 200, doc, err);
}
