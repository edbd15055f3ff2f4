/* SPDX-License-Identifier: Apache-2.0 */

#include "auth/token_cache.h"

#include "fixture.h"

static void number(unsigned char digest[TOKEN_DIGEST_SIZE], unsigned n)
{
    memset(digest, 0, TOKEN_DIGEST_SIZE);
    memcpy(digest, &n, sizeof(n));
}

static void test_remembers_and_forgets(void **state)
{
    struct token_cache cache = {0};
    unsigned char digest[TOKEN_DIGEST_SIZE];
    const struct principal who = {.name = "a", .scopes = SCOPE_READ};
    number(digest, 1);
    assert_null(token_cache_get(&cache, digest, 0));
    token_cache_put(&cache, digest, &who, 100);
    assert_string_equal(token_cache_get(&cache, digest, 99)->name, "a");
    number(digest, 2);
    assert_null(token_cache_get(&cache, digest, 99));
    number(digest, 1);
    assert_null(token_cache_get(&cache, digest, 100)); /* it has ended */
    assert_null(token_cache_get(&cache, digest, 99));  /* for good */
    token_cache_put(&cache, digest, &who, 100);
    token_cache_clear(&cache);
    assert_null(token_cache_get(&cache, digest, 0));
}

static void test_is_bounded(void **state)
{
    struct token_cache cache = {0};
    unsigned char digest[TOKEN_DIGEST_SIZE];
    const struct principal who = {.name = "a"};
    for (unsigned i = 0; i < TOKENS_CACHED_MAX + 10; i++) {
        number(digest, i);
        token_cache_put(&cache, digest, &who, 100);
        token_cache_put(&cache, digest, &who, 100);
    }
    assert_int_equal(HASH_COUNT(cache.entries), TOKENS_CACHED_MAX);
    number(digest, 9);
    assert_null(token_cache_get(&cache, digest, 0)); /* the oldest went first */
    number(digest, 10);
    assert_non_null(token_cache_get(&cache, digest, 0));
    token_cache_clear(&cache);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_remembers_and_forgets),
        cmocka_unit_test(test_is_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
