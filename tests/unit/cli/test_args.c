/* SPDX-License-Identifier: Apache-2.0 */

/* The parser: what lines mean, and what is said to those that mean nothing. */

#include "cli/args.h"

#include <string.h>

#include "cmocka_all.h"
#include "toy_commands.h"

static int parse(const char *const *line, struct args *args, struct error *err)
{
    if (args_split(&toy, line_length(line), (char **)line, args, err) < 0)
        return -1;
    return args_bind(&toy, args, err);
}

static void test_options_stand_anywhere(void **state)
{
    const char *const *const lines[] = {
        LINE("box", "make", "--name", "a", "--limit=3", "-e", "K=V"),
        LINE("--name=a", "--limit", "3", "box", "-e", "K=V", "make"),
        LINE("box", "--limit", "3", "-eK=V", "make", "--name", "a"),
    };
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        struct args args = {0};
        struct error err = {0};
        assert_int_equal(parse(lines[i], &args, &err), 0);
        assert_string_equal(args.verb->usage, "box make");
        assert_string_equal(args_option(&args, "name", "?"), "a");
        assert_int_equal(args_number(&args, "limit", 0), 3);
        assert_string_equal(args_option(&args, "env", "?"), "K=V");
        assert_false(args_flag(&args, "wait"));
        args_release(&args);
    }
}

static void test_words_fill_their_places(void **state)
{
    struct args args = {0};
    struct error err = {0};
    assert_int_equal(parse(LINE("run", "box", "file", "put", "/a b", "-"), &args, &err), 0);
    assert_string_equal(args_word(&args, "NAME"), "box");
    assert_string_equal(args_word(&args, "PATH"), "/a b");
    assert_string_equal(args_word(&args, "SOURCE"), "-");
    assert_null(args_word(&args, "OTHER"));
    args_release(&args);

    assert_int_equal(parse(LINE("run", "box", "file", "put", "/a"), &args, &err), 0);
    assert_null(args_word(&args, "SOURCE"));
    args_release(&args);
}

static void test_rest_after_dashes(void **state)
{
    struct args args = {0};
    struct error err = {0};
    size_t count;
    assert_int_equal(
        parse(LINE("run", "file", "exec", "-o", "json", "--", "ls", "--help", "-l"), &args, &err),
        0);
    const char **rest = args_rest(&args, &count);
    assert_int_equal(count, 3);
    assert_string_equal(rest[0], "ls");
    assert_string_equal(rest[1], "--help");
    assert_string_equal(rest[2], "-l");
    assert_string_equal(args_word(&args, "NAME"), "file"); /* a name may look like a verb */
    assert_false(args_flag(&args, "help"));
    args_release(&args);

    assert_int_equal(parse(LINE("help"), &args, &err), 0);
    args_rest(&args, &count);
    assert_int_equal(count, 0);
    args_release(&args);
}

static void test_a_value_may_look_like_an_option(void **state)
{
    struct args args = {0};
    struct error err = {0};
    assert_int_equal(parse(LINE("box", "make", "--name", "--wait"), &args, &err), 0);
    assert_string_equal(args_option(&args, "name", NULL), "--wait");
    assert_false(args_flag(&args, "wait"));
    args_release(&args);
    assert_int_equal(parse(LINE("box", "make", "--name="), &args, &err), 0);
    assert_string_equal(args_option(&args, "name", NULL), "");
    args_release(&args);
}

static void test_what_is_wrong_is_said(void **state)
{
    static const struct {
        const char *line[LINE_WORDS_MAX];
        const char *says;
    } rows[] = {
        {{"cella"}, "what to do? one of: box, run, help"},
        {{"cella", "box"}, "what to do? one of: list, make, get"},
        {{"cella", "box", "lsit"}, "unknown command \"lsit\"; did you mean list?"},
        {{"cella", "bxo", "list"}, "did you mean box?"},
        {{"cella", "box", "zzzzzz"}, "there are: list, make, get"},
        {{"cella", "box", "get"}, "NAME is missing (usage: cella box get NAME)"},
        {{"cella", "box", "get", "a", "b"}, "\"b\" is one word too many"},
        {{"cella", "run", "a", "fiel", "put"}, "did you mean file?"},
        {{"cella", "run", "a", "exec"}, "COMMAND is missing"},
        {{"cella", "__hiden"}, "there are: box, run, help"},
        {{"cella", "box", "make", "--nmae", "x"}, "unknown option --nmae; did you mean --name?"},
        {{"cella", "box", "make", "--qqqq"}, "unknown option --qqqq"},
        {{"cella", "box", "list", "-la"}, "unknown option -la"},
        {{"cella", "box", "list", "-ha"}, "unknown option -ha"},
        {{"cella", "box", "list", "--name", "x"}, "\"box list\" has no option --name"},
        {{"cella", "box", "make", "--name"}, "--name needs a value: --name NAME"},
        {{"cella", "box", "make", "--wait=1"}, "--wait takes no value"},
        {{"cella", "box", "make", "--limit", "-1"}, "--limit needs a whole number"},
        {{"cella", "box", "make", "--limit", "3x"}, "--limit needs a whole number"},
        {{"cella", "box", "make", "--limit", ""}, "--limit needs a whole number"},
        {{"cella", "box", "make", "--limit", "99999999999999999999"}, "needs a whole number"},
        {{"cella", "box", "make", "--env", "K"}, "--env needs NAME=VALUE"},
        {{"cella", "box", "make", "--env", "=V"}, "--env needs NAME=VALUE"},
        {{"cella", "box", "make", "--name", "a", "--name", "b"}, "--name was given twice"},
        {{"cella", "box", "list", "-o", "xml"}, "--output is one of table|json, not \"xml\""},
        {{"cella", "box", "list", "-o", "jso"}, "--output is one of table|json"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct args args = {0};
        struct error err = {0};
        assert_int_equal(parse(rows[i].line, &args, &err), -1);
        assert_int_equal(err.code, ERROR_INVALID_ARGUMENT);
        if (strstr(err.message, rows[i].says) == NULL)
            fail_msg("\"%s\" does not say \"%s\"", err.message, rows[i].says);
        args_release(&args);
    }
}

static void test_a_repeated_option_may_repeat(void **state)
{
    struct args args = {0};
    struct error err = {0};
    assert_int_equal(parse(LINE("box", "make", "-e", "A=1", "--env", "B=2"), &args, &err), 0);
    assert_int_equal(args.option_count, 2);
    assert_string_equal(args.options[0].value, "A=1");
    assert_string_equal(args.options[1].value, "B=2");
    args_release(&args);
}

static void test_distance(void **state)
{
    static const struct {
        const char *a, *b;
        size_t distance;
    } rows[] = {{"", "", 0},         {"list", "list", 0},  {"lsit", "list", 1},
                {"lst", "list", 1},  {"listt", "list", 1}, {"last", "list", 1},
                {"", "abc", 3},      {"abc", "xyz", 3},    {"delete", "dleete", 1},
                {"stop", "start", 3}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        assert_int_equal(edit_distance(rows[i].a, strlen(rows[i].a), rows[i].b, strlen(rows[i].b)),
                         rows[i].distance);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_options_stand_anywhere),
        cmocka_unit_test(test_words_fill_their_places),
        cmocka_unit_test(test_rest_after_dashes),
        cmocka_unit_test(test_a_value_may_look_like_an_option),
        cmocka_unit_test(test_what_is_wrong_is_said),
        cmocka_unit_test(test_a_repeated_option_may_repeat),
        cmocka_unit_test(test_distance),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
