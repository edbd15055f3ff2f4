/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* cmocka wants its own headers in this order, after these. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/arena.h"
#include "json/json.h"

/* An arena for each test. */
static inline int arena_setup(void **state)
{
    *state = arena_new();
    return 0;
}

static inline int arena_teardown(void **state)
{
    arena_free(*state);
    return 0;
}

#define api_test(function) cmocka_unit_test_setup_teardown(function, arena_setup, arena_teardown)

/* The text of a root object, and the value that some text stands for. */
static inline const char *text_of(struct arena *arena, yyjson_mut_doc *doc, yyjson_mut_val *root)
{
    yyjson_mut_doc_set_root(doc, root);
    return json_write(arena, doc, false).data;
}

static inline yyjson_val *value_of(struct arena *arena, const char *text)
{
    yyjson_val *root = NULL;
    struct error err;
    assert_int_equal(json_parse(arena, slice_of(text), &root, &err), 0);
    return root;
}
