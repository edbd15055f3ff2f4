/* SPDX-License-Identifier: Apache-2.0 */

/*
 * process.Process/StreamInput: the one call whose request is a stream. Its first message says which
 * process, the others bring input or nothing (a sign of life). Each is read when the one before has
 * been taken, so a process that does not read holds its client up, and nothing piles up here.
 */

#include "api/connect/connect.h"
#include "api/connect/frame.h"
#include "api/connect/message.h"
#include "api/connect/process.h"
#include "base/limits.h"

/* So many bytes; fewer (0) only at the end of the body, where a message has not begun. */
static int read_exactly(struct http_exchange *x, char *to, size_t len, size_t *ret_len,
                        struct error *err)
{
    size_t have = 0;
    while (have < len) {
        ssize_t n = http_body_read(x, to + have, len - have, err);
        if (n < 0)
            return -1;
        if (n == 0)
            break;
        have += (size_t)n;
    }
    if (have != 0 && have != len)
        return error_set(err, ERROR_INVALID_ARGUMENT,
                         "the request is cut off: %zu bytes came of %zu", have, len);
    *ret_len = have;
    return 0;
}

/* The next message. 1; 0: there is none any more. */
static int next_message(struct http_exchange *x, struct arena *arena, yyjson_val **ret_message,
                        struct error *err)
{
    char head[CONNECT_HEADER_SIZE];
    size_t len, have = 0;
    if (read_exactly(x, head, sizeof(head), &have, err) < 0)
        return -1;
    if (have == 0)
        return 0;
    if (connect_frame_head(head, HTTP_JSON_BODY_MAX, &len, err) < 0)
        return -1;
    char *text = arena_alloc(arena, len + 1);
    if (read_exactly(x, text, len, &have, err) < 0)
        return -1;
    if (have != len)
        return error_set(err, ERROR_INVALID_ARGUMENT, "the request is cut off before a message");
    yyjson_val *message;
    const struct slice whole = {len == 0 ? "{}" : text, len == 0 ? 2 : len};
    if (json_parse(arena, whole, &message, err) < 0)
        return -1;
    if (!yyjson_is_obj(message))
        return error_set(err, ERROR_INVALID_ARGUMENT, "a message must be a JSON object");
    *ret_message = message;
    return 1;
}

struct input_stream {
    struct http_exchange *x;
    const struct connect_box *box;
    bool has_target;
    struct process_target target;
};

static int take(struct input_stream *s, struct arena *arena, yyjson_val *message, struct error *err)
{
    yyjson_val *start = NULL, *data = NULL;
    if (message_object(message, "", "start", &start, err) < 0 ||
        message_object(message, "", "data", &data, err) < 0)
        return -1;
    if (start != NULL) {
        if (s->has_target)
            return error_set(err, ERROR_INVALID_ARGUMENT, "start: a stream is for one process");
        s->has_target = true;
        return process_select(s->box, http_arena(s->x), start, &s->target, err);
    }
    if (data == NULL) /* keepalive */
        return 0;
    if (!s->has_target)
        return error_set(err, ERROR_INVALID_ARGUMENT,
                         "data: the first message has to be start, with the process");
    struct process_input input;
    if (process_input_read(arena, data, &input, err) < 0)
        return -1;
    return process_input_give(s->box, &s->target, &input, err);
}

int process_stream_input_method(struct http_exchange *x, const struct connect_box *box,
                                yyjson_val *none, struct error *err)
{
    struct input_stream s = {.x = x, .box = box};
    struct connect_stream answer = {.x = x};
    int more;
    if (!http_content_is(x, CONNECT_STREAM_TYPE))
        return error_set(err, ERROR_UNSUPPORTED_MEDIA_TYPE,
                         "StreamInput takes " CONNECT_STREAM_TYPE);
    do {
        struct arena *arena = arena_new();
        yyjson_val *message = NULL;
        more = next_message(x, arena, &message, err);
        if (more > 0 && take(&s, arena, message, err) < 0)
            more = -1;
        arena_free(arena);
    } while (more > 0);
    if (more < 0 || connect_stream_start(&answer, err) < 0 ||
        connect_stream_send_text(&answer, slice_of("{}"), err) < 0)
        return -1;
    return connect_stream_end(&answer, NULL, err);
}
