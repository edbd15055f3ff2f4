/* SPDX-License-Identifier: Apache-2.0 */

/* Command lines of the programs that the supervisor starts: nothing is dropped, and nothing cut. */

#include "main/command_line.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

static struct command_line line;

static void test_words(void **state)
{
    struct error err;
    command_line_begin(&line, "cellad");
    command_line_add(&line, "--domain", "");
    command_line_add_pair(&line, "--egress-ca", "--ca", "/x");
    command_line_add_part(&line, "--resolver", "one,two", 3);
    command_line_add_setting(&line, "trace-ratio", "0.5");
    command_line_add_setting(&line, "access-log", "");
    command_line_add_setting(&line, "metrics-listen", NULL);
    assert_int_equal(command_line_check(&line, &err), 0);
    const char *const words[] = {"cellad", "", "--ca", "/x", "one", "trace-ratio=0.5"};
    assert_int_equal(line.count, sizeof(words) / sizeof(words[0]));
    for (size_t i = 0; i < line.count; i++)
        assert_string_equal(line.argv[i], words[i]);
    assert_null(line.argv[line.count]);
}

/* More settings than there used to be places for, each longer than one of those. */
static void test_many_long_settings(void **state)
{
    char name[32], value[3000];
    memset(value, 'v', sizeof(value) - 1);
    value[sizeof(value) - 1] = '\0';
    command_line_begin(&line, "cellad");
    for (int i = 0; i < 30; i++) {
        snprintf(name, sizeof(name), "setting-%d", i);
        command_line_add_setting(&line, name, value);
    }
    assert_int_equal(command_line_check(&line, NULL), 0);
    assert_int_equal(line.count, 31);
    assert_int_equal(strlen(line.argv[30]), strlen("setting-29=") + sizeof(value) - 1);
}

static void test_too_many_bytes_name_the_option(void **state)
{
    static char value[COMMAND_BYTES_MAX];
    struct error err = {0};
    memset(value, 'v', sizeof(value) - 1);
    command_line_begin(&line, "cellad");
    command_line_add_setting(&line, "otlp-endpoint", value);
    command_line_add_setting(&line, "trace-ratio", "1"); /* the first one counts */
    assert_int_equal(command_line_check(&line, &err), -1);
    assert_int_equal(err.code, ERROR_INVALID_ARGUMENT);
    assert_non_null(strstr(err.message, "--otlp-endpoint does not fit"));
    assert_non_null(strstr(err.message, "98304 bytes"));
    assert_non_null(strstr(err.message, "cellad"));
    value[COMMAND_BYTES_MAX - sizeof("cellad") - sizeof("a=")] = '\0';
    command_line_begin(&line, "cellad");
    command_line_add_setting(&line, "a", value); /* exactly */
    assert_int_equal(command_line_check(&line, &err), 0);
    command_line_add(&line, "--b", "");
    assert_int_equal(command_line_check(&line, &err), -1);
}

static void test_too_many_words_name_the_option(void **state)
{
    struct error err = {0};
    command_line_begin(&line, "cella-egress");
    for (int i = 1; i < COMMAND_WORDS_MAX; i++)
        command_line_add(&line, "--resolver", "x");
    assert_int_equal(command_line_check(&line, &err), 0);
    assert_null(line.argv[COMMAND_WORDS_MAX]);
    command_line_add(&line, "--network-allow-private", "10.0.0.0/8");
    assert_int_equal(command_line_check(&line, &err), -1);
    assert_non_null(strstr(err.message, "--network-allow-private does not fit"));
    assert_non_null(strstr(err.message, "160 words"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_words),
        cmocka_unit_test(test_many_long_settings),
        cmocka_unit_test(test_too_many_bytes_name_the_option),
        cmocka_unit_test(test_too_many_words_name_the_option),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
