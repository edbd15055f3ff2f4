/* SPDX-License-Identifier: Apache-2.0 */

/* The network of a sandbox, in and out. Rules are shown as they are understood, not as they were
 * written: "Example.COM." is example.com. */

#include "api/v0/network_json.h"

#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"

struct body {
    const char *mode;
    yyjson_val *allow, *deny, *headers, *ipv6, *bandwidth;
};

static const struct json_field fields[] = {
    {"mode", JSON_STRING, .offset = offsetof(struct body, mode)},
    {"allow", JSON_ARRAY, .offset = offsetof(struct body, allow)},
    {"deny", JSON_ARRAY, .offset = offsetof(struct body, deny)},
    {"headers", JSON_ARRAY, .offset = offsetof(struct body, headers)},
    {"ipv6", JSON_ANY, .offset = offsetof(struct body, ipv6)},
    {"bandwidth", JSON_OBJECT, .offset = offsetof(struct body, bandwidth)},
    {"name", JSON_IGNORED},
    {"address", JSON_IGNORED},
    {"revision", JSON_IGNORED},
};

static int add_text(struct buf *list, yyjson_val *value, const char *where, struct error *err)
{
    const char *text = yyjson_get_str(value);
    if (text == NULL || strlen(text) != yyjson_get_len(value))
        return error_set(err, ERROR_INVALID_ARGUMENT, "%s must hold strings, without NULs", where);
    buf_add(list, text, strlen(text) + 1);
    return buf_check(list, where, err);
}

int network_list_from_json(struct arena *arena, yyjson_val *array, const char *where,
                           struct slice *ret_list, struct error *err)
{
    _cleanup_buf_ struct buf list = BUF_INIT(NET_POLICY_BYTES_MAX);
    yyjson_val *value;
    size_t i, count;
    yyjson_arr_foreach(array, i, count, value)
    {
        if (add_text(&list, value, where, err) < 0)
            return -1;
    }
    *ret_list = (struct slice){arena_dup(arena, list.data, list.len), list.len};
    return 0;
}

static int read_header(struct arena *arena, yyjson_val *object, struct buf *list, struct error *err)
{
    struct header {
        const char *host, *header, *secret, *format;
        bool upgrade;
    } header = {.secret = NET_NO_SECRET, .format = ""};
    static const struct json_field header_fields[] = {
        {"host", JSON_STRING, true, offsetof(struct header, host)},
        {"header", JSON_STRING, true, offsetof(struct header, header)},
        {"secret", JSON_STRING, .offset = offsetof(struct header, secret)},
        {"format", JSON_STRING, .offset = offsetof(struct header, format)},
        {"upgrade", JSON_BOOL, .offset = offsetof(struct header, upgrade)},
    };
    if (!yyjson_is_obj(object))
        return error_set(err, ERROR_INVALID_ARGUMENT, "network.headers must hold objects");
    if (json_read(arena, object, "network.headers[]", header_fields, ARRAY_LEN(header_fields),
                  &header, err) < 0)
        return -1;
    const char *const words[] = {header.host, header.header, header.secret, header.format,
                                 header.upgrade ? "upgrade" : ""};
    for (size_t i = 0; i < ARRAY_LEN(words); i++)
        buf_add(list, words[i], strlen(words[i]) + 1);
    return buf_check(list, "network.headers", err);
}

static int read_headers(struct arena *arena, yyjson_val *array, struct slice *ret_list,
                        struct error *err)
{
    _cleanup_buf_ struct buf list = BUF_INIT(NET_POLICY_BYTES_MAX);
    yyjson_val *value;
    size_t i, count;
    yyjson_arr_foreach(array, i, count, value)
    {
        if (read_header(arena, value, &list, err) < 0)
            return -1;
    }
    *ret_list = (struct slice){arena_dup(arena, list.data, list.len), list.len};
    return 0;
}

static int agree(const char *field, const char **value, const char *other, struct error *err)
{
    if (other == NULL)
        return 0;
    if (*value != NULL && strcmp(*value, other) != 0)
        return error_set(err, ERROR_INVALID_ARGUMENT,
                         "%s is given twice, as \"%.40s\" in resources and as \"%.40s\" in "
                         "network.bandwidth",
                         field, *value, other);
    *value = other;
    return 0;
}

static int read_bandwidth(struct arena *arena, yyjson_val *object,
                          struct sandbox_resources *resources, struct error *err)
{
    struct rates {
        const char *in, *out;
    } rates = {NULL, NULL};
    static const struct json_field rate_fields[] = {
        {"in", JSON_SCALAR_TEXT, .offset = offsetof(struct rates, in)},
        {"out", JSON_SCALAR_TEXT, .offset = offsetof(struct rates, out)},
    };
    if (object == NULL)
        return 0;
    if (json_read(arena, object, "network.bandwidth", rate_fields, ARRAY_LEN(rate_fields), &rates,
                  err) < 0)
        return -1;
    if (agree("networkIn", &resources->network_in, rates.in, err) < 0)
        return -1;
    return agree("networkOut", &resources->network_out, rates.out, err);
}

static int read_lists(struct arena *arena, const struct body *body, struct network_request *request,
                      struct error *err)
{
    if (body->allow != NULL) {
        request->given |= NETWORK_ALLOW;
        if (network_list_from_json(arena, body->allow, "network.allow", &request->allow, err) < 0)
            return -1;
    }
    if (body->deny != NULL) {
        request->given |= NETWORK_DENY;
        if (network_list_from_json(arena, body->deny, "network.deny", &request->deny, err) < 0)
            return -1;
    }
    if (body->headers != NULL) {
        request->given |= NETWORK_HEADERS;
        if (read_headers(arena, body->headers, &request->headers, err) < 0)
            return -1;
    }
    return 0;
}

int network_from_json(struct arena *arena, yyjson_val *object, struct network_request *ret_request,
                      struct sandbox_resources *resources, struct error *err)
{
    struct network_request request = {0};
    struct body body = {0};
    if (object == NULL)
        return 0;
    if (json_read(arena, object, "network", fields, ARRAY_LEN(fields), &body, err) < 0 ||
        read_lists(arena, &body, &request, err) < 0 ||
        read_bandwidth(arena, body.bandwidth, resources, err) < 0)
        return -1;
    if (body.mode != NULL) {
        request.given |= NETWORK_MODE;
        if (net_mode_parse(slice_of(body.mode), &request.mode, err) < 0)
            return error_prefix(err, "network.mode");
    }
    if (body.ipv6 != NULL) {
        if (!yyjson_is_bool(body.ipv6))
            return error_set(err, ERROR_INVALID_ARGUMENT, "network.ipv6 must be true or false");
        request.given |= NETWORK_IPV6;
        request.ipv6 = yyjson_get_bool(body.ipv6);
    }
    *ret_request = request;
    return 0;
}

/* ---- writing ---- */

static void add_rules(yyjson_mut_doc *doc, yyjson_mut_val *list, const struct net_rule *rules,
                      size_t count)
{
    char text[NET_RULE_TEXT];
    for (size_t i = 0; i < count; i++) {
        net_rule_text(&rules[i], text);
        yyjson_mut_arr_add_strcpy(doc, list, text);
    }
}

static void add_headers(yyjson_mut_doc *doc, yyjson_mut_val *network,
                        const struct net_policy *policy)
{
    char host[NET_RULE_TEXT];
    yyjson_mut_val *list = yyjson_mut_obj_add_arr(doc, network, "headers");
    for (size_t i = 0; i < policy->header_count; i++) {
        const struct net_header *header = &policy->headers[i];
        yyjson_mut_val *item = yyjson_mut_arr_add_obj(doc, list);
        net_rule_text(&header->host, host);
        yyjson_mut_obj_add_strcpy(doc, item, "host", host);
        yyjson_mut_obj_add_strcpy(doc, item, "header", header->header);
        if (strcmp(header->secret, NET_NO_SECRET) != 0)
            yyjson_mut_obj_add_strcpy(doc, item, "secret", header->secret);
        yyjson_mut_obj_add_strcpy(doc, item, "format", header->format);
        if (header->upgrade)
            yyjson_mut_obj_add_bool(doc, item, "upgrade", true);
    }
}

static void add_bandwidth(yyjson_mut_doc *doc, yyjson_mut_val *network,
                          const struct sandbox_resources *resources)
{
    if (resources->network_in == NULL && resources->network_out == NULL)
        return;
    yyjson_mut_val *rates = yyjson_mut_obj_add_obj(doc, network, "bandwidth");
    if (resources->network_in != NULL)
        yyjson_mut_obj_add_str(doc, rates, "in", resources->network_in);
    if (resources->network_out != NULL)
        yyjson_mut_obj_add_str(doc, rates, "out", resources->network_out);
}

void network_to_json(struct arena *arena, yyjson_mut_doc *doc, yyjson_mut_val *spec,
                     const struct sandbox_info *info)
{
    _cleanup_(net_policy_release) struct net_policy policy = {0};
    struct error ignored;
    yyjson_mut_val *network = yyjson_mut_obj_add_obj(doc, spec, "network");
    if (net_policy_unpack(info->network, &policy, &ignored) < 0)
        policy.mode = NET_NONE; /* it was read before */
    yyjson_mut_obj_add_str(doc, network, "mode", net_mode_text(policy.mode));
    if (policy.mode == NET_NONE)
        return;
    add_rules(doc, yyjson_mut_obj_add_arr(doc, network, "allow"), policy.allow, policy.allow_count);
    add_rules(doc, yyjson_mut_obj_add_arr(doc, network, "deny"), policy.deny, policy.deny_count);
    yyjson_mut_obj_add_bool(doc, network, "ipv6", policy.ipv6);
    if (policy.header_count > 0)
        add_headers(doc, network, &policy);
    add_bandwidth(doc, network, &info->resources);
}

yyjson_mut_val *network_hosts_json(yyjson_mut_doc *doc, struct slice policy)
{
    _cleanup_(net_policy_release) struct net_policy read = {0};
    struct error ignored;
    yyjson_mut_val *list = yyjson_mut_arr(doc);
    if (policy.len > 0 && net_policy_unpack(policy, &read, &ignored) == 0 &&
        read.mode == NET_ALLOWLIST)
        add_rules(doc, list, read.allow, read.allow_count);
    return list;
}
