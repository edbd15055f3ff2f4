/* SPDX-License-Identifier: Apache-2.0 */

/* `cella pool …`: what the server makes ahead of time. */

#include "cli/verbs.h"

#include <inttypes.h>
#include <string.h>

#include "base/cleanup.h"
#include "cli/client.h"
#include "cli/output.h"
#include "cli/table.h"

static int call(struct invocation *inv, const char *method, const char *name, yyjson_mut_doc *body,
                yyjson_val **ret_root, struct error *err)
{
    _cleanup_buf_ struct buf target = BUF_INIT(TARGET_MAX);
    buf_adds(&target, "/v0/pools");
    if (name != NULL) {
        buf_addc(&target, '/');
        target_add(&target, name, false);
    }
    return client_json(inv->client, method, &target, body, 0, ret_root, err);
}

/* --- showing --- */

static uint64_t number(yyjson_val *pool, const char *pointer)
{
    return yyjson_get_uint(yyjson_ptr_get(pool, pointer));
}

static void add_row(struct table *table, yyjson_val *pool)
{
    static const char *const counts[] = {"/size",           "/status/ready",  "/status/making",
                                         "/status/claimed", "/status/misses", "/status/refills"};
    yyjson_val *age = yyjson_ptr_get(pool, "/status/oldestAge");
    table_cell(table, client_text(pool, "/name"));
    table_cell(table, client_text(pool, "/image"));
    table_cell(table, client_text(pool, "/trustLevel"));
    for (size_t i = 0; i < ARRAY_LEN(counts); i++)
        table_printf(table, "%" PRIu64, number(pool, counts[i]));
    table_printf(table, "%.1f ms",
                 yyjson_get_num(yyjson_ptr_get(pool, "/status/refillTime/meanMs")));
    if (yyjson_is_num(age))
        table_printf(table, "%.0f s", yyjson_get_num(age));
    else
        table_text(table, NULL);
}

static struct table *pool_table(void)
{
    static const char *const titles[] = {"NAME",    "IMAGE",  "TRUST",   "SIZE",
                                         "READY",   "MAKING", "CLAIMED", "MISSES",
                                         "REFILLS", "REFILL", "OLDEST"};
    return table_new(titles, ARRAY_LEN(titles));
}

static int print_one(struct invocation *inv, yyjson_val *root, struct error *err)
{
    if (inv->json)
        return output_json(root, err);
    _cleanup_table_ struct table *table = pool_table();
    add_row(table, root);
    return output_table(table, err);
}

int verb_pool_list(struct invocation *inv, int *ret_status, struct error *err)
{
    yyjson_val *root;
    if (call(inv, "GET", NULL, NULL, &root, err) < 0)
        return -1;
    return output_list(inv->json, root, "pools", pool_table(), add_row, err);
}

/* All that there is to say about one, line by line. */
static void add_list(struct buf *out, yyjson_val *list)
{
    size_t i, count;
    yyjson_val *item;
    yyjson_arr_foreach(list, i, count, item)
    {
        buf_adds(out, i == 0 ? "" : ", ");
        text_add_plain(out, client_text(item, ""));
    }
}

int verb_pool_get(struct invocation *inv, int *ret_status, struct error *err)
{
    static const struct {
        const char *title, *pointer;
    } rows[] = {
        {"name", "/name"},
        {"image", "/image"},
        {"trust level", "/trustLevel"},
        {"interpreters", "/code"},
        {"size", "/size"},
        {"ttl (s)", "/ttl"},
        {"made at once", "/refill/concurrency"},
        {"cpu", "/resources/cpu"},
        {"memory", "/resources/memory"},
        {"disk", "/resources/disk"},
        {"created", "/createdAt"},
        {"ready", "/status/ready"},
        {"making", "/status/making"},
        {"claimed", "/status/claimed"},
        {"misses", "/status/misses"},
        {"refills", "/status/refills"},
        {"failures", "/status/failures"},
        {"expired", "/status/expired"},
        {"returned", "/status/returned"},
        {"refill time (ms)", "/status/refillTime/meanMs"},
        {"oldest (s)", "/status/oldestAge"},
        {"last error", "/status/lastError"},
    };
    yyjson_val *root;
    if (call(inv, "GET", args_word(inv->args, "POOL"), NULL, &root, err) < 0)
        return -1;
    if (inv->json)
        return output_json(root, err);
    _cleanup_buf_ struct buf out = BUF_INIT(OUTPUT_MAX);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        yyjson_val *value = yyjson_ptr_get(root, rows[i].pointer);
        if (value == NULL || yyjson_is_null(value) ||
            (yyjson_is_arr(value) && yyjson_arr_size(value) == 0))
            continue;
        buf_addf(&out, "%-18s", rows[i].title);
        if (yyjson_is_arr(value))
            add_list(&out, value);
        else if (yyjson_is_str(value))
            text_add_plain(&out, client_text(value, ""));
        else
            buf_addf(&out, "%g", yyjson_get_num(value));
        buf_addc(&out, '\n');
    }
    return output_buf(&out, err);
}

/* --- changing --- */

static void add_text(yyjson_mut_doc *doc, yyjson_mut_val *object, const char *key, const char *text)
{
    if (text != NULL)
        yyjson_mut_obj_add_str(doc, object, key, text);
}

/* "python,bash"; "none" is an empty list. */
static void add_languages(yyjson_mut_doc *doc, yyjson_mut_val *object, const char *text)
{
    if (text == NULL)
        return;
    yyjson_mut_val *list = yyjson_mut_obj_add_arr(doc, object, "code");
    if (strcmp(text, "none") == 0)
        return;
    for (size_t len; *text != '\0'; text += len + (text[len] == ',')) {
        len = strcspn(text, ",");
        yyjson_mut_arr_add_strncpy(doc, list, text, len);
    }
}

static yyjson_mut_doc *body_of(const struct invocation *inv, yyjson_mut_val **ret_object)
{
    yyjson_mut_val *object;
    const struct args *args = inv->args;
    yyjson_mut_doc *doc = client_body(inv->client, &object);
    if (args_option(args, "size", NULL) != NULL)
        yyjson_mut_obj_add_uint(doc, object, "size", args_number(args, "size", 0));
    add_text(doc, object, "ttl", args_option(args, "ttl", NULL));
    if (args_option(args, "refill", NULL) != NULL)
        yyjson_mut_obj_add_uint(doc, yyjson_mut_obj_add_obj(doc, object, "refill"), "concurrency",
                                args_number(args, "refill", 1));
    add_languages(doc, object, args_option(args, "code", NULL));
    *ret_object = object;
    return doc;
}

int verb_pool_create(struct invocation *inv, int *ret_status, struct error *err)
{
    static const char *const resources[] = {"cpu", "memory", "disk"};
    yyjson_mut_val *object, *limits = NULL;
    yyjson_mut_doc *doc = body_of(inv, &object);
    yyjson_val *root;
    add_text(doc, object, "name", args_word(inv->args, "POOL"));
    add_text(doc, object, "image", args_option(inv->args, "image", NULL));
    add_text(doc, object, "trustLevel", args_option(inv->args, "trust", NULL));
    if (args_flag(inv->args, "with-network"))
        yyjson_mut_obj_add_bool(doc, object, "network", true);
    for (size_t i = 0; i < ARRAY_LEN(resources); i++) {
        const char *given = args_option(inv->args, resources[i], NULL);
        if (given != NULL && limits == NULL)
            limits = yyjson_mut_obj_add_obj(doc, object, "resources");
        if (given != NULL)
            yyjson_mut_obj_add_str(doc, limits, resources[i], given);
    }
    if (call(inv, "POST", NULL, doc, &root, err) < 0)
        return -1;
    return print_one(inv, root, err);
}

int verb_pool_update(struct invocation *inv, int *ret_status, struct error *err)
{
    yyjson_mut_val *object;
    yyjson_mut_doc *doc = body_of(inv, &object);
    yyjson_val *root;
    if (yyjson_mut_obj_size(object) == 0)
        return error_set(err, ERROR_INVALID_ARGUMENT,
                         "nothing to change: give --size, --ttl, --refill or --code");
    if (call(inv, "PATCH", args_word(inv->args, "POOL"), doc, &root, err) < 0)
        return -1;
    return print_one(inv, root, err);
}

int verb_pool_delete(struct invocation *inv, int *ret_status, struct error *err)
{
    yyjson_val *root;
    if (call(inv, "DELETE", args_word(inv->args, "POOL"), NULL, &root, err) < 0)
        return -1;
    return inv->json ? output_json(root, err) : output_message(root, err);
}
