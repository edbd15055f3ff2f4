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

void file_attributes_json(struct arena *arena, yyjson_mut_doc *doc, yyjson_mut_val *object,
                          const struct file_entry *file, size_t size)
{
    add_attributes(arena, doc, object, file, size);
}

/* Regular files have no "type": the seed's shape is theirs. */
static const char *const type_names[] = {
    [FILE_SYMLINK] = "symlink",
    [FILE_OTHER] = "other",
};

static void add_path(struct arena *arena, yyjson_mut_doc *doc, yyjson_mut_val *object,
                     const char *path)
{
    api_add_text(arena, doc, object, "path", "pathBase64", slice_of(path));
}

static void add_entry(struct arena *arena, yyjson_mut_doc *doc, yyjson_mut_val *object,
                      const char *directory, const struct file_entry *item)
{
    const char *parent = strcmp(directory, "/") == 0 ? "" : directory;
    add_path(arena, doc, object, arena_printf(arena, "%s/%s", parent, item->path));
    if (item->type == FILE_DIRECTORY)
        return;
    add_attributes(arena, doc, object, item, item->size);
    if (item->type == FILE_REGULAR)
        return;
    yyjson_mut_obj_add_str(doc, object, "type",
                           type_names[item->type == FILE_SYMLINK ? FILE_SYMLINK : FILE_OTHER]);
    if (item->target != NULL)
        api_add_text(arena, doc, object, "target", "targetBase64", slice_of(item->target));
}

const struct file_shape file_shape = {add_path, add_entry};
