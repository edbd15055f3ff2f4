/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The client takes "code" for a status and compares it with 404 and 409, and tells a file that is
 * missing from one that is in the way by the HTTP status. So the statuses here are its, not ours.
 */

#include "api/blaxel/errors.h"

#include "api/call.h"
#include "base/cleanup.h"

static const struct {
    enum error_code code;
    int status;
} box_statuses[] = {
    {ERROR_DIRECTORY_NOT_EMPTY, 422}, {ERROR_IS_A_DIRECTORY, 422}, {ERROR_NOT_A_DIRECTORY, 422},
    {ERROR_NOT_A_FILE, 422},          {ERROR_TIMEOUT, 422}, /* 504 would be taken for a gateway's,
                                                               and the call made again */
    {ERROR_ALREADY_EXISTS, 400},
};

static int box_status(enum error_code code)
{
    for (size_t i = 0; i < ARRAY_LEN(box_statuses); i++)
        if (box_statuses[i].code == code)
            return box_statuses[i].status;
    return error_http_status(code);
}

int blaxel_reply_error(struct http_exchange *x, const struct error *why, struct error *err)
{
    yyjson_mut_val *root;
    yyjson_mut_doc *doc = api_json_new(http_arena(x), &root);
    int status = error_http_status(why->code);
    yyjson_mut_obj_add_int(doc, root, "code", status);
    yyjson_mut_obj_add_str(doc, root, "error", error_name(why->code));
    json_add_lossy(doc, root, "message", slice_of(why->message));
    return api_reply_json(x, status, doc, err);
}

int blaxel_box_reply_error(struct http_exchange *x, const struct error *why, struct error *err)
{
    yyjson_mut_val *root;
    yyjson_mut_doc *doc = api_json_new(http_arena(x), &root);
    json_add_lossy(doc, root, "error", slice_of(why->message));
    return api_reply_json(x, box_status(why->code), doc, err);
}
