/* SPDX-License-Identifier: Apache-2.0 */

/* What stays below a root, and what does not. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "api/paths.h"
#include "base/cleanup.h"

static void test_below(void **state)
{
    static const struct {
        const char *root, *path, *want;
    } rows[] = {
        {"/a", "b", "/a/b"}, {"/a", "b/../c", "/a/c"}, {"/a", "../b", NULL}, {"/a", "/a/b", "/a/b"},
        {"/a", "/ab", NULL}, {"/a", "/b", NULL},       {"/", "x", "/x"},     {"/", "/x/y", "/x/y"},
        {"/a", "", "/a"},    {"/a", "../a/b", "/a/b"}, {"/", "..", NULL},
    };
    struct arena *arena = arena_new();
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const char *path = NULL;
        struct error err;
        int rc = api_path_below(arena, rows[i].root, rows[i].path, &path, &err);
        assert_int_equal(rc, rows[i].want == NULL ? -1 : 0);
        if (rows[i].want != NULL)
            assert_string_equal(path, rows[i].want);
    }
    arena_free(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_below),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
