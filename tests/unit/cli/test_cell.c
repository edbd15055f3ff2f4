/* SPDX-License-Identifier: Apache-2.0 */

/* When a piece of code is whole. */

#include "cmocka_all.h"

#include "base/cleanup.h"
#include "cli/cell.h"

static const struct {
    const char *language, *code;
    bool more;
} rows[] = {
    {"python", "", false},
    {"python", "1\n", false},
    {"python", "f(\n", true},
    {"python", "f('(')\n", false},
    {"python", "f(1, # )\n", true},
    {"python", "x = '''a\n", true},
    {"python", "x = '''a\nb'''\n", false},
    {"python", "x = 'a\n", false},
    {"python", "if x:\n", true},
    {"python", "if x:\n    y\n", true},
    {"python", "if x:\n    y\n\n", false},
    {"python", "if x: # why\n", true},
    {"python", "@d\n", true},
    {"python", "x = 1 + \\\n", true},
    {"python", "x = {'a': 1}\n", false},
    {"py", "def f():\n", true},
    {"javascript", "if (x) {\n", true},
    {"javascript", "if (x) {\n}\n", false},
    {"javascript", "`a\n", true},
    {"javascript", "/* {\n", true},
    {"javascript", "/* { */ 1 // {\n", false},
    {"ts", "const a = [\n", true},
    {"java", "int f() {\n", true},
    {"r", "x <-\n", true},
    {"r", "x <- 1\n", false},
    {"r", "f <- function() {\n", true},
    {"r", "'a\n", true},
    {"r", "1 # +\n", false},
    {"bash", "if true\n", true},
    {"bash", "if true; then echo fi; fi\n", false},
    {"bash", "for i in 1 2; do\n", true},
    {"bash", "for i in 1 2; do echo $i; done\n", false},
    {"bash", "echo if\n", false},
    {"bash", "echo 'a\n", true},
    {"bash", "echo it\\'s\n", false},
    {"bash", "a |\n", true},
    {"bash", "f() {\n", true},
    {"bash", "echo \\\n", true},
    {"bash", "case x in\n", true},
    {"sh", "while :; do echo; done\n", false},
    {"unknown", "(\n", true},
};

static void test_cells(void **state)
{
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (cell_wants_more(rows[i].language, slice_of(rows[i].code)) != rows[i].more)
            fail_msg("%s: %s", rows[i].language, rows[i].code);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_cells)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
