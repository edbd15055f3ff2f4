/* SPDX-License-Identifier: Apache-2.0 */

/* Calls and streams over an exchange. */

#include "api/connect/connect.h"

#include <inttypes.h>
#include <string.h>

#include "api/call.h"
#include "api/record.h"
#include "api/connect/frame.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/limits.h"

enum {
    PING_DEFAULT_MS = 50 * 1000,
    PING_MAX_S = 3600,
};

/* --- codes --- */

static const struct code_row {
    enum error_code code;
    const char *text;
    int status;
} codes[] = {
    {ERROR_NOT_RUNNING, "not_found", 404}, /* of a process; a sandbox's is told before */
    {ERROR_ALREADY_EXISTS, "already_exists", 409},
    {ERROR_IS_A_DIRECTORY, "invalid_argument", 400},
    {ERROR_NOT_A_DIRECTORY, "invalid_argument", 400},
    {ERROR_NOT_A_FILE, "invalid_argument", 400},
    {ERROR_NO_STDIN, "failed_precondition", 400},
    {ERROR_STDIN_CLOSED, "failed_precondition", 400},
    {ERROR_DIRECTORY_NOT_EMPTY, "failed_precondition", 400},
    {ERROR_ROUTE_NOT_FOUND, "unimplemented", 404},
    {ERROR_NOT_IMPLEMENTED, "unimplemented", 404},
    {ERROR_UNSUPPORTED_MEDIA_TYPE, "invalid_argument", 415},
    /* The clients take resource_exhausted for "too often, try again": neither a full disk nor a
     * message that is too large gets better by that. */
    {ERROR_QUOTA_EXCEEDED, "internal", 507},
    {ERROR_PAYLOAD_TOO_LARGE, "invalid_argument", 413},
    {ERROR_METHOD_NOT_ALLOWED, "unimplemented", 405},
    {ERROR_CANCELLED, "canceled", 499},
    {ERROR_TIMEOUT, "deadline_exceeded", 504},
    {ERROR_REQUEST_TIMEOUT, "deadline_exceeded", 504},
    {ERROR_WAIT_TIMEOUT, "deadline_exceeded", 504},
};

/* What a status means where no row says more. */
static const struct {
    int status;
    const char *text;
} by_status[] = {
    {400, "invalid_argument"},   {401, "unauthenticated"},     {403, "permission_denied"},
    {404, "not_found"},          {409, "failed_precondition"}, {413, "invalid_argument"},
    {429, "resource_exhausted"}, {502, "unavailable"},         {503, "unavailable"},
};

static const struct code_row *row_of(enum error_code code)
{
    for (size_t i = 0; i < ARRAY_LEN(codes); i++)
        if (codes[i].code == code)
            return &codes[i];
    return NULL;
}

const char *connect_code(enum error_code code)
{
    const struct code_row *row = row_of(code);
    if (row != NULL)
        return row->text;
    for (size_t i = 0; i < ARRAY_LEN(by_status); i++)
        if (by_status[i].status == error_http_status(code))
            return by_status[i].text;
    return "internal";
}

int connect_status(enum error_code code)
{
    const struct code_row *row = row_of(code);
    return row != NULL ? row->status : error_http_status(code);
}

/* --- requests --- */

bool connect_is_stream(const struct http_exchange *x)
{
    static const char prefix[] = "application/connect+";
    const char *type = http_header(x, "Content-Type");
    return type != NULL && strncmp(type, prefix, sizeof(prefix) - 1) == 0;
}

static int check_type(struct http_exchange *x, bool stream, struct error *err)
{
    const char *type = http_header(x, "Content-Type");
    if (type == NULL || http_content_is(x, stream ? CONNECT_STREAM_TYPE : "application/json"))
        return 0;
    return error_set(err, ERROR_UNSUPPORTED_MEDIA_TYPE,
                     "this call takes " CONNECT_STREAM_TYPE " or application/json, not %.100s",
                     type);
}

int connect_request(struct http_exchange *x, yyjson_val **ret_message, struct error *err)
{
    bool stream = connect_is_stream(x);
    struct slice body;
    if (check_type(x, stream, err) < 0 || http_body_all(x, HTTP_JSON_BODY_MAX, &body, err) < 0)
        return -1;
    if (stream && connect_frame_take(body, &body, err) < 0)
        return -1;
    if (body.len == 0) /* a message whose fields all have their defaults */
        body = slice_of("{}");
    yyjson_val *message;
    if (json_parse(http_arena(x), body, &message, err) < 0)
        return -1;
    if (!yyjson_is_obj(message))
        return error_set(err, ERROR_INVALID_ARGUMENT, "the message must be a JSON object");
    *ret_message = message;
    return 0;
}

static int number_field(const struct http_exchange *x, const char *name, uint64_t max, int64_t *ret,
                        struct error *err)
{
    const char *text = http_header(x, name);
    uint64_t value;
    if (text == NULL || text[0] == '\0')
        return 0;
    if (!api_parse_uint(text, 0, max, &value))
        return error_set(err, ERROR_INVALID_ARGUMENT,
                         "%s: \"%.40s\" is no whole number from 0 to %" PRIu64, name, text, max);
    *ret = (int64_t)value;
    return 0;
}

int connect_timeout(const struct http_exchange *x, int64_t *ret_ms, struct error *err)
{
    int64_t ms = 0;
    if (number_field(x, "Connect-Timeout-Ms", INT64_MAX / 4, &ms, err) < 0)
        return -1;
    if (ms > 0)
        *ret_ms = ms;
    return 0;
}

int connect_too_late(struct error *err)
{
    return error_set(err, ERROR_TIMEOUT, "the time that Connect-Timeout-Ms gave is over");
}

/* --- unary answers --- */

int connect_reply(struct http_exchange *x, const yyjson_mut_doc *doc, struct error *err)
{
    if (doc != NULL)
        return api_reply_json(x, 200, doc, err);
    return http_reply(x, 200, "application/json", "{}", 2, err);
}

static yyjson_mut_val *error_json(struct arena *arena, yyjson_mut_doc *doc, const struct error *why)
{
    yyjson_mut_val *object = yyjson_mut_obj(doc);
    yyjson_mut_obj_add_str(doc, object, "code", connect_code(why->code));
    json_add_lossy(doc, object, "message", slice_of(why->message));
    return object;
}

int connect_reply_error(struct http_exchange *x, const struct error *why, struct error *err)
{
    yyjson_mut_doc *doc = json_doc(http_arena(x));
    if (why->code == ERROR_LIMIT_EXCEEDED)
        http_set_header(x, "Retry-After", "1");
    if (connect_is_stream(x)) {
        struct connect_stream stream = {.x = x};
        if (connect_stream_start(&stream, err) < 0)
            return -1;
        return connect_stream_end(&stream, why, err);
    }
    yyjson_mut_doc_set_root(doc, error_json(http_arena(x), doc, why));
    return api_reply_json(x, connect_status(why->code), doc, err);
}

/* --- streams --- */

int connect_stream_init(struct connect_stream *stream, struct http_exchange *x, struct error *err)
{
    int64_t timeout_ms = 0, ping_s = PING_DEFAULT_MS / 1000;
    if (record_stream(x, err) < 0 || connect_timeout(x, &timeout_ms, err) < 0 ||
        number_field(x, "Keepalive-Ping-Interval", PING_MAX_S, &ping_s, err) < 0)
        return -1;
    *stream = (struct connect_stream){
        .x = x,
        .deadline_ms = timeout_ms == 0 ? -1 : loop_now(http_loop(x)) + timeout_ms,
        .ping_ms = ping_s == 0 ? PING_DEFAULT_MS : ping_s * 1000,
    };
    return 0;
}

int connect_stream_start(struct connect_stream *stream, struct error *err)
{
    http_set_header(stream->x, "Cache-Control", "no-store");
    return http_reply_start(stream->x, 200, CONNECT_STREAM_TYPE, -1, err);
}

static int send_frame(struct connect_stream *stream, unsigned flags, struct slice message,
                      struct error *err)
{
    _cleanup_buf_ struct buf out = BUF_INIT(CONNECT_HEADER_SIZE + message.len);
    connect_frame_add(&out, flags, message);
    if (buf_check(&out, "a message", err) < 0)
        return -1;
    return http_reply_write(stream->x, out.data, out.len, err);
}

int connect_stream_send_text(struct connect_stream *stream, struct slice message, struct error *err)
{
    return send_frame(stream, 0, message, err);
}

int connect_stream_send(struct connect_stream *stream, const yyjson_mut_doc *doc, struct error *err)
{
    struct arena *arena = arena_new();
    int rc = send_frame(stream, 0, json_write(arena, doc, false), err);
    arena_free(arena);
    return rc;
}

int connect_stream_end(struct connect_stream *stream, const struct error *why, struct error *err)
{
    struct arena *arena = http_arena(stream->x);
    struct slice message = slice_of("{}");
    if (why != NULL) {
        yyjson_mut_val *root;
        yyjson_mut_doc *doc = api_json_new(arena, &root);
        record_failure(stream->x, why);
        yyjson_mut_obj_add_val(doc, root, "error", error_json(arena, doc, why));
        message = json_write(arena, doc, false);
    }
    if (send_frame(stream, CONNECT_END, message, err) < 0)
        return -1;
    return http_reply_end(stream->x, err);
}

int connect_stream_fail(struct connect_stream *stream, const struct error *why, struct error *err)
{
    struct error told = *why;
    if (http_can_tell(stream->x, &told))
        return connect_stream_end(stream, &told, err);
    *err = *why;
    return -1;
}

int64_t connect_stream_patience(const struct connect_stream *stream)
{
    if (stream->deadline_ms < 0)
        return stream->ping_ms;
    int64_t left = stream->deadline_ms - loop_now(http_loop(stream->x));
    if (left <= 0)
        return 0;
    return left < stream->ping_ms ? left : stream->ping_ms;
}

bool connect_stream_is_over(const struct connect_stream *stream)
{
    return stream->deadline_ms >= 0 && loop_now(http_loop(stream->x)) >= stream->deadline_ms;
}
