/* SPDX-License-Identifier: Apache-2.0 */

/*
 * JSON: parsing, reading by table, base64 and UTF-8, each on the same bytes. What is accepted is
 * written out and must be accepted again.
 */

#include "json/json.h"

#include <stdlib.h>

#include "base/cleanup.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct thing {
    const char *text;
    struct slice bytes;
    bool flag;
    int64_t number;
    const char *scalar;
    yyjson_val *object;
    yyjson_val *array;
};

static const struct json_field fields[] = {
    {"t", JSON_STRING, true, offsetof(struct thing, text)},
    {"b", JSON_BYTES, false, offsetof(struct thing, bytes)},
    {"f", JSON_BOOL, false, offsetof(struct thing, flag)},
    {"n", JSON_INT, false, offsetof(struct thing, number), -5, 1000},
    {"s", JSON_SCALAR_TEXT, false, offsetof(struct thing, scalar)},
    {"o", JSON_OBJECT, false, offsetof(struct thing, object)},
    {"a", JSON_ARRAY, false, offsetof(struct thing, array)},
    {"i", JSON_IGNORED},
};

static void require(bool truth)
{
    if (!truth)
        abort();
}

static void check_value(struct arena *arena, yyjson_val *root)
{
    struct error err = {.code = ERROR_NONE};
    struct thing thing = {0};
    if (json_read(arena, root, "x", fields, ARRAY_LEN(fields), &thing, &err) == 0) {
        require(thing.text != NULL && thing.number >= -5 && thing.number <= 1000);
    } else {
        require(err.code == ERROR_INVALID_ARGUMENT || err.code == ERROR_UNKNOWN_FIELD);
        require(json_is_utf8(slice_of(err.message)));
    }
    yyjson_mut_doc *doc = json_doc(arena);
    yyjson_mut_doc_set_root(doc, yyjson_val_mut_copy(doc, root));
    yyjson_val *again;
    require(json_parse(arena, json_write(arena, doc, false), &again, &err) == 0);
    require(yyjson_equals(root, again));
}

static void check_bytes(struct arena *arena, struct slice bytes)
{
    struct slice back;
    require(json_base64_decode(arena, json_base64_encode(arena, bytes), &back, NULL) == 0);
    require(slice_eq(back, bytes));
    json_base64_decode(arena, bytes, &back, NULL);

    yyjson_mut_doc *doc = json_doc(arena);
    yyjson_mut_val *root = yyjson_mut_obj(doc), *raw;
    yyjson_mut_doc_set_root(doc, root);
    require(json_add_lossy(doc, root, "clean", bytes) == !json_is_utf8(bytes));
    raw = yyjson_mut_strncpy(doc, bytes.data, bytes.len);
    yyjson_mut_obj_add_val(doc, root, "raw", raw);
    yyjson_val *again;
    require(json_parse(arena, json_write(arena, doc, true), &again, NULL) == 0);
    require(yyjson_equals(yyjson_obj_get(again, "clean"), yyjson_obj_get(again, "raw")));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena *arena = arena_new();
    struct slice text = {size == 0 ? "" : (const char *)data, size};
    struct error err = {.code = ERROR_NONE};
    yyjson_val *root = NULL;
    if (json_parse(arena, text, &root, &err) == 0)
        check_value(arena, root);
    else
        require(err.code == ERROR_INVALID_JSON && root == NULL);
    check_bytes(arena, text);
    arena_free(arena);
    return 0;
}
