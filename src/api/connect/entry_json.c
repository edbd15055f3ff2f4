/* SPDX-License-Identifier: Apache-2.0 */

/* EntryInfo, as protobuf's JSON writes it: 64-bit numbers are strings, defaults are left out. */

#include <inttypes.h>
#include <string.h>

#include "api/call.h"
#include "api/connect/box.h"
#include "base/cleanup.h"

static const struct {
    uint64_t type;
    const char *name;
    char letter;
} types[] = {
    {FILE_REGULAR, "FILE_TYPE_FILE", '-'},
    {FILE_DIRECTORY, "FILE_TYPE_DIRECTORY", 'd'},
    {FILE_SYMLINK, "FILE_TYPE_SYMLINK", 'L'},
};

/* "-rw-r--r--", as Go's FileMode says it. */
static void permissions_text(uint64_t type, uint64_t mode, char out[11])
{
    static const char letters[] = "rwxrwxrwx";
    out[0] = '-';
    for (size_t i = 0; i < ARRAY_LEN(types); i++)
        if (types[i].type == type)
            out[0] = types[i].letter;
    for (size_t i = 0; i < 9; i++)
        out[i + 1] = (mode & (0400u >> i)) != 0 ? letters[i] : '-';
    out[10] = '\0';
}

void connect_add_metadata(yyjson_mut_doc *doc, yyjson_mut_val *object, struct slice attributes,
                          const char *prefix)
{
    yyjson_mut_val *metadata = NULL;
    size_t skip = prefix == NULL ? 0 : strlen(prefix);
    strv_each (item, attributes) {
        const char *equals = strchr(item, '=');
        if (equals == NULL || strncmp(item, prefix, skip) != 0)
            continue;
        struct slice name = {item + skip, (size_t)(equals - item) - skip};
        struct slice value = slice_of(equals + 1);
        if (!json_is_utf8(name) || !json_is_utf8(value))
            continue;
        if (metadata == NULL)
            metadata = yyjson_mut_obj_add_obj(doc, object, "metadata");
        yyjson_mut_obj_add(metadata, yyjson_mut_strncpy(doc, name.data, name.len),
                           yyjson_mut_strncpy(doc, value.data, value.len));
    }
}

yyjson_mut_val *connect_entry_json(struct arena *arena, yyjson_mut_doc *doc, const char *path,
                                   const struct file_entry *entry, const char *attributes)
{
    yyjson_mut_val *object = yyjson_mut_obj(doc);
    const char *slash = strrchr(path, '/');
    char permissions[11], time[TIME_TEXT_SIZE];
    json_add_lossy(doc, object, "name",
                   slice_of(slash == NULL || slash[1] == '\0' ? path : slash + 1));
    for (size_t i = 0; i < ARRAY_LEN(types); i++)
        if (types[i].type == entry->type)
            yyjson_mut_obj_add_str(doc, object, "type", types[i].name);
    json_add_lossy(doc, object, "path", slice_of(path));
    yyjson_mut_obj_add_str(doc, object, "size", arena_printf(arena, "%" PRIu64, entry->size));
    yyjson_mut_obj_add_uint(doc, object, "mode", entry->mode);
    permissions_text(entry->type, entry->mode, permissions);
    yyjson_mut_obj_add_strcpy(doc, object, "permissions", permissions);
    json_add_lossy(doc, object, "owner", slice_of(entry->owner));
    json_add_lossy(doc, object, "group", slice_of(entry->group));
    time_rfc3339((int64_t)(entry->mtime_ms < API_TIME_MAX ? entry->mtime_ms : API_TIME_MAX), time);
    yyjson_mut_obj_add_strcpy(doc, object, "modifiedTime", time);
    if (entry->target != NULL)
        json_add_lossy(doc, object, "symlinkTarget", slice_of(entry->target));
    connect_add_metadata(doc, object, entry->attributes, attributes);
    return object;
}
