/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Members of JSON objects that clients of many versions send. Unlike json_read(), which knows every
 * member there is, these ask for one each and pass over the rest. A member that is not there, or is
 * null, leaves *ret as it was; one of another type is INVALID_ARGUMENT. `where` is the object's
 * path in messages; object may be NULL.
 */

#include "json/json.h"

int member_text(yyjson_val *object, const char *where, const char *name, const char **ret,
                struct error *err);
int member_object(yyjson_val *object, const char *where, const char *name, yyjson_val **ret,
                  struct error *err);
int member_array(yyjson_val *object, const char *where, const char *name, yyjson_val **ret,
                 struct error *err);
int member_bool(yyjson_val *object, const char *where, const char *name, bool *ret,
                struct error *err);
/* A whole number in min…max. */
int member_uint(yyjson_val *object, const char *where, const char *name, uint64_t min, uint64_t max,
                uint64_t *ret, struct error *err);
