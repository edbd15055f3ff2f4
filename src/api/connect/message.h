/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Fields of a protobuf message in its JSON form (protobuf.dev/programming-guides/json), which lets
 * one value be written in several ways: a field is called "watcherId" or "watcher_id", a whole
 * number is 7, 7.0 or "7", bytes are base64 of either alphabet with or without padding, a value of
 * an enum is its name or its number. One that is not there, or is null, has its default: *ret stays
 * as it was. What cannot be read is INVALID_ARGUMENT, naming the field. Pure functions.
 *
 * `where` is the message's own name in errors ("process"; "" for the outermost); object may be
 * NULL. `name` is the field's in lowerCamelCase.
 */

#include "json/json.h"

/* Without NUL characters. */
int message_text(yyjson_val *object, const char *where, const char *name, const char **ret,
                 struct error *err);
int message_object(yyjson_val *object, const char *where, const char *name, yyjson_val **ret,
                   struct error *err);
int message_array(yyjson_val *object, const char *where, const char *name, yyjson_val **ret,
                  struct error *err);
int message_bool(yyjson_val *object, const char *where, const char *name, bool *ret,
                 struct error *err);
/* In min…max. */
int message_uint(yyjson_val *object, const char *where, const char *name, uint64_t min,
                 uint64_t max, uint64_t *ret, struct error *err);
/* In the arena; *ret.data is never NULL when the field is there. */
int message_bytes(struct arena *arena, yyjson_val *object, const char *where, const char *name,
                  struct slice *ret, struct error *err);

struct message_enum {
    const char *name;
    int number;
};
/* One of the values; not there: *ret stays. */
int message_enum(yyjson_val *object, const char *where, const char *name,
                 const struct message_enum *values, size_t count, int *ret, struct error *err);
