/* SPDX-License-Identifier: Apache-2.0 */

/* Blaxel's ways to say when a sandbox is to go, brought together. An empty string is none: that is
 * what updateTtl("") sends. */

#include "api/blaxel/lifespan.h"

#include <string.h>

#include "api/blaxel/members.h"
#include "base/cleanup.h"
#include "base/duration.h"
#include "base/limits.h"
#include "base/timetext.h"

static void take_earlier(int64_t *value, int64_t other)
{
    if (*value == 0 || other < *value)
        *value = other;
}

static int read_span(const char *where, const char *text, int64_t *ret_seconds, struct error *err)
{
    uint64_t seconds;
    struct error why;
    if (duration_seconds(text, &seconds, &why) < 0)
        return error_set(err, ERROR_INVALID_DURATION, "%s: %s", where, why.message);
    if (seconds < LIFESPAN_MIN_S || seconds > LIFESPAN_MAX_S)
        return error_set(err, ERROR_INVALID_DURATION, "%s: \"%.40s\" is not from %ds to %dd", where,
                         text, LIFESPAN_MIN_S, LIFESPAN_MAX_S / (24 * 3600));
    *ret_seconds = (int64_t)seconds;
    return 0;
}

static int add_age(const char *where, const char *text, int64_t created_ms, struct lifespan *span,
                   struct error *err)
{
    int64_t seconds;
    if (read_span(where, text, &seconds, err) < 0)
        return -1;
    take_earlier(&span->expires_ms, created_ms + seconds * 1000);
    return 0;
}

static int add_idle(const char *where, const char *text, int64_t created_ms, struct lifespan *span,
                    struct error *err)
{
    int64_t seconds;
    if (read_span(where, text, &seconds, err) < 0)
        return -1;
    take_earlier(&span->idle_s, seconds);
    return 0;
}

static int add_date(const char *where, const char *text, int64_t created_ms, struct lifespan *span,
                    struct error *err)
{
    int64_t date_ms;
    if (time_parse_rfc3339(text, &date_ms, err) < 0)
        return error_prefix(err, "%s", where);
    take_earlier(&span->expires_ms, date_ms != 0 ? date_ms : 1); /* 0 would be none */
    return 0;
}

static const struct {
    const char *type;
    int (*add)(const char *where, const char *text, int64_t created_ms, struct lifespan *span,
               struct error *err);
} policies[] = {
    {"ttl-idle", add_idle},
    {"ttl-max-age", add_age},
    {"date", add_date},
};

static int read_policy(yyjson_val *policy, int64_t created_ms, struct lifespan *span,
                       struct error *err)
{
    static const char where[] = "spec.lifecycle.expirationPolicies";
    const char *type = "", *text = NULL, *action = "delete";
    if (!yyjson_is_obj(policy))
        return error_set(err, ERROR_INVALID_ARGUMENT, "%s must hold objects", where);
    if (member_text(policy, where, "type", &type, err) < 0 ||
        member_text(policy, where, "value", &text, err) < 0 ||
        member_text(policy, where, "action", &action, err) < 0)
        return -1;
    if (strcmp(action, "delete") != 0)
        return error_set(err, ERROR_INVALID_ARGUMENT, "%s.action: \"%.40s\" is not \"delete\"",
                         where, action);
    if (text == NULL)
        return error_set(err, ERROR_INVALID_ARGUMENT, "%s.value is required", where);
    for (size_t i = 0; i < ARRAY_LEN(policies); i++)
        if (strcmp(policies[i].type, type) == 0)
            return policies[i].add(where, text, created_ms, span, err);
    return error_set(err, ERROR_INVALID_ARGUMENT,
                     "%s.type: \"%.40s\" is none of ttl-idle, ttl-max-age, date", where, type);
}

static int read_policies(yyjson_val *spec, int64_t created_ms, struct lifespan *span,
                         struct error *err)
{
    yyjson_val *lifecycle = NULL, *list = NULL, *policy;
    size_t i, count;
    if (member_object(spec, "spec", "lifecycle", &lifecycle, err) < 0 ||
        member_array(lifecycle, "spec.lifecycle", "expirationPolicies", &list, err) < 0)
        return -1;
    yyjson_arr_foreach(list, i, count, policy)
    {
        if (read_policy(policy, created_ms, span, err) < 0)
            return -1;
    }
    return 0;
}

int blaxel_lifespan(yyjson_val *spec, int64_t created_ms, struct lifespan *ret_span,
                    struct error *err)
{
    struct lifespan span = {0};
    yyjson_val *runtime = NULL;
    const char *ttl = "", *expires = "";
    if (member_object(spec, "spec", "runtime", &runtime, err) < 0 ||
        member_text(runtime, "spec.runtime", "ttl", &ttl, err) < 0 ||
        member_text(runtime, "spec.runtime", "expires", &expires, err) < 0)
        return -1;
    if (ttl[0] != '\0' && add_age("spec.runtime.ttl", ttl, created_ms, &span, err) < 0)
        return -1;
    if (expires[0] != '\0' && add_date("spec.runtime.expires", expires, created_ms, &span, err) < 0)
        return -1;
    if (read_policies(spec, created_ms, &span, err) < 0)
        return -1;
    if (!lifespan_is_none(&span))
        span.on_expire = LIFESPAN_DELETE;
    *ret_span = span;
    return 0;
}

struct lifespan blaxel_kept_lifespan(struct arena *arena, const char *spec, int64_t created_ms)
{
    struct lifespan span = {0};
    struct error ignored;
    yyjson_val *root = NULL;
    if (spec != NULL && json_parse(arena, slice_of(spec), &root, &ignored) == 0 &&
        yyjson_is_obj(root) && blaxel_lifespan(root, created_ms, &span, &ignored) < 0)
        return (struct lifespan){0};
    return span;
}
