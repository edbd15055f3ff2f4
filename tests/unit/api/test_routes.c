/* SPDX-License-Identifier: Apache-2.0 */

/* The route table against the names that workspaces cannot have, and what its rows may say. */

#include "helpers.h"

#include <stdio.h>

#include "api/dialect.h"
#include "api/route_class.h"
#include "auth/auth.h"
#include "auth/workspaces.h"
#include "base/names.h"

#define each_route(route)                                                                          \
    for (size_t d_ = 0; d_ < dialect_count; d_++)                                                  \
        for (const struct route *route = dialects[d_]->routes;                                     \
             route < dialects[d_]->routes + *dialects[d_]->count; route++)

/* "v0" of "/v0/sandbox". */
static void first_segment(const char *path, char out[64])
{
    snprintf(out, 64, "%.*s", (int)strcspn(path + 1, "/"), path + 1);
}

static void test_first_segments_are_reserved(void **state)
{
    size_t literal = 0;
    each_route(route)
    {
        char first[64];
        first_segment(route->path, first);
        if (first[0] == '{' || name_check(first, NULL) < 0)
            continue;
        literal++;
        if (!workspace_is_reserved(first))
            fail_msg("%s: \"%s\" has to be among the reserved names of auth/workspaces.c",
                     route->path, first);
    }
    assert_true(literal > 10);
}

/* A parameter in the first place is the workspace, and called so, or nobody would check it. */
static void test_leading_parameters_are_workspaces(void **state)
{
    each_route(route)
    {
        char first[64];
        first_segment(route->path, first);
        if (first[0] == '{')
            assert_string_equal(first, "{workspace}");
    }
}

static void test_every_row_says_who_may(void **state)
{
    const unsigned known = SCOPE_ALL | SCOPE_PUBLIC | ROUTE_TOKEN_IN_QUERY | ROUTE_FORWARDS |
                           ROUTE_INSIDE | ROUTE_NAMED_IN_BODY | ROUTE_OF_CALLER |
                           (15u << ROUTE_CLASS_SHIFT);
    each_route(route)
    {
        unsigned scope = route->scope;
        if ((scope & (SCOPE_ALL | SCOPE_PUBLIC)) == 0 || (scope & ~known) != 0)
            fail_msg("%s %s: scope %#x", route->method, route->path, scope);
        assert_true(route_class(route) < ROUTE_CLASS_COUNT);
        /* Which sandbox a row is inside of is known by its {name}, or else it says that its body
         * has it; public rows know no caller. */
        bool in_path = strstr(route->path, "/{name}") != NULL;
        bool in_body = (scope & ROUTE_NAMED_IN_BODY) != 0;
        if ((scope & ROUTE_INSIDE) != 0 && (in_path == in_body || (scope & SCOPE_PUBLIC) != 0))
            fail_msg("%s %s: inside of what?", route->method, route->path);
        if (in_body && (scope & ROUTE_INSIDE) == 0)
            fail_msg("%s %s: who looks at the name?", route->method, route->path);
    }
}

/* What is counted as reading must not change anything. */
static void test_classes(void **state)
{
    each_route(route)
    {
        bool reads = strcmp(route->method, "GET") == 0;
        if (!reads && route_class(route) == ROUTE_CLASS_READ)
            fail_msg("%s %s is of class read", route->method, route->path);
    }
    assert_int_equal(route_class(NULL), ROUTE_CLASS_READ);
    assert_int_equal(route_class_parse(slice_of("exec")), ROUTE_CLASS_EXEC);
    assert_int_equal(route_class_parse(slice_of("exe")), ROUTE_CLASS_COUNT);
    assert_string_equal(route_class_name(ROUTE_CLASS_FREE), "free");
}

/* What is never limited is the server's own, and asks nothing of a sandbox. */
static void test_nothing_of_a_sandbox_is_free(void **state)
{
    size_t free_rows = 0;
    for (size_t d = 0; d < dialect_count; d++)
        for (size_t i = 0; i < *dialects[d]->count; i++) {
            const struct route *route = &dialects[d]->routes[i];
            if (route_class(route) != ROUTE_CLASS_FREE)
                continue;
            free_rows++;
            if (dialects[d] != &dialect_cella || strchr(route->path, '{') != NULL)
                fail_msg("%s of %s is never limited", route->path, dialects[d]->name);
        }
    assert_int_equal(free_rows, 3);
}

static void test_default_is_no_reserved_name(void **state)
{
    assert_false(workspace_is_reserved("default"));
    assert_true(workspace_is_reserved("default-workspace"));
    assert_string_equal(workspace_canonical("default-workspace"), "default");
    assert_string_equal(workspace_canonical("blue"), "blue");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_first_segments_are_reserved),
        cmocka_unit_test(test_leading_parameters_are_workspaces),
        cmocka_unit_test(test_every_row_says_who_may),
        cmocka_unit_test(test_classes),
        cmocka_unit_test(test_nothing_of_a_sandbox_is_free),
        cmocka_unit_test(test_default_is_no_reserved_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
