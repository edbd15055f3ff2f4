/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A template that is made from a sandbox is a snapshot of it (e2b/snapshots.h) with a name: a clone
 * that is never started, and that new sandboxes are cloned from.
 */

#include <string.h>

#include "api/blaxel/members.h"
#include "api/call.h"
#include "api/e2b/sandbox_json.h"
#include "api/e2b/snapshots.h"
#include "api/scalebox/handlers.h"
#include "api/scalebox/ports.h"
#include "api/scalebox/sandbox_json.h"
#include "api/scalebox/sandbox_request.h"
#include "image/image.h"

enum { MB = 1 << 20, CORE_MILLIS = 1000 };

struct template_request {
    const char *name, *description;
    struct sandbox_resources resources;
};

/* What somebody relies on and would not get is refused. */
static int refuse(yyjson_val *body, struct error *err)
{
    static const struct {
        const char *name, *why;
    } unknown[] = {
        {"custom_command", "a sandbox begins with no program: start it with commands.run()"},
        {"ready_command", "a sandbox is ready when it is answered with"},
        {"ports", "templates list no ports, every port is reached"},
    };
    bool is_public = false;
    if (member_bool(body, "", "is_public", &is_public, err) < 0)
        return -1;
    if (is_public)
        return error_set(err, ERROR_INVALID_ARGUMENT,
                         "is_public: a template is for the workspace that it was made in");
    for (size_t i = 0; i < sizeof(unknown) / sizeof(unknown[0]); i++) {
        const char *value = NULL;
        if (member_text(body, "", unknown[i].name, &value, err) < 0)
            return -1;
        if (value != NULL && value[0] != '\0')
            return error_set(err, ERROR_INVALID_ARGUMENT, "%s: %s", unknown[i].name,
                             unknown[i].why);
    }
    return 0;
}

static int read_request(struct http_exchange *x, struct template_request *ret, struct error *err)
{
    struct template_request request = {0};
    yyjson_val *body;
    if (api_json_body(x, &body, err) < 0 || member_text(body, "", "name", &request.name, err) < 0 ||
        member_text(body, "", "description", &request.description, err) < 0 ||
        scalebox_resources_from_json(http_arena(x), body, &request.resources, err) < 0 ||
        refuse(body, err) < 0)
        return -1;
    if (request.name == NULL || request.name[0] == '\0')
        return error_set(err, ERROR_INVALID_ARGUMENT, "name is required");
    *ret = request;
    return 0;
}

/* Whoever makes a sandbox from a template says its name, so there is one of each. */
static int check_free(struct http_exchange *x, const struct api_call *call, const char *name,
                      struct error *err)
{
    const char *image;
    struct sandbox_info info;
    if (image_resolve(name, &image, NULL) == 0 ||
        e2b_snapshot_find(x, call, name, &info, NULL) == 0)
        return error_set(err, ERROR_ALREADY_EXISTS, "there is a template \"%.128s\" already", name);
    return 0;
}

static int reply(struct http_exchange *x, const struct template_request *request,
                 const struct sandbox_info *made, const char *base, struct error *err)
{
    yyjson_mut_doc *doc;
    yyjson_mut_val *root = scalebox_envelope(http_arena(x), &doc);
    yyjson_mut_val *data = yyjson_mut_obj_add_obj(doc, root, "data");
    uint64_t cores = (made->limits.cpu_millis + CORE_MILLIS - 1) / CORE_MILLIS;
    yyjson_mut_obj_add_str(doc, data, "template_id", made->id);
    json_add_lossy(doc, data, "name", slice_of(request->name));
    if (request->description != NULL)
        json_add_lossy(doc, data, "description", slice_of(request->description));
    yyjson_mut_obj_add_uint(doc, data, "default_cpu_count", cores > 0 ? cores : 1);
    /* The client looks for default_memory_mb in camel case, which it becomes with a small b. */
    yyjson_mut_obj_add_uint(doc, data, "defaultMemoryMB", made->limits.memory_bytes / MB);
    yyjson_mut_obj_add_bool(doc, data, "is_public", false);
    yyjson_mut_obj_add_str(doc, data, "status", "available");
    yyjson_mut_obj_add_str(doc, data, "base_template_id", base);
    scalebox_add_time(doc, data, "created_at", made->created_ms);
    yyjson_mut_obj_add_str(doc, data, "message", "the template can be used");
    return api_reply_json(x, 201, doc, err);
}

int scalebox_template_create(struct http_exchange *x, const struct route_params *params, void *ctx,
                             struct error *err)
{
    const struct api_call *call = ctx;
    struct template_request request;
    struct sandbox_info source, made;
    struct e2b_spec spec;
    if (read_request(x, &request, err) < 0 ||
        e2b_sandbox_find(x, call, route_param(params, "name"), &source, err) < 0 ||
        check_free(x, call, request.name, err) < 0 ||
        e2b_snapshot_make(x, call, &source, request.name, &request.resources, &made, err) < 0)
        return -1;
    e2b_spec_read(http_arena(x), source.metadata.e2b_spec, &spec);
    return reply(x, &request, &made, spec.template_id, err);
}
