/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Two lists, and the one rule that means everything; and what requests to some hosts are sent with.
 * What somebody relies on and would not get is refused, rather than left out without a word.
 */

#include "api/e2b_network.h"

#include <string.h>

#include "api/blaxel/members.h"
#include "api/v0/network_json.h"
#include "base/cleanup.h"
#include "base/limits.h"

static const char everything[] = "0.0.0.0/0", everything6[] = "::/0";

static int read_list(struct arena *arena, yyjson_val *network, const char *name,
                     struct slice *ret_list, struct error *err)
{
    yyjson_val *list = yyjson_obj_get(network, name);
    const char *where = arena_printf(arena, "network.%s", name);
    if (list == NULL || yyjson_is_null(list))
        return 0;
    if (!yyjson_is_arr(list))
        return error_set(err, ERROR_INVALID_ARGUMENT, "%s must be an array of strings", where);
    return network_list_from_json(arena, list, where, ret_list, err);
}

static bool denies_everything(struct slice deny)
{
    strv_each (rule, deny)
        if (strcmp(rule, everything) == 0 || strcmp(rule, everything6) == 0)
            return true;
    return false;
}

/* --- rules: what requests to a host are sent with --- */

#define SECRET_MARK "${e2b.secrets."

struct rules {
    struct arena *arena;
    struct buf headers; /* a list of strings, five each, as in struct network_request */
};

/* "Bearer ${e2b.secrets.openai}" is the secret "openai" in "Bearer {}"; a value without is sent as
 * it is. */
static int read_value(struct rules *rules, const char *where, const char *value,
                      const char **ret_secret, const char **ret_format, struct error *err)
{
    const char *mark = strstr(value, SECRET_MARK);
    const char *name = mark == NULL ? NULL : mark + sizeof(SECRET_MARK) - 1;
    const char *end = name == NULL ? NULL : strchr(name, '}');
    if (strstr(value, "${e2b.identity.") != NULL)
        return error_set(err, ERROR_INVALID_ARGUMENT,
                         "%s: there are no workload identities here to take a token from", where);
    if (mark == NULL) {
        *ret_secret = NET_NO_SECRET;
        *ret_format = value;
        return 0;
    }
    if (end == NULL || strstr(end, SECRET_MARK) != NULL)
        return error_set(err, ERROR_INVALID_ARGUMENT,
                         "%s: one secret fits into a value, as ${e2b.secrets.NAME}", where);
    *ret_secret = arena_dup(rules->arena, name, (size_t)(end - name));
    *ret_format = arena_printf(rules->arena, "%.*s{}%s", (int)(mark - value), value, end + 1);
    return 0;
}

static int read_rule(struct rules *rules, const char *host, yyjson_val *rule, struct error *err)
{
    const char *where = arena_printf(rules->arena, "network.rules[\"%.100s\"]", host);
    yyjson_val *transform = NULL, *headers = NULL, *name;
    yyjson_obj_iter iter;
    if (!yyjson_is_obj(rule))
        return error_set(err, ERROR_INVALID_ARGUMENT, "%s must hold objects", where);
    if (member_object(rule, where, "transform", &transform, err) < 0 ||
        member_object(transform, where, "headers", &headers, err) < 0)
        return -1;
    yyjson_obj_iter_init(headers, &iter);
    while (headers != NULL && (name = yyjson_obj_iter_next(&iter)) != NULL) {
        const char *field = yyjson_get_str(name), *secret = NULL, *format = NULL;
        const char *value = yyjson_get_str(yyjson_obj_iter_get_val(name));
        if (field == NULL || value == NULL)
            return error_set(err, ERROR_INVALID_ARGUMENT, "%s: headers must be strings", where);
        if (read_value(rules, where, value, &secret, &format, err) < 0)
            return -1;
        const char *const words[] = {host, field, secret, format, ""};
        for (size_t i = 0; i < ARRAY_LEN(words); i++)
            buf_add(&rules->headers, words[i], strlen(words[i]) + 1);
    }
    return buf_check(&rules->headers, "network.rules", err);
}

/* {"api.example.com": [{"transform": {"headers": {"Authorization": "…"}}}]} */
static int read_rules(struct arena *arena, yyjson_val *network, struct network_request *request,
                      struct error *err)
{
    yyjson_val *hosts = NULL, *host, *rule;
    yyjson_obj_iter iter;
    size_t i, count;
    struct rules rules = {.arena = arena, .headers = BUF_INIT(NET_POLICY_BYTES_MAX)};
    int rc = member_object(network, "network", "rules", &hosts, err);
    yyjson_obj_iter_init(hosts, &iter);
    while (rc == 0 && hosts != NULL && (host = yyjson_obj_iter_next(&iter)) != NULL) {
        yyjson_val *list = yyjson_obj_iter_get_val(host);
        if (!yyjson_is_arr(list))
            rc = error_set(err, ERROR_INVALID_ARGUMENT,
                           "network.rules[\"%.100s\"] must be an array", yyjson_get_str(host));
        yyjson_arr_foreach(list, i, count, rule)
        {
            rc = rc < 0 ? rc : read_rule(&rules, yyjson_get_str(host), rule, err);
        }
    }
    request->headers =
        (struct slice){arena_dup(arena, rules.headers.data, rules.headers.len), rules.headers.len};
    buf_release(&rules.headers);
    return rc;
}

static int refuse_unknown(yyjson_val *network, struct error *err)
{
    yyjson_val *proxy = yyjson_obj_get(network, "egressProxy");
    if (proxy != NULL && !yyjson_is_null(proxy))
        return error_set(err, ERROR_INVALID_ARGUMENT,
                         "network.egressProxy: sandboxes reach the network by this server alone");
    if (yyjson_arr_size(yyjson_obj_get(network, "httpsPorts")) > 0)
        return error_set(err, ERROR_INVALID_ARGUMENT,
                         "network.httpsPorts: programs in sandboxes are reached by plain HTTP");
    return 0;
}

int e2b_network_request(struct arena *arena, yyjson_val *network, bool internet,
                        struct network_request *ret_request, struct error *err)
{
    struct network_request request = {.given = NETWORK_MODE | NETWORK_ALLOW | NETWORK_DENY |
                                               NETWORK_HEADERS,
                                      .mode = NET_ISOLATED,
                                      .replace = true};
    if (network != NULL && !yyjson_is_obj(network))
        return error_set(err, ERROR_INVALID_ARGUMENT, "network must be an object");
    if (read_list(arena, network, "allowOut", &request.allow, err) < 0 ||
        read_list(arena, network, "denyOut", &request.deny, err) < 0 ||
        read_rules(arena, network, &request, err) < 0 || refuse_unknown(network, err) < 0)
        return -1;
    if (!internet || denies_everything(request.deny)) {
        request.mode = NET_ALLOWLIST;
        request.deny = (struct slice){0}; /* what is allowed wins, and nothing else is */
    }
    *ret_request = request;
    return 0;
}
