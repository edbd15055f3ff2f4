/* SPDX-License-Identifier: Apache-2.0 */

/* `cella workspace …` and `cella key …`: who is apart from whom, and who gets in. */

#include "cli/verbs.h"

#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/duration.h"
#include "base/quotas.h"
#include "cli/client.h"
#include "cli/env.h"
#include "cli/output.h"
#include "cli/settings.h"
#include "cli/table.h"

/* A request below `path`, with an encoded name behind it and a query, either of which may be NULL.
 */
static int call(struct invocation *inv, const char *method, const char *path, const char *name,
                const char *query, yyjson_mut_doc *body, yyjson_val **ret_root, struct error *err)
{
    _cleanup_buf_ struct buf target = BUF_INIT(TARGET_MAX);
    buf_adds(&target, path);
    if (name != NULL) {
        buf_addc(&target, '/');
        target_add(&target, name, false);
    }
    if (query != NULL)
        buf_adds(&target, query);
    /* Deleting by force takes as long as its sandboxes do. */
    return client_json(inv->client, method, &target, body, query != NULL ? -1 : 0, ret_root, err);
}

/* --- workspaces --- */

int verb_workspace_list(struct invocation *inv, int *ret_status, struct error *err)
{
    static const char *const titles[] = {"NAME", "CREATED", "BY"};
    yyjson_val *root, *item;
    if (call(inv, "GET", "/v0/workspaces", NULL, NULL, NULL, &root, err) < 0)
        return -1;
    if (inv->json)
        return output_json(root, err);
    _cleanup_table_ struct table *table = table_new(titles, ARRAY_LEN(titles));
    size_t i, count;
    yyjson_arr_foreach(yyjson_obj_get(root, "workspaces"), i, count, item)
    {
        table_cell(table, client_text(item, "/name"));
        table_cell(table, client_text(item, "/createdAt"));
        table_cell(table, client_text(item, "/createdBy"));
    }
    return output_table(table, err);
}

int verb_workspace_create(struct invocation *inv, int *ret_status, struct error *err)
{
    yyjson_mut_val *object;
    yyjson_mut_doc *body = client_body(inv->client, &object);
    yyjson_val *root;
    yyjson_mut_obj_add_str(body, object, "name", args_word(inv->args, "WORKSPACE"));
    if (call(inv, "POST", "/v0/workspaces", NULL, NULL, body, &root, err) < 0)
        return -1;
    if (inv->json)
        return output_json(root, err);
    _cleanup_buf_ struct buf out = BUF_INIT(OUTPUT_MAX);
    text_add_plain(&out, client_text(root, "/name"));
    buf_addc(&out, '\n');
    return output_buf(&out, err);
}

/* "1.5 cores", "512 MiB", "100"; without a limit "off". */
static void amount_cell(struct table *table, yyjson_val *item, const char *member)
{
    yyjson_val *value = yyjson_obj_get(item, member);
    struct slice unit = client_text(item, "/unit");
    char text[QUOTA_TEXT_SIZE];
    if (yyjson_is_null(value)) {
        table_cell(table, slice_of("off"));
        return;
    }
    if (slice_eq(unit, slice_of(quota_unit_text(QUOTA_UNIT_CORES))))
        quota_amount(QUOTA_UNIT_CORES, (uint64_t)(yyjson_get_num(value) * 1000 + 0.5), text);
    else
        quota_amount(slice_eq(unit, slice_of(quota_unit_text(QUOTA_UNIT_BYTES))) ? QUOTA_UNIT_BYTES
                                                                                 : QUOTA_UNIT_COUNT,
                     yyjson_get_uint(value), text);
    table_cell(table, slice_of(text));
}

int verb_workspace_get(struct invocation *inv, int *ret_status, struct error *err)
{
    static const char *const titles[] = {"QUOTA", "USED", "LIMIT", "SET BY"};
    yyjson_val *root, *item;
    size_t i, count;
    if (call(inv, "GET", "/v0/workspaces", args_word(inv->args, "WORKSPACE"), NULL, NULL, &root,
             err) < 0)
        return -1;
    if (inv->json)
        return output_json(root, err);
    _cleanup_table_ struct table *table = table_new(titles, ARRAY_LEN(titles));
    yyjson_arr_foreach(yyjson_obj_get(root, "quotas"), i, count, item)
    {
        table_cell(table, client_text(item, "/name"));
        amount_cell(table, item, "used");
        amount_cell(table, item, "limit");
        table_cell(table, client_text(item, "/source"));
    }
    return output_table(table, err);
}

int verb_workspace_delete(struct invocation *inv, int *ret_status, struct error *err)
{
    const char *query = args_flag(inv->args, "force") ? "?force=true" : NULL;
    yyjson_val *root;
    if (call(inv, "DELETE", "/v0/workspaces", args_word(inv->args, "WORKSPACE"), query, NULL, &root,
             err) < 0)
        return -1;
    return inv->json ? output_json(root, err) : output_message(root, err);
}

static int limits_call(struct invocation *inv, const char *method, yyjson_mut_doc *body,
                       yyjson_val **ret_root, struct error *err)
{
    _cleanup_buf_ struct buf target = BUF_INIT(TARGET_MAX);
    buf_adds(&target, "/v0/workspaces/");
    target_add(&target, args_word(inv->args, "WORKSPACE"), false);
    buf_adds(&target, "/limits");
    return client_json(inv->client, method, &target, body, 0, ret_root, err);
}

/* What was there stays, but for what an option says. */
static int change_limits(struct invocation *inv, yyjson_val **root, struct error *err)
{
    static const struct {
        const char *option, *member, *place;
    } rows[] = {{"rate-limit", "rateLimit", "/rateLimit"}, {"quota", "quota", "/quota"}};
    yyjson_mut_val *object;
    yyjson_mut_doc *body = client_body(inv->client, &object);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const char *given = args_option(inv->args, rows[i].option, NULL);
        struct slice text = given != NULL ? slice_of(given) : client_text(*root, rows[i].place);
        yyjson_mut_obj_add_strncpy(body, object, rows[i].member, text.data, text.len);
    }
    return limits_call(inv, "PUT", body, root, err);
}

int verb_workspace_limits(struct invocation *inv, int *ret_status, struct error *err)
{
    static const char *const titles[] = {"WORKSPACE", "RATE LIMIT", "QUOTA"};
    bool reset = args_flag(inv->args, "reset");
    bool change = args_option(inv->args, "rate-limit", NULL) != NULL ||
                  args_option(inv->args, "quota", NULL) != NULL;
    yyjson_val *root;
    if (reset && change)
        return error_set(err, ERROR_INVALID_ARGUMENT, "--reset stands alone");
    if (limits_call(inv, reset ? "DELETE" : "GET", NULL, &root, err) < 0 ||
        (change && change_limits(inv, &root, err) < 0))
        return -1;
    if (inv->json)
        return output_json(root, err);
    _cleanup_table_ struct table *table = table_new(titles, ARRAY_LEN(titles));
    table_cell(table, client_text(root, "/workspace"));
    table_cell(table, client_text(root, "/rateLimit"));
    table_cell(table, client_text(root, "/quota"));
    return output_table(table, err);
}

/* --- keys --- */

static void scopes_cell(struct table *table, yyjson_val *key)
{
    _cleanup_buf_ struct buf text = BUF_INIT(256);
    yyjson_val *scope;
    size_t i, count;
    yyjson_arr_foreach(yyjson_obj_get(key, "scopes"), i, count, scope)
    {
        struct slice name = client_text(scope, "");
        buf_addf(&text, "%s%.*s", i > 0 ? "," : "", (int)name.len, name.data);
    }
    table_cell(table, (struct slice){text.data, text.len});
}

int verb_key_list(struct invocation *inv, int *ret_status, struct error *err)
{
    static const char *const titles[] = {"ID",      "NAME", "BEGINS", "SCOPES",
                                         "CREATED", "USED", "EXPIRES"};
    yyjson_val *root, *key;
    if (call(inv, "GET", "/v0/api-keys", NULL, NULL, NULL, &root, err) < 0)
        return -1;
    if (inv->json)
        return output_json(root, err);
    _cleanup_table_ struct table *table = table_new(titles, ARRAY_LEN(titles));
    size_t i, count;
    yyjson_arr_foreach(yyjson_obj_get(root, "keys"), i, count, key)
    {
        table_cell(table, client_text(key, "/id"));
        table_cell(table, client_text(key, "/name"));
        table_cell(table, client_text(key, "/prefix"));
        scopes_cell(table, key);
        table_cell(table, client_text(key, "/createdAt"));
        table_cell(table, client_text(key, "/lastUsedAt"));
        table_cell(table, client_text(key, "/expiresAt"));
    }
    return output_table(table, err);
}

static int key_body(const struct invocation *inv, yyjson_mut_doc **ret_body, struct error *err)
{
    yyjson_mut_val *object;
    yyjson_mut_doc *body = client_body(inv->client, &object);
    const char *scope = args_option(inv->args, "scope", NULL);
    const char *expires = args_option(inv->args, "expires", NULL);
    uint64_t seconds;
    yyjson_mut_obj_add_str(body, object, "name", args_word(inv->args, "KEY"));
    if (scope != NULL)
        yyjson_mut_arr_add_str(body, yyjson_mut_obj_add_arr(body, object, "scopes"), scope);
    if (expires != NULL) {
        if (duration_seconds(expires, &seconds, err) < 0)
            return error_prefix(err, "--expires");
        yyjson_mut_obj_add_uint(body, object, "expiresIn", seconds);
    }
    *ret_body = body;
    return 0;
}

int verb_key_create(struct invocation *inv, int *ret_status, struct error *err)
{
    static const char *const titles[] = {"ID", "NAME", "KEY"};
    yyjson_mut_doc *body = NULL;
    yyjson_val *root;
    if (key_body(inv, &body, err) < 0 ||
        call(inv, "POST", "/v0/api-keys", NULL, NULL, body, &root, err) < 0)
        return -1;
    if (inv->json)
        return output_json(root, err);
    _cleanup_table_ struct table *table = table_new(titles, ARRAY_LEN(titles));
    table_cell(table, client_text(root, "/id"));
    table_cell(table, client_text(root, "/name"));
    struct slice key = client_text(root, "/secret");
    _cleanup_buf_ struct buf e2b = BUF_INIT(2 * KEY_MAX);
    if (args_flag(inv->args, "e2b")) {
        key_for_e2b(key, &e2b);
        key = (struct slice){e2b.data, e2b.len};
    }
    table_cell(table, key);
    if (output_table(table, err) < 0)
        return -1;
    fprintf(stderr, "The key is not shown again.\n");
    return 0;
}

/* People know a key by its name, programs by its id. */
static int find_key_id(struct invocation *inv, const char *wanted, const char **ret_id,
                       struct error *err)
{
    yyjson_val *root, *key;
    size_t i, count;
    if (call(inv, "GET", "/v0/api-keys", NULL, NULL, NULL, &root, err) < 0)
        return -1;
    *ret_id = wanted;
    yyjson_arr_foreach(yyjson_obj_get(root, "keys"), i, count, key)
    {
        if (slice_eq(client_text(key, "/id"), slice_of(wanted)))
            return 0;
        if (slice_eq(client_text(key, "/name"), slice_of(wanted)))
            *ret_id = client_text(key, "/id").data;
    }
    return 0;
}

int verb_key_delete(struct invocation *inv, int *ret_status, struct error *err)
{
    const char *id;
    yyjson_val *root;
    if (find_key_id(inv, args_word(inv->args, "KEY"), &id, err) < 0 ||
        call(inv, "DELETE", "/v0/api-keys", id, NULL, NULL, &root, err) < 0)
        return -1;
    return inv->json ? output_json(root, err) : output_message(root, err);
}
