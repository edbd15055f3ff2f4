/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Requests in, answers out. Handlers differ in what they ask for, never in how a body is limited,
 * how a parameter is refused or how bytes that are no text become JSON: that is here once.
 */

#include "api/call.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/duration.h"
#include "base/limits.h"
#include "base/timetext.h"

int api_json_body(struct http_exchange *x, yyjson_val **ret_object, struct error *err)
{
    const char *type = http_header(x, "Content-Type");
    /* Not in the arena: what is parsed from it has copies of all strings. */
    _cleanup_buf_ struct buf body = BUF_INIT(HTTP_JSON_BODY_MAX);
    yyjson_val *root = NULL;

    if (http_request(x)->content_length != 0) {
        if (type != NULL && !http_content_is(x, "application/json"))
            return error_set(err, ERROR_UNSUPPORTED_MEDIA_TYPE,
                             "this call takes application/json, and the body says it is %.100s",
                             type);
        if (http_body_take(x, &body, err) < 0)
            return -1;
    }
    if (body.len > 0) {
        if (json_parse(http_arena(x), (struct slice){body.data, body.len}, &root, err) < 0)
            return -1;
        if (!yyjson_is_obj(root))
            return error_set(err, ERROR_INVALID_ARGUMENT, "the body must be a JSON object");
    }
    *ret_object = root;
    return 0;
}

yyjson_mut_doc *api_json_new(struct arena *arena, yyjson_mut_val **ret_root)
{
    yyjson_mut_doc *doc = json_doc(arena);
    *ret_root = yyjson_mut_obj(doc);
    yyjson_mut_doc_set_root(doc, *ret_root);
    return doc;
}

void api_json_page(yyjson_mut_doc *doc, yyjson_mut_val *root, uint64_t total, uint64_t limit,
                   uint64_t offset)
{
    yyjson_mut_obj_add_uint(doc, root, "total", total);
    yyjson_mut_obj_add_uint(doc, root, "limit", limit);
    yyjson_mut_obj_add_uint(doc, root, "offset", offset);
}

int api_reply_json(struct http_exchange *x, int status, const yyjson_mut_doc *doc,
                   struct error *err)
{
    size_t len = 0;
    _cleanup_free_ char *text = json_text(doc, false, &len);
    /* A small one is sent at once: no reason to refuse what was done already. */
    if (len > MEMORY_SMALL && memory_check(http_memory(x), len, err) < 0)
        return -1;
    memory_take(http_memory(x), len);
    int rc = http_reply(x, status, "application/json", text, len, err);
    memory_give(http_memory(x), len);
    return rc;
}

bool api_parse_uint(const char *text, uint64_t min, uint64_t max, uint64_t *ret_value)
{
    size_t len = strlen(text);
    if (len == 0 || strspn(text, "0123456789") != len)
        return false;
    errno = 0;
    uint64_t value = strtoull(text, NULL, 10);
    if (errno != 0 || value < min || value > max)
        return false;
    *ret_value = value;
    return true;
}

int api_port_param(const struct route_params *params, uint16_t *ret_port, struct error *err)
{
    const char *text = route_param(params, "port");
    uint64_t port;
    if (text[0] == '0' || !api_parse_uint(text, 1, UINT16_MAX, &port))
        return error_set(err, ERROR_INVALID_ARGUMENT,
                         "\"%.40s\" is not a port: a whole number from 1 to 65535", text);
    *ret_port = (uint16_t)port;
    return 0;
}

void api_tell_execution(struct http_exchange *x, const char *execution)
{
    static const char prefix[] = "exec_";
    enum { DIGITS = 8, PREFIX = sizeof(prefix) - 1 };
    if (execution != NULL && strncmp(execution, prefix, PREFIX) == 0 &&
        strlen(execution) == PREFIX + DIGITS &&
        strspn(execution + PREFIX, "0123456789abcdef") == DIGITS)
        http_set_header(x, "X-Cella-Execution", "%s", execution);
}

int api_query_uint(struct http_exchange *x, const char *name, uint64_t min, uint64_t max,
                   uint64_t fallback, uint64_t *ret_value, struct error *err)
{
    const char *text = NULL;
    uint64_t value = fallback;
    if (http_query(x, name, &text, err) < 0)
        return -1;
    if (text != NULL && !api_parse_uint(text, min, max, &value))
        return error_set(err, ERROR_INVALID_ARGUMENT,
                         "%s: \"%.40s\" is not a whole number from %" PRIu64 " to %" PRIu64, name,
                         text, min, max);
    *ret_value = value;
    return 0;
}

int api_query_bool(struct http_exchange *x, const char *name, bool fallback, bool *ret_value,
                   struct error *err)
{
    const char *text = NULL;
    if (http_query(x, name, &text, err) < 0)
        return -1;
    bool yes = text != NULL && (strcmp(text, "true") == 0 || strcmp(text, "1") == 0);
    bool no = text != NULL && (strcmp(text, "false") == 0 || strcmp(text, "0") == 0);
    if (text != NULL && !yes && !no)
        return error_set(err, ERROR_INVALID_ARGUMENT, "%s: \"%.40s\" is neither true nor false",
                         name, text);
    *ret_value = text != NULL ? yes : fallback;
    return 0;
}

int api_query_since(struct http_exchange *x, int64_t *ret_ms, struct error *err)
{
    const char *text = NULL;
    uint64_t seconds;
    int64_t ms = 0;
    if (http_query(x, "since", &text, err) < 0)
        return -1;
    if (text != NULL && time_parse_rfc3339(text, &ms, NULL) < 0) {
        if (duration_seconds(text, &seconds, NULL) < 0 || seconds > INT32_MAX)
            return error_set(err, ERROR_INVALID_ARGUMENT,
                             "since: \"%.40s\" is neither a time such as 2023-10-10T15:30:00Z nor "
                             "how long ago, such as 10m",
                             text);
        ms = time_now_ms() - (int64_t)seconds * 1000;
    }
    *ret_ms = ms;
    return 0;
}

int api_list(struct arena *arena, const char *name, const char *text, struct slice *ret_list,
             struct error *err)
{
    size_t len = text == NULL ? 0 : strlen(text), used = 0;
    if (len >= PATTERNS_BYTES_MAX)
        return error_set(err, ERROR_INVALID_ARGUMENT, "%s is longer than %d bytes", name,
                         PATTERNS_BYTES_MAX - 1);
    char *list = arena_alloc(arena, len + 2);
    for (const char *at = text; len > 0 && *at != '\0';) {
        at += strspn(at, " ,");
        size_t n = strcspn(at, ",");
        size_t kept = n;
        while (kept > 0 && at[kept - 1] == ' ')
            kept--;
        if (kept > 0) {
            memcpy(list + used, at, kept);
            used += kept;
            list[used++] = '\0';
        }
        at += n;
    }
    *ret_list = (struct slice){list, used};
    return 0;
}

void api_add_text(struct arena *arena, yyjson_mut_doc *doc, yyjson_mut_val *object, const char *key,
                  const char *exact_key, struct slice text)
{
    if (!json_add_lossy(doc, object, key, text))
        return;
    struct slice exact = json_base64_encode(arena, text);
    yyjson_mut_obj_add_strn(doc, object, exact_key, exact.data, exact.len);
}

void api_http_time(uint64_t unix_ms, char out[TIME_TEXT_SIZE])
{
    time_http((int64_t)(unix_ms < API_TIME_MAX ? unix_ms : API_TIME_MAX), out);
}

void api_add_http_time(yyjson_mut_doc *doc, yyjson_mut_val *object, const char *key,
                       uint64_t unix_ms)
{
    char text[TIME_TEXT_SIZE];
    api_http_time(unix_ms, text);
    yyjson_mut_obj_add_strcpy(doc, object, key, text);
}

const char *api_base_url(struct http_exchange *x, const struct api *api)
{
    const char *host = http_request(x)->host;
    if (api->public_url != NULL) {
        size_t len = strlen(api->public_url);
        while (len > 0 && api->public_url[len - 1] == '/')
            len--;
        return arena_dup(http_arena(x), api->public_url, len);
    }
    return arena_printf(http_arena(x), "%s://%s", http_is_tls(x) ? "https" : "http",
                        host != NULL && host[0] != '\0' ? host : "localhost");
}
