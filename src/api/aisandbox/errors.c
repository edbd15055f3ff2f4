/* SPDX-License-Identifier: Apache-2.0 */

/* What went wrong, in the envelope of /api/sandbox. */

#include "api/aisandbox/errors.h"

#include "api/call.h"
#include "base/cleanup.h"

/* What failed; the error's own message is why, and becomes the cause. */
static const struct {
    enum error_code code;
    const char *message;
} failures[] = {
    {ERROR_CONTAINER_CREATION_FAILED, "Failed to create container from image"},
    {ERROR_CONTAINER_START_FAILED, "Failed to start container"},
};

yyjson_mut_val *aisandbox_add_error(yyjson_mut_doc *doc, yyjson_mut_val *object,
                                    enum error_code code, const char *message)
{
    yyjson_mut_val *error = yyjson_mut_obj_add_obj(doc, object, "error");
    yyjson_mut_obj_add_str(doc, error, "code", error_name(code));
    json_add_lossy(doc, error, "message", slice_of(message));
    yyjson_mut_val *details = yyjson_mut_obj_add_obj(doc, error, "details");
    yyjson_mut_obj_add_str(doc, details, "category", error_category_name(error_category(code)));
    return details;
}

int aisandbox_reply_error(struct http_exchange *x, const struct error *why, struct error *err)
{
    yyjson_mut_val *root;
    yyjson_mut_doc *doc = api_json_new(http_arena(x), &root);
    const char *failure = NULL;
    for (size_t i = 0; i < ARRAY_LEN(failures); i++)
        if (failures[i].code == why->code)
            failure = failures[i].message;
    yyjson_mut_val *details =
        aisandbox_add_error(doc, root, why->code, failure != NULL ? failure : why->message);
    if (failure != NULL)
        json_add_lossy(doc, details, "cause", slice_of(why->message));
    return api_reply_json(x, error_http_status(why->code), doc, err);
}
