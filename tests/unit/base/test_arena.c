/* SPDX-License-Identifier: Apache-2.0 */

/* The arena: zeroed, aligned, apart from each other, of all sizes. */

#include <stdarg.h>
#include <stdalign.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <string.h>

#include "base/arena.h"

static void pieces_are_zeroed_aligned_and_apart(void **state)
{
    enum { COUNT = 400 };
    unsigned char *pieces[COUNT];
    size_t sizes[COUNT];
    struct arena *arena = arena_new();
    for (size_t i = 0; i < COUNT; i++) {
        sizes[i] = i % 50 == 49 ? i * 1000 : i * 7 % 300; /* some larger than any block */
        pieces[i] = arena_alloc(arena, sizes[i]);
        assert_int_equal((uintptr_t)pieces[i] % alignof(max_align_t), 0);
        for (size_t n = 0; n < sizes[i]; n++)
            assert_int_equal(pieces[i][n], 0);
        memset(pieces[i], (int)(i % 255) + 1, sizes[i]);
    }
    for (size_t i = 0; i < COUNT; i++)
        for (size_t n = 0; n < sizes[i]; n++)
            assert_int_equal(pieces[i][n], i % 255 + 1);
    arena_free(arena);
    arena_free(NULL);
}

static void strings(void **state)
{
    struct arena *arena = arena_new();
    assert_null(arena_strdup(arena, NULL));
    assert_string_equal(arena_strdup(arena, ""), "");
    assert_string_equal(arena_dup(arena, "abcdef", 3), "abc");
    assert_string_equal(arena_dup(arena, NULL, 0), "");
    assert_string_equal(arena_printf(arena, "%s-%d", "x", 42), "x-42");
    assert_int_equal(strlen(arena_printf(arena, "%9000d", 1)), 9000);
    arena_free(arena);
}

/* Of a size that was asked for: holds that in one piece, and more. */
static void sized(void **state)
{
    static const size_t sizes[] = {0, 1, 100, 5000};
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        struct arena *arena = arena_new_sized(sizes[i]);
        memset(arena_alloc(arena, sizes[i]), 1, sizes[i]);
        for (size_t n = 0; n < 3000; n += 7) {
            char *piece = arena_alloc(arena, n);
            for (size_t at = 0; at < n; at++)
                assert_int_equal(piece[at], 0);
            memset(piece, 2, n);
        }
        arena_free(arena);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pieces_are_zeroed_aligned_and_apart),
        cmocka_unit_test(strings),
        cmocka_unit_test(sized),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
