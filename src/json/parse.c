/* SPDX-License-Identifier: Apache-2.0 */

/*
 * From text to values. yyjson is strict already (no comments, no trailing commas, UTF-8 checked);
 * what it leaves to its users is done here: depth, which is looked at before parsing, so that a
 * megabyte of brackets costs no memory; and duplicate keys, where parsers disagree about which one
 * counts, which is how a request can mean one thing to a proxy and another to us.
 *
 * Memory: strings stay where they are in the arena's copy of the text, and the values, which
 * yyjson keeps in one array with relative offsets, are copied over once their number is known. Its
 * own guess is many times too large for a request that is one long string.
 */

#include "json/json.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/limits.h"

/* Keys of an object up to which comparing all pairs beats sorting. */
enum { FEW_KEYS = 12 };

static int refuse(struct slice text, size_t at, const char *what, struct error *err)
{
    size_t line = 1, column = 1, chars;
    if (at > text.len)
        at = text.len;
    if (text.len > 0)
        yyjson_locate_pos(text.data, text.len, at, &line, &column, &chars);
    return error_set(err, ERROR_INVALID_JSON, "not valid JSON: %s at line %zu, column %zu", what,
                     line, column);
}

/* The quote that ends the string which begins behind `p`, or the end of the text. */
static const char *string_end(const char *p, const char *end)
{
    const char *start = p;
    for (;;) {
        p = memchr(p, '"', (size_t)(end - p));
        if (p == NULL)
            return end;
        size_t backslashes = 0;
        while (p - backslashes > start && p[-1 - (ptrdiff_t)backslashes] == '\\')
            backslashes++;
        if (backslashes % 2 == 0)
            return p;
        p++;
    }
}

/* Depth, and how many values there are at most: each ends with one of these, or with the text. */
static int check_shape(struct slice text, size_t *ret_values, struct error *err)
{
    const char *end = text.data + text.len;
    int depth = 0;
    size_t values = 1;
    for (const char *p = text.data; p < end; p++) {
        if (*p == '"') {
            p = string_end(p + 1, end);
            if (p == end)
                break; /* a string without an end: the parser says so */
        } else if (*p == '[' || *p == '{') {
            if (++depth > JSON_DEPTH_MAX) {
                char what[64];
                snprintf(what, sizeof(what), "more than %d levels deep", JSON_DEPTH_MAX);
                return refuse(text, (size_t)(p - text.data), what, err);
            }
        } else if (*p == ']' || *p == '}') {
            depth--;
        }
        values += *p == ',' || *p == ':' || *p == '[' || *p == '{';
    }
    if (values > JSON_VALUES_MAX)
        return error_set(err, ERROR_PAYLOAD_TOO_LARGE, "the JSON has more than %d values",
                         JSON_VALUES_MAX);
    *ret_values = values;
    return 0;
}

static int compare_keys(const void *a, const void *b)
{
    const yyjson_val *x = *(yyjson_val *const *)a, *y = *(yyjson_val *const *)b;
    size_t x_len = unsafe_yyjson_get_len((void *)x), y_len = unsafe_yyjson_get_len((void *)y);
    if (x_len != y_len)
        return x_len < y_len ? -1 : 1;
    return memcmp(unsafe_yyjson_get_str((void *)x), unsafe_yyjson_get_str((void *)y), x_len);
}

/* A key that was there before, or NULL. */
static yyjson_val *find_duplicate(yyjson_val **keys, size_t n)
{
    if (n > FEW_KEYS) {
        qsort(keys, n, sizeof(*keys), compare_keys);
        for (size_t i = 1; i < n; i++)
            if (compare_keys(&keys[i - 1], &keys[i]) == 0)
                return keys[i - 1] > keys[i] ? keys[i - 1] : keys[i];
        return NULL;
    }
    for (size_t i = 1; i < n; i++)
        for (size_t j = 0; j < i; j++)
            if (compare_keys(&keys[i], &keys[j]) == 0)
                return keys[i];
    return NULL;
}

/* Sets *ret_key to a duplicate key of the object, if it has one. */
static int check_object(yyjson_val *object, yyjson_val **ret_key, struct error *err)
{
    size_t n = yyjson_obj_size(object);
    yyjson_val *few[FEW_KEYS];
    _cleanup_free_ yyjson_val **many = NULL;
    yyjson_val **keys = few;
    if (n > FEW_KEYS) {
        keys = many = calloc(n, sizeof(*many));
        if (many == NULL)
            return error_set(err, ERROR_LIMIT_EXCEEDED, "out of memory");
    }
    yyjson_obj_iter iter = yyjson_obj_iter_with(object);
    for (size_t i = 0; i < n; i++)
        keys[i] = yyjson_obj_iter_next(&iter);
    *ret_key = find_duplicate(keys, n);
    return 0;
}

/* The values of a document follow each other in one array, so that no recursion is needed. Strings
 * begin in the copy where they began in the text. */
static int check_keys(struct slice text, const char *copy, yyjson_val *values, size_t count,
                      struct error *err)
{
    for (size_t i = 0; i < count; i++) {
        yyjson_val *duplicate = NULL;
        if (!yyjson_is_obj(&values[i]))
            continue;
        if (check_object(&values[i], &duplicate, err) < 0)
            return -1;
        if (duplicate != NULL)
            return refuse(text, (size_t)(yyjson_get_str(duplicate) - copy) - 1, "duplicate key",
                          err);
    }
    return 0;
}

int json_parse(struct arena *arena, struct slice text, yyjson_val **ret_root, struct error *err)
{
    if (text.len == 0)
        return refuse(text, 0, "the text is empty", err);
    size_t values_max = 0;
    if (check_shape(text, &values_max, err) < 0 ||
        arena_check(arena, values_max * sizeof(yyjson_val), err) < 0)
        return -1;

    char *copy = arena_alloc(arena, text.len + YYJSON_PADDING_SIZE);
    memcpy(copy, text.data, text.len);
    yyjson_read_err problem;
    yyjson_doc *doc = yyjson_read_opts(copy, text.len, YYJSON_READ_INSITU, NULL, &problem);
    if (doc == NULL)
        return refuse(text, problem.pos, problem.msg, err);

    size_t count = yyjson_doc_get_val_count(doc);
    yyjson_val *values = arena_alloc(arena, count * sizeof(*values));
    memcpy(values, yyjson_doc_get_root(doc), count * sizeof(*values));
    yyjson_doc_free(doc);
    if (check_keys(text, copy, values, count, err) < 0)
        return -1;
    *ret_root = values;
    return 0;
}
