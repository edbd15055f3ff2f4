/* SPDX-License-Identifier: Apache-2.0 */

#include "json/json.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/cleanup.h"

struct thing {
    const char *name;
    struct slice content;
    bool enabled;
    int64_t count;
    int64_t port;
    yyjson_val *object;
    yyjson_val *array;
    yyjson_val *any;
    const char *cpu;
};

static const struct json_field fields[] = {
    {"name", JSON_STRING, true, offsetof(struct thing, name)},
    {"content", JSON_BYTES, false, offsetof(struct thing, content)},
    {"enabled", JSON_BOOL, false, offsetof(struct thing, enabled)},
    {"count", JSON_INT, false, offsetof(struct thing, count)},
    {"port", JSON_INT, false, offsetof(struct thing, port), 1, 65535},
    {"object", JSON_OBJECT, false, offsetof(struct thing, object)},
    {"array", JSON_ARRAY, false, offsetof(struct thing, array)},
    {"any", JSON_ANY, false, offsetof(struct thing, any)},
    {"cpu", JSON_SCALAR_TEXT, false, offsetof(struct thing, cpu)},
    {"legacy", JSON_IGNORED},
};

static int setup(void **state)
{
    *state = arena_new();
    return 0;
}

static int teardown(void **state)
{
    arena_free(*state);
    return 0;
}

static int read_thing(struct arena *arena, const char *text, const char *where, struct thing *thing,
                      struct error *err)
{
    yyjson_val *root;
    if (json_parse(arena, slice_of(text), &root, err) < 0)
        fail_msg("%s: %s", text, err->message);
    return json_read(arena, root, where, fields, ARRAY_LEN(fields), thing, err);
}

static void test_all_kinds(void **state)
{
    struct thing thing = {0};
    struct error err = {0};
    assert_int_equal(read_thing(*state,
                                "{\"name\":\"n\",\"content\":\"a\\u0000b\",\"enabled\":true,"
                                "\"count\":-5,\"port\":80,\"object\":{\"a\":1},\"array\":[1,2],"
                                "\"any\":7,\"cpu\":\"500m\",\"legacy\":[{}]}",
                                "", &thing, &err),
                     0);
    assert_string_equal(thing.name, "n");
    assert_int_equal(thing.content.len, 3);
    assert_memory_equal(thing.content.data, "a\0b", 3);
    assert_true(thing.enabled);
    assert_int_equal(thing.count, -5);
    assert_int_equal(thing.port, 80);
    assert_int_equal(yyjson_obj_size(thing.object), 1);
    assert_int_equal(yyjson_arr_size(thing.array), 2);
    assert_int_equal(yyjson_get_int(thing.any), 7);
    assert_string_equal(thing.cpu, "500m");
}

static void test_absent_is_untouched(void **state)
{
    struct thing thing = {.enabled = true, .count = 42, .cpu = "1", .name = "old"};
    struct error err = {0};
    assert_int_equal(
        read_thing(*state, "{\"name\":\"n\",\"enabled\":null,\"cpu\":null}", "", &thing, &err), 0);
    assert_true(thing.enabled);
    assert_int_equal(thing.count, 42);
    assert_string_equal(thing.cpu, "1");
    assert_null(thing.any);
}

static void test_scalar_text(void **state)
{
    static const struct {
        const char *json;
        const char *text;
    } rows[] = {
        {"1", "1"},
        {"0.5", "0.5"},
        {"-3", "-3"},
        {"2.50", "2.5"},
        {"\"1\"", "1"},
        {"\"\"", ""},
        {"18446744073709551615", "18446744073709551615"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char text[96];
        struct thing thing = {0};
        struct error err = {0};
        snprintf(text, sizeof(text), "{\"name\":\"\",\"cpu\":%s}", rows[i].json);
        assert_int_equal(read_thing(*state, text, "", &thing, &err), 0);
        assert_string_equal(thing.cpu, rows[i].text);
    }
}

static void test_whole_numbers(void **state)
{
    static const struct {
        const char *json;
        int64_t value;
    } rows[] = {
        {"0", 0},
        {"3.0", 3},
        {"1e3", 1000},
        {"-0.0", 0},
        {"9223372036854775807", INT64_MAX},
        {"-9223372036854775808", INT64_MIN},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char text[96];
        struct thing thing = {0};
        struct error err = {0};
        snprintf(text, sizeof(text), "{\"name\":\"\",\"count\":%s}", rows[i].json);
        assert_int_equal(read_thing(*state, text, "", &thing, &err), 0);
        assert_true(thing.count == rows[i].value);
    }
}

static void test_messages(void **state)
{
    static const struct {
        const char *json;
        const char *where;
        enum error_code code;
        const char *message;
    } rows[] = {
        {"[]", "", ERROR_INVALID_ARGUMENT, "the body must be an object, not an array"},
        {"1", "spec", ERROR_INVALID_ARGUMENT, "spec must be an object, not a number"},
        {"{}", "", ERROR_INVALID_ARGUMENT, "name is required"},
        {"{\"name\":null}", "spec", ERROR_INVALID_ARGUMENT, "spec.name is required"},
        {"{\"name\":1}", "", ERROR_INVALID_ARGUMENT, "name must be a string, not a number"},
        {"{\"name\":\"a\\u0000\"}", "", ERROR_INVALID_ARGUMENT,
         "name must be a string without NUL characters, not one with"},
        {"{\"content\":{}}", "", ERROR_INVALID_ARGUMENT, "content must be a string, not an object"},
        {"{\"cpu\":[]}", "spec.resources", ERROR_INVALID_ARGUMENT,
         "spec.resources.cpu must be a string or a number, not an array"},
        {"{\"cpu\":\"\\u0000\"}", "", ERROR_INVALID_ARGUMENT,
         "cpu must be a string without NUL characters, not one with"},
        {"{\"enabled\":\"true\"}", "", ERROR_INVALID_ARGUMENT,
         "enabled must be true or false, not a string"},
        {"{\"count\":1.5}", "", ERROR_INVALID_ARGUMENT, "count must be a whole number, not 1.5"},
        {"{\"count\":\"1\"}", "", ERROR_INVALID_ARGUMENT,
         "count must be a whole number, not a string"},
        {"{\"count\":9223372036854775808}", "", ERROR_INVALID_ARGUMENT,
         "count must be a whole number, not 9223372036854775808"},
        {"{\"count\":1e300}", "", ERROR_INVALID_ARGUMENT,
         "count must be a whole number, not 1e300"},
        {"{\"port\":0}", "", ERROR_INVALID_ARGUMENT,
         "port must be a whole number from 1 to 65535, not 0"},
        {"{\"port\":65536}", "", ERROR_INVALID_ARGUMENT,
         "port must be a whole number from 1 to 65535, not 65536"},
        {"{\"object\":[]}", "", ERROR_INVALID_ARGUMENT, "object must be an object, not an array"},
        {"{\"array\":true}", "", ERROR_INVALID_ARGUMENT, "array must be an array, not a boolean"},
        {"{\"foo\":1}", "spec", ERROR_UNKNOWN_FIELD,
         "unknown field \"foo\" in spec; known: name, content, enabled, count, port, object, "
         "array, "
         "any, cpu"},
        {"{\"Name\":\"a\"}", "", ERROR_UNKNOWN_FIELD,
         "unknown field \"Name\"; known: name, content, enabled, count, port, object, array, any, "
         "cpu"},
        {"{\"foo\":null}", "", ERROR_UNKNOWN_FIELD,
         "unknown field \"foo\"; known: name, content, enabled, count, port, object, array, any, "
         "cpu"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct thing thing = {0};
        struct error err = {0};
        assert_int_equal(read_thing(*state, rows[i].json, rows[i].where, &thing, &err), -1);
        assert_string_equal(err.message, rows[i].message);
        assert_int_equal(err.code, rows[i].code);
    }
}

static void test_odd_keys(void **state)
{
    struct thing thing = {0};
    struct error err = {0};
    /* A name that only begins like a known one. */
    assert_int_equal(read_thing(*state, "{\"name\\u0000\":\"a\"}", "", &thing, &err), -1);
    assert_int_equal(err.code, ERROR_UNKNOWN_FIELD);
    /* A long one is cut between characters. */
    assert_int_equal(read_thing(*state,
                                "{\"xüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüü\":1}", "",
                                &thing, &err),
                     -1);
    assert_true(json_is_utf8(slice_of(err.message)));
    assert_non_null(strstr(err.message, "üü…\"; known: name"));
}

static void test_nothing_to_read(void **state)
{
    struct error err = {0};
    int none;
    assert_int_equal(json_read(*state, NULL, "", NULL, 0, &none, &err), -1);
    assert_string_equal(err.message, "the body must be an object, not nothing");
    yyjson_val *root;
    assert_int_equal(json_parse(*state, slice_of("{\"a\":1}"), &root, &err), 0);
    assert_int_equal(json_read(*state, root, "", NULL, 0, &none, &err), -1);
    assert_string_equal(err.message, "unknown field \"a\"; known: none");
}

int main(void)
{
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_all_kinds),       TEST(test_absent_is_untouched),
        TEST(test_scalar_text),     TEST(test_whole_numbers),
        TEST(test_messages),        TEST(test_odd_keys),
        TEST(test_nothing_to_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
