/* SPDX-License-Identifier: Apache-2.0 */

/* Output and results of code as JSON says them. All of it comes from an interpreter that anything
 * may have happened to. */

#include "api/code_json.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

struct slice code_text_add(struct code_text *text, struct arena *arena, struct slice data)
{
    if (text->cut_len > 0) {
        char *joined = arena_alloc(arena, text->cut_len + data.len + 1);
        memcpy(joined, text->cut, text->cut_len);
        if (data.len > 0)
            memcpy(joined + text->cut_len, data.data, data.len);
        data = (struct slice){joined, text->cut_len + data.len};
    }
    size_t cut = json_utf8_tail(data);
    data.len -= cut;
    if (cut > 0)
        memcpy(text->cut, data.data + data.len, cut);
    text->cut_len = (unsigned char)cut;
    return data;
}

struct slice code_text_end(struct code_text *text)
{
    struct slice rest = {text->cut, text->cut_len};
    text->cut_len = 0;
    return rest;
}

static bool has_member(const char *format)
{
    static const char *const names[] = {"text", "html",  "markdown", "svg",        "png",  "jpeg",
                                        "pdf",  "latex", "json",     "javascript", "data", "chart"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (strcmp(names[i], format) == 0)
            return true;
    return false;
}

/* JSON as the text that it is, in one line: its values would take many times as much memory, of
 * which an interpreter could make us need any amount. NULL when it is none. */
static yyjson_mut_val *json_value(yyjson_mut_doc *doc, struct slice text)
{
    struct arena *arena = arena_new();
    yyjson_val *parsed;
    size_t len = 0;
    _cleanup_free_ char *line = json_parse(arena, text, &parsed, NULL) == 0
                                    ? yyjson_val_write(parsed, YYJSON_WRITE_NOFLAG, &len)
                                    : NULL;
    arena_free(arena);
    return line == NULL ? NULL : yyjson_mut_rawncpy(doc, line, len);
}

void code_items_json(yyjson_mut_doc *doc, yyjson_mut_val *object, const struct code_event *event)
{
    yyjson_mut_val *extra = NULL;
    for (size_t i = 0; i < event->item_count; i++) {
        const struct code_item *item = &event->items[i];
        yyjson_mut_val *to = object;
        if (!has_member(item->format)) {
            if (extra == NULL)
                extra = yyjson_mut_obj_add_obj(doc, object, "extra");
            to = extra;
        }
        yyjson_mut_val *key = yyjson_mut_strcpy(doc, item->format);
        if (yyjson_mut_obj_getn(to, item->format, strlen(item->format)) != NULL)
            continue; /* said before */
        yyjson_mut_val *value = item->is_json ? json_value(doc, item->value) : NULL;
        if (value != NULL)
            yyjson_mut_obj_add(to, key, value);
        else
            json_add_lossy(doc, to, yyjson_mut_get_str(key), item->value);
    }
}
