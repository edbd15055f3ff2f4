/* SPDX-License-Identifier: Apache-2.0 */

/* From a request to the sandbox that it is for. */

#include "api/e2b/door.h"

#include <string.h>

#include "api/call.h"
#include "api/e2b/port.h"
#include "api/e2b/spec.h"
#include "api/live.h"
#include "api/port_host.h"
#include "api/record.h"
#include "auth/box_token.h"
#include "http/parse.h"

#define ACTOR "e2b"

bool e2b_port_is_ours(uint16_t port)
{
    return port == E2B_ENVD_PORT || port == E2B_CODE_PORT;
}

bool e2b_visits(const struct http_exchange *x, const struct api *api, struct e2b_visit *ret_visit)
{
    const char *id = http_header(x, "E2b-Sandbox-Id");
    const char *port = http_header(x, "E2b-Sandbox-Port");
    struct port_host host;
    uint64_t number = E2B_ENVD_PORT;
    if (id != NULL && id[0] != '\0') {
        if (port != NULL && !api_parse_uint(port, 1, UINT16_MAX, &number))
            number = 0;
        *ret_visit = (struct e2b_visit){id, (uint16_t)number};
        return true;
    }
    if (api->domain == NULL || !port_host_parse(http_request(x)->host, api->domain, &host) ||
        !e2b_port_is_ours(host.port))
        return false;
    *ret_visit = (struct e2b_visit){
        arena_strdup(http_arena((struct http_exchange *)x), host.sandbox_id), host.port};
    return true;
}

bool e2b_will_visit(const struct http_exchange *x)
{
    const char *fields = http_header(x, "Access-Control-Request-Headers");
    return fields != NULL && http_list_has(fields, "e2b-sandbox-id");
}

static int not_found(struct error *err)
{
    return error_set(err, ERROR_NOT_RUNNING, "The sandbox was not found");
}

static int ready(struct http_exchange *x, const struct api *api, struct sandbox_info *info,
                 struct error *err)
{
    struct arena *arena = http_arena(x);
    if (sandboxes_wake(api->sandboxes, info->workspace, info->id, arena, info, err) < 0 ||
        (info->status != SANDBOX_RUNNING &&
         sandboxes_settle(api->sandboxes, info->workspace, info->id, arena, info, err) < 0))
        return -1;
    return info->status == SANDBOX_RUNNING ? 0 : not_found(err);
}

/* shown: a token of the sandbox was. */
static int record(struct http_exchange *x, const struct sandbox_info *info, bool shown,
                  struct error *err)
{
    return shown ? record_box(x, info->workspace, info->id, err)
                 : record_stranger(x, info->workspace, info->id, err);
}

static int enter(struct http_exchange *x, const struct api *api, struct sandbox_info *info,
                 bool shown, const char *user, struct connect_box *ret_box, struct error *err)
{
    struct connect_box box = {.api = api,
                              .workspace = info->workspace,
                              .sandbox = info->id,
                              .actor = ACTOR,
                              .user = user,
                              .attributes = E2B_ATTRIBUTES};
    if (record(x, info, shown, err) < 0 ||
        (user == NULL && connect_user(x, "user", &box.user, err) < 0) ||
        ready(x, api, info, err) < 0 || connect_box_enter(&box, http_arena(x), err) < 0)
        return -1;
    *ret_box = box;
    return 0;
}

int e2b_box_of(struct http_exchange *x, const struct api *api, const char *sandbox_id,
               const char *user, struct connect_box *ret_box, struct error *err)
{
    struct sandbox_info info;
    if (sandboxes_get_by_id(api->sandboxes, sandbox_id, http_arena(x), &info, err) < 0)
        return -1;
    live_bind(api->live, co_self(api->loop), info.id);
    return enter(x, api, &info, true, user, ret_box, err);
}

/* A sandbox that was made without `secure` asks for nothing. */
static int check_key(struct http_exchange *x, const struct api *api, enum e2b_key key,
                     const struct sandbox_info *info, bool *ret_shown, struct error *err)
{
    const char *token = http_header(x, "X-Access-Token");
    *ret_shown = e2b_is_secure(http_arena(x), info->metadata.e2b_spec);
    if (!*ret_shown)
        return 0;
    live_bind(api->live, co_self(api->loop), info->id);
    if (key == E2B_NEEDS_TRAFFIC && token == NULL)
        return e2b_traffic_check(x, api, info->id, err);
    return auth_box_check(api->auth, BOX_INSIDE, info->id, token, http_request(x)->peer, err);
}

static int find(struct http_exchange *x, const struct api *api, struct sandbox_info *ret_info,
                struct error *err)
{
    struct e2b_visit visit;
    if (!e2b_visits(x, api, &visit))
        return error_set(err, ERROR_SANDBOX_NOT_FOUND,
                         "the request names no sandbox: send E2b-Sandbox-Id");
    return sandboxes_get_by_id(api->sandboxes, visit.sandbox_id, http_arena(x), ret_info, err);
}

int e2b_box(struct http_exchange *x, const struct api *api, enum e2b_key key, const char *user,
            struct connect_box *ret_box, struct error *err)
{
    struct sandbox_info info;
    bool shown;
    if (find(x, api, &info, err) < 0 || check_key(x, api, key, &info, &shown, err) < 0)
        return -1;
    return enter(x, api, &info, shown, user, ret_box, err);
}

int e2b_box_runs(struct http_exchange *x, const struct api *api, struct error *err)
{
    struct sandbox_info info;
    if (find(x, api, &info, err) < 0 || record(x, &info, false, err) < 0)
        return -1;
    return sandbox_seen_status(&info) == SANDBOX_RUNNING ? 0 : not_found(err);
}
