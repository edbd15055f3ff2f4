/* SPDX-License-Identifier: Apache-2.0 */

#include "api/history_json.h"

#include <string.h>

/* "2025-05-13T10:15:30+00:00" */
static void add_time(struct arena *arena, yyjson_mut_doc *doc, yyjson_mut_val *object, int64_t ms)
{
    char text[TIME_TEXT_SIZE];
    time_rfc3339(ms, text);
    int len = (int)strcspn(text, "Z");
    yyjson_mut_obj_add_str(doc, object, "timestamp", arena_printf(arena, "%.*s+00:00", len, text));
}

/* Paths are bytes, and need not be UTF-8. */
static void add_files(yyjson_mut_doc *doc, yyjson_mut_val *root, const struct slice *files,
                      size_t count, bool cut)
{
    yyjson_mut_val *list = yyjson_mut_obj_add_arr(doc, root, "files");
    for (size_t i = 0; i < count; i++)
        yyjson_mut_arr_append(list, json_lossy(doc, files[i]));
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
        add_files(doc, item, commit->files, commit->file_count, commit->files_cut);
    }
    if (page->more)
        yyjson_mut_obj_add_bool(doc, root, "more", true);
}

int history_refused(struct http_exchange *x, const struct error *why)
{
    if (why->code == ERROR_LIMIT_EXCEEDED)
        http_set_header(x, "Retry-After", "1");
    return -1;
}

void history_diff_json(yyjson_mut_doc *doc, yyjson_mut_val *root, const struct history_diff *diff)
{
    yyjson_mut_val *files = yyjson_mut_obj_add_obj(doc, root, "diff");
    bool cut = diff->cut;
    for (size_t i = 0; i < diff->count; i++) {
        yyjson_mut_obj_add(files, json_lossy(doc, diff->files[i].path),
                           json_lossy(doc, diff->files[i].text));
        cut |= diff->files[i].cut;
    }
    if (cut)
        yyjson_mut_obj_add_bool(doc, root, "truncated", true);
}

static void add_left(yyjson_mut_doc *doc, yyjson_mut_val *root, const struct history_rollback *done)
{
    if (done->left_total == 0)
        return;
    yyjson_mut_obj_add_uint(doc, root, "leftAloneCount", done->left_total);
    yyjson_mut_val *left = yyjson_mut_obj_add_arr(doc, root, "leftAlone");
    for (size_t i = 0; i < done->left_count; i++) {
        yyjson_mut_val *file = yyjson_mut_arr_add_obj(doc, left);
        json_add_lossy(doc, file, "path", done->left[i].path);
        json_add_lossy(doc, file, "reason", slice_of(done->left[i].reason));
    }
}

void history_rollback_json(yyjson_mut_doc *doc, yyjson_mut_val *root,
                           const struct history_rollback *done)
{
    yyjson_mut_obj_add_strcpy(doc, root, "id", done->execution);
    yyjson_mut_obj_add_str(doc, root, "executionId", done->target);
    yyjson_mut_obj_add_str(doc, root, "commitId", done->commit);
    if (done->saved != NULL)
        yyjson_mut_obj_add_str(doc, root, "savedAs", done->saved);
    add_left(doc, root, done);
    add_files(doc, root, done->files, done->file_count, done->files_cut);
}
