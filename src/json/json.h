/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * JSON in and out, on yyjson.
 *
 * Reading is by table: a request is a struct, and rows say which member a field fills. Unknown
 * fields, wrong types and missing required fields are errors that name the field and what it should
 * be, so that handlers only see requests that are whole.
 *
 * Writing: build with yyjson's mutable API; json_reply-like helpers live in api/.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <yyjson.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/slice.h"

/* yyjson_obj_foreach() for an object that may be absent: the original adds to the null pointer,
 * which UBSan refuses. */
#define json_obj_foreach(object, index, count, key, value)                                         \
    if ((object) != NULL)                                                                          \
    yyjson_obj_foreach(object, index, count, key, value)

/* Parses text (INVALID_JSON with line and column; at most JSON_DEPTH_MAX deep; no trailing bytes,
 * no duplicate keys). The document lives until the arena goes. */
int json_parse(struct arena *arena, struct slice text, yyjson_val **ret_root, struct error *err);

enum json_kind {
    JSON_STRING,      /* const char *, NUL-free (INVALID_ARGUMENT otherwise); absent: untouched */
    JSON_BYTES,       /* struct slice: a string that may hold \u0000 */
    JSON_BOOL,        /* bool */
    JSON_INT,         /* int64_t; a whole number within min…max when max > min */
    JSON_OBJECT,      /* yyjson_val * */
    JSON_ARRAY,       /* yyjson_val * */
    JSON_ANY,         /* yyjson_val * */
    JSON_SCALAR_TEXT, /* const char *: a string, or a number as it would be written ("cpu": 1) */
    JSON_IGNORED,     /* known, but nothing is done with it */
};

struct json_field {
    const char *name;
    enum json_kind kind;
    bool required;
    size_t offset;
    int64_t min, max;
};

/* Fills *into from an object. `where` is the path of the object in messages ("spec.resources"; ""
 * for the root). null counts as absent. */
int json_read(struct arena *arena, yyjson_val *object, const char *where,
              const struct json_field *fields, size_t n, void *into, struct error *err);

/* Adds text that may not be UTF-8: invalid bytes become U+FFFD. Returns whether there were any. */
bool json_add_lossy(yyjson_mut_doc *doc, yyjson_mut_val *object, const char *key,
                    struct slice text);
/* The same as a value of its own, a copy. */
yyjson_mut_val *json_lossy(yyjson_mut_doc *doc, struct slice text);
bool json_is_utf8(struct slice text);
/* How many bytes at the end (0 to 3) are the beginning of a character whose rest is to come. */
size_t json_utf8_tail(struct slice text);

/* Base64 (RFC 4648, with padding); decoding is strict but for line breaks. In the arena. */
struct slice json_base64_encode(struct arena *arena, struct slice bytes);
int json_base64_decode(struct arena *arena, struct slice text, struct slice *ret_bytes,
                       struct error *err);

/* The document as text, to be freed. */
char *json_text(const yyjson_mut_doc *doc, bool pretty, size_t *ret_len);
/* The same in the arena. */
struct slice json_write(struct arena *arena, const yyjson_mut_doc *doc, bool pretty);
/* A mutable document whose memory is freed with the arena. */
yyjson_mut_doc *json_doc(struct arena *arena);
