/* SPDX-License-Identifier: Apache-2.0 */

/* Elements are named by what their chart is; numbers, texts and axes find their places by tables.
 */

#include "api/scalebox/chart_json.h"

#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"

enum { NESTED_MAX = 8, NUMBER_SIZE = 32 };

enum shape { POINTS, BAR, PIE, BOX, NESTED };

static const struct {
    const char *type;
    enum shape shape;
} types[] = {
    {"line", POINTS}, {"scatter", POINTS},      {"bar", BAR},
    {"pie", PIE},     {"box_and_whisker", BOX}, {"superchart", NESTED},
};

static const char *const members[] = {
    [POINTS] = "pointData",   [BAR] = "barData",        [PIE] = "pieData",
    [BOX] = "boxWhiskerData", [NESTED] = "nestedChart",
};

/* What the axes are called: text in a map. */
static const char *const extras[] = {"x_label", "y_label", "x_unit",
                                     "y_unit",  "x_scale", "y_scale"};

/* Numbers of a piece of pie, and of a box; by their names here and there. */
static const struct {
    enum shape shape;
    const char *from, *to;
} numbers[] = {
    {PIE, "angle", "angle"},   {PIE, "radius", "radius"},
    {BOX, "min", "min"},       {BOX, "first_quartile", "firstQuartile"},
    {BOX, "median", "median"}, {BOX, "third_quartile", "thirdQuartile"},
    {BOX, "max", "max"},
};

static void add_text(yyjson_mut_doc *doc, yyjson_mut_val *to, const char *key, yyjson_val *value)
{
    char number[NUMBER_SIZE];
    if (yyjson_is_str(value))
        yyjson_mut_obj_add_strncpy(doc, to, key, yyjson_get_str(value), yyjson_get_len(value));
    else if (yyjson_is_num(value)) {
        snprintf(number, sizeof(number), "%.15g", yyjson_get_num(value));
        yyjson_mut_obj_add_strcpy(doc, to, key, number);
    }
}

/* One coordinate: a number, or the text of a category or a date. */
static void add_coordinate(yyjson_mut_doc *doc, yyjson_mut_val *point, yyjson_val *value,
                           const char *as_number, const char *as_text)
{
    if (yyjson_is_num(value))
        yyjson_mut_obj_add_real(doc, point, as_number, yyjson_get_num(value));
    else
        add_text(doc, point, as_text, value);
}

static void add_points(yyjson_mut_doc *doc, yyjson_mut_val *to, yyjson_val *points)
{
    yyjson_mut_val *list = yyjson_mut_obj_add_arr(doc, to, "points");
    size_t index, max;
    yyjson_val *point;
    yyjson_arr_foreach(points, index, max, point)
    {
        yyjson_mut_val *item = yyjson_mut_arr_add_obj(doc, list);
        add_coordinate(doc, item, yyjson_arr_get(point, 0), "xNum", "xStr");
        add_coordinate(doc, item, yyjson_arr_get(point, 1), "yNum", "yStr");
    }
}

static void add_numbers(yyjson_mut_doc *doc, yyjson_mut_val *to, yyjson_val *element,
                        enum shape shape)
{
    for (size_t i = 0; i < ARRAY_LEN(numbers); i++) {
        yyjson_val *value = yyjson_obj_get(element, numbers[i].from);
        if (numbers[i].shape == shape && yyjson_is_num(value))
            yyjson_mut_obj_add_real(doc, to, numbers[i].to, yyjson_get_num(value));
    }
    yyjson_val *outliers = yyjson_obj_get(element, "outliers");
    if (shape == BOX && yyjson_is_arr(outliers))
        yyjson_mut_obj_add_val(doc, to, "outliers", yyjson_val_mut_copy(doc, outliers));
}

static yyjson_mut_val *chart_json(yyjson_mut_doc *doc, yyjson_val *chart, unsigned depth);

static yyjson_mut_val *element_json(yyjson_mut_doc *doc, yyjson_val *element, enum shape shape,
                                    unsigned depth)
{
    yyjson_mut_val *to =
        shape == NESTED ? chart_json(doc, element, depth + 1) : yyjson_mut_obj(doc);
    if (to == NULL || shape == NESTED)
        return to;
    add_text(doc, to, "label", yyjson_obj_get(element, "label"));
    if (shape == POINTS)
        add_points(doc, to, yyjson_obj_get(element, "points"));
    if (shape == BAR) {
        add_text(doc, to, "group", yyjson_obj_get(element, "group"));
        add_text(doc, to, "value", yyjson_obj_get(element, "value"));
    }
    add_numbers(doc, to, element, shape);
    return to;
}

static yyjson_mut_val *chart_json(yyjson_mut_doc *doc, yyjson_val *chart, unsigned depth)
{
    const char *type = yyjson_get_str(yyjson_obj_get(chart, "type"));
    size_t row = 0, index, max;
    yyjson_val *element;
    while (type != NULL && row < ARRAY_LEN(types) && strcmp(types[row].type, type) != 0)
        row++;
    if (type == NULL || row == ARRAY_LEN(types) || depth == NESTED_MAX)
        return NULL;
    yyjson_mut_val *object = yyjson_mut_obj(doc);
    yyjson_mut_obj_add_str(doc, object, "type", types[row].type);
    add_text(doc, object, "title", yyjson_obj_get(chart, "title"));
    yyjson_mut_val *elements = yyjson_mut_obj_add_arr(doc, object, "elements");
    yyjson_arr_foreach(yyjson_obj_get(chart, "elements"), index, max, element)
    {
        yyjson_mut_val *told = element_json(doc, element, types[row].shape, depth);
        if (told != NULL)
            yyjson_mut_obj_add_val(doc, yyjson_mut_arr_add_obj(doc, elements),
                                   members[types[row].shape], told);
    }
    yyjson_mut_val *extra = yyjson_mut_obj_add_obj(doc, object, "extra");
    for (size_t i = 0; i < ARRAY_LEN(extras); i++)
        add_text(doc, extra, extras[i], yyjson_obj_get(chart, extras[i]));
    return object;
}

yyjson_mut_val *scalebox_chart_json(yyjson_mut_doc *doc, yyjson_val *chart)
{
    return chart_json(doc, chart, 0);
}
