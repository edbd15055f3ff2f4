/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Volumes, which are not here: there are none to be listed or found, and none can be made. Said in
 * the words that E2B's clients have exceptions for, rather than by a path that is unknown.
 */

#include "api/call.h"
#include "api/e2b/handlers.h"

int e2b_volume_list(struct http_exchange *x, const struct route_params *params, void *ctx,
                    struct error *err)
{
    yyjson_mut_doc *doc = json_doc(http_arena(x));
    yyjson_mut_doc_set_root(doc, yyjson_mut_arr(doc));
    return api_reply_json(x, 200, doc, err);
}

int e2b_volume_create(struct http_exchange *x, const struct route_params *params, void *ctx,
                      struct error *err)
{
    return error_set(err, ERROR_NOT_IMPLEMENTED,
                     "there are no volumes here: what a sandbox has written stays with it while it "
                     "is paused, and a snapshot keeps it for others");
}

int e2b_volume_find(struct http_exchange *x, const struct route_params *params, void *ctx,
                    struct error *err)
{
    return error_set(err, ERROR_FILE_NOT_FOUND, "volume \"%.80s\" not found",
                     route_param(params, "id"));
}
