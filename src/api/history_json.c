/* SPDX-License-Identifier: Apache-2.0 */

#include "api/history_json.h"

#include <string.h>

static yyjson_mut_val *lossy(yyjson_mut_doc *doc, struct slice text)
{
    yyjson_mut_val *holder = yyjson_mut_obj(doc);
    json_add_lossy(doc, holder, "text", text);
    return yyjson_mut_obj_get(holder, "text");
}

/* "2025-05-13T10:15:30+00:00" */
static void add_time(struct arena *arena, yyjson_mut_doc *doc, yyjson_mut_val *object, int64_t ms)
{
    char text[TIME_TEXT_SIZE];
    time_rfc3339(ms, text);
    int len = (int)strcspn(text, "Z");
    yyjson_mut_obj_add_str(doc, object, "timestamp", arena_printf(arena, "%.*s+00:00", len, text));
}

void history_files_json(yyjson_mut_doc *doc, yyjson_mut_val *root, const struct slice *files,
                        size_t count, bool cut)
{
    yyjson_mut_val *list = yyjson_mut_obj_add_arr(doc, root, "files");
    for (size_t i = 0; i < count; i++) {
        yyjson_mut_val *text = lossy(doc, files[i]);
        yyjson_mut_arr_append(
            list, yyjson_mut_strncpy(doc, yyjson_mut_get_str(text), yyjson_mut_get_len(text)));
    }
    if (cut)
        yyjson_mut_obj_add_bool(doc, root, "filesTruncated", true);
}

void history_page_json(struct arena *arena, yyjson_mut_doc *doc, yyjson_mut_val *root,
                       const struct history_page *page)
{
    yyjson_mut_val *list = yyjson_mut_obj_add_arr(doc, root, "history");
    for (size_t i = 0; i < page->count; i++) {
        const struct history_commit *commit = &page->commits[i];
        yyjson_mut_val *item = yyjson_mut_arr_add_obj(doc, list);
        yyjson_mut_obj_add_str(doc, item, "id", commit->id);
        yyjson_mut_obj_add_str(doc, item, "commitId", commit->commit);
        add_time(arena, doc, item, commit->time_ms);
        json_add_lossy(doc, item, "message", slice_of(commit->message));
        history_files_json(doc, item, commit->files, commit->file_count, commit->files_cut);
    }
    if (page->more)
        yyjson_mut_obj_add_bool(doc, root, "more", true);
}

void history_diff_json(yyjson_mut_doc *doc, yyjson_mut_val *root, const struct history_diff *diff)
{
    yyjson_mut_val *files = yyjson_mut_obj_add_obj(doc, root, "diff");
    bool cut = diff->cut;
    for (size_t i = 0; i < diff->count; i++) {
        yyjson_mut_val *path = lossy(doc, diff->files[i].path);
        yyjson_mut_val *text = lossy(doc, diff->files[i].text);
        yyjson_mut_obj_add(
            files, yyjson_mut_strncpy(doc, yyjson_mut_get_str(path), yyjson_mut_get_len(path)),
            yyjson_mut_strncpy(doc, yyjson_mut_get_str(text), yyjson_mut_get_len(text)));
        cut |= diff->files[i].cut;
    }
    if (cut)
        yyjson_mut_obj_add_bool(doc, root, "truncated", true);
}
