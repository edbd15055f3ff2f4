/* SPDX-License-Identifier: Apache-2.0 */

/* `cella machine`: what there is, what of it is promised and used; `cella sandbox resize`. */

#include "cli/verbs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "cli/client.h"
#include "cli/output.h"
#include "cli/sandbox.h"
#include "cli/table.h"

static bool is_one_of(const char *name, const char *const *names)
{
    while (*names != NULL && strcmp(*names, name) != 0)
        names++;
    return *names != NULL;
}

static void add_amount(struct table *table, const char *name, yyjson_val *value)
{
    static const char *const counts[] = {"cpu", "pids", "diskReadOps", "diskWriteOps", NULL};
    static const char *const holdings[] = {"cpu", "memory", "disk", "pids", NULL};
    const char *per = is_one_of(name, holdings) ? "" : "/s";
    char text[SIZE_TEXT_MAX];
    if (value == NULL) {
        table_text(table, "");
    } else if (is_one_of(name, counts)) {
        table_printf(table, "%.10g%s", yyjson_get_num(value), per);
    } else {
        size_text(yyjson_get_uint(value), text);
        table_printf(table, "%s%s", text, per);
    }
}

/* Whether, and the server's word on by what, or why not. */
static void add_enforced(struct table *table, yyjson_val *row)
{
    static const char begins[] = "not enforced: ";
    const char *how = client_text(row, "/enforcement").data;
    if (strncmp(how, begins, strlen(begins)) == 0)
        how += strlen(begins);
    table_printf(table, "%s%s%s", yyjson_is_false(yyjson_obj_get(row, "enforced")) ? "no" : "yes",
                 how[0] != '\0' ? ": " : "", how);
}

static void add_resources(yyjson_val *resources, struct buf *out)
{
    static const char *const titles[] = {"RESOURCE", "TOTAL", "TIMES",   "ALLOCATED",
                                         "FREE",     "USED",  "ENFORCED"};
    _cleanup_table_ struct table *table = table_new(titles, ARRAY_LEN(titles));
    yyjson_val *key, *row;
    size_t i, count;
    yyjson_obj_foreach(resources, i, count, key, row)
    {
        const char *name = yyjson_get_str(key);
        table_text(table, name);
        add_amount(table, name, yyjson_obj_get(row, "total"));
        table_printf(table, "%.10g", yyjson_get_num(yyjson_obj_get(row, "overcommit")));
        add_amount(table, name, yyjson_obj_get(row, "allocated"));
        add_amount(table, name, yyjson_obj_get(row, "free"));
        add_amount(table, name, yyjson_obj_get(row, "used"));
        add_enforced(table, row);
    }
    table_write(table, out);
}

static void add_share(struct table *table, yyjson_val *item, const char *name)
{
    char used[SIZE_TEXT_MAX], given[SIZE_TEXT_MAX];
    yyjson_val *amount = yyjson_obj_get(yyjson_obj_get(item, "used"), name);
    yyjson_val *allocated = yyjson_obj_get(yyjson_obj_get(item, "allocated"), name);
    yyjson_val *percent = yyjson_obj_get(yyjson_obj_get(item, "percent"), name);
    if (allocated == NULL) {
        table_text(table, "");
        return;
    }
    if (strcmp(name, "cpu") == 0) {
        snprintf(used, sizeof(used), "%.2f", yyjson_get_num(amount));
        snprintf(given, sizeof(given), "%.10g", yyjson_get_num(allocated));
    } else {
        size_text(yyjson_get_uint(amount), used);
        size_text(yyjson_get_uint(allocated), given);
    }
    if (amount == NULL)
        table_text(table, given);
    else
        table_printf(table, "%s / %s (%.1f%%)", used, given, yyjson_get_num(percent));
}

static void add_sandboxes(yyjson_val *list, struct buf *out)
{
    static const char *const titles[] = {"NAME", "STATUS", "CPU", "MEMORY", "DISK"};
    _cleanup_table_ struct table *table = table_new(titles, ARRAY_LEN(titles));
    yyjson_val *item;
    size_t i, count;
    if (yyjson_arr_size(list) == 0)
        return;
    yyjson_arr_foreach(list, i, count, item)
    {
        struct slice name = client_text(item, "/name"), group = client_text(item, "/group");
        table_printf(table, "%s%s%s", group.data, group.len > 0 ? "/" : "", name.data);
        table_cell(table, client_text(item, "/status"));
        add_share(table, item, "cpu");
        add_share(table, item, "memory");
        add_share(table, item, "disk");
    }
    buf_addc(out, '\n');
    table_write(table, out);
}

void usage_write(yyjson_val *usage, struct buf *out)
{
    static const char *const titles[] = {"RESOURCE", "LIMIT", "USED", "PERCENT", "ENFORCED"};
    yyjson_val *key, *row;
    size_t i, count;
    if (yyjson_obj_size(usage) == 0)
        return;
    _cleanup_table_ struct table *table = table_new(titles, ARRAY_LEN(titles));
    yyjson_obj_foreach(usage, i, count, key, row)
    {
        const char *name = yyjson_get_str(key);
        yyjson_val *percent = yyjson_obj_get(row, "percent");
        if (!yyjson_is_obj(row))
            continue;
        table_text(table, name);
        add_amount(table, name, yyjson_obj_get(row, "limit"));
        add_amount(table, name, yyjson_obj_get(row, "used"));
        if (percent == NULL)
            table_text(table, "");
        else
            table_printf(table, "%.1f%%", yyjson_get_num(percent));
        add_enforced(table, row);
    }
    buf_addc(out, '\n');
    table_write(table, out);
}

int verb_machine(struct invocation *inv, int *ret_status, struct error *err)
{
    _cleanup_buf_ struct buf target = BUF_INIT(TARGET_MAX);
    _cleanup_buf_ struct buf out = BUF_INIT(OUTPUT_MAX);
    yyjson_val *root;
    buf_adds(&target, "/v0/machine");
    if (client_json(inv->client, "GET", &target, NULL, 0, &root, err) < 0)
        return -1;
    if (inv->json)
        return output_json(root, err);
    add_resources(yyjson_obj_get(root, "resources"), &out);
    add_sandboxes(yyjson_obj_get(root, "sandboxes"), &out);
    return output_buf(&out, err);
}

void auto_lower_add(const struct args *args, yyjson_mut_doc *doc, yyjson_mut_val *object)
{
    const char *given = args_option(args, "auto-lower", NULL);
    char *end;
    if (given == NULL)
        return;
    if (strcmp(given, "off") == 0) {
        yyjson_mut_obj_add_bool(doc, object, "autoLower", false);
        return;
    }
    yyjson_mut_val *lower = yyjson_mut_obj_add_obj(doc, object, "autoLower");
    double factor = strtod(given, &end);
    if (end != given && *end == '\0')
        yyjson_mut_obj_add_real(doc, lower, "factor", factor);
    else
        yyjson_mut_obj_add_str(doc, lower, "factor", given);
}

int resize_body(const struct invocation *inv, yyjson_mut_doc **ret_doc, struct error *err)
{
    const char *factor = args_option(inv->args, "factor", NULL);
    yyjson_mut_val *body;
    yyjson_mut_doc *doc = client_body(inv->client, &body);
    resources_add(inv->args, doc, body);
    if (factor != NULL) {
        char *end;
        double value = strtod(factor, &end);
        if (end == factor || *end != '\0')
            return error_set(err, ERROR_INVALID_ARGUMENT,
                             "--factor: \"%.40s\" is not a number, as 0.5", factor);
        yyjson_mut_obj_add_real(doc, body, "factor", value);
    }
    *ret_doc = doc;
    return 0;
}

int verb_sandbox_resize(struct invocation *inv, int *ret_status, struct error *err)
{
    static const char *const titles[] = {"NAME", "CPU", "MEMORY", "DISK"};
    yyjson_mut_doc *doc = NULL;
    yyjson_val *root;
    if (resize_body(inv, &doc, err) < 0)
        return -1;
    if (sandbox_call(inv, "POST", args_word(inv->args, "NAME"), "resize", doc, &root, err) < 0)
        return -1;
    if (inv->json)
        return output_json(root, err);
    _cleanup_table_ struct table *table = table_new(titles, ARRAY_LEN(titles));
    table_cell(table, sandbox_full_name(inv, root));
    table_cell(table, client_text(root, "/spec/resources/cpu"));
    table_cell(table, client_text(root, "/spec/resources/memory"));
    table_cell(table, client_text(root, "/spec/resources/disk"));
    return output_table(table, err);
}
