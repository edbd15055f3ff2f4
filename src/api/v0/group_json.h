/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Groups as clients write and read them. */

#include "json/json.h"
#include "sandbox/groups.h"

/*
 * The body of POST /v0/groups:
 *     {"name": "team", "count": 3, "spec": {…}}
 *     {"name": "team", "spec": {…}, "sandboxes": [{"name": "a", "spec": {…}}, …]}
 * spec is what every sandbox of the group inherits, now and later; one's own is laid over it,
 * member by member. count makes sandbox-1, sandbox-2, …; with neither the group is empty. Fills
 * name, spec, plain, sandboxes and count; a sandbox begins as `each`, who asks. UNKNOWN_FIELD,
 * INVALID_ARGUMENT. What only the server sets is accepted and ignored, so that what GET answered
 * can be sent. body may be NULL.
 */
int group_create_from_json(struct arena *arena, yyjson_val *body, const struct sandbox_create *each,
                           struct group_create *request, struct error *err);

/* The body of PATCH: {"spec": {…}}, laid over what the group's sandboxes inherit so far. Fills spec
 * and plain. */
int group_patch_from_json(struct arena *arena, yyjson_val *body, const struct sandbox_create *each,
                          const char *spec, struct group_create *request, struct error *err);

/*
 * The body of a request for one more sandbox (NULL: none) with its spec laid over the group's, for
 * sandbox_create_from_json().
 */
int group_lay_over(struct arena *arena, const char *spec, yyjson_val *body, yyjson_val **ret_body,
                   struct error *err);

/* The body of …/resize: that of one sandbox's, and "autoLower" as in its spec, alone or besides.
 * Fills resources, factor and auto_lower. */
int group_resize_from_json(struct arena *arena, yyjson_val *body, struct sandbox_update *update,
                           struct error *err);

/* metadata, spec, status, count; and the sandboxes with their names, ids and statuses unless brief.
 * Strings are borrowed from the info until the document is written. */
yyjson_mut_val *group_json(struct arena *arena, yyjson_mut_doc *doc, const struct group_info *info,
                           bool brief);
