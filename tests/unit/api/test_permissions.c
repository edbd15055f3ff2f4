/* SPDX-License-Identifier: Apache-2.0 */

/* Permissions in both notations. */

#include "helpers.h"

#include "api/v0/file_json.h"
#include "base/cleanup.h"

static void formats_as_ls_does(void **state)
{
    static const struct {
        uint64_t mode;
        const char *text;
    } rows[] = {
        {0755, "rwxr-xr-x"},  {0644, "rw-r--r--"},    {0, "---------"},     {0777, "rwxrwxrwx"},
        {0421, "r---w---x"},  {04755, "rwsr-xr-x"},   {04644, "rwSr--r--"}, {02755, "rwxr-sr-x"},
        {02644, "rw-r-Sr--"}, {01777, "rwxrwxrwt"},   {01666, "rw-rw-rwT"}, {07777, "rwsrwsrwt"},
        {07000, "--S--S--T"}, {0100644, "rw-r--r--"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char text[PERMISSIONS_TEXT_SIZE];
        permissions_format(rows[i].mode, text);
        assert_string_equal(text, rows[i].text);
    }
}

static void parses_octal(void **state)
{
    static const struct {
        const char *text;
        uint64_t mode;
    } rows[] = {{"644", 0644},   {"0644", 0644},  {"755", 0755}, {"4755", 04755},
                {"1777", 01777}, {"7777", 07777}, {"000", 0}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        uint64_t mode = 1;
        struct error err;
        assert_int_equal(permissions_parse(rows[i].text, &mode, &err), 0);
        assert_int_equal(mode, rows[i].mode);
    }
}

static void refuses_the_rest(void **state)
{
    static const char *const rows[] = {"",          "7",   "64",   "888",   "00644",
                                       "rw-r--r--", "-64", "+644", " 644",  "644 ",
                                       "0x1ff",     "64a", "6.4",  "77777", "0o644"};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        uint64_t mode = 12345;
        struct error err = {0};
        assert_int_equal(permissions_parse(rows[i], &mode, &err), -1);
        assert_int_equal(err.code, ERROR_INVALID_ARGUMENT);
        assert_non_null(strstr(err.message, "permissions"));
        assert_int_equal(mode, 12345);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(formats_as_ls_does),
        cmocka_unit_test(parses_octal),
        cmocka_unit_test(refuses_the_rest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
