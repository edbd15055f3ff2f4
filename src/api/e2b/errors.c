/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The clients choose an exception by the status, and many of their calls by "code" in the body,
 * which is the status again. What they make of one: 400 invalid argument, 401 authentication, 404
 * not found, 429 rate limit (tried again after Retry-After), 502 the sandbox is gone, 503 busy, 507
 * not enough space.
 */

#include "api/e2b/errors.h"

#include <string.h>

#include "api/call.h"
#include "api/connect/connect.h"
#include "base/cleanup.h"

static const struct {
    enum error_code code;
    int status;
} statuses[] = {
    {ERROR_IS_A_DIRECTORY, 400},    {ERROR_NOT_A_DIRECTORY, 400},
    {ERROR_NOT_A_FILE, 400},        {ERROR_INSUFFICIENT_RESOURCES, 503},
    {ERROR_RESOURCE_IN_USE, 409},   {ERROR_UNSUPPORTED_MEDIA_TYPE, 400},
    {ERROR_TIMEOUT, 503},           {ERROR_PAYLOAD_TOO_LARGE, 400},
    {ERROR_HEADERS_TOO_LARGE, 400},
};

int e2b_status(enum error_code code)
{
    for (size_t i = 0; i < ARRAY_LEN(statuses); i++)
        if (statuses[i].code == code)
            return statuses[i].status;
    return error_http_status(code);
}

int e2b_reply_error(struct http_exchange *x, const struct error *why, struct error *err)
{
    yyjson_mut_val *root;
    yyjson_mut_doc *doc = api_json_new(http_arena(x), &root);
    int status = e2b_status(why->code);
    if (why->code == ERROR_LIMIT_EXCEEDED)
        http_set_header(x, "Retry-After", "1");
    yyjson_mut_obj_add_int(doc, root, "code", status);
    json_add_lossy(doc, root, "message", slice_of(why->message));
    return api_reply_json(x, status, doc, err);
}

static int reply_gone(struct http_exchange *x, struct error *err)
{
    const char *id = http_header(x, "E2b-Sandbox-Id"), *port = http_header(x, "E2b-Sandbox-Port");
    yyjson_mut_val *root;
    yyjson_mut_doc *doc = api_json_new(http_arena(x), &root);
    uint64_t number = 0;
    json_add_lossy(doc, root, "sandboxId", slice_of(id == NULL ? "" : id));
    yyjson_mut_obj_add_str(doc, root, "message", "The sandbox was not found");
    if (port != NULL && api_parse_uint(port, 1, UINT16_MAX, &number))
        yyjson_mut_obj_add_uint(doc, root, "port", number);
    yyjson_mut_obj_add_int(doc, root, "code", 502);
    return api_reply_json(x, 502, doc, err);
}

int e2b_envd_reply_error(struct http_exchange *x, const struct error *why, struct error *err)
{
    const char *path = http_request(x)->path;
    if (why->code == ERROR_SANDBOX_NOT_FOUND || why->code == ERROR_NOT_RUNNING)
        return reply_gone(x, err);
    if (strncmp(path, "/execute", 8) == 0 || strncmp(path, "/contexts", 9) == 0)
        return http_reply(x, e2b_status(why->code), "text/plain; charset=utf-8", why->message,
                          strlen(why->message), err);
    if (strncmp(path, "/filesystem.", 12) == 0 || strncmp(path, "/process.", 9) == 0)
        return connect_reply_error(x, why, err);
    return e2b_reply_error(x, why, err);
}
