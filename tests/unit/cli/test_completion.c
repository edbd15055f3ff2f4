/* SPDX-License-Identifier: Apache-2.0 */

/* What the table offers for the last word of a line. */

#include "cli/help.h"

#include <string.h>

#include "cmocka_all.h"
#include "toy_commands.h"

static void test_candidates(void **state)
{
    static const struct {
        const char *line[LINE_WORDS_MAX]; /* the last one is being written */
        const char *candidates;
    } rows[] = {
        {{""}, "box\nrun\nhelp\n"},
        {{"b"}, "box\n"},
        {{"box", ""}, "list\nmake\nget\n"},
        {{"box", "l"}, "list\n"},
        {{"box", "get", ""}, "@names\n"},
        {{"box", "get", "a", ""}, ""},
        {{"run", ""}, "@names\n"},
        {{"run", "a", ""}, "file\nexec\n"},
        {{"run", "a", "file", ""}, "put\n"},
        {{"run", "a", "file", "put", "/x", ""}, "-\n"},
        {{"help", "box", ""}, "list\nmake\nget\n"},
        {{"box", "make", "--"}, "--name\n--env\n--limit\n--wait\n--output\n--data\n--help\n"},
        {{"box", "make", "--w"}, "--wait\n"},
        {{"box", "list", "--w"}, ""},
        {{"box", "list", "-o", ""}, "table\njson\n"},
        {{"box", "list", "--output", "j"}, "json\n"},
        {{"box", "list", "--output", "="}, "table\njson\n"},
        {{"box", "list", "--output", "=", "t"}, "table\n"},
        {{"box", "list", "--output=j"}, "json\n"},
        {{"--data", ""}, "@dirs\n"},
        {{"--data", "/x", "box", "g"}, "get\n"},
        {{"--data=/x", "box", "g"}, "get\n"},
        {{"run", "a", "file", "put", "/x", "--from-file", ""}, "@files\n"},
        {{"box", "make", "--name", ""}, ""},
        {{"box", "--", "-"}, ""},
        {{"__h"}, ""},
        {{"nonsense", ""}, ""},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct buf out = BUF_INIT(4096);
        size_t count = 0;
        while (rows[i].line[count] != NULL)
            count++;
        complete_write(&toy, rows[i].line, count, &out);
        if (strcmp(out.data, rows[i].candidates) != 0)
            fail_msg("row %zu: \"%s\" instead of \"%s\"", i, out.data, rows[i].candidates);
        buf_release(&out);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_candidates)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
