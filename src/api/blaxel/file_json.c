/* SPDX-License-Identifier: Apache-2.0 */

/* The shapes of files. Names are any bytes, as in v0/file_json.c. */

#include "api/blaxel/file_json.h"

#include <inttypes.h>
#include <string.h>

#include "api/call.h"
#include "api/v0/file_json.h"

enum { PERMISSION_BITS = 07777 };

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash == NULL || slash[1] == '\0' ? path : slash + 1;
}

static void add_name(struct arena *arena, yyjson_mut_doc *doc, yyjson_mut_val *object,
                     const char *path)
{
    api_add_text(arena, doc, object, "path", "pathBase64", slice_of(path));
    json_add_lossy(doc, object, "name", slice_of(base_name(path)));
}

static void add_attributes(struct arena *arena, yyjson_mut_doc *doc, yyjson_mut_val *object,
                           const struct file_entry *entry, uint64_t size)
{
    char modified[TIME_TEXT_SIZE];
    time_rfc3339((int64_t)(entry->mtime_ms < API_TIME_MAX ? entry->mtime_ms : API_TIME_MAX),
                 modified);
    yyjson_mut_obj_add_str(doc, object, "permissions",
                           arena_printf(arena, "%03" PRIo64, entry->mode & PERMISSION_BITS));
    yyjson_mut_obj_add_uint(doc, object, "size", size);
    yyjson_mut_obj_add_strcpy(doc, object, "lastModified", modified);
    json_add_lossy(doc, object, "owner", slice_of(entry->owner));
    json_add_lossy(doc, object, "group", slice_of(entry->group));
}

void box_file_json(struct arena *arena, yyjson_mut_doc *doc, yyjson_mut_val *root,
                   const struct file_entry *entry, struct slice content)
{
    add_name(arena, doc, root, entry->path);
    api_add_text(arena, doc, root, "content", "contentBase64", content);
    add_attributes(arena, doc, root, entry, content.len);
}

static yyjson_mut_val *add_item(struct arena *arena, yyjson_mut_doc *doc, yyjson_mut_val *list,
                                const char *directory, const struct file_entry *entry)
{
    yyjson_mut_val *item = yyjson_mut_arr_add_obj(doc, list);
    const char *parent = strcmp(directory, "/") == 0 ? "" : directory;
    add_name(arena, doc, item, arena_printf(arena, "%s/%s", parent, entry->path));
    if (entry->type != FILE_DIRECTORY)
        add_attributes(arena, doc, item, entry, entry->size);
    return item;
}

int box_tree_json(struct arena *arena, yyjson_mut_doc *doc, yyjson_mut_val *root, const char *path,
                  const struct file_tree *tree, struct error *err)
{
    add_name(arena, doc, root, path);
    return tree_json_of(arena, doc, root, path, tree, add_item, err);
}

void box_directory_json(struct arena *arena, yyjson_mut_doc *doc, yyjson_mut_val *root,
                        const char *path, const struct file_entry *items, size_t count)
{
    add_name(arena, doc, root, path);
    yyjson_mut_val *files = yyjson_mut_obj_add_arr(doc, root, "files");
    yyjson_mut_val *directories = yyjson_mut_obj_add_arr(doc, root, "subdirectories");
    for (size_t i = 0; i < count; i++)
        add_item(arena, doc, items[i].type == FILE_DIRECTORY ? directories : files, path,
                 &items[i]);
}
