/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The shape of groups. What a group's sandboxes inherit is kept as the JSON that it came as and
 * laid under each new sandbox's own (RFC 7396): so whatever a sandbox can be asked to be, a group
 * can ask for, and nothing here knows the fields.
 */

#include "api/v0/group_json.h"

#include <string.h>

#include "api/v0/auto_lower_json.h"
#include "api/v0/sandbox_change.h"
#include "api/v0/sandbox_create.h"
#include "base/cleanup.h"
#include "base/limits.h"
#include "base/timetext.h"

/* --- laying one specification over another --- */

static int frozen(struct arena *arena, yyjson_mut_doc *doc, yyjson_val **ret_value,
                  struct error *err)
{
    struct slice text = json_write(arena, doc, false);
    if (text.data == NULL)
        return error_set(err, ERROR_INTERNAL, "a specification could not be written as JSON");
    return json_parse(arena, text, ret_value, err);
}

int group_lay_over(struct arena *arena, const char *spec, yyjson_val *body, yyjson_val **ret_body,
                   struct error *err)
{
    yyjson_val *under, *over = yyjson_obj_get(body, "spec");
    if (json_parse(arena, slice_of(spec), &under, err) < 0)
        return error_prefix(err, "the group's spec");
    yyjson_mut_doc *doc = json_doc(arena);
    yyjson_mut_val *root = body == NULL ? yyjson_mut_obj(doc) : yyjson_val_mut_copy(doc, body);
    yyjson_mut_val *laid = yyjson_is_null(over) || over == NULL
                               ? yyjson_val_mut_copy(doc, under)
                               : yyjson_merge_patch(doc, under, over);
    yyjson_mut_doc_set_root(doc, root);
    yyjson_mut_obj_put(root, yyjson_mut_str(doc, "spec"), laid);
    return frozen(arena, doc, ret_body, err);
}

static const char *text_of(struct arena *arena, yyjson_val *object)
{
    yyjson_mut_doc *doc = json_doc(arena);
    yyjson_mut_doc_set_root(doc, object == NULL ? yyjson_mut_obj(doc)
                                                : yyjson_val_mut_copy(doc, object));
    return json_write(arena, doc, false).data;
}

/* --- reading --- */

struct parts {
    const char *name;
    int64_t count;
    yyjson_val *spec;
    yyjson_val *sandboxes;
    yyjson_val *metadata;
};

static const struct json_field root_fields[] = {
    {"name", JSON_STRING, .offset = offsetof(struct parts, name)},
    {"count", JSON_INT, .offset = offsetof(struct parts, count), .min = 0,
     .max = GROUP_SANDBOXES_MAX},
    {"spec", JSON_OBJECT, .offset = offsetof(struct parts, spec)},
    {"sandboxes", JSON_ARRAY, .offset = offsetof(struct parts, sandboxes)},
    {"metadata", JSON_OBJECT, .offset = offsetof(struct parts, metadata)},
    {"status", JSON_IGNORED},
};

static const struct json_field metadata_fields[] = {
    {"name", JSON_STRING, .offset = offsetof(struct parts, name)},
    {"id", JSON_IGNORED},
    {"createdAt", JSON_IGNORED},
    {"updatedAt", JSON_IGNORED},
    {"createdBy", JSON_IGNORED},
    {"updatedBy", JSON_IGNORED},
    {"workspace", JSON_IGNORED},
};

struct member {
    const char *name;
    yyjson_val *spec;
    yyjson_val *metadata;
};

static const struct json_field member_fields[] = {
    {"name", JSON_STRING, .offset = offsetof(struct member, name)},
    {"spec", JSON_OBJECT, .offset = offsetof(struct member, spec)},
    {"metadata", JSON_OBJECT, .offset = offsetof(struct member, metadata)},
    {"id", JSON_IGNORED},
    {"status", JSON_IGNORED},
};

/* One that says what it is to be: as the body of POST /v0/sandbox, over the group's. */
static int read_member(struct arena *arena, yyjson_val *value, size_t index, const char *spec,
                       struct sandbox_create *request, struct error *err)
{
    const char *where = arena_printf(arena, "sandboxes[%zu]", index);
    struct member member = {NULL};
    if (!yyjson_is_obj(value))
        return error_set(err, ERROR_INVALID_ARGUMENT, "%s must be an object", where);
    if (json_read(arena, value, where, member_fields, ARRAY_LEN(member_fields), &member, err) < 0)
        return -1;
    yyjson_mut_val *root;
    yyjson_mut_doc *doc = json_doc(arena);
    root = yyjson_mut_obj(doc);
    yyjson_mut_doc_set_root(doc, root);
    if (member.metadata != NULL)
        yyjson_mut_obj_add_val(doc, root, "metadata", yyjson_val_mut_copy(doc, member.metadata));
    if (member.spec != NULL)
        yyjson_mut_obj_add_val(doc, root, "spec", yyjson_val_mut_copy(doc, member.spec));
    yyjson_val *own, *whole;
    if (frozen(arena, doc, &own, err) < 0 || group_lay_over(arena, spec, own, &whole, err) < 0 ||
        sandbox_create_from_json(arena, whole, request, err) < 0)
        return error_prefix(err, "%s", where);
    if (member.name != NULL)
        request->name = member.name;
    return 0;
}

static int read_members(struct arena *arena, yyjson_val *list, const struct sandbox_create *each,
                        struct group_create *request, struct error *err)
{
    size_t count = yyjson_arr_size(list), i, most;
    yyjson_val *value;
    if (count > GROUP_SANDBOXES_MAX)
        return error_set(err, ERROR_INVALID_ARGUMENT, "sandboxes: a group has at most %d",
                         GROUP_SANDBOXES_MAX);
    struct sandbox_create *members = arena_alloc(arena, (count + 1) * sizeof(*members));
    yyjson_arr_foreach(list, i, most, value)
    {
        members[i] = *each;
        if (read_member(arena, value, i, request->spec, &members[i], err) < 0)
            return -1;
    }
    request->sandboxes = members;
    request->count = count;
    return 0;
}

/* Many of the same. */
static void add_count(struct arena *arena, size_t count, struct group_create *request)
{
    struct sandbox_create *members = arena_alloc(arena, (count + 1) * sizeof(*members));
    for (size_t i = 0; i < count; i++) {
        members[i] = *request->plain;
        members[i].name = arena_printf(arena, "sandbox-%zu", i + 1);
    }
    request->sandboxes = members;
    request->count = count;
}

/* One that has nothing of its own. */
static int read_plain(struct arena *arena, const char *spec, const struct sandbox_create *each,
                      const struct sandbox_create **ret_plain, struct error *err)
{
    struct sandbox_create *plain = arena_alloc(arena, sizeof(*plain));
    yyjson_val *whole;
    *plain = *each;
    if (group_lay_over(arena, spec, NULL, &whole, err) < 0 ||
        sandbox_create_from_json(arena, whole, plain, err) < 0)
        return -1;
    *ret_plain = plain;
    return 0;
}

int group_create_from_json(struct arena *arena, yyjson_val *body, const struct sandbox_create *each,
                           struct group_create *request, struct error *err)
{
    struct parts parts = {.count = -1}, named = {NULL};
    if (body != NULL &&
        json_read(arena, body, "", root_fields, ARRAY_LEN(root_fields), &parts, err) < 0)
        return -1;
    if (parts.metadata != NULL && json_read(arena, parts.metadata, "metadata", metadata_fields,
                                            ARRAY_LEN(metadata_fields), &named, err) < 0)
        return -1;
    if (parts.name != NULL && named.name != NULL && strcmp(parts.name, named.name) != 0)
        return error_set(err, ERROR_INVALID_ARGUMENT,
                         "name is given twice, as \"%.60s\" and as \"%.60s\"", parts.name,
                         named.name);
    if (parts.sandboxes != NULL && parts.count >= 0 &&
        (size_t)parts.count != yyjson_arr_size(parts.sandboxes))
        return error_set(err, ERROR_INVALID_ARGUMENT,
                         "count is %lld and sandboxes has %zu: give one of them",
                         (long long)parts.count, yyjson_arr_size(parts.sandboxes));
    request->name = parts.name != NULL ? parts.name : named.name;
    request->spec = text_of(arena, parts.spec);
    if (read_plain(arena, request->spec, each, &request->plain, err) < 0)
        return -1;
    if (parts.sandboxes != NULL)
        return read_members(arena, parts.sandboxes, each, request, err);
    add_count(arena, parts.count > 0 ? (size_t)parts.count : 0, request);
    return 0;
}

int group_patch_from_json(struct arena *arena, yyjson_val *body, const struct sandbox_create *each,
                          const char *spec, struct group_create *request, struct error *err)
{
    struct parts parts = {NULL};
    static const struct json_field fields[] = {
        {"spec", JSON_OBJECT, .required = true, .offset = offsetof(struct parts, spec)},
    };
    yyjson_val *whole;
    if (body == NULL)
        return error_set(err, ERROR_INVALID_ARGUMENT, "spec is required");
    if (json_read(arena, body, "", fields, ARRAY_LEN(fields), &parts, err) < 0 ||
        group_lay_over(arena, spec, body, &whole, err) < 0)
        return -1;
    request->spec = text_of(arena, yyjson_obj_get(whole, "spec"));
    return read_plain(arena, request->spec, each, &request->plain, err);
}

int group_resize_from_json(struct arena *arena, yyjson_val *body, struct sandbox_update *update,
                           struct error *err)
{
    yyjson_val *given = yyjson_obj_get(body, "autoLower"), *rest;
    if (given == NULL || yyjson_is_null(given))
        return resize_from_json(arena, body, update, err);
    struct slice *list = arena_alloc(arena, sizeof(*list));
    if (auto_lower_from_json(arena, given, list, err) < 0)
        return -1;
    update->auto_lower = list;
    yyjson_mut_doc *doc = json_doc(arena);
    yyjson_mut_val *copy = yyjson_val_mut_copy(doc, body);
    yyjson_mut_doc_set_root(doc, copy);
    yyjson_mut_obj_remove_key(copy, "autoLower");
    if (yyjson_mut_obj_size(copy) == 0)
        return 0;
    return frozen(arena, doc, &rest, err) < 0 ? -1 : resize_from_json(arena, rest, update, err);
}

/* --- writing --- */

static void add_time(yyjson_mut_doc *doc, yyjson_mut_val *object, const char *key, int64_t unix_ms)
{
    char text[TIME_TEXT_SIZE];
    time_rfc3339(unix_ms, text);
    yyjson_mut_obj_add_strcpy(doc, object, key, text);
}

static void add_spec(struct arena *arena, yyjson_mut_doc *doc, yyjson_mut_val *object,
                     const char *spec)
{
    yyjson_val *value;
    if (json_parse(arena, slice_of(spec), &value, NULL) == 0)
        yyjson_mut_obj_add_val(doc, object, "spec", yyjson_val_mut_copy(doc, value));
}

yyjson_mut_val *group_json(struct arena *arena, yyjson_mut_doc *doc, const struct group_info *info,
                           bool brief)
{
    yyjson_mut_val *object = yyjson_mut_obj(doc);
    yyjson_mut_val *metadata = yyjson_mut_obj_add_obj(doc, object, "metadata");
    yyjson_mut_obj_add_str(doc, metadata, "name", info->name);
    yyjson_mut_obj_add_str(doc, metadata, "id", info->id);
    add_time(doc, metadata, "createdAt", info->created_ms);
    add_time(doc, metadata, "updatedAt", info->updated_ms);
    yyjson_mut_obj_add_str(doc, metadata, "createdBy", info->created_by);
    yyjson_mut_obj_add_str(doc, metadata, "updatedBy", info->updated_by);
    yyjson_mut_obj_add_str(doc, metadata, "workspace", info->workspace);
    add_spec(arena, doc, object, info->spec);
    yyjson_mut_obj_add_str(doc, object, "status", group_status_text(info->status));
    yyjson_mut_obj_add_uint(doc, object, "count", info->member_count);
    if (brief)
        return object;
    yyjson_mut_val *list = yyjson_mut_obj_add_arr(doc, object, "sandboxes");
    for (size_t i = 0; i < info->member_count; i++) {
        yyjson_mut_val *member = yyjson_mut_arr_add_obj(doc, list);
        yyjson_mut_obj_add_str(doc, member, "name", info->members[i].name);
        yyjson_mut_obj_add_str(doc, member, "id", info->members[i].id);
        yyjson_mut_obj_add_str(doc, member, "status", sandbox_status_text(info->members[i].status));
    }
    return object;
}
