/* SPDX-License-Identifier: Apache-2.0 */

/* Answers of JSON that are sent while they are made. */

#include "api/json_stream.h"

#include "base/memory.h"

/* One element on top of what waits to be sent; the largest are commands and diffs of one file. */
enum { TEXT_MAX = 32 << 20, TEXT_PIECE = 3 * 16 * 1024 };

static void begin(struct json_stream *s, struct http_exchange *x, char first, char last)
{
    *s = (struct json_stream){.x = x, .scratch = arena_new_for(http_memory(x)), .last = last};
    buf_init(&s->text, TEXT_MAX);
    s->text.account = http_memory(x);
    buf_addc(&s->text, first);
}

void json_stream_begin(struct json_stream *s, struct http_exchange *x)
{
    begin(s, x, '{', '}');
}

void json_stream_begin_list(struct json_stream *s, struct http_exchange *x)
{
    begin(s, x, '[', ']');
}

void json_stream_release(struct json_stream *s)
{
    arena_free(s->scratch);
    s->scratch = NULL;
    buf_release(&s->text);
}

struct arena *json_stream_arena(struct json_stream *s)
{
    return s->scratch;
}

yyjson_mut_doc *json_stream_item(struct json_stream *s, yyjson_mut_val **ret_object)
{
    arena_clear(s->scratch);
    yyjson_mut_doc *doc = json_doc(s->scratch);
    *ret_object = yyjson_mut_obj(doc);
    yyjson_mut_doc_set_root(doc, *ret_object);
    return doc;
}

static void add_comma(struct json_stream *s)
{
    if (s->comma)
        buf_addc(&s->text, ',');
    s->comma = false;
}

/* Sends what has come together, when it is enough for a chunk. */
static int flush(struct json_stream *s, struct error *err)
{
    if (buf_check(&s->text, "the answer", err) < 0)
        return -1;
    if (s->text.len < JSON_STREAM_FLUSH)
        return 0;
    if (!http_started(s->x) &&
        http_reply_start(s->x, 200, "application/json", HTTP_LENGTH_LATER, err) < 0)
        return -1;
    if (http_reply_write(s->x, s->text.data, s->text.len, err) < 0)
        return -1;
    if (s->text.cap > 4 * JSON_STREAM_FLUSH)
        buf_release(&s->text); /* it was a large element */
    buf_clear(&s->text);
    return 0;
}

int json_stream_add(struct json_stream *s, const yyjson_mut_doc *item, struct error *err)
{
    add_comma(s);
    struct slice text = json_write(s->scratch, item, false);
    buf_add(&s->text, text.data, text.len);
    s->comma = true;
    return flush(s, err);
}

void json_stream_members(struct json_stream *s, const yyjson_mut_doc *item)
{
    struct slice text = json_write(s->scratch, item, false);
    if (text.len <= 2)
        return;
    add_comma(s);
    buf_add(&s->text, text.data + 1, text.len - 2);
    s->comma = true;
}

/* The piece as it stands between quotes. Not cut in the middle of a character, nor of three bytes
 * for base64. */
static int add_piece(struct json_stream *s, struct slice *rest, bool base64, struct error *err)
{
    size_t len = rest->len < TEXT_PIECE ? rest->len : TEXT_PIECE;
    if (len < rest->len && !base64) {
        size_t tail = json_utf8_tail((struct slice){rest->data, len});
        len -= tail;
    }
    const struct slice piece = {rest->data, len};
    arena_clear(s->scratch);
    if (base64) {
        struct slice text = json_base64_encode(s->scratch, piece);
        buf_add(&s->text, text.data, text.len);
    } else {
        yyjson_mut_doc *doc = json_doc(s->scratch);
        yyjson_mut_doc_set_root(doc, json_lossy(doc, piece));
        struct slice text = json_write(s->scratch, doc, false);
        buf_add(&s->text, text.data + 1, text.len - 2);
    }
    rest->data += len;
    rest->len -= len;
    return flush(s, err);
}

int json_stream_text(struct json_stream *s, const char *name, struct slice text, bool base64,
                     struct error *err)
{
    add_comma(s);
    buf_addf(&s->text, "\"%s\":\"", name);
    while (text.len > 0)
        if (add_piece(s, &text, base64, err) < 0)
            return -1;
    buf_addc(&s->text, '"');
    s->comma = true;
    return 0;
}

void json_stream_array(struct json_stream *s, const char *name)
{
    add_comma(s);
    buf_addf(&s->text, "\"%s\":[", name);
}

void json_stream_array_end(struct json_stream *s)
{
    buf_addc(&s->text, ']');
    s->comma = true;
}

void json_stream_open(struct json_stream *s, const yyjson_mut_doc *item)
{
    add_comma(s);
    buf_addc(&s->text, '{');
    json_stream_members(s, item);
}

int json_stream_close(struct json_stream *s, struct error *err)
{
    buf_addc(&s->text, '}');
    s->comma = true;
    return flush(s, err);
}

int json_stream_end(struct json_stream *s, struct error *err)
{
    buf_addc(&s->text, s->last);
    if (buf_check(&s->text, "the answer", err) < 0)
        return -1;
    if (!http_started(s->x))
        return http_reply(s->x, 200, "application/json", s->text.data, s->text.len, err);
    if (http_reply_write(s->x, s->text.data, s->text.len, err) < 0)
        return -1;
    return http_reply_end(s->x, err);
}
