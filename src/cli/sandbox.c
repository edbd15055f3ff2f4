/* SPDX-License-Identifier: Apache-2.0 */

/* `cella sandbox list` and `get`: looking at sandboxes. */

#include "cli/sandbox.h"

#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "cli/client.h"
#include "cli/output.h"
#include "cli/table.h"
#include "cli/verbs.h"

int sandbox_call(struct invocation *inv, const char *method, const char *name, const char *verb,
                 yyjson_mut_doc *body, yyjson_val **ret_root, struct error *err)
{
    _cleanup_buf_ struct buf target = BUF_INIT(TARGET_MAX);
    buf_adds(&target, "/v0/sandbox");
    if (name != NULL) {
        buf_addc(&target, '/');
        target_add(&target, name, false);
    }
    if (verb != NULL)
        buf_addf(&target, "/%s", verb);
    return client_json(inv->client, method, &target, body, 0, ret_root, err);
}

struct slice sandbox_full_name(const struct invocation *inv, yyjson_val *sandbox)
{
    struct slice name = client_text(sandbox, "/metadata/name");
    struct slice group = client_text(sandbox, "/metadata/group");
    if (group.len == 0)
        return name;
    return slice_of(arena_printf(client_arena(inv->client), "%.*s/%.*s", (int)group.len, group.data,
                                 (int)name.len, name.data));
}

/* --- list --- */

static void list_row(const struct invocation *inv, struct table *table, yyjson_val *sandbox)
{
    static const char *const pointers[] = {"/status",
                                           "/spec/image",
                                           "/spec/resources/cpu",
                                           "/spec/resources/memory",
                                           "/spec/resources/disk",
                                           "/metadata/createdAt"};
    table_cell(table, sandbox_full_name(inv, sandbox));
    for (size_t i = 0; i < ARRAY_LEN(pointers); i++)
        table_cell(table, client_text(sandbox, pointers[i]));
}

static int print_list(const struct invocation *inv, yyjson_val *root, struct error *err)
{
    static const char *const titles[] = {"NAME",   "STATUS", "IMAGE",  "CPU",
                                         "MEMORY", "DISK",   "CREATED"};
    _cleanup_table_ struct table *table = table_new(titles, ARRAY_LEN(titles));
    yyjson_val *list = yyjson_obj_get(root, "sandboxes"), *sandbox;
    size_t i, count;
    yyjson_arr_foreach(list, i, count, sandbox) list_row(inv, table, sandbox);
    if (output_table(table, err) < 0)
        return -1;
    output_more(root, list);
    return 0;
}

int verb_sandbox_list(struct invocation *inv, int *ret_status, struct error *err)
{
    /* The options that are parameters of the same name, each as often as it was given. */
    static const char *const filters[] = {"status", "limit", "offset", "label", "group"};
    const struct args *args = inv->args;
    _cleanup_buf_ struct buf target = BUF_INIT(TARGET_MAX);
    buf_adds(&target, "/v0/sandbox");
    for (size_t i = 0, used = 0; i < args->option_count; i++) {
        const char *name = args->options[i].row->name;
        bool filter = false;
        for (size_t f = 0; f < ARRAY_LEN(filters); f++)
            filter = filter || strcmp(name, filters[f]) == 0;
        if (!filter)
            continue;
        buf_addf(&target, "%c%s=", used++ == 0 ? '?' : '&', name);
        target_add(&target, args->options[i].value, false);
    }
    yyjson_val *root;
    if (client_json(inv->client, "GET", &target, NULL, 0, &root, err) < 0)
        return -1;
    return inv->json ? output_json(root, err) : print_list(inv, root, err);
}

/* --- get --- */

static void add_line(struct buf *out, const char *label, struct slice value)
{
    if (value.len == 0)
        return;
    buf_addf(out, "%-10s ", label);
    text_add_plain(out, value);
    buf_addc(out, '\n');
}

static void add_pairs(struct buf *out, const char *label, yyjson_val *env)
{
    yyjson_val *key, *value;
    size_t i, count;
    yyjson_obj_foreach(env, i, count, key, value)
    {
        buf_addf(out, "%-10s ", i == 0 ? label : "");
        text_add_plain(out, (struct slice){yyjson_get_str(key), yyjson_get_len(key)});
        buf_addc(out, '=');
        text_add_plain(out, client_text(value, ""));
        buf_addc(out, '\n');
    }
}

/* One value as people write it; false when there is nothing to show. */
static bool add_value(struct buf *out, yyjson_val *value)
{
    if (yyjson_is_null(value) || (yyjson_is_arr(value) && yyjson_arr_size(value) == 0) ||
        yyjson_is_obj(value))
        return false;
    if (yyjson_is_str(value)) {
        text_add_plain(out, client_text(value, ""));
        return true;
    }
    _cleanup_free_ char *text = yyjson_val_write(value, YYJSON_WRITE_NOFLAG, NULL);
    if (text != NULL)
        buf_adds(out, text);
    return text != NULL;
}

/* What is in force, with the server's word on what differs from its level. */
static void add_security(struct buf *out, yyjson_val *security)
{
    yyjson_val *key, *value, *notes = yyjson_obj_get(security, "enforcement");
    size_t i, count, shown = 0;
    yyjson_obj_foreach(security, i, count, key, value)
    {
        _cleanup_buf_ struct buf text = BUF_INIT(OUTPUT_MAX);
        if (!add_value(&text, value))
            continue;
        buf_addf(out, "%-10s ", shown++ == 0 ? "Security" : "");
        text_add_plain(out, (struct slice){yyjson_get_str(key), yyjson_get_len(key)});
        buf_addf(out, "=%s", text.data);
        struct slice note = client_text(yyjson_obj_get(notes, yyjson_get_str(key)), "");
        if (note.len > 0) {
            buf_adds(out, " (");
            text_add_plain(out, note);
            buf_addc(out, ')');
        }
        buf_addc(out, '\n');
    }
}

static void add_events(struct buf *out, yyjson_val *events)
{
    static const char *const titles[] = {"TIME", "EVENT", "STATUS", "MESSAGE"};
    static const char *const pointers[] = {"/time", "/type", "/status", "/message"};
    if (yyjson_arr_size(events) == 0)
        return;
    _cleanup_table_ struct table *table = table_new(titles, ARRAY_LEN(titles));
    yyjson_val *event;
    size_t i, count;
    yyjson_arr_foreach(events, i, count, event)
    {
        for (size_t p = 0; p < ARRAY_LEN(pointers); p++)
            table_cell(table, client_text(event, pointers[p]));
    }
    buf_addc(out, '\n');
    table_write(table, out);
}

static int print_sandbox(yyjson_val *root, struct error *err)
{
    static const struct {
        const char *label, *pointer;
    } lines[] = {
        {"Name", "/metadata/name"},
        {"Id", "/metadata/id"},
        {"Group", "/metadata/group"},
        {"Title", "/metadata/displayName"},
        {"External", "/metadata/externalId"},
        {"Revision", "/metadata/revision"},
        {"Workspace", "/metadata/workspace"},
        {"Status", "/status"},
        {"Image", "/spec/image"},
        {"CPU", "/spec/resources/cpu"},
        {"Memory", "/spec/resources/memory"},
        {"Disk", "/spec/resources/disk"},
        {"Trust", "/spec/trustLevel"},
        {"Network", "/spec/network/mode"},
        {"TTL", "/spec/lifecycle/ttl"},
        {"Idle after", "/spec/lifecycle/idleTimeout"},
        {"Max age", "/spec/lifecycle/maxAge"},
        {"Until", "/spec/lifecycle/expires"},
        {"On expire", "/spec/lifecycle/onExpire"},
        {"Restart", "/spec/restart"},
        {"Expires", "/expiresAt"},
        {"Idle since", "/idleSince"},
        {"Created", "/metadata/createdAt"},
        {"Updated", "/metadata/updatedAt"},
        {"API", "/access/api_endpoint"},
    };
    _cleanup_buf_ struct buf out = BUF_INIT(OUTPUT_MAX);
    for (size_t i = 0; i < ARRAY_LEN(lines); i++)
        add_line(&out, lines[i].label, client_text(root, lines[i].pointer));
    if (yyjson_get_bool(yyjson_obj_get(root, "startsOnUse")))
        add_line(&out, "Starts", slice_of("when a request needs it"));
    if (yyjson_get_bool(yyjson_ptr_get(root, "/spec/lifecycle/wakeOnConnect")))
        add_line(&out, "Wakes", slice_of("when somebody connects to a port of it"));
    yyjson_val *lower = yyjson_ptr_get(root, "/spec/autoLower/factor");
    if (lower != NULL)
        buf_addf(&out, "%-10s to %.10g times what is used\n", "Lowered", yyjson_get_num(lower));
    if (yyjson_is_false(yyjson_ptr_get(root, "/spec/history/enabled")))
        add_line(&out, "History", slice_of("none is kept"));
    add_pairs(&out, "Labels", yyjson_ptr_get(root, "/metadata/labels"));
    add_pairs(&out, "Env", yyjson_ptr_get(root, "/spec/env_vars"));
    add_security(&out, yyjson_ptr_get(root, "/spec/security"));
    usage_write(yyjson_obj_get(root, "usage"), &out);
    add_events(&out, yyjson_obj_get(root, "events"));
    return output_buf(&out, err);
}

int verb_sandbox_get(struct invocation *inv, int *ret_status, struct error *err)
{
    yyjson_val *root;
    if (sandbox_call(inv, "GET", args_word(inv->args, "NAME"), NULL, NULL, &root, err) < 0)
        return -1;
    return inv->json ? output_json(root, err) : print_sandbox(root, err);
}
