/* SPDX-License-Identifier: Apache-2.0 */

/*
 * `cella run NAME file …`. Content goes as raw bytes both ways, never inside JSON, so that a file
 * of any size and with any bytes arrives as it is and costs one buffer here.
 */

#include "cli/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "cli/client.h"
#include "cli/output.h"
#include "cli/table.h"
#include "cli/verbs.h"

enum { PIECE = 256 * 1024, DECODED_MAX = 64 << 20 };

void file_target_at(const struct client *client, struct buf *target, const char *route,
                    const char *name, const char *path)
{
    target_sandbox(client, target, name, route);
    /* The first slash encoded: /tree would be taken for the route of that name. */
    buf_adds(target, "/%2F");
    target_add(target, path + strspn(path, "/"), true);
}

static void file_target(const struct invocation *inv, struct buf *target)
{
    file_target_at(inv->client, target, "/filesystem", args_word(inv->args, "NAME"),
                   args_word(inv->args, "PATH"));
}

/* --- read --- */

/* Hands every piece of the file to `take`. */
static int each_piece(struct invocation *inv,
                      int (*take)(void *ctx, const void *data, size_t len, struct error *err),
                      void *ctx, struct error *err)
{
    _cleanup_buf_ struct buf target = BUF_INIT(TARGET_MAX);
    _cleanup_free_ char *piece = malloc(PIECE);
    _cleanup_(progress_end) struct progress progress;
    int64_t total;
    ssize_t len;
    file_target(inv, &target);
    progress_start(&progress, -1, true);
    if (client_get_bytes(inv->client, &target, &total, err) < 0)
        return -1;
    progress.total = total;
    while ((len = client_read(inv->client, piece, PIECE, err)) > 0) {
        if (take(ctx, piece, (size_t)len, err) < 0)
            return -1;
        progress_add(&progress, (size_t)len);
    }
    return len < 0 ? -1 : 0;
}

static int to_stdout(void *ctx, const void *data, size_t len, struct error *err)
{
    return output_bytes(STDOUT_FILENO, data, len, err);
}

static int to_buf(void *ctx, const void *data, size_t len, struct error *err)
{
    buf_add(ctx, data, len);
    return buf_check(ctx, "a file to decode", err);
}

/* Takes the line breaks and blanks around base64 away that people's editors leave. */
static struct slice trimmed(const struct buf *text)
{
    const char *start = text->data, *end = text->data + text->len;
    while (start < end && strchr(" \t\r\n", *start) != NULL)
        start++;
    while (end > start && strchr(" \t\r\n", end[-1]) != NULL)
        end--;
    return (struct slice){start, (size_t)(end - start)};
}

static int read_decoded(struct invocation *inv, struct error *err)
{
    _cleanup_buf_ struct buf text = BUF_INIT(DECODED_MAX);
    struct slice bytes;
    if (each_piece(inv, to_buf, &text, err) < 0)
        return -1;
    if (json_base64_decode(client_arena(inv->client), trimmed(&text), &bytes, err) < 0)
        return error_prefix(err, "%s is no base64", args_word(inv->args, "PATH"));
    return output_bytes(STDOUT_FILENO, bytes.data, bytes.len, err);
}

int verb_file_read(struct invocation *inv, int *ret_status, struct error *err)
{
    if (inv->json) {
        _cleanup_buf_ struct buf target = BUF_INIT(TARGET_MAX);
        yyjson_val *root;
        file_target(inv, &target);
        if (client_json(inv->client, "GET", &target, NULL, 0, &root, err) < 0)
            return -1;
        return output_json(root, err);
    }
    return args_flag(inv->args, "decode") ? read_decoded(inv, err)
                                          : each_piece(inv, to_stdout, NULL, err);
}

/* --- ls --- */

static struct slice base_name(struct slice path)
{
    const char *slash = path.len == 0 ? NULL : memrchr(path.data, '/', path.len);
    if (slash == NULL || path.len == 1)
        return path;
    return (struct slice){slash + 1, (size_t)(path.data + path.len - slash - 1)};
}

static int list_entry(const struct invocation *inv, struct table *table, yyjson_val *entry,
                      const char *suffix, struct error *err)
{
    struct slice path, target;
    if (client_exact(inv->client, entry, "path", &path, err) < 0 ||
        client_exact(inv->client, entry, "target", &target, err) < 0)
        return -1;
    char size[SIZE_TEXT_MAX] = "";
    yyjson_val *bytes = yyjson_obj_get(entry, "size");
    if (yyjson_is_uint(bytes))
        size_text(yyjson_get_uint(bytes), size);
    table_cell(table, client_text(entry, "/permissions"));
    table_cell(table, client_text(entry, "/owner"));
    table_cell(table, client_text(entry, "/group"));
    table_text(table, size);
    table_cell(table, client_text(entry, "/lastModified"));
    _cleanup_buf_ struct buf name = BUF_INIT(1 << 20);
    struct slice base = base_name(path);
    buf_add(&name, base.data, base.len);
    buf_adds(&name, suffix);
    if (target.len > 0) {
        buf_adds(&name, " -> ");
        buf_add(&name, target.data, target.len);
    }
    table_cell(table, (struct slice){name.data, name.len});
    return 0;
}

static int print_directory(const struct invocation *inv, yyjson_val *root, struct error *err)
{
    static const char *const titles[] = {"PERMISSIONS", "OWNER",    "GROUP",
                                         "SIZE",        "MODIFIED", "NAME"};
    static const struct {
        const char *key, *suffix;
    } lists[] = {{"subdirectories", "/"}, {"files", ""}};
    _cleanup_table_ struct table *table = table_new(titles, ARRAY_LEN(titles));
    yyjson_val *entry;
    size_t i, count;
    for (size_t l = 0; l < ARRAY_LEN(lists); l++) {
        yyjson_arr_foreach(yyjson_obj_get(root, lists[l].key), i, count, entry)
        {
            if (list_entry(inv, table, entry, lists[l].suffix, err) < 0)
                return -1;
        }
    }
    return output_table(table, err);
}

int verb_file_ls(struct invocation *inv, int *ret_status, struct error *err)
{
    _cleanup_buf_ struct buf target = BUF_INIT(TARGET_MAX);
    yyjson_val *root;
    file_target(inv, &target);
    if (client_json(inv->client, "GET", &target, NULL, 0, &root, err) < 0)
        return -1;
    if (yyjson_obj_get(root, "files") == NULL)
        return error_set(err, ERROR_NOT_A_DIRECTORY, "%s is a file", args_word(inv->args, "PATH"));
    return inv->json ? output_json(root, err) : print_directory(inv, root, err);
}

/* --- write --- */

/* Opens what the content comes from: --from-file FILE, or stdin for "-". */
int file_open_source(const char *path, int *ret_fd, int64_t *ret_length, struct error *err)
{
    _cleanup_fd_ int fd = strcmp(path, "-") == 0 ? fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3)
                                                 : open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    struct stat st;
    if (fd < 0 || fstat(fd, &st) < 0)
        return error_sys(err, "%s", path);
    if (S_ISDIR(st.st_mode))
        return error_set(err, ERROR_IS_A_DIRECTORY, "%s is a directory", path);
    /* A file's size is a promise to the server; somebody may have read part of stdin before us, and
     * files in /proc say 0. */
    off_t at = S_ISREG(st.st_mode) ? lseek(fd, 0, SEEK_CUR) : -1;
    *ret_length = at >= 0 && st.st_size > at ? st.st_size - at : -1;
    *ret_fd = steal_fd(&fd);
    return 0;
}

int file_send_source(struct invocation *inv, int fd, int64_t length, struct error *err)
{
    _cleanup_free_ char *piece = malloc(PIECE);
    _cleanup_(progress_end) struct progress progress;
    progress_start(&progress, length, false);
    for (;;) {
        size_t want = PIECE;
        if (length >= 0 && (int64_t)want > length - (int64_t)progress.done)
            want = (size_t)(length - (int64_t)progress.done);
        ssize_t len = want == 0 ? 0 : read(fd, piece, want);
        if (len < 0 && errno == EINTR)
            continue;
        if (len < 0)
            return error_sys_as(err, ERROR_INTERNAL, "reading the content");
        if (len == 0 && want > 0 && length >= 0)
            return error_set(err, ERROR_CONFLICT, "the file became shorter while it was sent");
        if (len == 0)
            return 0;
        if (client_write(inv->client, piece, (size_t)len, err) < 0)
            return -1;
        progress_add(&progress, (size_t)len);
    }
}

static int write_from(struct invocation *inv, const struct buf *target, const char *path,
                      yyjson_val **ret_root, struct error *err)
{
    _cleanup_fd_ int fd = -1;
    int64_t length = -1;
    if (file_open_source(path, &fd, &length, err) < 0 ||
        client_put_bytes(inv->client, target, length, err) < 0 ||
        file_send_source(inv, fd, length, err) < 0)
        return -1;
    return client_put_end(inv->client, ret_root, err);
}

static int write_text(struct invocation *inv, const struct buf *target, const char *text,
                      yyjson_val **ret_root, struct error *err)
{
    size_t len = strlen(text);
    if (client_put_bytes(inv->client, target, (int64_t)len, err) < 0 ||
        (len > 0 && client_write(inv->client, text, len, err) < 0))
        return -1;
    return client_put_end(inv->client, ret_root, err);
}

/* Exactly one of --content, --from-file and "-". */
static int find_source(const struct args *args, const char **ret_text, const char **ret_path,
                       struct error *err)
{
    const char *text = args_option(args, "content", NULL);
    const char *file = args_option(args, "from-file", NULL);
    const char *word = args_word(args, "SOURCE");
    if (word != NULL && strcmp(word, "-") != 0)
        return error_set(err, ERROR_INVALID_ARGUMENT,
                         "\"%s\" is no source: give --content TEXT, --from-file FILE, or - for "
                         "standard input",
                         word);
    if ((text != NULL) + (file != NULL) + (word != NULL) != 1)
        return error_set(err, ERROR_INVALID_ARGUMENT,
                         "file write takes one of --content TEXT, --from-file FILE, or - for "
                         "standard input");
    *ret_text = text;
    *ret_path = file != NULL ? file : word;
    return 0;
}

static int print_message(struct invocation *inv, yyjson_val *root, struct error *err)
{
    if (inv->json)
        return output_json(root, err);
    _cleanup_buf_ struct buf out = BUF_INIT(OUTPUT_MAX);
    text_add_plain(&out, client_text(root, "/path"));
    buf_adds(&out, ": ");
    text_add_plain(&out, client_text(root, "/message"));
    buf_addc(&out, '\n');
    return output_buf(&out, err);
}

int verb_file_write(struct invocation *inv, int *ret_status, struct error *err)
{
    const char *text = NULL, *path = NULL,
               *permissions = args_option(inv->args, "permissions", NULL);
    _cleanup_buf_ struct buf target = BUF_INIT(TARGET_MAX);
    yyjson_val *root;
    if (find_source(inv->args, &text, &path, err) < 0)
        return -1;
    file_target(inv, &target);
    if (permissions != NULL) {
        buf_adds(&target, "?permissions=");
        target_add(&target, permissions, false);
    }
    if ((text != NULL ? write_text(inv, &target, text, &root, err)
                      : write_from(inv, &target, path, &root, err)) < 0)
        return -1;
    return print_message(inv, root, err);
}

/* --- rm --- */

int verb_file_rm(struct invocation *inv, int *ret_status, struct error *err)
{
    _cleanup_buf_ struct buf target = BUF_INIT(TARGET_MAX);
    yyjson_val *root;
    yyjson_mut_val *body;
    yyjson_mut_doc *doc = client_body(inv->client, &body);
    yyjson_mut_obj_add_bool(doc, body, "recursive", args_flag(inv->args, "recursive"));
    file_target(inv, &target);
    if (client_json(inv->client, "DELETE", &target, doc, 0, &root, err) < 0)
        return -1;
    return print_message(inv, root, err);
}
