/* SPDX-License-Identifier: Apache-2.0 */

/* The shapes of files. Names are any bytes, as in v0/file_json.c. */

#include "api/blaxel/file_json.h"

#include <inttypes.h>
#include <string.h>

#include "api/call.h"
#include "api/json_stream.h"
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

int box_file_reply(struct http_exchange *x, const struct file_entry *entry, struct slice content,
                   struct error *err)
{
    _cleanup_json_stream_ struct json_stream out = {0};
    yyjson_mut_val *root;
    json_stream_begin(&out, x);
    struct arena *arena = json_stream_arena(&out);
    yyjson_mut_doc *doc = json_stream_item(&out, &root);
    add_name(arena, doc, root, entry->path);
    json_stream_members(&out, doc);
    if (json_stream_text(&out, "content", content, false, err) < 0 ||
        (!json_is_utf8(content) && json_stream_text(&out, "contentBase64", content, true, err) < 0))
        return -1;
    doc = json_stream_item(&out, &root);
    add_attributes(arena, doc, root, entry, content.len);
    json_stream_members(&out, doc);
    return json_stream_end(&out, err);
}

static void add_entry(struct arena *arena, yyjson_mut_doc *doc, yyjson_mut_val *object,
                      const char *directory, const struct file_entry *entry)
{
    const char *parent = strcmp(directory, "/") == 0 ? "" : directory;
    add_name(arena, doc, object, arena_printf(arena, "%s/%s", parent, entry->path));
    if (entry->type != FILE_DIRECTORY)
        add_attributes(arena, doc, object, entry, entry->size);
}

const struct file_shape box_file_shape = {add_name, add_entry};
