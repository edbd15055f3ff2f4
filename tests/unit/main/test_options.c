/* SPDX-License-Identifier: Apache-2.0 */

/* The options of `cella server`, and pools on the command line. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "base/cleanup.h"
#include "main/options.h"
#include "main/pool_option.h"

static void test_pool(void **state)
{
    struct pool_option option;
    struct error err;
    assert_int_equal(pool_option_parse("image=host", &option, &err), 0);
    assert_string_equal(option.image, "host");
    assert_string_equal(option.name, "");
    assert_null(option.trust);
    assert_false(option.has_size || option.has_ttl || option.has_refill);

    assert_int_equal(
        pool_option_parse("size=8,trust=untrusted,name=fast,ttl=1h30m,refill=2,image=a/b:c",
                          &option, &err),
        0);
    assert_string_equal(option.image, "a/b:c");
    assert_string_equal(option.name, "fast");
    assert_string_equal(option.trust, "untrusted");
    assert_true(option.has_size && option.has_ttl && option.has_refill);
    assert_int_equal(option.size, 8);
    assert_int_equal(option.ttl_s, 5400);
    assert_int_equal(option.refill, 2);
    assert_int_equal(pool_option_parse("image=host,code=py+sh+python", &option, &err), 0);
    assert_true(option.has_code);
    assert_string_equal(option.code, "python bash");
    assert_int_equal(pool_option_parse("image=host,code=", &option, &err), 0);
    assert_true(option.has_code);
    assert_string_equal(option.code, "");
    assert_int_equal(pool_option_parse("image=host,code=cobol", &option, &err), -1);
    assert_int_equal(err.code, ERROR_CODE_LANGUAGE_UNKNOWN);
    assert_int_equal(pool_option_parse("image=host,size=0", &option, &err), 0);
    assert_true(option.has_size && option.size == 0);
}

static void test_bad_pools(void **state)
{
    static const struct {
        const char *text, *says;
    } wrong[] = {
        {"", "image=host,size=8"},
        {"size=8", "names no image"},
        {"host", "image=host,size=8"},
        {"image=", "1 to 255"},
        {"image=host,", "is none of"},
        {"image=host,,size=1", "is none of"},
        {"image=host,Size=1", "is none of"},
        {"image=host,size", "is none of"},
        {"image=host,size=", "size= is no number"},
        {"image=host,size=-1", "size=-1 is no number"},
        {"image=host,size=1.5", "no number"},
        {"image=host,size=99999999999999999999", "no number"},
        {"image=host,refill=two", "refill=two"},
        {"image=host,ttl=soon", "ttl"},
        {"image=host,trust=much", "trust"},
        {"image=host,name=", "name has 1 to"},
    };
    struct error err;
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        struct pool_option option = {.size = 77};
        assert_int_equal(pool_option_parse(wrong[i].text, &option, &err), -1);
        assert_int_equal(err.code, ERROR_INVALID_ARGUMENT);
        if (strstr(err.message, wrong[i].says) == NULL)
            fail_msg("%s: %s", wrong[i].text, err.message);
        assert_int_equal(option.size, 77); /* untouched */
    }
    char long_name[400] = "image=";
    memset(long_name + strlen(long_name), 'x', 300);
    struct pool_option option;
    assert_int_equal(pool_option_parse(long_name, &option, &err), -1);
}

static int parse(struct server_options *options, struct error *err, size_t count,
                 const char *const *words)
{
    char *argv[16] = {(char[]){"server"}};
    assert_true(count + 1 < ARRAY_LEN(argv));
    for (size_t i = 0; i < count; i++)
        argv[i + 1] = (char *)words[i];
    return server_options_parse((int)count + 1, argv, options, err);
}

#define PARSE(options, err, ...)                                                                   \
    parse((options), (err), sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *),           \
          (const char *const[]){__VA_ARGS__})

static void test_server(void **state)
{
    struct server_options options;
    struct error err;
    assert_int_equal(PARSE(&options, &err, "--pool", "image=host,size=1", "--no-auth", "--pool",
                           "image=base,trust=untrusted", "--overcommit", "memory=1.5",
                           "--no-history"),
                     0);
    assert_string_equal(options.pools, "image=host,size=1\nimage=base,trust=untrusted\n");
    assert_true(options.no_auth);
    assert_true(options.no_history);
    assert_string_equal(options.overcommit, "memory=1.5");
    assert_int_equal(PARSE(&options, &err, "--overcommit", ""), 0);
    assert_int_equal(options.history_bytes, 2000 << 20);
    assert_int_equal(PARSE(&options, &err, "--history-size", "500Mi"), 0);
    assert_int_equal(options.history_bytes, 500 << 20);

    assert_int_equal(PARSE(&options, &err, "--pool", "size=1"), -1);
    assert_non_null(strstr(err.message, "--pool"));
    assert_int_equal(PARSE(&options, &err, "--pool", "image=a\nb,size=1"), -1);
    assert_int_equal(PARSE(&options, &err, "--pool"), -1);
    assert_non_null(strstr(err.message, "needs a value"));
    assert_int_equal(PARSE(&options, &err, "--overcommit", "memory=x"), -1);
    assert_non_null(strstr(err.message, "--overcommit"));
    assert_int_equal(PARSE(&options, &err, "--capacity", "memory=x"), -1);
    assert_int_equal(PARSE(&options, &err, "--metrics-interval", "0"), -1);
    assert_int_equal(PARSE(&options, &err, "--nonsense", "x"), -1);
    static const char *const sizes[] = {"", "x", "0", "1000", "3Gi"};
    for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
        assert_int_equal(PARSE(&options, &err, "--history-size", sizes[i]), -1);
        assert_non_null(strstr(err.message, "1Mi to 2000Mi"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pool),
        cmocka_unit_test(test_bad_pools),
        cmocka_unit_test(test_server),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
