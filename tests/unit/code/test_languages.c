/* SPDX-License-Identifier: Apache-2.0 */

/* Languages go by several names, and their kernels fit into one request. */

#include "code/languages.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/limits.h"
#include "code/code.h"

static void names_are_found(void **state)
{
    assert_string_equal(language_find(NULL)->name, "python");
    assert_string_equal(code_language("Python"), "python");
    assert_string_equal(code_language("PY"), "python");
    assert_string_equal(code_language("python3"), "python");
    assert_null(code_language("pyth"));
    assert_null(code_language(""));
    assert_null(code_language("py python3"));
    assert_null(code_language(NULL));
}

static void each_has_a_kernel_that_can_be_sent(void **state)
{
    struct arena *arena = arena_new();
    for (const char *const *name = code_languages; *name != NULL; name++) {
        const struct language *language = language_find(*name);
        assert_non_null(language);
        assert_string_equal(language->name, *name);
        struct slice argv = language->argv(arena, language, "socket");
        assert_true(strv_valid(argv));
        assert_in_range(language->input(arena).len, 0, PROCESS_INPUT_CHUNK);
    }
    arena_free(arena);
}

static void what_bash_is_told_is_quoted(void **state)
{
    _cleanup_buf_ struct buf out = BUF_INIT(4096);
    const struct language *bash = language_find("bash");
    struct error err = {0};
    assert_int_equal(bash->request(&out, 3, (struct slice){"A=it's\0", 7}, slice_of("x='1'"), &err),
                     0);
    assert_string_equal(out.data,
                        "__cella_env A 'it'\\''s'\n{ __cella_begin 3; } 2>/dev/null\n"
                        "eval 'x='\\''1'\\''' </dev/null\n{ __cella_end 3; } 2>/dev/null\n"
                        "exec 1>&198 2>&199\n");
    assert_int_equal(bash->request(&out, 3, (struct slice){0}, (struct slice){"a\0b", 3}, &err),
                     -1);
    assert_int_equal(err.code, ERROR_INVALID_ARGUMENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_are_found),
        cmocka_unit_test(each_has_a_kernel_that_can_be_sent),
        cmocka_unit_test(what_bash_is_told_is_quoted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
