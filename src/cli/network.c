/* SPDX-License-Identifier: Apache-2.0 */

/* `cella network get`, `cella network set`: what a sandbox may reach. */

#include <string.h>

#include "base/cleanup.h"
#include "cli/client.h"
#include "cli/output.h"
#include "cli/sandbox.h"
#include "cli/table.h"
#include "cli/verbs.h"

/* The values of an option that repeats, as an array; "none" alone empties the list. */
static void add_list(const struct args *args, const char *option, yyjson_mut_doc *doc,
                     yyjson_mut_val *object)
{
    yyjson_mut_val *list = NULL;
    for (size_t i = 0; i < args->option_count; i++) {
        if (strcmp(args->options[i].row->name, option) != 0)
            continue;
        if (list == NULL)
            list = yyjson_mut_obj_add_arr(doc, object, option);
        if (strcmp(args->options[i].value, "none") != 0)
            yyjson_mut_arr_add_str(doc, list, args->options[i].value);
    }
}

/* "api.example.com:Authorization=secret" or, with a format, "…=Bearer {secret}". */
static int add_header(yyjson_mut_doc *doc, yyjson_mut_val *list, const char *text, bool upgrade,
                      struct error *err)
{
    const char *colon = strchr(text, ':'), *equals = colon == NULL ? NULL : strchr(colon, '=');
    if (equals == NULL)
        return error_set(err, ERROR_INVALID_ARGUMENT,
                         "--header: \"%.80s\" is not HOST:HEADER=SECRET, as "
                         "api.example.com:Authorization=Bearer {my-secret}",
                         text);
    const char *open = strchr(equals, '{'), *close = open == NULL ? NULL : strchr(open, '}');
    yyjson_mut_val *item = yyjson_mut_arr_add_obj(doc, list);
    yyjson_mut_obj_add_strn(doc, item, "host", text, (size_t)(colon - text));
    yyjson_mut_obj_add_strn(doc, item, "header", colon + 1, (size_t)(equals - colon - 1));
    if (upgrade)
        yyjson_mut_obj_add_bool(doc, item, "upgrade", true);
    if (close == NULL) {
        yyjson_mut_obj_add_str(doc, item, "secret", equals + 1);
        return 0;
    }
    yyjson_mut_obj_add_strn(doc, item, "secret", open + 1, (size_t)(close - open - 1));
    _cleanup_buf_ struct buf format = BUF_INIT(TARGET_MAX);
    buf_add(&format, equals + 1, (size_t)(open - equals - 1));
    buf_addf(&format, "{}%s", close + 1);
    yyjson_mut_obj_add_strcpy(doc, item, "format", format.data);
    return 0;
}

void network_add(const struct args *args, yyjson_mut_doc *doc, yyjson_mut_val *spec,
                 const char *key)
{
    const char *mode = args_option(args, "network", NULL);
    yyjson_mut_val *network = key == NULL ? spec : yyjson_mut_obj(doc);
    if (mode != NULL)
        yyjson_mut_obj_add_str(doc, network, "mode", mode);
    add_list(args, "allow", doc, network);
    add_list(args, "deny", doc, network);
    if (args_flag(args, "ipv6") || args_flag(args, "no-ipv6"))
        yyjson_mut_obj_add_bool(doc, network, "ipv6", !args_flag(args, "no-ipv6"));
    if (key != NULL && yyjson_mut_obj_size(network) > 0)
        yyjson_mut_obj_add_val(doc, spec, key, network);
}

static int add_headers(const struct args *args, yyjson_mut_doc *doc, yyjson_mut_val *object,
                       struct error *err)
{
    yyjson_mut_val *headers = NULL;
    for (size_t i = 0; i < args->option_count; i++) {
        if (strcmp(args->options[i].row->name, "header") != 0)
            continue;
        if (headers == NULL)
            headers = yyjson_mut_obj_add_arr(doc, object, "headers");
        if (strcmp(args->options[i].value, "none") != 0 &&
            add_header(doc, headers, args->options[i].value, args_flag(args, "header-upgrade"),
                       err) < 0)
            return -1;
    }
    return 0;
}

/* ---- one sandbox's ---- */

static void write_list(struct buf *out, const char *label, yyjson_val *list)
{
    size_t i, count;
    yyjson_val *item;
    yyjson_arr_foreach(list, i, count, item)
    {
        buf_addf(out, "%-10s ", i == 0 ? label : "");
        text_add_plain(out, (struct slice){yyjson_get_str(item), yyjson_get_len(item)});
        buf_addc(out, '\n');
    }
}

static int print_network(yyjson_val *root, struct error *err)
{
    _cleanup_buf_ struct buf out = BUF_INIT(OUTPUT_MAX);
    yyjson_val *headers = yyjson_obj_get(root, "headers"), *header;
    struct slice name = client_text(root, "/name");
    size_t i, count;
    if (name.len > 0) {
        buf_addf(&out, "%-10s ", "Name");
        text_add_plain(&out, name);
        buf_addc(&out, '\n');
    }
    buf_addf(&out, "%-10s ", "Mode");
    text_add_plain(&out, client_text(root, "/mode"));
    buf_addc(&out, '\n');
    if (yyjson_get_bool(yyjson_obj_get(root, "ipv6")))
        buf_addf(&out, "%-10s on\n", "IPv6");
    write_list(&out, "Allow", yyjson_obj_get(root, "allow"));
    write_list(&out, "Deny", yyjson_obj_get(root, "deny"));
    yyjson_arr_foreach(headers, i, count, header)
    {
        buf_addf(&out, "%-10s ", i == 0 ? "Headers" : "");
        text_add_plain(&out, client_text(header, "/host"));
        buf_addc(&out, ' ');
        text_add_plain(&out, client_text(header, "/header"));
        buf_adds(&out, ": ");
        text_add_plain(&out, client_text(header, "/format"));
        buf_adds(&out, " with ");
        text_add_plain(&out, client_text(header, "/secret"));
        if (yyjson_get_bool(yyjson_obj_get(header, "upgrade")))
            buf_adds(&out, ", WebSockets allowed");
        buf_addc(&out, '\n');
    }
    return output_buf(&out, err);
}

static int show(struct invocation *inv, yyjson_val *root, struct error *err)
{
    return inv->json ? output_json(root, err) : print_network(root, err);
}

int verb_network_get(struct invocation *inv, int *ret_status, struct error *err)
{
    yyjson_val *root;
    if (sandbox_call(inv, "GET", args_word(inv->args, "NAME"), "network", NULL, &root, err) < 0)
        return -1;
    return show(inv, root, err);
}

int verb_network_set(struct invocation *inv, int *ret_status, struct error *err)
{
    yyjson_val *root;
    yyjson_mut_val *object;
    yyjson_mut_doc *doc = client_body(inv->client, &object);
    network_add(inv->args, doc, object, NULL);
    if (add_headers(inv->args, doc, object, err) < 0)
        return -1;
    if (yyjson_mut_obj_size(object) == 0)
        return error_set(err, ERROR_INVALID_ARGUMENT,
                         "nothing to change: give --network, --allow, --deny, --ipv6 or --header");
    const char *method = args_flag(inv->args, "replace") ? "PUT" : "PATCH";
    if (sandbox_call(inv, method, args_word(inv->args, "NAME"), "network", doc, &root, err) < 0)
        return -1;
    return show(inv, root, err);
}
