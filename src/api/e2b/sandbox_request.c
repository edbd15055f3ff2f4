/* SPDX-License-Identifier: Apache-2.0 */

/* Reading create requests, of both generations of routes. */

#include "api/e2b/sandbox_request.h"

#include <string.h>

#include "api/blaxel/members.h"
#include "api/e2b_network.h"
#include "api/v0/env.h"
#include "base/limits.h"

int e2b_timeout_from_json(yyjson_val *body, int64_t *ret_seconds, struct error *err)
{
    uint64_t seconds = (uint64_t)*ret_seconds;
    if (member_uint(body, "", "timeout", 0, LIFESPAN_MAX_S, &seconds, err) < 0)
        return -1;
    *ret_seconds = seconds > 0 || yyjson_obj_get(body, "timeout") == NULL ? (int64_t)seconds : 1;
    return 0;
}

int e2b_metadata_from_json(yyjson_val *body, struct e2b_spec *spec, struct error *err)
{
    yyjson_val *key;
    yyjson_obj_iter iter;
    if (member_object(body, "", "metadata", &spec->metadata, err) < 0)
        return -1;
    yyjson_obj_iter_init(spec->metadata, &iter);
    while (spec->metadata != NULL && (key = yyjson_obj_iter_next(&iter)) != NULL)
        if (!yyjson_is_str(yyjson_obj_iter_get_val(key)))
            return error_set(err, ERROR_INVALID_ARGUMENT, "metadata.%.80s must be a string",
                             yyjson_get_str(key));
    return 0;
}

static int read_lifecycle(yyjson_val *body, struct e2b_create_request *request, struct error *err)
{
    bool pauses = false, memory = true, wakes = false;
    yyjson_val *resume = NULL;
    int64_t timeout_s = E2B_TIMEOUT_DEFAULT_S;
    if (member_bool(body, "", "autoPause", &pauses, err) < 0 ||
        member_bool(body, "", "autoPauseMemory", &memory, err) < 0 ||
        member_object(body, "", "autoResume", &resume, err) < 0 ||
        member_bool(resume, "autoResume", "enabled", &wakes, err) < 0 ||
        e2b_timeout_from_json(body, &timeout_s, err) < 0)
        return -1;
    if (wakes && !pauses)
        return error_set(err, ERROR_INVALID_ARGUMENT,
                         "autoResume: needs autoPause, since nothing else can be resumed");
    if (wakes && !memory)
        return error_set(err, ERROR_INVALID_ARGUMENT,
                         "autoResume: needs autoPauseMemory, since without its memory a sandbox is "
                         "resumed by connect only");
    request->spec.timeout_s = timeout_s;
    request->lifespan = (struct lifespan){
        .ttl_s = timeout_s,
        .on_expire = !pauses  ? LIFESPAN_DELETE
                     : memory ? LIFESPAN_PAUSE
                              : LIFESPAN_STOP,
        .wake = wakes,
    };
    return 0;
}

/* What somebody relies on and would not get is refused, rather than left out without a word. */
static int refuse_unknown(yyjson_val *body, struct error *err)
{
    yyjson_val *volumes = yyjson_obj_get(body, "volumeMounts");
    yyjson_val *tokens = yyjson_obj_get(yyjson_obj_get(body, "iam"), "tokens");
    if (yyjson_arr_size(volumes) > 0)
        return error_set(err, ERROR_INVALID_ARGUMENT, "volumeMounts: there are no volumes here");
    if (yyjson_obj_size(tokens) > 0)
        return error_set(err, ERROR_INVALID_ARGUMENT,
                         "iam.tokens: there are no workload identities here; a secret can be sent "
                         "for a sandbox (network.rules)");
    return 0;
}

int e2b_create_from_json(struct arena *arena, yyjson_val *body, struct e2b_create_request *ret,
                         struct error *err)
{
    struct e2b_create_request request = {
        .spec = {.template_id = "base", .secure = true, .internet = true}};
    struct e2b_spec *spec = &request.spec;
    yyjson_val *env = NULL;
    if (member_text(body, "", "templateID", &spec->template_id, err) < 0 ||
        e2b_metadata_from_json(body, spec, err) < 0 ||
        member_object(body, "", "envVars", &env, err) < 0 ||
        env_from_json(arena, env, "envVars", &request.env, err) < 0 ||
        member_bool(body, "", "secure", &spec->secure, err) < 0 ||
        member_bool(body, "", "allow_internet_access", &spec->internet, err) < 0 ||
        member_object(body, "", "network", &spec->network, err) < 0 ||
        e2b_mask_check(spec->network, err) < 0 || read_lifecycle(body, &request, err) < 0 ||
        refuse_unknown(body, err) < 0 ||
        e2b_network_request(arena, spec->network, spec->internet, &request.network, err) < 0)
        return -1;
    /* Nobody asked for rules: where sandboxes have no network here, they go without. */
    request.network.by_default = spec->internet && request.network.allow.len == 0 &&
                                 request.network.deny.len == 0 && request.network.headers.len == 0;
    *ret = request;
    return 0;
}
