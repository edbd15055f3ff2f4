/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The shapes of files. Everything in an entry was said by code inside a sandbox: a name may be any
 * bytes, so none of it is put into an answer without care for what is no UTF-8.
 */

#include "api/v0/file_json.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "api/call.h"
#include "base/cleanup.h"
#include "base/limits.h"

/* The execute places double as the set-id and sticky ones: lower case when both are set. */
static const struct {
    mode_t read, write, execute, special;
    char with_execute, without;
} permission_classes[] = {
    {S_IRUSR, S_IWUSR, S_IXUSR, S_ISUID, 's', 'S'},
    {S_IRGRP, S_IWGRP, S_IXGRP, S_ISGID, 's', 'S'},
    {S_IROTH, S_IWOTH, S_IXOTH, S_ISVTX, 't', 'T'},
};

void permissions_format(uint64_t mode, char out[PERMISSIONS_TEXT_SIZE])
{
    for (size_t i = 0; i < 3; i++) {
        __auto_type class = &permission_classes[i];
        bool execute = (mode & class->execute) != 0;
        *out++ = (mode & class->read) != 0 ? 'r' : '-';
        *out++ = (mode & class->write) != 0 ? 'w' : '-';
        if ((mode & class->special) != 0)
            *out++ = execute ? class->with_execute : class->without;
        else
            *out++ = execute ? 'x' : '-';
    }
    *out = '\0';
}

int permissions_parse(const char *text, uint64_t *ret_mode, struct error *err)
{
    size_t len = strlen(text);
    if (len < 3 || len > 4 || strspn(text, "01234567") != len)
        return error_set(err, ERROR_INVALID_ARGUMENT,
                         "permissions: \"%.40s\" is not three or four octal digits, as \"644\" is",
                         text);
    *ret_mode = strtoul(text, NULL, 8);
    return 0;
}

static void add_attributes(struct arena *arena, yyjson_mut_doc *doc, yyjson_mut_val *object,
                           const struct file_entry *entry, uint64_t size)
{
    char permissions[PERMISSIONS_TEXT_SIZE];
    permissions_format(entry->mode, permissions);
    yyjson_mut_obj_add_strcpy(doc, object, "permissions", permissions);
    yyjson_mut_obj_add_uint(doc, object, "size", size);
    api_add_http_time(doc, object, "lastModified", entry->mtime_ms);
    json_add_lossy(doc, object, "owner", slice_of(entry->owner));
    json_add_lossy(doc, object, "group", slice_of(entry->group));
}

void file_json(struct arena *arena, yyjson_mut_doc *doc, yyjson_mut_val *root,
               const struct file_entry *file, struct slice content, bool as_base64)
{
    api_add_text(arena, doc, root, "path", "pathBase64", slice_of(file->path));
    if (as_base64 || !json_is_utf8(content)) {
        struct slice text = json_base64_encode(arena, content);
        yyjson_mut_obj_add_strn(doc, root, "content", text.data, text.len);
        yyjson_mut_obj_add_str(doc, root, "encoding", "base64");
    } else {
        yyjson_mut_obj_add_strn(doc, root, "content", content.data, content.len);
    }
    /* What was read, and not what stat said before: /proc says 0, and files grow. */
    add_attributes(arena, doc, root, file, content.len);
}

/* Regular files have no "type": the seed's shape is theirs. */
static const char *const type_names[] = {
    [FILE_SYMLINK] = "symlink",
    [FILE_OTHER] = "other",
};

static yyjson_mut_val *add_item(struct arena *arena, yyjson_mut_doc *doc, yyjson_mut_val *list,
                                const char *directory, const struct file_entry *item)
{
    yyjson_mut_val *object = yyjson_mut_arr_add_obj(doc, list);
    const char *parent = strcmp(directory, "/") == 0 ? "" : directory;
    const char *path = arena_printf(arena, "%s/%s", parent, item->path);
    api_add_text(arena, doc, object, "path", "pathBase64", slice_of(path));
    if (item->type == FILE_DIRECTORY)
        return object;
    add_attributes(arena, doc, object, item, item->size);
    if (item->type == FILE_REGULAR)
        return object;
    yyjson_mut_obj_add_str(doc, object, "type",
                           type_names[item->type == FILE_SYMLINK ? FILE_SYMLINK : FILE_OTHER]);
    if (item->target != NULL)
        api_add_text(arena, doc, object, "target", "targetBase64", slice_of(item->target));
    return object;
}

void directory_json(struct arena *arena, yyjson_mut_doc *doc, yyjson_mut_val *root,
                    const char *path, const struct file_entry *items, size_t count)
{
    api_add_text(arena, doc, root, "path", "pathBase64", slice_of(path));
    yyjson_mut_val *files = yyjson_mut_obj_add_arr(doc, root, "files");
    yyjson_mut_val *directories = yyjson_mut_obj_add_arr(doc, root, "subdirectories");
    for (size_t i = 0; i < count; i++)
        add_item(arena, doc, items[i].type == FILE_DIRECTORY ? directories : files, path,
                 &items[i]);
}

/* A directory that is being filled; the ones above it stand before it. */
struct open_directory {
    const char *path; /* from the root of the tree, "" for itself */
    yyjson_mut_val *files, *directories;
};

static void open_directory(yyjson_mut_doc *doc, yyjson_mut_val *object, const char *path,
                           struct open_directory *ret_open)
{
    *ret_open = (struct open_directory){
        .path = path,
        .files = yyjson_mut_obj_add_arr(doc, object, "files"),
        .directories = yyjson_mut_obj_add_arr(doc, object, "subdirectories"),
    };
}

static bool is_in(const char *directory, const char *path)
{
    size_t len = strlen(directory);
    if (len == 0)
        return strchr(path, '/') == NULL;
    return strncmp(directory, path, len) == 0 && path[len] == '/' &&
           strchr(path + len + 1, '/') == NULL;
}

int tree_json(struct arena *arena, yyjson_mut_doc *doc, yyjson_mut_val *root, const char *path,
              const struct file_tree *tree, struct error *err)
{
    api_add_text(arena, doc, root, "path", "pathBase64", slice_of(path));
    return tree_json_of(arena, doc, root, path, tree, add_item, err);
}

int tree_json_of(struct arena *arena, yyjson_mut_doc *doc, yyjson_mut_val *root, const char *path,
                 const struct file_tree *tree, tree_item *add, struct error *err)
{
    struct open_directory open[TREE_DEPTH_MAX + 1];
    size_t depth = 1;
    open_directory(doc, root, "", &open[0]);
    for (size_t i = 0; i < tree->count; i++) {
        const struct file_entry *entry = &tree->entries[i];
        while (depth > 0 && !is_in(open[depth - 1].path, entry->path))
            depth--;
        if (depth == 0)
            return error_set(err, ERROR_UNAVAILABLE, "the sandbox sent a tree without a trunk");
        struct open_directory *in = &open[depth - 1];
        bool is_directory = entry->type == FILE_DIRECTORY;
        yyjson_mut_val *object =
            add(arena, doc, is_directory ? in->directories : in->files, path, entry);
        /* What was not looked into has no lists, so that it is not taken for empty. */
        if (is_directory && depth < tree->depth && depth < ARRAY_LEN(open))
            open_directory(doc, object, entry->path, &open[depth++]);
    }
    if (tree->cut)
        yyjson_mut_obj_add_bool(doc, root, "truncated", true);
    return 0;
}
