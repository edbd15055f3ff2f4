/* SPDX-License-Identifier: Apache-2.0 */

/* Languages go by several names, and their kernels fit into one request. */

#include "code/languages.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

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
        assert_string_equal(strv_first(argv), language->program);
        assert_in_range(language->input(arena).len, 0, PROCESS_INPUT_CHUNK);
    }
    arena_free(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_are_found),
        cmocka_unit_test(each_has_a_kernel_that_can_be_sent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
