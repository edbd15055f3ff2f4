/* SPDX-License-Identifier: Apache-2.0 */

/* Which sandboxes a pool is for, and what becomes of a spare that is taken or given back. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "loop/loop.h"
#include "sandbox/pool_state.h"

#define MIB (UINT64_C(1) << 20)

static const struct spec_limits ordinary = {
    .cpu_millis = 1000, .memory_bytes = 1024 * MIB, .disk_bytes = 1024 * MIB, .pids = 1024};

static struct sandboxes *sandboxes_for_tests(void)
{
    struct sandboxes *s = calloc(1, sizeof(*s));
    struct error err;
    s->loop = loop_new(&err);
    admission_init(&s->admission, AT_FDCWD);
    assert_int_equal(admission_set_overcommit(&s->admission, "1000", &err), 0);
    assert_int_equal(pools_new(s, &err), 0);
    return s;
}

static void sandboxes_end(struct sandboxes *s)
{
    s->pools->names = s->pools->keys = NULL; /* the tests' own */
    pools_free(s);
    loop_free(s->loop);
    free(s);
}

struct place {
    struct sandbox sb;
    char id[SANDBOX_ID_LEN + 1];
};

static void sandbox_for_tests(struct place *place, struct sandboxes *s, const char *level)
{
    const struct trust_request request = {.level = level, .may_loosen = true};
    struct error err;
    *place = (struct place){.sb = {.owner = s, .image = "host", .limits = ordinary}};
    memset(place->id, 'a', SANDBOX_ID_LEN);
    place->sb.id = place->id;
    place->sb.name = place->id;
    assert_int_equal(trust_resolve(&request, NULL, &place->sb.security, &err), 0);
}

static bool same_pool(const struct place *a, const struct place *b)
{
    size_t a_len, b_len;
    struct error err;
    _cleanup_free_ char *first = pool_key(&a->sb, &a_len, &err);
    _cleanup_free_ char *second = pool_key(&b->sb, &b_len, &err);
    assert_non_null(first);
    assert_non_null(second);
    return a_len == b_len && memcmp(first, second, a_len) == 0;
}

static void test_what_fits(void **state)
{
    struct sandboxes *s = sandboxes_for_tests();
    struct place pool, other;
    sandbox_for_tests(&pool, s, NULL);

    sandbox_for_tests(&other, s, NULL);
    other.sb.name = (char[]){"another"};
    other.sb.limits = (struct spec_limits){
        .cpu_millis = 100, .memory_bytes = 512 * MIB, .disk_bytes = 64 * MIB, .pids = 64};
    assert_true(same_pool(&pool, &other)); /* a claim sets all of that */
    other.sb.limits.memory_bytes = 64 * MIB;
    assert_false(same_pool(&pool, &other)); /* /dev/shm would have another size */

    sandbox_for_tests(&other, s, NULL);
    other.sb.image = "base";
    assert_true(same_pool(&pool, &other)); /* the same image under another name */

    for (size_t i = 0; i < 3; i++) {
        static const char *const levels[] = {"sandboxed", "untrusted"};
        sandbox_for_tests(&other, s, i < 2 ? levels[i] : NULL);
        if (i == 2)
            other.sb.security.allow_subprocess = false;
        assert_false(same_pool(&pool, &other));
    }

    /* What a spare has no claim for: it would run without the limit. */
    sandbox_for_tests(&other, s, NULL);
    other.sb.limits.of[RESOURCE_DISK_READ] = MIB;
    assert_false(same_pool(&pool, &other));

    /* Scratch is a share of the memory. */
    struct place strict, stricter;
    sandbox_for_tests(&strict, s, "untrusted");
    sandbox_for_tests(&stricter, s, "untrusted");
    assert_true(same_pool(&strict, &stricter));
    stricter.sb.limits.memory_bytes = 512 * MIB;
    assert_false(same_pool(&strict, &stricter));
    sandboxes_end(s);
}

static struct spare *spare_for_tests(struct sandboxes *s, struct pool *pool, char letter)
{
    struct spare *spare = calloc(1, sizeof(*spare));
    memset(spare->id, letter, SANDBOX_ID_LEN);
    spare->pool = pool;
    spare->pools = s->pools;
    HASH_ADD_STR(s->pools->spares, id, spare);
    admission_count(&s->admission, &spare->promise, PROMISE_ALL, &pool->model->limits);
    pool_push(pool, spare);
    return spare;
}

static void test_taking(void **state)
{
    struct sandboxes *s = sandboxes_for_tests();
    struct place model, asker, stranger;
    struct pool pool = {.model = &model.sb, .name = (char[]){"pool"}};
    struct error err;
    sandbox_for_tests(&model, s, NULL);
    sandbox_for_tests(&asker, s, NULL);
    sandbox_for_tests(&stranger, s, "untrusted");
    pool.key = pool_key(&model.sb, &pool.key_len, &err);
    assert_null(pools_take(&asker.sb)); /* there is no pool at all */

    HASH_ADD_KEYPTR(by_key, s->pools->keys, pool.key, pool.key_len, &pool);
    assert_null(pools_take(&asker.sb));
    assert_int_equal(pool.misses, 1);
    spare_for_tests(s, &pool, 'x');
    spare_for_tests(s, &pool, 'y');
    uint64_t promised = s->admission.promised[RESOURCE_MEMORY];
    assert_int_equal(promised, 2048 * MIB);

    assert_null(pools_take(&stranger.sb));
    assert_int_equal(pool.ready, 2);
    assert_int_equal(pool.misses, 1); /* it does not miss what is not for it */

    /* The oldest one; it is the asker's promise that counts from now on. */
    struct spare *spare = pools_take(&asker.sb);
    assert_non_null(spare);
    assert_int_equal(asker.sb.id[0], 'x');
    assert_true(asker.sb.unclaimed && asker.sb.limits_stay);
    assert_int_equal(s->admission.promised[RESOURCE_MEMORY], 1024 * MIB);

    /* The create was refused: as if nothing had been. */
    pools_settle(&asker.sb, spare, false);
    assert_false(asker.sb.unclaimed);
    assert_int_equal(pool.ready, 2);
    assert_int_equal(pool.claimed, 0);
    assert_int_equal(s->admission.promised[RESOURCE_MEMORY], promised);

    sandbox_for_tests(&asker, s, NULL);
    asker.sb.limits.cpu_millis = 500;
    spare = pools_take(&asker.sb);
    assert_int_equal(asker.sb.id[0], 'y');
    assert_false(asker.sb.limits_stay); /* the claim has to set them */
    pools_settle(&asker.sb, spare, true);
    assert_int_equal(pool.claimed, 1);
    assert_int_equal(pool.ready, 1);
    assert_false(pools_know(s, asker.sb.id)); /* a sandbox like any other now */
    assert_true(pools_know(s, pool.oldest->id));

    s->pools->stopping = true;
    assert_null(pools_take(&asker.sb));
    HASH_CLEAR(by_key, s->pools->keys);
    free(pool.key);
    sandboxes_end(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_fits),
        cmocka_unit_test(test_taking),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
