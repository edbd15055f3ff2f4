/* SPDX-License-Identifier: Apache-2.0 */

/* The real table: that its rows keep the rules which the parser relies on, and that the command
 * lines people have in their scripts mean what they should. */

#include "cli/args.h"
#include "cli/cli.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "cmocka_all.h"

enum { SERVER_WORDS_MAX = 16 };
static struct {
    int argc;
    char words[SERVER_WORDS_MAX][64];
} seen; /* by server_main(), which src/main has elsewhere */

int server_backup(const char *data, const char *file, struct error *err)
{
    return 0;
}

int server_restore(const char *file, const char *data, const char *user, struct error *err)
{
    return 0;
}

int server_main(int argc, char **argv)
{
    seen.argc = argc;
    for (int i = 0; i < argc && i < SERVER_WORDS_MAX; i++)
        snprintf(seen.words[i], sizeof(seen.words[i]), "%s", argv[i]);
    assert_null(argv[argc]);
    return 7;
}

static void check_rows(const struct option_row *row, const char *where)
{
    for (; row != NULL && row->name != NULL; row++) {
        assert_true(strlen(row->name) + 3 <= OPTION_NAME_SIZE);
        assert_non_null(row->help);
        assert_int_equal(row->kind == OPTION_FLAG, row->value == NULL);
        /* The same name, and the same letter, means the same kind of value everywhere. */
        for (size_t i = 0; i <= cli_commands.verb_count; i++) {
            const struct option_row *other =
                i == 0 ? cli_commands.globals : cli_commands.verbs[i - 1].options;
            for (; other != NULL && other->name != NULL; other++) {
                bool same = strcmp(other->name, row->name) == 0;
                if (same && other->kind != row->kind)
                    fail_msg("--%s of \"%s\" has two kinds", row->name, where);
                if (row->letter != 0 && other->letter == row->letter && !same)
                    fail_msg("-%c stands for --%s and --%s", row->letter, row->name, other->name);
            }
        }
    }
}

static void test_rows(void **state)
{
    check_rows(cli_commands.globals, "every command");
    for (size_t i = 0; i < cli_commands.verb_count; i++) {
        const struct verb_row *verb = &cli_commands.verbs[i];
        check_rows(verb->options, verb->usage);
        assert_non_null(verb->run);
        if (verb->section == NULL)
            continue;
        assert_true(islower((unsigned char)verb->summary[0]));
        assert_true(verb->summary[strlen(verb->summary) - 1] != '.');
        /* A word that may be many has none after it, one that may be left out only its like. */
        const char *cursor = verb->usage;
        struct usage_word word;
        enum word_kind before = WORD_LITERAL;
        while (usage_next(&cursor, &word)) {
            assert_true(before == WORD_LITERAL || before == WORD_REQUIRED ||
                        (before == WORD_OPTIONAL && word.kind == WORD_OPTIONAL));
            before = word.kind;
        }
    }
}

/* As the seed writes them. */
static void test_lines_of_the_seed(void **state)
{
    static const struct {
        const char *words[16];
        const char *usage;
    } rows[] = {
        {{"sandbox", "list"}, "sandbox list"},
        {{"sandbox", "list", "--status", "running", "--limit", "10", "--offset", "0"},
         "sandbox list"},
        {{"sandbox", "get", "my-sandbox"}, "sandbox get NAME"},
        {{"sandbox", "create", "--name", "my-sandbox", "--image", "ubuntu:22.04", "--cpu", "1",
          "--memory", "1Gi", "--disk", "10Gi", "--env", "MY_VAR=my_value"},
         "sandbox create"},
        {{"sandbox", "start", "my-sandbox"}, "sandbox start NAME"},
        {{"sandbox", "stop", "my-sandbox"}, "sandbox stop NAME"},
        {{"sandbox", "delete", "my-sandbox"}, "sandbox delete NAME"},
        {{"sandbox", "wait", "python-env", "--status", "running"}, "sandbox wait NAME"},
        {{"run", "b", "file", "read", "/home/user/file.txt"}, "run NAME file read PATH"},
        {{"run", "b", "file", "read", "/f", "--decode"}, "run NAME file read PATH"},
        {{"run", "b", "file", "ls", "/home/user"}, "run NAME file ls PATH"},
        {{"run", "b", "file", "write", "/f", "--content", "Hello World"},
         "run NAME file write PATH [SOURCE]"},
        {{"run", "b", "file", "write", "/f", "--from-file", "./local-file.txt"},
         "run NAME file write PATH [SOURCE]"},
        {{"run", "b", "file", "rm", "/f"}, "run NAME file rm PATH"},
        {{"run", "b", "file", "rm", "/d", "--recursive"}, "run NAME file rm PATH"},
        {{"run", "b", "process", "list"}, "run NAME process list"},
        {{"run", "b", "process", "exec", "python3 script.py", "--working-dir", "/home/user"},
         "run NAME process exec COMMAND..."},
        {{"run", "b", "process", "logs", "1234"}, "run NAME process logs PID"},
        {{"run", "b", "process", "kill", "1234"}, "run NAME process kill PID"},
        {{"doctor", "--leaks", "--data", "/x"}, "doctor"},
        {{"completion", "bash"}, "completion SHELL"},
        {{"help", "run"}, "help [COMMAND...]"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char *argv[20] = {(char *)"bl"};
        int argc = 1;
        for (; rows[i].words[argc - 1] != NULL; argc++)
            argv[argc] = (char *)rows[i].words[argc - 1];
        struct args args = {0};
        struct error err = {0};
        if (args_split(&cli_commands, argc, argv, &args, &err) < 0 ||
            args_bind(&cli_commands, &args, &err) < 0)
            fail_msg("row %zu: %s", i, err.message);
        assert_string_equal(args.verb->usage, rows[i].usage);
        args_release(&args);
    }
}

static void test_server_gets_its_options_in_one_shape(void **state)
{
    char *argv[] = {(char *)"cella",
                    (char *)"--no-auth",
                    (char *)"server",
                    (char *)"--data=/d",
                    (char *)"--listen",
                    (char *)"127.0.0.1:0",
                    NULL};
    static const char *const expected[] = {"cella server", "--data",   "/d",
                                           "--no-auth",    "--listen", "127.0.0.1:0"};
    assert_int_equal(cli_main(6, argv), 7);
    assert_int_equal(seen.argc, 6);
    for (int i = 0; i < 6; i++)
        assert_string_equal(seen.words[i], expected[i]);
}

static void test_wrong_usage_is_2(void **state)
{
    char *lines[][4] = {{(char *)"cella", (char *)"sandbox", (char *)"lst"},
                        {(char *)"cella", (char *)"sandbox", (char *)"list", (char *)"--what"},
                        {(char *)"cella", (char *)"server", (char *)"--url=http://x"}};
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
        assert_int_equal(cli_main(i == 1 ? 4 : 3, lines[i]), 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_lines_of_the_seed),
        cmocka_unit_test(test_server_gets_its_options_in_one_shape),
        cmocka_unit_test(test_wrong_usage_is_2),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
