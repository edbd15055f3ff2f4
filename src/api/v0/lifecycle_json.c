/* SPDX-License-Identifier: Apache-2.0 */

/* How long a sandbox lives, as the API writes it. */

#include "api/v0/lifecycle_json.h"

#include "base/cleanup.h"
#include "base/duration.h"
#include "base/timetext.h"

struct fields {
    const char *spans[LIFESPAN_EXPIRES];
    const char *expires;
    const char *on_expire;
    bool wake;
};

#define SPAN(name, rule)                                                                           \
    {                                                                                              \
        name, JSON_SCALAR_TEXT, .offset = offsetof(struct fields, spans[rule])                     \
    }

/* In the order of the bits in lifespan_change.sets. */
static const struct json_field rows[] = {
    SPAN("ttl", LIFESPAN_TTL),
    SPAN("idleTimeout", LIFESPAN_IDLE),
    SPAN("maxAge", LIFESPAN_MAX_AGE),
    {"expires", JSON_STRING, .offset = offsetof(struct fields, expires)},
    {"onExpire", JSON_STRING, .offset = offsetof(struct fields, on_expire)},
    {"wakeOnConnect", JSON_BOOL, .offset = offsetof(struct fields, wake)},
};

static int read_spans(const struct fields *fields, struct lifespan *span, struct error *err)
{
    int64_t *const values[] = {
        [LIFESPAN_TTL] = &span->ttl_s,
        [LIFESPAN_IDLE] = &span->idle_s,
        [LIFESPAN_MAX_AGE] = &span->max_age_s,
    };
    for (size_t i = 0; i < ARRAY_LEN(values); i++)
        if (fields->spans[i] != NULL &&
            lifespan_parse_span(fields->spans[i], (enum lifespan_rule)i, values[i], err) < 0)
            return -1;
    return 0;
}

static int read_fields(struct arena *arena, yyjson_val *object, struct lifespan *ret_span,
                       struct error *err)
{
    struct fields fields = {0};
    struct lifespan span = {0};
    if (json_read(arena, object, "spec.lifecycle", rows, ARRAY_LEN(rows), &fields, err) < 0 ||
        read_spans(&fields, &span, err) < 0)
        return -1;
    if (fields.expires != NULL && time_parse_rfc3339(fields.expires, &span.expires_ms, err) < 0)
        return error_prefix(err, "spec.lifecycle.expires");
    if (fields.expires != NULL && span.expires_ms == 0)
        span.expires_ms = 1; /* long past, and not none */
    if (fields.on_expire != NULL &&
        lifespan_action_parse(fields.on_expire, &span.on_expire, err) < 0)
        return -1;
    span.wake = fields.wake;
    *ret_span = span;
    return 0;
}

int lifecycle_from_json(struct arena *arena, yyjson_val *object, struct lifespan_change *ret_change,
                        struct error *err)
{
    struct lifespan_change change = {.sets = object == NULL ? 0 : LIFESPAN_SETS_ALL};
    if (object != NULL && read_fields(arena, object, &change.to, err) < 0)
        return -1;
    *ret_change = change;
    return 0;
}

int lifecycle_patch_from_json(struct arena *arena, yyjson_val *object,
                              struct lifespan_change *ret_change, struct error *err)
{
    struct lifespan_change change = {0};
    if (yyjson_is_null(object)) {
        change.sets = LIFESPAN_SETS_ALL;
    } else if (object != NULL) {
        if (read_fields(arena, object, &change.to, err) < 0)
            return -1;
        for (size_t i = 0; i < ARRAY_LEN(rows); i++)
            if (yyjson_obj_get(object, rows[i].name) != NULL)
                change.sets |= 1u << i;
    }
    *ret_change = change;
    return 0;
}

void lifecycle_to_json(yyjson_mut_doc *doc, yyjson_mut_val *spec, const struct lifespan *span)
{
    const int64_t values[] = {span->ttl_s, span->idle_s, span->max_age_s};
    const char *action = lifespan_action_text(span->on_expire);
    char text[DURATION_TEXT_SIZE], date[TIME_TEXT_SIZE];
    if (lifespan_is_none(span) && action == NULL && !span->wake)
        return;
    yyjson_mut_val *lifecycle = yyjson_mut_obj_add_obj(doc, spec, "lifecycle");
    for (size_t i = 0; i < ARRAY_LEN(values); i++) {
        if (values[i] == 0)
            continue;
        duration_text((uint64_t)values[i], text);
        yyjson_mut_obj_add_strcpy(doc, lifecycle, lifespan_rule_name((enum lifespan_rule)i), text);
    }
    if (span->expires_ms != 0) {
        time_rfc3339(span->expires_ms, date);
        yyjson_mut_obj_add_strcpy(doc, lifecycle, "expires", date);
    }
    if (action != NULL)
        yyjson_mut_obj_add_str(doc, lifecycle, "onExpire", action);
    if (span->wake)
        yyjson_mut_obj_add_bool(doc, lifecycle, "wakeOnConnect", true);
}
