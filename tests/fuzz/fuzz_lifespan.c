/* SPDX-License-Identifier: Apache-2.0 */

/*
 * How long a sandbox is to live, in both shapes. What is accepted is within its bounds, and what is
 * shown of it is accepted again and means the same.
 */

#include <stdlib.h>
#include <string.h>

#include "api/blaxel/lifespan.h"
#include "api/v0/lifecycle_json.h"
#include "base/cleanup.h"
#include "base/limits.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool truth)
{
    if (!truth)
        abort();
}

static void check_bounds(int64_t seconds)
{
    require(seconds == 0 || (seconds >= LIFESPAN_MIN_S && seconds <= LIFESPAN_MAX_S));
}

static void check_own(struct arena *arena, yyjson_val *root)
{
    struct lifespan_change change, again;
    struct error err = {.code = ERROR_NONE};
    if (!yyjson_is_obj(root) || lifecycle_patch_from_json(arena, root, &change, &err) < 0)
        return;
    require(lifecycle_from_json(arena, root, &change, &err) == 0);
    check_bounds(change.to.ttl_s);
    check_bounds(change.to.idle_s);
    check_bounds(change.to.max_age_s);
    change.to.expires_ms -= change.to.expires_ms % 1000; /* whole seconds are shown */
    if (change.to.expires_ms < 0 || change.to.expires_ms > INT64_C(250000000000000))
        return; /* what four digits of a year do not hold */
    yyjson_mut_doc *doc = json_doc(arena);
    yyjson_mut_val *spec = yyjson_mut_obj(doc);
    yyjson_mut_doc_set_root(doc, spec);
    lifecycle_to_json(doc, spec, &change.to);
    yyjson_val *shown;
    require(json_parse(arena, json_write(arena, doc, false), &shown, &err) == 0);
    require(lifecycle_from_json(arena, yyjson_obj_get(shown, "lifecycle"), &again, &err) == 0);
    require(lifespan_equal(&again.to, &change.to));
}

static void check_blaxel(yyjson_val *root)
{
    struct lifespan span;
    struct error err = {.code = ERROR_NONE};
    if (!yyjson_is_obj(root) || blaxel_lifespan(root, 1000, &span, &err) < 0)
        return;
    check_bounds(span.idle_s);
    require(span.ttl_s == 0 && span.max_age_s == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena *arena = arena_new();
    yyjson_val *root;
    if (json_parse(arena, (struct slice){(const char *)data, size}, &root, NULL) == 0) {
        check_own(arena, root);
        check_blaxel(root);
    }
    arena_free(arena);
    return 0;
}
