/* SPDX-License-Identifier: Apache-2.0 */

/*
 * How long a sandbox lives, pausing it and coming back.
 */

#include "api/e2b/life.h"

#include <string.h>

#include "api/blaxel/members.h"
#include "api/call.h"
#include "api/e2b/handlers.h"
#include "api/e2b/sandbox_json.h"
#include "api/e2b/sandbox_request.h"
#include "base/limits.h"

int e2b_set_timeout(struct http_exchange *x, const struct api_call *call, const char *id,
                    int64_t seconds, struct error *err)
{
    const struct lifespan_change change = {.sets = 1u << LIFESPAN_TTL, .to = {.ttl_s = seconds}};
    const struct sandbox_update update = {.workspace = call->workspace,
                                          .name = id,
                                          .lifespan = &change,
                                          .may_extend = true,
                                          .actor = call->principal.name};
    struct sandbox_info info;
    return sandboxes_update(call->api->sandboxes, &update, http_arena(x), &info, err);
}

int e2b_timeout_request(struct http_exchange *x, const struct api_call *call,
                        const struct route_params *params, struct sandbox_info *ret_info,
                        int64_t *ret_seconds, struct error *err)
{
    yyjson_val *body;
    *ret_seconds = -1;
    if (api_json_body(x, &body, err) < 0 || e2b_timeout_from_json(body, ret_seconds, err) < 0)
        return -1;
    if (*ret_seconds < 0)
        return error_set(err, ERROR_INVALID_ARGUMENT, "timeout is required: seconds from now");
    return e2b_sandbox_find(x, call, route_param(params, "name"), ret_info, err);
}

int e2b_sandbox_timeout(struct http_exchange *x, const struct route_params *params, void *ctx,
                        struct error *err)
{
    const struct api_call *call = ctx;
    struct sandbox_info info;
    int64_t seconds;
    if (e2b_timeout_request(x, call, params, &info, &seconds, err) < 0)
        return -1;
    /* Clients before 2.5 find out by this whether one has to be resumed before it is used. */
    if (e2b_is_paused(&info))
        return error_set(err, ERROR_SANDBOX_NOT_FOUND,
                         "sandbox \"%s\" is paused: it has no time-out", info.id);
    if (e2b_set_timeout(x, call, info.id, seconds, err) < 0)
        return -1;
    return e2b_reply_nothing(x, err);
}

/* {"duration": 60}: older clients' way to say that they still need it. Never makes it shorter. */
int e2b_sandbox_refresh(struct http_exchange *x, const struct route_params *params, void *ctx,
                        struct error *err)
{
    const struct api_call *call = ctx;
    struct sandbox_info info;
    yyjson_val *body;
    uint64_t seconds = E2B_TIMEOUT_DEFAULT_S;
    if (api_json_body(x, &body, err) < 0 ||
        member_uint(body, "", "duration", 1, LIFESPAN_MAX_S, &seconds, err) < 0 ||
        e2b_sandbox_find(x, call, route_param(params, "name"), &info, err) < 0)
        return -1;
    int64_t end = time_now_ms() + (int64_t)seconds * 1000;
    if (info.expires_ms != 0 && info.expires_ms < end &&
        e2b_set_timeout(x, call, info.id, (int64_t)seconds, err) < 0)
        return -1;
    return e2b_reply_nothing(x, err);
}

/* --- pausing --- */

/* What it comes to may be another thing than was asked for: then its newest event says why. */
static int wait_paused(struct http_exchange *x, const struct api_call *call,
                       struct sandbox_info *info, struct error *err)
{
    if (sandboxes_rest(call->api->sandboxes, call->workspace, info->id, http_arena(x), info, err) <
        0)
        return -1;
    if (e2b_is_paused(info))
        return 0;
    return error_set(err, ERROR_UNAVAILABLE, "the sandbox could not be paused: %s",
                     info->event_count > 0 ? info->events[info->event_count - 1].message
                                           : "somebody resumed it");
}

static int stand_still(struct http_exchange *x, const struct api_call *call, bool memory,
                       struct sandbox_info *info, struct error *err)
{
    struct sandboxes *s = call->api->sandboxes;
    const char *actor = call->principal.name;
    int rc = memory ? sandboxes_pause(s, call->workspace, info->id, actor, http_arena(x), info, err)
                    : sandboxes_stop(s, call->workspace, info->id, actor, http_arena(x), info, err);
    if (rc == 0)
        return wait_paused(x, call, info, err);
    if (err->code == ERROR_NOT_RUNNING)
        err->code = ERROR_CONFLICT;
    return -1;
}

/* Whether its time-out would end it for good while it is paused. */
static bool would_go(const struct sandbox_info *info)
{
    return info->lifespan.ttl_s != 0 && info->lifespan.on_expire != LIFESPAN_STOP &&
           info->lifespan.on_expire != LIFESPAN_PAUSE;
}

int e2b_pause(struct http_exchange *x, const struct api_call *call, bool memory,
              struct sandbox_info *info, struct error *err)
{
    struct error ignored;
    int64_t ttl_s = info->lifespan.ttl_s;
    bool goes = would_go(info);
    if (e2b_is_paused(info))
        return error_set(err, ERROR_CONFLICT, "sandbox \"%s\" is paused already", info->id);
    if (goes && e2b_set_timeout(x, call, info->id, 0, err) < 0)
        return -1;
    if (stand_still(x, call, memory, info, err) == 0)
        return 0;
    if (goes && err->code != ERROR_CONFLICT) /* else somebody else has paused it */
        e2b_set_timeout(x, call, info->id, ttl_s, &ignored);
    return -1;
}

int e2b_sandbox_pause(struct http_exchange *x, const struct route_params *params, void *ctx,
                      struct error *err)
{
    const struct api_call *call = ctx;
    struct sandbox_info info;
    yyjson_val *body;
    bool memory = true;
    if (api_json_body(x, &body, err) < 0 || member_bool(body, "", "memory", &memory, err) < 0 ||
        e2b_sandbox_find(x, call, route_param(params, "name"), &info, err) < 0)
        return -1;
    if (e2b_pause(x, call, memory, &info, err) < 0)
        return -1;
    return e2b_reply_nothing(x, err);
}

/* --- coming back --- */

/* What it had in memory is to go: then it comes back as one that was stopped. */
static int drop_memory(struct http_exchange *x, const struct api_call *call,
                       struct sandbox_info *info, struct error *err)
{
    struct sandboxes *s = call->api->sandboxes;
    struct error why = {0};
    if (info->status != SANDBOX_PAUSED ||
        sandboxes_stop(s, call->workspace, info->id, call->principal.name, http_arena(x), info,
                       &why) == 0)
        return sandboxes_rest(s, call->workspace, info->id, http_arena(x), info, err);
    *err = why;
    return why.code == ERROR_NOT_RUNNING ? 0 : -1;
}

int e2b_come_back(struct http_exchange *x, const struct api_call *call, bool memory,
                  struct sandbox_info *info, struct error *err)
{
    struct error why = {0};
    if (!e2b_is_paused(info) && !info->starts_on_use)
        return 0;
    if (sandboxes_rest(call->api->sandboxes, call->workspace, info->id, http_arena(x), info, err) <
            0 ||
        (!memory && drop_memory(x, call, info, err) < 0))
        return -1;
    if (sandboxes_resume(call->api->sandboxes, call->workspace, info->id, call->principal.name,
                         http_arena(x), info, &why) < 0) {
        *err = why;
        return why.code == ERROR_ALREADY_RUNNING ? 0 : -1;
    }
    return 1;
}

static bool is_longer(const struct sandbox_info *info, int64_t seconds)
{
    return info->expires_ms == 0 || info->expires_ms < time_now_ms() + seconds * 1000;
}

static bool is_second_generation(struct http_exchange *x)
{
    return strncmp(http_request(x)->path, "/v2/", 4) == 0;
}

/* Of who wants to use one, running or not. */
struct coming {
    struct sandbox_info info;
    int64_t seconds;
    bool memory; /* what it has in memory is kept */
};

static int read_coming(struct http_exchange *x, const struct api_call *call,
                       const struct route_params *params, struct coming *ret, struct error *err)
{
    yyjson_val *body;
    ret->memory = true;
    ret->seconds = E2B_TIMEOUT_DEFAULT_S;
    if (api_json_body(x, &body, err) < 0 || e2b_timeout_from_json(body, &ret->seconds, err) < 0 ||
        member_bool(body, "", "memory", &ret->memory, err) < 0)
        return -1;
    return e2b_sandbox_find(x, call, route_param(params, "name"), &ret->info, err);
}

int e2b_sandbox_connect(struct http_exchange *x, const struct route_params *params, void *ctx,
                        struct error *err)
{
    const struct api_call *call = ctx;
    struct coming to;
    if (read_coming(x, call, params, &to, err) < 0)
        return -1;
    bool running = !e2b_is_paused(&to.info);
    bool has_end = to.info.lifespan.ttl_s != 0 || to.info.metadata.e2b_spec != NULL;
    /* One of another API that never ends stays so. A connect never takes time off a new client's
     * sandbox; an old one's sets it. */
    if (has_end && (!running || !is_second_generation(x) || is_longer(&to.info, to.seconds)) &&
        e2b_set_timeout(x, call, to.info.id, to.seconds, err) < 0)
        return -1;
    int resumed = e2b_come_back(x, call, to.memory, &to.info, err);
    if (resumed < 0)
        return -1;
    return e2b_reply_handle(x, call, resumed > 0 ? 201 : 200, to.info.id, err);
}

/* POST …/resume, which older clients have instead of connect: 409 when it runs. */
int e2b_sandbox_resume(struct http_exchange *x, const struct route_params *params, void *ctx,
                       struct error *err)
{
    const struct api_call *call = ctx;
    struct coming to;
    if (read_coming(x, call, params, &to, err) < 0)
        return -1;
    if (!e2b_is_paused(&to.info))
        return error_set(err, ERROR_CONFLICT, "sandbox \"%s\" is running already", to.info.id);
    if (e2b_set_timeout(x, call, to.info.id, to.seconds, err) < 0 ||
        e2b_come_back(x, call, to.memory, &to.info, err) < 0)
        return -1;
    return e2b_reply_handle(x, call, 201, to.info.id, err);
}
