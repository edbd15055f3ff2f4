/* SPDX-License-Identifier: Apache-2.0 */

/* Templates are names of images (image/image.h). Whether one exists is asked before it is used. */

#include "api/call.h"
#include "api/e2b/handlers.h"
#include "image/image.h"

int e2b_template_list(struct http_exchange *x, const struct route_params *params, void *ctx,
                      struct error *err)
{
    static const char *const known[] = {"base", "code-interpreter-v1"};
    yyjson_mut_doc *doc = json_doc(http_arena(x));
    yyjson_mut_val *list = yyjson_mut_arr(doc);
    yyjson_mut_doc_set_root(doc, list);
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        const char *image;
        if (image_resolve(known[i], &image, NULL) < 0)
            continue;
        yyjson_mut_val *object = yyjson_mut_arr_add_obj(doc, list);
        yyjson_mut_obj_add_str(doc, object, "templateID", known[i]);
        yyjson_mut_obj_add_str(doc, object, "buildID", image);
        yyjson_mut_obj_add_bool(doc, object, "public", true);
        yyjson_mut_val *aliases = yyjson_mut_obj_add_arr(doc, object, "aliases");
        yyjson_mut_arr_add_str(doc, aliases, known[i]);
    }
    return api_reply_json(x, 200, doc, err);
}

int e2b_template_alias(struct http_exchange *x, const struct route_params *params, void *ctx,
                       struct error *err)
{
    const char *alias = route_param(params, "alias"), *image;
    if (image_resolve(alias, &image, NULL) < 0)
        return error_set(err, ERROR_IMAGE_NOT_FOUND, "template \"%.80s\" not found", alias);
    yyjson_mut_val *root;
    yyjson_mut_doc *doc = api_json_new(http_arena(x), &root);
    yyjson_mut_obj_add_str(doc, root, "templateID", alias);
    yyjson_mut_obj_add_bool(doc, root, "public", true);
    return api_reply_json(x, 200, doc, err);
}
