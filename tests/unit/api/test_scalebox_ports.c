/* SPDX-License-Identifier: Apache-2.0 */

#include "helpers.h"

#include <string.h>

#include "api/scalebox/contexts.h"
#include "api/scalebox/ports.h"
#include "base/cleanup.h"

static int read_one(struct arena *arena, const char *text, struct scalebox_port *port,
                    struct error *err)
{
    yyjson_val *root;
    assert_int_equal(json_parse(arena, slice_of(text), &root, NULL), 0);
    return scalebox_port_from_json(arena, root, "port", port, err);
}

static void test_one(void **state)
{
    static const struct {
        const char *text;
        unsigned port; /* 0: refused */
        const char *words;
    } rows[] = {
        {"{\"port\": 80, \"name\": \"web\"}", 80, "web"},
        {"{\"port\": 65535}", 65535, "port-65535"},
        {"{\"port\": 1, \"name\": \"\"}", 1, "port-1"},
        {"{\"port\": 80, \"protocol\": \"tcp\", \"service_port\": 80, \"is_protected\": false}", 80,
         "port-80"},
        {"[]", 0, "object"},
        {"{}", 0, "port.port"},
        {"{\"port\": 0}", 0, "port.port"},
        {"{\"port\": 65536}", 0, "port.port"},
        {"{\"port\": \"80\"}", 0, "port.port"},
        {"{\"port\": 80, \"name\": 7}", 0, "port.name"},
        {"{\"port\": 80, \"protocol\": \"UDP\"}", 0, "UDP"},
        {"{\"port\": 80, \"service_port\": 81}", 0, "service_port"},
        {"{\"port\": 80, \"is_protected\": true}", 0, "is_protected"},
    };
    struct arena *arena = arena_new();
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct scalebox_port port = {0};
        struct error err = {0};
        int rc = read_one(arena, rows[i].text, &port, &err);
        assert_int_equal(rc, rows[i].port == 0 ? -1 : 0);
        assert_int_equal(port.port, rows[i].port);
        assert_non_null(strstr(rc == 0 ? port.name : err.message, rows[i].words));
    }
    arena_free(arena);
}

static void test_they_are_kept(void **state)
{
    struct arena *arena = arena_new();
    struct scalebox_ports ports = {0}, back;
    struct e2b_spec spec = {.template_id = "base"}, read;
    struct error err = {0};
    for (unsigned i = 1; i <= SCALEBOX_PORTS_MAX; i++) {
        const struct scalebox_port port = {(uint16_t)i, "\"quoted\""};
        assert_int_equal(scalebox_ports_add(&ports, &port, &err), 0);
    }
    const struct scalebox_port twice = {1, "x"}, more = {1000, "x"};
    assert_int_equal(scalebox_ports_add(&ports, &twice, &err), -1);
    assert_int_equal(err.code, ERROR_ALREADY_EXISTS);
    assert_int_equal(scalebox_ports_add(&ports, &more, &err), -1);
    assert_int_equal(err.code, ERROR_LIMIT_EXCEEDED);
    scalebox_ports_keep(arena, &ports, &spec);
    e2b_spec_read(arena, e2b_spec_text(arena, &spec), &read);
    scalebox_ports_read(&read, &back);
    assert_int_equal(back.count, SCALEBOX_PORTS_MAX);
    assert_int_equal(back.items[31].port, 32);
    assert_string_equal(back.items[31].name, "\"quoted\"");
    /* Text that somebody has tampered with. */
    e2b_spec_read(arena, "{\"ports\": [7, {}, {\"port\": 70000, \"name\": \"x\"}, {\"port\": 5}]}",
                  &read);
    scalebox_ports_read(&read, &back);
    assert_int_equal(back.count, 0);
    e2b_spec_read(arena, "{\"ports\": \"none\"}", &read);
    scalebox_ports_read(&read, &back);
    assert_int_equal(back.count, 0);
    arena_free(arena);
}

static void test_ids_of_contexts(void **state)
{
    static const struct {
        const char *id, *plain;
    } rows[] = {
        {"sb-abc", "sb-abc"},  {"box1.sb-abc", "sb-abc"},
        {"box2.sb-abc", NULL}, {"box.sb-abc", NULL},
        {".sb-abc", NULL},     {"box1.", ""},
        {"box1.a.b", "a.b"},   {"", ""},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct error err = {0};
        const char *plain = NULL;
        int rc = scalebox_context_id("box1", rows[i].id, &plain, &err);
        assert_int_equal(rc, rows[i].plain == NULL ? -1 : 0);
        if (rc == 0)
            assert_string_equal(plain, rows[i].plain);
        else
            assert_int_equal(err.code, ERROR_CODE_CONTEXT_NOT_FOUND);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one),
        cmocka_unit_test(test_they_are_kept),
        cmocka_unit_test(test_ids_of_contexts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
