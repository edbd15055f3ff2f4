/* SPDX-License-Identifier: Apache-2.0 */

/* Which command lines go around the shell, and as which words. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "agent/shell_words.h"
#include "base/cleanup.h"

static const struct {
    const char *command;
    const char *words[6]; /* none: a shell has to do it */
} rows[] = {
    {"ls", {"ls"}},
    {"  ls\t-l  /tmp ", {"ls", "-l", "/tmp"}},
    {"true", {"true"}},
    {"true --help", {0}},
    {"false", {"false"}},
    {"ls --color=auto", {"ls", "--color=auto"}},
    {"dd if=/dev/zero of=x", {"dd", "if=/dev/zero", "of=x"}},
    {"/bin/echo hi", {"/bin/echo", "hi"}},
    {"python3 -m http.server", {"python3", "-m", "http.server"}},
    {"caf\xc3\xa9 \xff", {"caf\xc3\xa9", "\xff"}},
    {"", {0}},
    {"   ", {0}},
    {"A=b env", {0}},
    {"echo hi", {0}},
    {"cd /tmp", {0}},
    {". file", {0}},
    {": nothing", {0}},
    {"exit 3", {0}},
    {"exec ls", {0}},
    {"pwd", {0}},
    {"ulimit -n", {0}},
    {"if true", {0}},
    {"ls | wc", {0}},
    {"ls; ls", {0}},
    {"ls && ls", {0}},
    {"sleep 1 &", {0}},
    {"ls > x", {0}},
    {"ls 'a b'", {0}},
    {"ls \"a b\"", {0}},
    {"ls a\\ b", {0}},
    {"ls $HOME", {0}},
    {"ls `x`", {0}},
    {"ls *", {0}},
    {"ls ?", {0}},
    {"ls [a]", {0}},
    {"ls {a,b}", {0}},
    {"ls ~", {0}},
    {"! ls", {0}},
    {"ls # comment", {0}},
    {"ls\nls", {0}},
    {"(ls)", {0}},
};

static void test_rows(void **state)
{
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        _cleanup_free_ char **words = shell_words_split(rows[i].command);
        if (rows[i].words[0] == NULL) {
            if (words != NULL)
                fail_msg("'%s' needs a shell", rows[i].command);
            continue;
        }
        if (words == NULL)
            fail_msg("'%s' needs no shell", rows[i].command);
        for (size_t w = 0; w < ARRAY_LEN(rows[i].words); w++) {
            if (rows[i].words[w] == NULL) {
                assert_null(words[w]);
                break;
            }
            assert_non_null(words[w]);
            assert_string_equal(words[w], rows[i].words[w]);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_rows)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
