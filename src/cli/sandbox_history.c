/* SPDX-License-Identifier: Apache-2.0 */

/* `cella history`, `cella diff` and `cella rollback`: what executions did to a sandbox's files.
 * What a sandbox wrote is made harmless for a terminal and exact for a pipe. (history.c is about
 * lines that somebody typed.) */

#include "cli/verbs.h"

#include <inttypes.h>
#include <string.h>

#include "base/cleanup.h"
#include "cli/args.h"
#include "cli/client.h"
#include "cli/output.h"
#include "cli/screen.h"
#include "cli/table.h"

enum { FILES_SHOWN = 5 };

static const char *const titles[] = {"ID", "TIME", "MESSAGE", "FILES"};

static void add_row(struct table *table, yyjson_val *commit)
{
    _cleanup_buf_ struct buf files = BUF_INIT(TARGET_MAX);
    yyjson_val *list = yyjson_obj_get(commit, "files"), *file;
    size_t i, count;
    yyjson_arr_foreach(list, i, count, file)
    {
        if (i == FILES_SHOWN)
            break;
        buf_adds(&files, i == 0 ? "" : ", ");
        text_add_plain(&files, (struct slice){yyjson_get_str(file), yyjson_get_len(file)});
    }
    if (yyjson_arr_size(list) > FILES_SHOWN)
        buf_addf(&files, " and %zu more", yyjson_arr_size(list) - FILES_SHOWN);
    table_cell(table, client_text(commit, "/id"));
    table_cell(table, client_text(commit, "/timestamp"));
    table_cell(table, client_text(commit, "/message"));
    table_text(table, files.data);
}

int verb_history(struct invocation *inv, int *ret_status, struct error *err)
{
    _cleanup_buf_ struct buf target = BUF_INIT(TARGET_MAX);
    yyjson_val *root;
    target_sandbox(inv->client, &target, args_word(inv->args, "NAME"), "/history");
    buf_addf(&target, "?limit=%" PRIu64, args_number(inv->args, "limit", 100));
    if (client_json(inv->client, "GET", &target, NULL, 0, &root, err) < 0)
        return -1;
    return output_list(inv->json, root, "history", table_new(titles, ARRAY_LEN(titles)), add_row,
                       err);
}

static void add_word(struct buf *target, const char *name, const char *word)
{
    if (word == NULL)
        return;
    buf_addf(target, "%s%s=", strchr(target->data, '?') == NULL ? "?" : "&", name);
    target_add(target, word, false);
}

int verb_diff(struct invocation *inv, int *ret_status, struct error *err)
{
    _cleanup_buf_ struct buf target = BUF_INIT(TARGET_MAX);
    _cleanup_buf_ struct buf out = BUF_INIT(64 << 20);
    yyjson_val *root, *path, *text;
    size_t i, count;
    target_sandbox(inv->client, &target, args_word(inv->args, "NAME"), "/diff");
    add_word(&target, "from", args_word(inv->args, "FROM"));
    add_word(&target, "to", args_word(inv->args, "TO"));
    if (client_json(inv->client, "GET", &target, NULL, 0, &root, err) < 0)
        return -1;
    if (inv->json)
        return output_json(root, err);
    yyjson_obj_foreach(yyjson_obj_get(root, "diff"), i, count, path, text)
    {
        struct slice part = {yyjson_get_str(text), yyjson_get_len(text)};
        for (const char *at = part.data, *end = part.data + part.len; at < end;) {
            const char *stop = memchr(at, '\n', (size_t)(end - at));
            size_t len = (size_t)((stop != NULL ? stop : end) - at);
            if (screen_is_terminal())
                text_add_plain(&out, (struct slice){at, len});
            else
                buf_add(&out, at, len);
            buf_addc(&out, '\n');
            at += len + 1;
        }
    }
    if (buf_check(&out, "the diff", err) < 0)
        return -1;
    return output_buf(&out, err);
}

/* What it did not do, with the reasons. */
static void add_left(struct buf *out, yyjson_val *root)
{
    uint64_t total = yyjson_get_uint(yyjson_obj_get(root, "leftAloneCount"));
    yyjson_val *list = yyjson_obj_get(root, "leftAlone"), *file;
    size_t i, count;
    if (total == 0)
        return;
    buf_addf(out, "left alone: %" PRIu64 " files\n", total);
    yyjson_arr_foreach(list, i, count, file)
    {
        struct slice path = client_text(file, "/path"), reason = client_text(file, "/reason");
        buf_adds(out, "  ");
        text_add_plain(out, path);
        buf_adds(out, ": ");
        text_add_plain(out, reason);
        buf_addc(out, '\n');
    }
    if (total > count)
        buf_addf(out, "  and %" PRIu64 " more\n", total - count);
}

int verb_rollback(struct invocation *inv, int *ret_status, struct error *err)
{
    _cleanup_buf_ struct buf target = BUF_INIT(TARGET_MAX);
    _cleanup_buf_ struct buf out = BUF_INIT(1 << 20);
    yyjson_mut_doc *body = json_doc(client_arena(inv->client));
    yyjson_mut_val *object = yyjson_mut_obj(body);
    yyjson_val *root;
    yyjson_mut_doc_set_root(body, object);
    yyjson_mut_obj_add_str(body, object, "executionId", args_word(inv->args, "ID"));
    target_sandbox(inv->client, &target, args_word(inv->args, "NAME"), "/rollback");
    if (client_json(inv->client, "POST", &target, body, -1, &root, err) < 0)
        return -1;
    if (inv->json)
        return output_json(root, err);
    struct slice saved = client_text(root, "/savedAs");
    buf_addf(&out, "rolled back to %s: %zu files changed (this is %s)\n",
             client_text(root, "/executionId").data, yyjson_arr_size(yyjson_obj_get(root, "files")),
             client_text(root, "/id").data);
    if (saved.len > 0)
        buf_addf(&out, "what was not committed before is %s\n", saved.data);
    add_left(&out, root);
    return output_buf(&out, err);
}
