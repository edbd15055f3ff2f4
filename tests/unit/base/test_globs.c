/* SPDX-License-Identifier: Apache-2.0 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "base/globs.h"

struct row {
    const char *pattern, *path;
    bool match;
};

static const struct row rows[] = {
    {"dist", "dist", true},
    {"dist", "a/dist", true},
    {"dist", "a/dist/b", false},
    {"dist", "dist/b", true},
    {"dist", "distant", false},
    {"a/b", "a/b", true},
    {"a/b", "a/b/c/d", true},
    {"a/b", "x/a/b", false},
    {"*.log", "x.log", true},
    {"*.log", "d/x.log", true},
    {"*.log", "d.log/x", false},
    {"*.log", "x.logs", false},
    {"a*b*c", "aXbYbZc", true},
    {"a*b*c", "aXbYbZ", false},
    {"src/*/gen", "src/a/b/gen", true},
    {"?", "\xc3\xa9", true},
    {"??", "\xc3\xa9", false},
    {"?", "\xff", true},
    {"*", "anything/at/all", true},
    {"[ab]", "a", true},
    {"\\*", "*", true},
    {"", "a", false},
    {"*?", "", false},
};

static void table(void **state)
{
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct slice patterns = {rows[i].pattern, strlen(rows[i].pattern) + 1};
        const char *slash = strrchr(rows[i].path, '/');
        const char *name = slash != NULL ? slash + 1 : rows[i].path;
        if (globs_match(patterns, rows[i].path, name) != rows[i].match)
            fail_msg("row %zu: %s %s", i, rows[i].pattern, rows[i].path);
    }
}

/* What would take others longer than anybody waits. */
static void many_stars(void **state)
{
    char pattern[200], text[4000];
    for (size_t i = 0; i < sizeof(pattern) - 2; i++)
        pattern[i] = i % 2 == 0 ? '*' : 'a';
    memcpy(pattern + sizeof(pattern) - 2, "b", 2);
    memset(text, 'a', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    assert_false(globs_match((struct slice){pattern, sizeof(pattern)}, text, text));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(table), cmocka_unit_test(many_stars)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
