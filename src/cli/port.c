/* SPDX-License-Identifier: Apache-2.0 */

/* `cella port …`: which ports of a sandbox are published, to whom, and where. */

#include "cli/verbs.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "cli/args.h"
#include "cli/client.h"
#include "cli/output.h"
#include "cli/table.h"

/* A request below …/ports; the PORT of the command line follows when `one`, and then `below`. */
static int call(struct invocation *inv, const char *method, bool one, const char *below,
                yyjson_mut_doc *body, yyjson_val **ret_root, struct error *err)
{
    _cleanup_buf_ struct buf target = BUF_INIT(TARGET_MAX);
    target_sandbox(inv->client, &target, args_word(inv->args, "NAME"), "/ports");
    if (one) {
        buf_addc(&target, '/');
        target_add(&target, args_word(inv->args, "PORT"), false);
        buf_adds(&target, below);
    }
    return client_json(inv->client, method, &target, body, 0, ret_root, err);
}

static int take_number(const char *what, const char *text, unsigned long least,
                       unsigned long *ret_number, struct error *err)
{
    char *end;
    unsigned long number = strtoul(text, &end, 10);
    if (text[0] < '0' || text[0] > '9' || *end != '\0' || number < least || number > UINT16_MAX)
        return error_set(err, ERROR_INVALID_ARGUMENT, "%s: \"%.40s\" is not from %lu to %d", what,
                         text, least, UINT16_MAX);
    *ret_number = number;
    return 0;
}

/* --- showing --- */

static struct table *port_table(void)
{
    static const char *const titles[] = {"PORT", "ACCESS", "PROTOCOL", "HOST PORT", "URL"};
    return table_new(titles, ARRAY_LEN(titles));
}

static void add_row(struct table *table, yyjson_val *port)
{
    uint64_t host_port = yyjson_get_uint(yyjson_obj_get(port, "hostPort"));
    struct slice name = client_text(port, "/urls/name");
    table_printf(table, "%" PRIu64, yyjson_get_uint(yyjson_obj_get(port, "port")));
    table_cell(table, client_text(port, "/access"));
    table_cell(table, client_text(port, "/protocol"));
    if (host_port != 0)
        table_printf(table, "%" PRIu64 "%s", host_port,
                     yyjson_obj_get(port, "hostError") == NULL ? "" : " (not open)");
    else
        table_text(table, NULL);
    table_cell(table, name.len > 0 ? name : client_text(port, "/urls/hostPort"));
}

static int print_one(struct invocation *inv, yyjson_val *root, struct error *err)
{
    if (inv->json)
        return output_json(root, err);
    _cleanup_table_ struct table *table = port_table();
    add_row(table, root);
    return output_table(table, err);
}

int verb_port_list(struct invocation *inv, int *ret_status, struct error *err)
{
    yyjson_val *root;
    if (call(inv, "GET", false, "", NULL, &root, err) < 0)
        return -1;
    return output_list(inv->json, root, "ports", port_table(), add_row, err);
}

/* --- changing --- */

static int add_host_port(const struct args *args, yyjson_mut_doc *doc, yyjson_mut_val *object,
                         struct error *err)
{
    const char *given = args_option(args, "host-port", NULL);
    unsigned long number = 0;
    if (given == NULL || strcmp(given, "any") == 0)
        return 0;
    if (strcmp(given, "none") == 0) {
        yyjson_mut_obj_add_null(doc, object, "hostPort");
        return 0;
    }
    if (take_number("--host-port", given, 1, &number, err) < 0)
        return error_set(err, ERROR_INVALID_ARGUMENT,
                         "--host-port: \"%.40s\" is neither a port, nor any, nor none", given);
    yyjson_mut_obj_add_uint(doc, object, "hostPort", number);
    return 0;
}

/* What publish and update have in common. */
static yyjson_mut_doc *body_of(const struct invocation *inv, yyjson_mut_val **ret_object)
{
    static const char *const options[] = {"access", "protocol", "command"};
    yyjson_mut_doc *doc = client_body(inv->client, ret_object);
    for (size_t i = 0; i < ARRAY_LEN(options); i++) {
        const char *given = args_option(inv->args, options[i], NULL);
        if (given != NULL)
            yyjson_mut_obj_add_str(doc, *ret_object, options[i], given);
    }
    return doc;
}

int verb_port_publish(struct invocation *inv, int *ret_status, struct error *err)
{
    yyjson_mut_val *object;
    yyjson_mut_doc *doc = body_of(inv, &object);
    yyjson_val *root;
    unsigned long port = 0;
    if (take_number("PORT", args_word(inv->args, "PORT"), 1, &port, err) < 0)
        return -1;
    yyjson_mut_obj_add_uint(doc, object, "port", port);
    if (add_host_port(inv->args, doc, object, err) < 0 ||
        call(inv, "POST", false, "", doc, &root, err) < 0)
        return -1;
    return print_one(inv, root, err);
}

int verb_port_update(struct invocation *inv, int *ret_status, struct error *err)
{
    yyjson_mut_val *object;
    yyjson_mut_doc *doc = body_of(inv, &object);
    yyjson_val *root;
    if (yyjson_mut_obj_size(object) == 0)
        return error_set(err, ERROR_INVALID_ARGUMENT,
                         "nothing to change: give --access or --command");
    if (call(inv, "PATCH", true, "", doc, &root, err) < 0)
        return -1;
    return print_one(inv, root, err);
}

int verb_port_unpublish(struct invocation *inv, int *ret_status, struct error *err)
{
    yyjson_val *root;
    if (call(inv, "DELETE", true, "", NULL, &root, err) < 0)
        return -1;
    return output_member(root, "/message", inv->json, err);
}

/* The token alone, for $(…); with --link an address. */
int verb_port_token(struct invocation *inv, int *ret_status, struct error *err)
{
    yyjson_mut_val *object;
    yyjson_mut_doc *doc = client_body(inv->client, &object);
    const char *span = args_option(inv->args, "expires-in", NULL);
    yyjson_val *root;
    if (span != NULL)
        yyjson_mut_obj_add_str(doc, object, "expiresIn", span);
    if (call(inv, "POST", true, "/tokens", doc, &root, err) < 0)
        return -1;
    return output_member(root, args_flag(inv->args, "link") ? "/url" : "/token", inv->json, err);
}

int verb_port_revoke(struct invocation *inv, int *ret_status, struct error *err)
{
    yyjson_val *root;
    if (call(inv, "DELETE", true, "/tokens", NULL, &root, err) < 0)
        return -1;
    return output_member(root, "/message", inv->json, err);
}
