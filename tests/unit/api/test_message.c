/* SPDX-License-Identifier: Apache-2.0 */

/* Fields of protobuf messages in JSON: every spelling that is one, and what is none. */

#include "helpers.h"

#include "api/connect/message.h"
#include "base/cleanup.h"

static yyjson_val *parse(struct arena *arena, const char *text)
{
    yyjson_val *root;
    assert_int_equal(json_parse(arena, slice_of(text), &root, NULL), 0);
    return root;
}

static void test_numbers(void **state)
{
    static const struct {
        const char *json;
        int64_t value; /* -1: refused */
    } rows[] = {
        {"{\"n\":7}", 7},
        {"{\"n\":\"7\"}", 7},
        {"{\"n\":7.0}", 7},
        {"{\"n\":1e2}", 100},
        {"{}", 42},
        {"{\"n\":null}", 42},
        {"{\"n\":-1}", -1},
        {"{\"n\":\"-1\"}", -1},
        {"{\"n\":7.5}", -1},
        {"{\"n\":\"\"}", -1},
        {"{\"n\":\"7 \"}", -1},
        {"{\"n\":\"0x7\"}", -1},
        {"{\"n\":1e300}", -1},
        {"{\"n\":true}", -1},
        {"{\"n\":\"99999999999999999999\"}", -1},
        {"{\"n\":100001}", -1},
        {"{\"n\":[7]}", -1},
        {"{\"n\":\"18446744073709551616\"}", -1},
        {"{\"n\":\"007\"}", 7},
        {"{\"n\":\"100000\"}", 100000},
    };
    struct arena *arena = arena_new();
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        uint64_t value = 42;
        struct error err = {0};
        int rc = message_uint(parse(arena, rows[i].json), "m", "n", 0, 100000, &value, &err);
        assert_int_equal(rc, rows[i].value < 0 ? -1 : 0);
        if (rc == 0)
            assert_int_equal(value, rows[i].value);
        else
            assert_string_equal(err.message, "m.n must be a whole number from 0 to 100000");
    }
    arena_free(arena);
}

static void test_bytes(void **state)
{
    static const struct {
        const char *text, *bytes; /* NULL: refused */
    } rows[] = {
        {"", ""},
        {"aGk=", "hi"},
        {"aGk", "hi"},
        {"+/+/", "\xfb\xff\xbf"},
        {"-_-_", "\xfb\xff\xbf"},
        {"YQ==", "a"},
        {"YQ", "a"},
        {"YQ=", NULL},
        {"Y", NULL},
        {"a b=", NULL},
        {"====", NULL},
        {"YR==", NULL},
        {"YQ==YQ==", NULL},
        {"=", NULL},
        {"aGk==", NULL},
    };
    struct arena *arena = arena_new();
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct slice bytes = {0};
        struct error err = {0};
        yyjson_val *root = parse(arena, arena_printf(arena, "{\"stdin\":\"%s\"}", rows[i].text));
        int rc = message_bytes(arena, root, "input", "stdin", &bytes, &err);
        assert_int_equal(rc, rows[i].bytes == NULL ? -1 : 0);
        if (rc == 0) {
            assert_non_null(bytes.data);
            assert_true(slice_eq(bytes, slice_of(rows[i].bytes)));
        } else {
            assert_int_equal(err.code, ERROR_INVALID_ARGUMENT);
            assert_non_null(strstr(err.message, "input.stdin"));
        }
    }
    arena_free(arena);
}

static void test_names_are_spelt_in_two_ways(void **state)
{
    struct arena *arena = arena_new();
    const char *id = NULL;
    bool flag = false;
    yyjson_val *root = parse(arena, "{\"watcher_id\":\"w\",\"include_entry\":true}");
    assert_int_equal(message_text(root, "", "watcherId", &id, NULL), 0);
    assert_string_equal(id, "w");
    assert_int_equal(message_bool(root, "", "includeEntry", &flag, NULL), 0);
    assert_true(flag);
    assert_int_equal(message_text(NULL, "", "watcherId", &id, NULL), 0);
    assert_int_equal(
        message_text(parse(arena, "{\"watcherId\":\"a\\u0000b\"}"), "", "watcherId", &id, NULL),
        -1);
    arena_free(arena);
}

static void test_enums(void **state)
{
    static const struct message_enum values[] = {{"SIGNAL_SIGTERM", 15}, {"SIGNAL_SIGKILL", 9}};
    static const struct {
        const char *json;
        int value; /* -1: refused */
    } rows[] = {
        {"{\"signal\":\"SIGNAL_SIGKILL\"}", 9},
        {"{\"signal\":15}", 15},
        {"{}", 0},
        {"{\"signal\":\"SIGKILL\"}", -1},
        {"{\"signal\":1}", -1},
        {"{\"signal\":-9}", -1},
        {"{\"signal\":{}}", -1},
    };
    struct arena *arena = arena_new();
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        int value = 0;
        struct error err = {0};
        int rc = message_enum(parse(arena, rows[i].json), "", "signal", values, ARRAY_LEN(values),
                              &value, &err);
        assert_int_equal(rc, rows[i].value < 0 ? -1 : 0);
        if (rc == 0)
            assert_int_equal(value, rows[i].value);
        else
            assert_string_equal(err.message, "signal must be SIGNAL_SIGTERM or SIGNAL_SIGKILL");
    }
    arena_free(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_bytes),
        cmocka_unit_test(test_names_are_spelt_in_two_ways),
        cmocka_unit_test(test_enums),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
