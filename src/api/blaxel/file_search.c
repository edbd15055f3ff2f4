/* SPDX-License-Identifier: Apache-2.0 */

/*
 * /filesystem-find, -search, -content-search, and /watch/filesystem. The answers are the seed's;
 * what is left out by default is Blaxel's: hidden files, and folders that are not one's own work.
 */

#include "api/v0/file_search.h"

#include <string.h>

#include "api/blaxel/box.h"
#include "api/blaxel/handlers.h"
#include "api/v0/file_watch.h"
#include "base/limits.h"

#define EXCLUDED "node_modules,vendor,.git,dist,build,target,__pycache__,.venv,.next,coverage"

static const struct {
    const char *patterns; /* the parameter's name */
    uint64_t results;     /* when the request does not say how many */
    bool no_hidden;
} defaults[] = {
    [FIND_NAMES] = {"patterns", 20, true},
    [FIND_FUZZY] = {"patterns", 20, true},
    [FIND_CONTENT] = {"filePattern", 100, false},
};

static int read_type(struct http_exchange *x, uint64_t *flags, struct error *err)
{
    const char *type = NULL;
    if (http_query(x, "type", &type, err) < 0)
        return -1;
    bool file = type != NULL && strcmp(type, "file") == 0;
    bool directory = type != NULL && strcmp(type, "directory") == 0;
    if (type != NULL && type[0] != '\0' && !file && !directory)
        return error_set(err, ERROR_INVALID_ARGUMENT,
                         "type: \"%.40s\" is neither \"file\" nor \"directory\"", type);
    *flags |= (file ? FIND_FILES : 0) | (directory ? FIND_DIRECTORIES : 0);
    return 0;
}

static int read_query(struct http_exchange *x, enum find_mode mode, struct file_find *request,
                      struct error *err)
{
    if (http_query(x, "query", &request->query, err) < 0)
        return -1;
    if (request->query != NULL && request->query[0] == '\0')
        request->query = NULL;
    if (request->query != NULL && strlen(request->query) > FIND_QUERY_MAX)
        return error_set(err, ERROR_INVALID_ARGUMENT, "query is longer than %d bytes",
                         FIND_QUERY_MAX);
    if (request->query == NULL && mode == FIND_CONTENT)
        return error_set(err, ERROR_INVALID_ARGUMENT, "query is required");
    /* The client's search() does not send what is searched for: then it is everything. */
    request->mode = request->query == NULL ? FIND_NAMES : mode;
    return 0;
}

static int read_search(struct http_exchange *x, enum find_mode mode, struct file_find *request,
                       struct error *err)
{
    struct arena *arena = http_arena(x);
    const char *patterns = NULL, *exclude = NULL, *pattern_name = defaults[mode].patterns;
    bool no_hidden, case_sensitive;
    if (read_query(x, mode, request, err) < 0 || read_type(x, &request->flags, err) < 0 ||
        http_query(x, pattern_name, &patterns, err) < 0 ||
        api_list(arena, pattern_name, patterns, &request->patterns, err) < 0 ||
        http_query(x, "excludeDirs", &exclude, err) < 0 ||
        api_list(arena, "excludeDirs", exclude != NULL ? exclude : EXCLUDED, &request->exclude,
                 err) < 0 ||
        api_query_bool(x, "excludeHidden", defaults[mode].no_hidden, &no_hidden, err) < 0 ||
        api_query_bool(x, "caseSensitive", false, &case_sensitive, err) < 0 ||
        api_query_uint(x, "maxResults", 0, FIND_RESULTS_MAX, defaults[mode].results,
                       &request->results_max, err) < 0)
        return -1;
    if (request->results_max == 0)
        request->results_max = FIND_RESULTS_MAX;
    request->flags |= (no_hidden ? FIND_NO_HIDDEN : 0) |
                      (case_sensitive || request->mode == FIND_NAMES ? 0 : FIND_ANY_CASE);
    return 0;
}

static int answer(struct http_exchange *x, const struct route_params *params,
                  const struct api_call *call, enum find_mode mode, struct error *err)
{
    struct file_find request = {0};
    struct file_place place;
    if (box_place(x, params, call, BOX_PATH_ANY, &place, err) < 0 ||
        read_search(x, mode, &request, err) < 0)
        return -1;
    request.path = place.path;
    return file_search_run(x, &place, &request, mode, err);
}

int box_file_find(struct http_exchange *x, const struct route_params *params, void *ctx,
                  struct error *err)
{
    return answer(x, params, ctx, FIND_NAMES, err);
}

int box_file_search(struct http_exchange *x, const struct route_params *params, void *ctx,
                    struct error *err)
{
    return answer(x, params, ctx, FIND_FUZZY, err);
}

int box_file_content_search(struct http_exchange *x, const struct route_params *params, void *ctx,
                            struct error *err)
{
    return answer(x, params, ctx, FIND_CONTENT, err);
}

int box_file_watch(struct http_exchange *x, const struct route_params *params, void *ctx,
                   struct error *err)
{
    struct file_place place;
    if (box_place(x, params, ctx, BOX_PATH_ANY, &place, err) < 0)
        return -1;
    bool recursive = file_watch_suffix(x, &place);
    return file_watch_stream(x, &place, recursive, "[keepalive]", err);
}
