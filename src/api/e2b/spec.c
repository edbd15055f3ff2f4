/* SPDX-License-Identifier: Apache-2.0 */

/* What is kept for E2B's clients, to and from text. */

#include "api/e2b/spec.h"

#include <string.h>

#include "api/blaxel/members.h"
#include "api/call.h"

enum { HOST_MAX = 255 };

static const char *text_of(yyjson_val *object, const char *name)
{
    return yyjson_get_str(yyjson_obj_get(object, name));
}

static bool bool_of(yyjson_val *object, const char *name, bool fallback)
{
    yyjson_val *value = yyjson_obj_get(object, name);
    return yyjson_is_bool(value) ? yyjson_get_bool(value) : fallback;
}

static yyjson_val *object_of(yyjson_val *object, const char *name)
{
    yyjson_val *value = yyjson_obj_get(object, name);
    return yyjson_is_obj(value) ? value : NULL;
}

void e2b_spec_read(struct arena *arena, const char *text, struct e2b_spec *ret_spec)
{
    yyjson_val *root = NULL;
    struct e2b_spec spec = {.template_id = "base", .secure = true, .internet = true};
    if (text != NULL && json_parse(arena, slice_of(text), &root, NULL) == 0) {
        if (text_of(root, "template") != NULL)
            spec.template_id = text_of(root, "template");
        spec.metadata = object_of(root, "metadata");
        spec.network = object_of(root, "network");
        spec.secure = bool_of(root, "secure", true);
        spec.internet = bool_of(root, "internet", true);
        spec.timeout_s = yyjson_get_sint(yyjson_obj_get(root, "timeout"));
        spec.snapshot = text_of(root, "snapshot");
        spec.source = text_of(root, "source");
        spec.exec_timeout_ms = yyjson_get_sint(yyjson_obj_get(root, "execTimeout"));
        spec.ports = yyjson_obj_get(root, "ports");
    }
    *ret_spec = spec;
}

const char *e2b_spec_text(struct arena *arena, const struct e2b_spec *spec)
{
    yyjson_mut_val *root;
    yyjson_mut_doc *doc = api_json_new(arena, &root);
    yyjson_mut_obj_add_str(doc, root, "template", spec->template_id);
    if (spec->metadata != NULL)
        yyjson_mut_obj_add_val(doc, root, "metadata", yyjson_val_mut_copy(doc, spec->metadata));
    if (spec->network != NULL)
        yyjson_mut_obj_add_val(doc, root, "network", yyjson_val_mut_copy(doc, spec->network));
    yyjson_mut_obj_add_bool(doc, root, "secure", spec->secure);
    yyjson_mut_obj_add_bool(doc, root, "internet", spec->internet);
    yyjson_mut_obj_add_sint(doc, root, "timeout", spec->timeout_s);
    if (spec->snapshot != NULL)
        yyjson_mut_obj_add_str(doc, root, "snapshot", spec->snapshot);
    if (spec->source != NULL)
        yyjson_mut_obj_add_str(doc, root, "source", spec->source);
    if (spec->exec_timeout_ms > 0)
        yyjson_mut_obj_add_sint(doc, root, "execTimeout", spec->exec_timeout_ms);
    if (spec->ports != NULL)
        yyjson_mut_obj_add_val(doc, root, "ports", yyjson_val_mut_copy(doc, spec->ports));
    return json_write(arena, doc, false).data;
}

bool e2b_is_secure(struct arena *arena, const char *text)
{
    struct e2b_spec spec;
    e2b_spec_read(arena, text, &spec);
    return spec.secure;
}

bool e2b_is_snapshot(struct arena *arena, const char *text)
{
    struct e2b_spec spec;
    e2b_spec_read(arena, text, &spec);
    return spec.snapshot != NULL;
}

/* --- ports --- */

#define PORT_MARK "${PORT}"

int e2b_mask_check(yyjson_val *network, struct error *err)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                  "-._:[]";
    const char *mask = NULL;
    if (member_text(network, "network", "maskRequestHost", &mask, err) < 0 || mask == NULL)
        return mask == NULL ? 0 : -1;
    size_t before = strspn(mask, allowed);
    const char *rest = mask + before;
    if (strncmp(rest, PORT_MARK, sizeof(PORT_MARK) - 1) == 0)
        rest += sizeof(PORT_MARK) - 1;
    if (strlen(mask) == 0 || strlen(mask) > HOST_MAX || rest[strspn(rest, allowed)] != '\0')
        return error_set(err, ERROR_INVALID_ARGUMENT,
                         "network.maskRequestHost: \"%.80s\" is no host, such as "
                         "\"localhost:" PORT_MARK "\"",
                         mask);
    return 0;
}

const char *e2b_spec_mask(struct arena *arena, const struct e2b_spec *spec, uint16_t port)
{
    const char *mask = text_of(spec->network, "maskRequestHost");
    const char *mark = mask == NULL ? NULL : strstr(mask, PORT_MARK);
    if (mark == NULL)
        return mask;
    return arena_printf(arena, "%.*s%u%s", (int)(mark - mask), mask, port,
                        mark + sizeof(PORT_MARK) - 1);
}

bool e2b_spec_is_public(const struct e2b_spec *spec)
{
    return bool_of(spec->network, "allowPublicTraffic", true);
}
