/* SPDX-License-Identifier: Apache-2.0 */

/* Charts in Scalebox's words: each kind, and what no kernel of ours would say. */

#include "helpers.h"

#include "api/scalebox/chart_json.h"
#include "base/buf.h"
#include "base/cleanup.h"

static const struct {
    const char *from, *to; /* to NULL: it is no chart */
} rows[] = {
    {"{\"type\":\"line\",\"title\":\"T\",\"x_label\":\"x\",\"x_unit\":null,\"y_scale\":\"log\","
     "\"elements\":[{\"label\":\"a\",\"points\":[[1,2.5],[\"Mon\",3],[null],4]}]}",
     "{\"type\":\"line\",\"title\":\"T\",\"elements\":[{\"pointData\":{\"label\":\"a\",\"points\":["
     "{\"xNum\":1.0,\"yNum\":2.5},{\"xStr\":\"Mon\",\"yNum\":3.0},{},{}]}}],"
     "\"extra\":{\"x_label\":\"x\",\"y_scale\":\"log\"}}"},
    {"{\"type\":\"bar\",\"elements\":[{\"label\":\"a\",\"group\":\"g\",\"value\":3}]}",
     "{\"type\":\"bar\",\"elements\":[{\"barData\":{\"label\":\"a\",\"group\":\"g\",\"value\":"
     "\"3\"}}],"
     "\"extra\":{}}"},
    {"{\"type\":\"pie\",\"elements\":[{\"label\":\"a\",\"angle\":90,\"radius\":1,\"min\":4}]}",
     "{\"type\":\"pie\",\"elements\":[{\"pieData\":{\"label\":\"a\",\"angle\":90.0,\"radius\":1.0}}"
     "],"
     "\"extra\":{}}"},
    {"{\"type\":\"box_and_whisker\",\"elements\":[{\"label\":\"a\",\"min\":1,\"first_quartile\":2,"
     "\"median\":3,\"third_quartile\":4,\"max\":5,\"outliers\":[9]}]}",
     "{\"type\":\"box_and_whisker\",\"elements\":[{\"boxWhiskerData\":{\"label\":\"a\",\"min\":1.0,"
     "\"firstQuartile\":2.0,\"median\":3.0,\"thirdQuartile\":4.0,\"max\":5.0,\"outliers\":[9]}}],"
     "\"extra\":{}}"},
    {"{\"type\":\"superchart\",\"elements\":[{\"type\":\"pie\",\"elements\":[]},{\"type\":\"?\"},7]"
     "}",
     "{\"type\":\"superchart\",\"elements\":[{\"nestedChart\":{\"type\":\"pie\",\"elements\":[],"
     "\"extra\":{}}}],\"extra\":{}}"},
    {"{\"type\":\"unknown\",\"elements\":[]}", NULL},
    {"{\"elements\":[]}", NULL},
    {"[]", NULL},
    {"{\"type\":\"line\",\"elements\":7}", "{\"type\":\"line\",\"elements\":[],\"extra\":{}}"},
};

static void test_rows(void **state)
{
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct arena *arena = arena_new();
        struct error err;
        yyjson_val *chart;
        yyjson_mut_doc *doc = json_doc(arena);
        assert_int_equal(json_parse(arena, slice_of(rows[i].from), &chart, &err), 0);
        yyjson_mut_val *told = scalebox_chart_json(doc, chart);
        if (rows[i].to == NULL)
            assert_null(told);
        else {
            assert_non_null(told);
            yyjson_mut_doc_set_root(doc, told);
            assert_string_equal(json_write(arena, doc, false).data, rows[i].to);
        }
        arena_free(arena);
    }
}

/* One inside the other, without end. */
static void test_depth(void **state)
{
    struct arena *arena = arena_new();
    struct error err;
    struct buf text = BUF_INIT(64 * 1024);
    yyjson_val *chart;
    for (int i = 0; i < 20; i++)
        buf_adds(&text, "{\"type\":\"superchart\",\"elements\":[");
    for (int i = 0; i < 20; i++)
        buf_adds(&text, "]}");
    assert_int_equal(json_parse(arena, (struct slice){text.data, text.len}, &chart, &err), 0);
    assert_non_null(scalebox_chart_json(json_doc(arena), chart));
    buf_release(&text);
    arena_free(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_rows), cmocka_unit_test(test_depth)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
