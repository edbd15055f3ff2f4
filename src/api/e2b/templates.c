/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Templates are names of images (image/image.h) and snapshots. Whether one exists is asked before
 * it is used. They are not built here, so each has one build, and that one tag.
 */

#include "api/e2b/templates.h"

#include <inttypes.h>
#include <string.h>

#include "api/blaxel/members.h"
#include "api/call.h"
#include "api/e2b/handlers.h"
#include "api/e2b/sandbox_json.h"
#include "api/e2b/snapshots.h"
#include "base/cleanup.h"
#include "image/image.h"

#define ONLY_TAG "default"

enum { BUILD_ID_SIZE = 37 };

const char *e2b_template_image(struct arena *arena, const char *template_id)
{
    const char *image, *plain = arena_dup(arena, template_id, strcspn(template_id, ":"));
    const char *slash = strrchr(plain, '/');
    if (image_resolve(plain, &image, NULL) == 0)
        return plain;
    return slash != NULL && image_resolve(slash + 1, &image, NULL) == 0 ? slash + 1 : NULL;
}

/* Python's client wants a UUID: one that is the same whenever the same template is asked for. */
static void build_id(const char *template_id, char out[BUILD_ID_SIZE])
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325); /* FNV-1a */
    for (const char *c = template_id; *c != '\0'; c++)
        hash = (hash ^ (unsigned char)*c) * UINT64_C(0x100000001b3);
    snprintf(out, BUILD_ID_SIZE, "00000000-0000-4000-8000-%012" PRIx64, hash >> 16);
}

struct found_template {
    const char *id;
    bool is_public;
    int64_t created_ms;
};

/* IMAGE_NOT_FOUND */
static int find_template(struct http_exchange *x, const struct api_call *call, const char *name,
                         struct found_template *ret, struct error *err)
{
    const char *image = e2b_template_image(http_arena(x), name);
    struct sandbox_info snapshot;
    if (image != NULL) {
        *ret = (struct found_template){.id = image, .is_public = true};
        return 0;
    }
    if (e2b_snapshot_find(x, call, name, &snapshot, NULL) < 0)
        return error_set(err, ERROR_IMAGE_NOT_FOUND, "template \"%.80s\" not found", name);
    *ret = (struct found_template){.id = snapshot.id, .created_ms = snapshot.created_ms};
    return 0;
}

/* --- looking --- */

int e2b_template_list(struct http_exchange *x, const struct route_params *params, void *ctx,
                      struct error *err)
{
    static const char *const known[] = {"base", "code-interpreter-v1"};
    yyjson_mut_doc *doc = json_doc(http_arena(x));
    yyjson_mut_val *list = yyjson_mut_arr(doc);
    yyjson_mut_doc_set_root(doc, list);
    for (size_t i = 0; i < ARRAY_LEN(known); i++) {
        char build[BUILD_ID_SIZE];
        if (e2b_template_image(http_arena(x), known[i]) == NULL)
            continue;
        yyjson_mut_val *object = yyjson_mut_arr_add_obj(doc, list);
        build_id(known[i], build);
        yyjson_mut_obj_add_str(doc, object, "templateID", known[i]);
        yyjson_mut_obj_add_strcpy(doc, object, "buildID", build);
        yyjson_mut_obj_add_bool(doc, object, "public", true);
        yyjson_mut_val *aliases = yyjson_mut_obj_add_arr(doc, object, "aliases");
        yyjson_mut_arr_add_str(doc, aliases, known[i]);
    }
    return api_reply_json(x, 200, doc, err);
}

int e2b_template_alias(struct http_exchange *x, const struct route_params *params, void *ctx,
                       struct error *err)
{
    struct found_template found;
    if (find_template(x, ctx, route_param(params, "alias"), &found, err) < 0)
        return -1;
    yyjson_mut_val *root;
    yyjson_mut_doc *doc = api_json_new(http_arena(x), &root);
    yyjson_mut_obj_add_str(doc, root, "templateID", found.id);
    yyjson_mut_obj_add_bool(doc, root, "public", found.is_public);
    return api_reply_json(x, 200, doc, err);
}

int e2b_template_tags(struct http_exchange *x, const struct route_params *params, void *ctx,
                      struct error *err)
{
    struct found_template found;
    char build[BUILD_ID_SIZE], time[TIME_TEXT_SIZE];
    if (find_template(x, ctx, route_param(params, "id"), &found, err) < 0)
        return -1;
    yyjson_mut_doc *doc = json_doc(http_arena(x));
    yyjson_mut_val *list = yyjson_mut_arr(doc);
    yyjson_mut_doc_set_root(doc, list);
    yyjson_mut_val *object = yyjson_mut_arr_add_obj(doc, list);
    build_id(found.id, build);
    time_rfc3339(found.created_ms, time);
    yyjson_mut_obj_add_str(doc, object, "tag", ONLY_TAG);
    yyjson_mut_obj_add_strcpy(doc, object, "buildID", build);
    yyjson_mut_obj_add_strcpy(doc, object, "createdAt", time);
    return api_reply_json(x, 200, doc, err);
}

/* --- what would change them --- */

/* The template that a request's member names, and its tags. */
static int read_tags(struct http_exchange *x, const struct api_call *call, const char *member,
                     struct found_template *ret_found, yyjson_val **ret_tags, struct error *err)
{
    yyjson_val *body, *tags = NULL;
    const char *name = NULL;
    if (api_json_body(x, &body, err) < 0 || member_text(body, "", member, &name, err) < 0 ||
        member_array(body, "", "tags", &tags, err) < 0)
        return -1;
    if (name == NULL)
        return error_set(err, ERROR_INVALID_ARGUMENT, "%s is required", member);
    *ret_tags = tags;
    return find_template(x, call, name, ret_found, err);
}

/* The first that is not the one that each template has; NULL: none. */
static const char *other_tag(yyjson_val *tags)
{
    yyjson_val *tag;
    size_t i, count;
    yyjson_arr_foreach(tags, i, count, tag)
    {
        if (!yyjson_equals_str(tag, ONLY_TAG))
            return yyjson_is_str(tag) ? yyjson_get_str(tag) : "";
    }
    return NULL;
}

int e2b_template_tag(struct http_exchange *x, const struct route_params *params, void *ctx,
                     struct error *err)
{
    struct found_template found;
    yyjson_val *tags = NULL;
    char build[BUILD_ID_SIZE];
    if (read_tags(x, ctx, "target", &found, &tags, err) < 0)
        return -1;
    const char *other = other_tag(tags);
    if (other != NULL)
        return error_set(err, ERROR_NOT_IMPLEMENTED,
                         "tags: \"%.80s\" cannot be given: a template has one build here, and the "
                         "tag \"" ONLY_TAG "\"",
                         other);
    yyjson_mut_val *root;
    yyjson_mut_doc *doc = api_json_new(http_arena(x), &root);
    build_id(found.id, build);
    yyjson_mut_obj_add_strcpy(doc, root, "buildID", build);
    yyjson_mut_val *list = yyjson_mut_obj_add_arr(doc, root, "tags");
    yyjson_mut_arr_add_str(doc, list, ONLY_TAG);
    return api_reply_json(x, 201, doc, err);
}

int e2b_template_untag(struct http_exchange *x, const struct route_params *params, void *ctx,
                       struct error *err)
{
    struct found_template found;
    yyjson_val *tags = NULL;
    if (read_tags(x, ctx, "name", &found, &tags, err) < 0)
        return -1;
    const char *other = other_tag(tags);
    if (other != NULL)
        return error_set(err, ERROR_IMAGE_NOT_FOUND, "template \"%.80s\" has no tag \"%.80s\"",
                         found.id, other);
    return error_set(err, ERROR_INVALID_ARGUMENT,
                     "tags: \"" ONLY_TAG "\" stays with a template for as long as it is there");
}

int e2b_template_build(struct http_exchange *x, const struct route_params *params, void *ctx,
                       struct error *err)
{
    return error_set(err, ERROR_NOT_IMPLEMENTED,
                     "templates cannot be built here: prepare a sandbox of \"base\", and make a "
                     "snapshot of it, by whose name others can be made");
}

int e2b_template_status(struct http_exchange *x, const struct route_params *params, void *ctx,
                        struct error *err)
{
    return error_set(err, ERROR_IMAGE_NOT_FOUND, "template \"%.80s\" has no build \"%.80s\"",
                     route_param(params, "id"), route_param(params, "build"));
}
