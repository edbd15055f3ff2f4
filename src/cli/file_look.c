/* SPDX-License-Identifier: Apache-2.0 */

/* `cella run NAME file tree|watch|find|search`: looking at many files. */

#include <string.h>

#include "base/cleanup.h"
#include "cli/args.h"
#include "cli/client.h"
#include "cli/file.h"
#include "cli/output.h"
#include "cli/table.h"
#include "cli/verbs.h"
#include "http/client.h"

static void add_query(struct buf *target, const char *name, const char *value)
{
    if (value == NULL)
        return;
    buf_addc(target, strchr(target->data, '?') == NULL ? '?' : '&');
    buf_adds(target, name);
    buf_addc(target, '=');
    target_add(target, value, false);
}

static int ask(struct invocation *inv, const char *route, const struct buf *query,
               yyjson_val **ret_root, struct error *err)
{
    _cleanup_buf_ struct buf target = BUF_INIT(TARGET_MAX);
    file_target_at(inv->client, &target, route, args_word(inv->args, "NAME"),
                   args_word(inv->args, "PATH"));
    buf_add(&target, query->data, query->len);
    return client_json(inv->client, "GET", &target, NULL, 0, ret_root, err);
}

/* --- tree --- */

static int add_name(const struct invocation *inv, struct buf *out, yyjson_val *entry,
                    struct error *err)
{
    struct slice path;
    if (client_exact(inv->client, entry, "path", &path, err) < 0)
        return -1;
    const char *slash = path.len == 0 ? NULL : memrchr(path.data, '/', path.len);
    size_t start = slash == NULL ? 0 : (size_t)(slash - path.data) + 1;
    text_add_plain(out, (struct slice){path.data + start, path.len - start});
    return 0;
}

static int add_branch(const struct invocation *inv, struct buf *out, struct buf *indent,
                      yyjson_val *directory, struct error *err);

static int add_leaf(const struct invocation *inv, struct buf *out, struct buf *indent,
                    yyjson_val *entry, bool is_directory, bool last, struct error *err)
{
    size_t before = indent->len;
    buf_add(out, indent->data, indent->len);
    buf_adds(out, last ? "└── " : "├── ");
    if (add_name(inv, out, entry, err) < 0)
        return -1;
    struct slice target;
    if (client_exact(inv->client, entry, "target", &target, err) < 0)
        return -1;
    if (target.len > 0) {
        buf_adds(out, " -> ");
        text_add_plain(out, target);
    }
    buf_adds(out, is_directory ? "/\n" : "\n");
    if (!is_directory)
        return 0;
    buf_adds(indent, last ? "    " : "│   ");
    int rc = add_branch(inv, out, indent, entry, err);
    indent->len = before;
    indent->data[before] = '\0';
    return rc;
}

static int add_branch(const struct invocation *inv, struct buf *out, struct buf *indent,
                      yyjson_val *directory, struct error *err)
{
    static const char *const lists[] = {"subdirectories", "files"};
    size_t left = 0, i, count;
    yyjson_val *entry;
    for (size_t l = 0; l < ARRAY_LEN(lists); l++)
        left += yyjson_arr_size(yyjson_obj_get(directory, lists[l]));
    for (size_t l = 0; l < ARRAY_LEN(lists); l++) {
        yyjson_arr_foreach(yyjson_obj_get(directory, lists[l]), i, count, entry)
        {
            if (add_leaf(inv, out, indent, entry, l == 0, --left == 0, err) < 0)
                return -1;
        }
    }
    return 0;
}

int verb_file_tree(struct invocation *inv, int *ret_status, struct error *err)
{
    _cleanup_buf_ struct buf query = BUF_INIT(TARGET_MAX);
    _cleanup_buf_ struct buf out = BUF_INIT(OUTPUT_MAX);
    _cleanup_buf_ struct buf indent = BUF_INIT(64 * 1024);
    yyjson_val *root;
    add_query(&query, "depth", args_option(inv->args, "depth", NULL));
    if (ask(inv, "/filesystem/tree", &query, &root, err) < 0)
        return -1;
    if (inv->json)
        return output_json(root, err);
    text_add_plain(&out, client_text(root, "/path"));
    buf_addc(&out, '\n');
    if (add_branch(inv, &out, &indent, root, err) < 0 || output_buf(&out, err) < 0)
        return -1;
    if (yyjson_get_bool(yyjson_obj_get(root, "truncated")))
        return error_set(err, ERROR_LIMIT_EXCEEDED, "there is more than fits into one answer");
    return 0;
}

/* --- find and search --- */

static int print_matches(const struct invocation *inv, yyjson_val *root, struct error *err)
{
    _cleanup_buf_ struct buf out = BUF_INIT(OUTPUT_MAX);
    size_t i, count;
    yyjson_val *match;
    yyjson_arr_foreach(yyjson_obj_get(root, "matches"), i, count, match)
    {
        struct slice path, text;
        if (client_exact(inv->client, match, "path", &path, err) < 0 ||
            client_exact(inv->client, match, "text", &text, err) < 0)
            return -1;
        text_add_plain(&out, path);
        yyjson_val *line = yyjson_obj_get(match, "line");
        if (line != NULL) {
            buf_addf(&out, ":%llu:%llu: ", (unsigned long long)yyjson_get_uint(line),
                     (unsigned long long)yyjson_get_uint(yyjson_obj_get(match, "column")));
            text_add_plain(&out, text);
        }
        buf_addc(&out, '\n');
    }
    return output_buf(&out, err);
}

static int show(struct invocation *inv, const char *route, const struct buf *query, int *ret_status,
                struct error *err)
{
    yyjson_val *root;
    if (ask(inv, route, query, &root, err) < 0)
        return -1;
    /* As grep has it: nothing found is 1. */
    *ret_status = yyjson_arr_size(yyjson_obj_get(root, "matches")) == 0;
    return inv->json ? output_json(root, err) : print_matches(inv, root, err);
}

int verb_file_find(struct invocation *inv, int *ret_status, struct error *err)
{
    _cleanup_buf_ struct buf query = BUF_INIT(TARGET_MAX);
    _cleanup_buf_ struct buf patterns = BUF_INIT(TARGET_MAX);
    size_t count;
    const char **words = args_rest(inv->args, &count);
    for (size_t i = 0; i < count; i++)
        buf_addf(&patterns, "%s%s", i == 0 ? "" : ",", words[i]);
    add_query(&query, "patterns", count == 0 ? NULL : patterns.data);
    add_query(&query, "type", args_option(inv->args, "type", NULL));
    add_query(&query, "excludeDirs", args_option(inv->args, "exclude", NULL));
    add_query(&query, "maxResults", args_option(inv->args, "limit", NULL));
    return show(inv, "/filesystem-find", &query, ret_status, err);
}

int verb_file_search(struct invocation *inv, int *ret_status, struct error *err)
{
    _cleanup_buf_ struct buf query = BUF_INIT(TARGET_MAX);
    bool fuzzy = args_flag(inv->args, "fuzzy");
    add_query(&query, "query", args_word(inv->args, "QUERY"));
    add_query(&query, fuzzy ? "patterns" : "filePattern", args_option(inv->args, "pattern", NULL));
    add_query(&query, "excludeDirs", args_option(inv->args, "exclude", NULL));
    add_query(&query, "maxResults", args_option(inv->args, "limit", NULL));
    if (args_flag(inv->args, "case-sensitive"))
        add_query(&query, "caseSensitive", "true");
    return show(inv, fuzzy ? "/filesystem-search" : "/filesystem-content-search", &query,
                ret_status, err);
}

/* --- watch --- */

static int print_event(struct invocation *inv, struct slice line, struct error *err)
{
    _cleanup_buf_ struct buf out = BUF_INIT(1 << 20);
    struct arena *arena = arena_new(); /* this may run for days */
    yyjson_val *event;
    int rc = json_parse(arena, line, &event, err);
    struct slice op = rc < 0 ? (struct slice){0} : client_text(event, "/op");
    if (rc == 0 && !slice_eq(op, slice_of("KEEPALIVE"))) {
        struct slice path = client_text(event, "/path"), name = client_text(event, "/name");
        if (inv->json) {
            buf_add(&out, line.data, line.len);
        } else {
            buf_addf(&out, "%-8.*s ", (int)op.len, op.data);
            text_add_plain(&out, path);
            if (name.len > 0 && (path.len == 0 || path.data[path.len - 1] != '/'))
                buf_addc(&out, '/');
            text_add_plain(&out, name);
            struct slice why = client_text(event, "/error");
            if (why.len > 0) {
                buf_adds(&out, ": ");
                text_add_plain(&out, why);
            }
        }
        buf_addc(&out, '\n');
        rc = output_buf(&out, err);
    }
    arena_free(arena);
    return rc;
}

static int print_events(struct invocation *inv, struct buf *in, struct error *err)
{
    const char *end;
    size_t used = 0;
    while ((end = memchr(in->data + used, '\n', in->len - used)) != NULL) {
        struct slice line = {in->data + used, (size_t)(end - in->data) - used};
        if (line.len > 0 && print_event(inv, line, err) < 0)
            return -1;
        used += line.len + 1;
    }
    buf_consume(in, used);
    return 0;
}

int verb_file_watch(struct invocation *inv, int *ret_status, struct error *err)
{
    enum { READ_SIZE = 64 * 1024 };
    _cleanup_buf_ struct buf target = BUF_INIT(TARGET_MAX);
    _cleanup_buf_ struct buf in = BUF_INIT(1 << 20);
    struct http_answer answer;
    file_target_at(inv->client, &target, "/watch/filesystem", args_word(inv->args, "NAME"),
                   args_word(inv->args, "PATH"));
    add_query(&target, "recursive", args_flag(inv->args, "recursive") ? "true" : "false");
    add_query(&target, "ignore", args_option(inv->args, "ignore", NULL));
    if (client_stream(inv->client, "GET", &target, NULL, "application/x-ndjson", &answer, err) < 0)
        return -1;
    for (;;) {
        char *to = buf_reserve(&in, READ_SIZE);
        if (to == NULL)
            return buf_check(&in, "an event", err);
        ssize_t n = client_read(inv->client, to, READ_SIZE, err);
        if (n <= 0)
            return n < 0 ? -1 : 0;
        buf_commit(&in, (size_t)n);
        if (print_events(inv, &in, err) < 0)
            return -1;
    }
}
