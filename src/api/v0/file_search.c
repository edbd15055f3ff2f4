/* SPDX-License-Identifier: Apache-2.0 */

/* /filesystem-find, /filesystem-search, /filesystem-content-search: parameters in, matches out. */

#include "api/v0/file_search.h"

#include <string.h>

#include "api/call.h"
#include "api/handlers.h"
#include "api/json_stream.h"
#include "base/cleanup.h"
#include "base/limits.h"
#include "sandbox/file_search.h"

static int query_list(struct http_exchange *x, const char *name, struct slice *ret_list,
                      struct error *err)
{
    const char *text = NULL;
    if (http_query(x, name, &text, err) < 0)
        return -1;
    return api_list(http_arena(x), name, text, ret_list, err);
}

static int read_type(struct http_exchange *x, uint64_t *flags, struct error *err)
{
    const char *type = NULL;
    if (http_query(x, "type", &type, err) < 0)
        return -1;
    if (type == NULL || type[0] == '\0' || strcmp(type, "all") == 0)
        return 0;
    if (strcmp(type, "file") == 0)
        *flags |= FIND_FILES;
    else if (strcmp(type, "directory") == 0)
        *flags |= FIND_DIRECTORIES;
    else
        return error_set(err, ERROR_INVALID_ARGUMENT,
                         "type: \"%.40s\" is neither \"file\" nor \"directory\"", type);
    return 0;
}

int file_search_read(struct http_exchange *x, enum find_mode mode, struct file_find *request,
                     struct error *err)
{
    bool no_hidden = false, case_sensitive = mode == FIND_NAMES;
    uint64_t fallback = mode == FIND_NAMES ? 1000 : 100;
    request->mode = mode;
    if (query_list(x, mode == FIND_CONTENT ? "filePattern" : "patterns", &request->patterns, err) <
            0 ||
        query_list(x, "excludeDirs", &request->exclude, err) < 0 ||
        read_type(x, &request->flags, err) < 0 ||
        api_query_bool(x, "excludeHidden", mode != FIND_NAMES, &no_hidden, err) < 0 ||
        api_query_bool(x, "caseSensitive", false, &case_sensitive, err) < 0 ||
        api_query_uint(x, "maxResults", 1, FIND_RESULTS_MAX, fallback, &request->results_max, err) <
            0 ||
        http_query(x, "query", &request->query, err) < 0)
        return -1;
    if (no_hidden)
        request->flags |= FIND_NO_HIDDEN;
    if (!case_sensitive)
        request->flags |= FIND_ANY_CASE;
    if (mode == FIND_NAMES)
        return 0;
    if (request->query == NULL || request->query[0] == '\0')
        return error_set(err, ERROR_INVALID_ARGUMENT, "query is required");
    if (strlen(request->query) > FIND_QUERY_MAX)
        return error_set(err, ERROR_INVALID_ARGUMENT, "query is longer than %d bytes",
                         FIND_QUERY_MAX);
    return 0;
}

static const char *type_text(uint64_t type)
{
    static const char *const texts[] = {[FILE_REGULAR] = "file",
                                        [FILE_DIRECTORY] = "directory",
                                        [FILE_SYMLINK] = "symlink",
                                        [FILE_OTHER] = "other"};
    return type < ARRAY_LEN(texts) ? texts[type] : "other";
}

static void add_match(struct arena *arena, yyjson_mut_doc *doc, yyjson_mut_val *object,
                      enum find_mode mode, const struct file_match *match)
{
    api_add_text(arena, doc, object, "path", "pathBase64", slice_of(match->path));
    if (mode == FIND_CONTENT) {
        yyjson_mut_obj_add_uint(doc, object, "line", match->line);
        yyjson_mut_obj_add_uint(doc, object, "column", match->column);
        api_add_text(arena, doc, object, "text", "textBase64", match->text);
        return;
    }
    yyjson_mut_obj_add_str(doc, object, "type", type_text(match->type));
    if (mode == FIND_FUZZY)
        yyjson_mut_obj_add_real(doc, object, "score", (double)match->score / 1000);
}

int file_search_reply(struct http_exchange *x, const struct file_place *place, enum find_mode mode,
                      struct error *err)
{
    struct file_find request = {.path = place->path};
    if (file_search_read(x, mode, &request, err) < 0)
        return -1;
    return file_search_run(x, place, &request, mode, err);
}

static int reply_matches(struct http_exchange *x, const struct file_find *request,
                         const struct file_matches *matches, enum find_mode mode, struct error *err)
{
    _cleanup_json_stream_ struct json_stream out = {0};
    yyjson_mut_val *object;
    json_stream_begin(&out, x);
    yyjson_mut_doc *doc = json_stream_item(&out, &object);
    if (request->query != NULL)
        yyjson_mut_obj_add_str(doc, object, "query", request->query);
    json_stream_members(&out, doc);
    json_stream_array(&out, "matches");
    for (size_t i = 0; i < matches->count; i++) {
        doc = json_stream_item(&out, &object);
        add_match(json_stream_arena(&out), doc, object, mode, &matches->items[i]);
        if (json_stream_add(&out, doc, err) < 0)
            return -1;
    }
    json_stream_array_end(&out);
    doc = json_stream_item(&out, &object);
    yyjson_mut_obj_add_uint(doc, object, "total", matches->count);
    if (matches->cut)
        yyjson_mut_obj_add_bool(doc, object, "truncated", true);
    json_stream_members(&out, doc);
    return json_stream_end(&out, err);
}

int file_search_run(struct http_exchange *x, const struct file_place *place,
                    const struct file_find *request, enum find_mode mode, struct error *err)
{
    struct file_matches matches;
    if (sandbox_file_find(place->sandboxes, place->workspace, place->sandbox, request,
                          http_arena(x), &matches, err) < 0)
        return -1;
    return reply_matches(x, request, &matches, mode, err);
}

static int answer(struct http_exchange *x, const struct route_params *params, void *ctx,
                  enum find_mode mode, struct error *err)
{
    struct file_place place;
    if (file_place_find(x, params, ctx, &place, err) < 0)
        return -1;
    return file_search_reply(x, &place, mode, err);
}

int v0_file_find(struct http_exchange *x, const struct route_params *params, void *ctx,
                 struct error *err)
{
    return answer(x, params, ctx, FIND_NAMES, err);
}

int v0_file_search(struct http_exchange *x, const struct route_params *params, void *ctx,
                   struct error *err)
{
    return answer(x, params, ctx, FIND_FUZZY, err);
}

int v0_file_content_search(struct http_exchange *x, const struct route_params *params, void *ctx,
                           struct error *err)
{
    return answer(x, params, ctx, FIND_CONTENT, err);
}
