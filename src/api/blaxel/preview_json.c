/* SPDX-License-Identifier: Apache-2.0 */

/* The shapes of previews, in and out. */

#include "api/blaxel/preview_json.h"

#include <string.h>
#include <strings.h>

#include "api/blaxel/members.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/duration.h"
#include "base/limits.h"

enum { MS = 1000 };

/* --- in --- */

/* What frames a message or names its receiver is not for a preview to say. */
static const char *const forbidden_headers[] = {
    "Connection", "Content-Length", "Host",    "Keep-Alive",        "Proxy-Authorization",
    "TE",         "Trailer",        "Upgrade", "Transfer-Encoding",
};

static bool is_token(const char *text)
{
    static const char others[] = "!#$%&'*+-.^_`|~0123456789";
    size_t len = strlen(text);
    if (len == 0)
        return false;
    for (size_t i = 0; i < len; i++) {
        char lower = (char)(text[i] | 0x20);
        if (!(lower >= 'a' && lower <= 'z') && strchr(others, text[i]) == NULL)
            return false;
    }
    return true;
}

static int check_header(const char *where, const char *name, const char *value, struct error *err)
{
    bool forbidden = false;
    for (size_t i = 0; i < ARRAY_LEN(forbidden_headers); i++)
        forbidden |= strcasecmp(name, forbidden_headers[i]) == 0;
    if (forbidden || !is_token(name))
        return error_set(err, ERROR_INVALID_ARGUMENT, "%s: \"%.60s\" cannot be set", where, name);
    for (const char *at = value; *at != '\0'; at++)
        if ((unsigned char)*at < 0x20 || *at == 0x7f)
            return error_set(err, ERROR_INVALID_ARGUMENT, "%s.%.60s has a control character", where,
                             name);
    return 0;
}

static int read_headers(struct arena *arena, yyjson_val *spec, const char *name,
                        struct slice *ret_list, struct error *err)
{
    _cleanup_buf_ struct buf list = BUF_INIT(PREVIEW_HEADERS_MAX);
    const char *where = arena_printf(arena, "spec.%s", name);
    yyjson_val *object = NULL, *key;
    yyjson_obj_iter iter;
    if (member_object(spec, "spec", name, &object, err) < 0)
        return -1;
    yyjson_obj_iter_init(object, &iter);
    while ((key = yyjson_obj_iter_next(&iter)) != NULL) {
        const char *value = NULL;
        if (member_text(object, where, yyjson_get_str(key), &value, err) < 0)
            return -1;
        if (value == NULL || yyjson_get_len(key) != strlen(yyjson_get_str(key)))
            return error_set(err, ERROR_INVALID_ARGUMENT, "%s must have strings", where);
        if (check_header(where, yyjson_get_str(key), value, err) < 0)
            return -1;
        buf_addf(&list, "%s: %s", yyjson_get_str(key), value);
        buf_addc(&list, '\0');
        if (buf_check(&list, where, err) < 0)
            return -1;
    }
    *ret_list = (struct slice){arena_dup(arena, list.data, list.len), list.len};
    return 0;
}

/* Whichever of `expires` and `ttl` comes first; 0 for neither. */
static int read_end(yyjson_val *spec, int64_t *ret_expires_ms, struct error *err)
{
    const char *expires = NULL, *ttl = NULL;
    int64_t end = 0;
    uint64_t seconds;
    if (member_text(spec, "spec", "expires", &expires, err) < 0 ||
        member_text(spec, "spec", "ttl", &ttl, err) < 0)
        return -1;
    if (expires != NULL && expires[0] != '\0' && time_parse_rfc3339(expires, &end, err) < 0)
        return error_prefix(err, "spec.expires");
    if (ttl != NULL && ttl[0] != '\0') {
        if (duration_seconds(ttl, &seconds, err) < 0)
            return error_prefix(err, "spec.ttl");
        int64_t now = time_now_ms();
        int64_t by_ttl = seconds < (uint64_t)(API_TIME_MAX / MS) ? now + (int64_t)seconds * MS
                                                                 : (int64_t)API_TIME_MAX;
        if (end == 0 || by_ttl < end)
            end = by_ttl;
    }
    *ret_expires_ms = end;
    return 0;
}

/* The rest of the spec: shown again, and nothing more. */
static int keep_spec(struct arena *arena, yyjson_val *spec, const char **ret_text,
                     struct error *err)
{
    static const char *const ours[] = {"port",   "public",         "expires",        "url",
                                       "region", "requestHeaders", "responseHeaders"};
    yyjson_mut_doc *doc = json_doc(arena);
    yyjson_mut_val *kept = spec == NULL ? yyjson_mut_obj(doc) : yyjson_val_mut_copy(doc, spec);
    yyjson_mut_doc_set_root(doc, kept);
    for (size_t i = 0; i < ARRAY_LEN(ours); i++)
        yyjson_mut_obj_remove_key(kept, ours[i]);
    struct slice text = json_write(arena, doc, false);
    if (text.data == NULL || text.len > BLAXEL_SPEC_MAX)
        return error_set(err, ERROR_PAYLOAD_TOO_LARGE, "spec is larger than %d bytes",
                         BLAXEL_SPEC_MAX);
    *ret_text = arena_dup(arena, text.data, text.len);
    return 0;
}

int preview_request_from_json(struct arena *arena, yyjson_val *body,
                              struct preview_request *ret_request, struct error *err)
{
    struct preview_request request = {0};
    yyjson_val *metadata = NULL, *spec = NULL;
    uint64_t port = 0;
    if (member_object(body, "", "metadata", &metadata, err) < 0 ||
        member_object(body, "", "spec", &spec, err) < 0 ||
        member_text(metadata, "metadata", "name", &request.name, err) < 0 ||
        member_uint(spec, "spec", "port", 1, UINT16_MAX, &port, err) < 0 ||
        member_bool(spec, "spec", "public", &request.is_public, err) < 0 ||
        read_end(spec, &request.expires_ms, err) < 0 ||
        read_headers(arena, spec, "requestHeaders", &request.request_headers, err) < 0 ||
        read_headers(arena, spec, "responseHeaders", &request.response_headers, err) < 0 ||
        keep_spec(arena, spec, &request.spec, err) < 0)
        return -1;
    if (port == 0)
        return error_set(err, ERROR_INVALID_ARGUMENT, "spec.port is required");
    request.port = (unsigned)port;
    *ret_request = request;
    return 0;
}

/* --- out --- */

const char *preview_url(struct http_exchange *x, const struct api *api,
                        const struct preview_info *info)
{
    return arena_printf(http_arena(x), "%s/preview/%s", api_base_url(x, api), info->id);
}

static void add_time(yyjson_mut_doc *doc, yyjson_mut_val *object, const char *key, int64_t unix_ms)
{
    char text[TIME_TEXT_SIZE];
    time_rfc3339(unix_ms, text);
    yyjson_mut_obj_add_strcpy(doc, object, key, text);
}

static void add_headers(yyjson_mut_doc *doc, yyjson_mut_val *spec, const char *key,
                        struct slice list)
{
    if (list.len == 0)
        return;
    yyjson_mut_val *object = yyjson_mut_obj_add_obj(doc, spec, key);
    strv_each (header, list) {
        size_t len = strcspn(header, ":");
        yyjson_mut_obj_add(object, yyjson_mut_strn(doc, header, len),
                           yyjson_mut_str(doc, header + len + 2));
    }
}

yyjson_mut_val *preview_json(struct arena *arena, yyjson_mut_doc *doc,
                             const struct preview_info *info, const char *url, const char *status)
{
    yyjson_mut_val *root = yyjson_mut_obj(doc);
    yyjson_mut_val *metadata = yyjson_mut_obj_add_obj(doc, root, "metadata");
    yyjson_mut_obj_add_str(doc, metadata, "name", info->name);
    yyjson_mut_obj_add_str(doc, metadata, "resourceName", info->sandbox_name);
    yyjson_mut_obj_add_str(doc, metadata, "resourceType", "sandbox");
    yyjson_mut_obj_add_str(doc, metadata, "workspace", info->workspace);
    add_time(doc, metadata, "createdAt", info->created_ms);
    add_time(doc, metadata, "updatedAt", info->updated_ms);
    yyjson_mut_obj_add_str(doc, metadata, "createdBy", info->created_by);

    yyjson_val *kept = NULL;
    yyjson_mut_val *spec =
        json_parse(arena, slice_of(info->spec), &kept, NULL) == 0 && yyjson_is_obj(kept)
            ? yyjson_val_mut_copy(doc, kept)
            : yyjson_mut_obj(doc);
    yyjson_mut_obj_add_uint(doc, spec, "port", info->port);
    yyjson_mut_obj_add_bool(doc, spec, "public", info->is_public);
    yyjson_mut_obj_add_str(doc, spec, "url", url);
    if (info->expires_ms != 0)
        add_time(doc, spec, "expires", info->expires_ms);
    add_headers(doc, spec, "requestHeaders", info->request_headers);
    add_headers(doc, spec, "responseHeaders", info->response_headers);
    yyjson_mut_obj_add_val(doc, root, "spec", spec);
    yyjson_mut_obj_add_str(doc, root, "status", status);
    return root;
}

yyjson_mut_val *preview_token_json(yyjson_mut_doc *doc, const struct preview_token_info *token,
                                   const char *sandbox, const char *preview)
{
    yyjson_mut_val *root = yyjson_mut_obj(doc);
    yyjson_mut_val *metadata = yyjson_mut_obj_add_obj(doc, root, "metadata");
    yyjson_mut_obj_add_str(doc, metadata, "name", token->name);
    yyjson_mut_obj_add_str(doc, metadata, "previewName", preview);
    yyjson_mut_obj_add_str(doc, metadata, "resourceName", sandbox);
    yyjson_mut_obj_add_str(doc, metadata, "resourceType", "sandbox");
    yyjson_mut_val *spec = yyjson_mut_obj_add_obj(doc, root, "spec");
    yyjson_mut_obj_add_str(doc, spec, "token", token->token);
    if (token->expires_ms != 0)
        add_time(doc, spec, "expiresAt", token->expires_ms);
    yyjson_mut_obj_add_bool(doc, spec, "expired", false);
    return root;
}
