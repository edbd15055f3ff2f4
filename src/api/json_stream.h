/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * An answer of JSON that is written while it is made: one object whose lists may be long.
 *
 * Up to JSON_STREAM_FLUSH bytes are gathered. An answer that is complete by then goes out with its
 * length, so that short lists are answered as any other call. A longer one is sent in chunks, and
 * each chunk waits for the client, which is how a list of any length needs little memory. From the
 * first chunk on an error can only cut the connection; check what can fail before.
 *
 *     _cleanup_json_stream_ struct json_stream out;
 *     json_stream_begin(&out, x);                          {
 *     json_stream_array(&out, "items");                    "items": [
 *     for (…) {
 *         yyjson_mut_doc *doc = json_stream_item(&out, &object);
 *         … fill the object …
 *         if (json_stream_add(&out, doc, err) < 0)         {…},
 *             return -1;
 *     }
 *     json_stream_array_end(&out);                         ]
 *     return json_stream_end(&out, err);                   }
 */

#include <stdbool.h>

#include "base/buf.h"
#include "http/server.h"
#include "json/json.h"

enum { JSON_STREAM_FLUSH = 64 * 1024 };

struct json_stream {
    struct http_exchange *x;
    struct arena *scratch; /* of the object that is being filled */
    struct buf text;       /* what is not sent yet */
    char last;             /* closes the outermost object or list */
    bool comma;            /* one stands between what was written last and what comes next */
};

void json_stream_begin(struct json_stream *s, struct http_exchange *x);
/* The same for an answer that is a list itself: its elements are added at once. */
void json_stream_begin_list(struct json_stream *s, struct http_exchange *x);
void json_stream_release(struct json_stream *s);
#define _cleanup_json_stream_ __attribute__((cleanup(json_stream_release)))

/* An empty object in memory that lasts until the next one is asked for. */
yyjson_mut_doc *json_stream_item(struct json_stream *s, yyjson_mut_val **ret_object);
/* Where strings for it can live. */
struct arena *json_stream_arena(struct json_stream *s);

/* Writes the object as the next element of the list. */
int json_stream_add(struct json_stream *s, const yyjson_mut_doc *item, struct error *err);
/* Writes its members as members of the object that is open. */
void json_stream_members(struct json_stream *s, const yyjson_mut_doc *item);

/* Text as a member of the object that is open, sent piece by piece: as it is where it is UTF-8
 * (json_is_utf8()), with U+FFFD for what is not, or in base64. */
int json_stream_text(struct json_stream *s, const char *name, struct slice text, bool base64,
                     struct error *err);

/* A list as a member of the object that is open. */
void json_stream_array(struct json_stream *s, const char *name);
void json_stream_array_end(struct json_stream *s);

/* An element that gets further members, lists among them, before it is closed. */
void json_stream_open(struct json_stream *s, const yyjson_mut_doc *item);
int json_stream_close(struct json_stream *s, struct error *err);

/* Closes the outermost object or list, and ends the answer: status 200. */
int json_stream_end(struct json_stream *s, struct error *err);
