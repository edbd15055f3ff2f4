/* SPDX-License-Identifier: Apache-2.0 */

#include "sandbox/trust.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/cleanup.h"
#include "wire/messages.h"

static struct trust_options level(const char *name)
{
    struct trust_options options;
    struct error err;
    const struct trust_request request = {.level = name};
    assert_int_equal(trust_resolve(&request, NULL, &options, &err), 0);
    return options;
}

static struct trust_request with(const char *name, enum trust_option option, uint64_t value)
{
    struct trust_request request = {.level = name, .given = 1U << option};
    trust_set(&request.wanted, option, value);
    return request;
}

static void levels_are_known(void **state)
{
    enum trust_level found;
    struct error err;
    assert_int_equal(trust_level_parse(NULL, &found, &err), 0);
    assert_int_equal(found, TRUST_STANDARD);
    for (enum trust_level i = 0; i < TRUST_LEVEL_COUNT; i++) {
        assert_int_equal(trust_level_parse(trust_level_text(i), &found, &err), 0);
        assert_int_equal(found, i);
    }
    assert_int_equal(trust_level_parse("Trusted", &found, &err), -1);
    assert_int_equal(err.code, ERROR_INVALID_ARGUMENT);
    assert_non_null(strstr(err.message, "untrusted"));
}

/* The table of the documentation. */
static void rows_are_what_they_are_said_to_be(void **state)
{
    struct trust_options standard = level(NULL), trusted = level("trusted"),
                         sandboxed = level("sandboxed"), untrusted = level("untrusted");
    assert_true(standard.allow_shell && standard.allow_subprocess && !standard.read_only_root);
    assert_false(standard.no_new_privs || standard.no_capabilities);
    assert_int_equal(standard.memory_limit_mb, 0);
    assert_true(trusted.allow_shell && trusted.allow_subprocess && !trusted.read_only_root);
    assert_int_equal(trusted.memory_limit_mb, 2048);
    assert_false(sandboxed.allow_shell || sandboxed.allow_subprocess || sandboxed.no_capabilities);
    assert_true(sandboxed.read_only_root && sandboxed.no_new_privs && sandboxed.log_all_commands);
    assert_int_equal(sandboxed.memory_limit_mb, 512);
    assert_false(untrusted.allow_shell || untrusted.allow_subprocess);
    assert_true(untrusted.read_only_root && untrusted.no_new_privs && untrusted.no_capabilities &&
                untrusted.strict_calls);
    assert_int_equal(untrusted.memory_limit_mb, 256);
    assert_int_equal(untrusted.cpu_limit_millis, 500);
}

/* Every option, both ways, at every level: tighter is free, looser is not. */
static void tightening_is_free_and_loosening_is_not(void **state)
{
    for (enum trust_level i = 0; i < TRUST_LEVEL_COUNT; i++)
        for (enum trust_option option = 0; option < TRUST_OPTION_COUNT; option++) {
            const struct trust_row *row = &trust_rows[option];
            struct trust_options options, has = level(trust_level_text(i));
            struct error err;
            if (row->kind == TRUST_HOSTS || option == TRUST_NETWORK_ENABLED ||
                option == TRUST_ALLOW_NETWORK_TOOLS ||
                /* The filter against subprocesses needs it, whatever is asked for. */
                (option == TRUST_NO_NEW_PRIVS && !has.allow_subprocess))
                continue;
            bool number = row->kind != TRUST_BOOL;
            uint64_t tight = number ? row->min : !row->loose, loose = number ? 0 : row->loose;
            struct trust_request request = with(trust_level_text(i), option, tight);
            assert_int_equal(trust_resolve(&request, NULL, &options, &err), 0);
            assert_int_equal(trust_get(&options, option), tight);
            request = with(trust_level_text(i), option, loose);
            if (trust_get(&has, option) != loose) {
                assert_int_equal(trust_resolve(&request, NULL, &options, &err), -1);
                assert_int_equal(err.code, ERROR_FORBIDDEN);
                assert_non_null(strstr(err.message, row->name));
                assert_non_null(strstr(err.message, "admin"));
            }
            request.may_loosen = true;
            assert_int_equal(trust_resolve(&request, NULL, &options, &err), 0);
            assert_int_equal(trust_get(&options, option), loose);
        }
}

static void numbers_have_bounds(void **state)
{
    static const struct {
        enum trust_option option;
        uint64_t value;
    } rows[] = {
        {TRUST_MEMORY_LIMIT_MB, 15},
        {TRUST_MEMORY_LIMIT_MB, (1 << 24) + 1},
        {TRUST_CPU_LIMIT, 9},
        {TRUST_CPU_LIMIT, 1024001},
        {TRUST_TIMEOUT_SECONDS, UINT64_C(1) << 31},
        {TRUST_TIMEOUT_SECONDS, UINT64_MAX},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct trust_request request = with(NULL, rows[i].option, rows[i].value);
        struct trust_options options;
        struct error err;
        request.may_loosen = true;
        assert_int_equal(trust_resolve(&request, NULL, &options, &err), -1);
        assert_int_equal(err.code, ERROR_INVALID_ARGUMENT);
        assert_non_null(strstr(err.message, trust_rows[rows[i].option].name));
    }
}

/* Which mode comes of it is the network's business: here it only begins. */
static void levels_have_networks(void **state)
{
    static const struct {
        const char *level;
        enum net_mode first, most;
    } rows[] = {{"standard", NET_NONE, NET_FULL},
                {"trusted", NET_FULL, NET_FULL},
                {"sandboxed", NET_ALLOWLIST, NET_ALLOWLIST},
                {"untrusted", NET_NONE, NET_NONE}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct trust_options options = level(rows[i].level);
        assert_int_equal(options.network, rows[i].first);
        assert_int_equal(options.network_most, rows[i].most);
        assert_int_equal(options.network_enabled, rows[i].first != NET_NONE);
        assert_null(trust_enforcement(&options, TRUST_NETWORK_ENABLED));
        options.network_enabled = false;
        if (rows[i].first != NET_NONE)
            assert_non_null(trust_enforcement(&options, TRUST_NETWORK_ENABLED));
    }
}

static void a_clone_is_no_looser_than_its_source(void **state)
{
    const struct trust_options source = level("sandboxed");
    static const struct {
        const char *level;
        bool refused;
    } rows[] = {{NULL, false},
                {"sandboxed", false},
                {"untrusted", false},
                {"standard", true},
                {"trusted", true}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct trust_request request = {.level = rows[i].level};
        struct trust_options options;
        struct error err;
        assert_int_equal(trust_resolve(&request, &source, &options, &err),
                         rows[i].refused ? -1 : 0);
        if (rows[i].refused)
            assert_int_equal(err.code, ERROR_FORBIDDEN);
        if (rows[i].level == NULL)
            assert_true(trust_same(&options, &source));
        request.may_loosen = true;
        assert_int_equal(trust_resolve(&request, &source, &options, &err), 0);
    }
    /* A level that is as tight as its source's options, and lacks what the source's level brings.
     */
    struct trust_options bare = level(NULL);
    bare.allow_subprocess = false;
    bare.no_new_privs = bare.no_capabilities = true;
    struct trust_request request = with("standard", TRUST_ALLOW_SUBPROCESS, 0);
    struct trust_options options;
    struct error err;
    assert_int_equal(trust_resolve(&request, &bare, &options, &err), -1);
    assert_int_equal(err.code, ERROR_FORBIDDEN);
}

static void no_subprocess_brings_no_new_privs(void **state)
{
    struct trust_request request = with(NULL, TRUST_ALLOW_SUBPROCESS, 0);
    struct trust_options options;
    struct error err;
    assert_int_equal(trust_resolve(&request, NULL, &options, &err), 0);
    assert_true(options.no_new_privs);
    assert_true(options.allow_shell);
    struct plan plan = {.memory_bytes = 64 << 20, .shm_bytes = 32 << 20};
    trust_plan(&options, &plan);
    assert_int_equal(plan.flags, PLAN_NO_NEW_PRIVS | PLAN_NO_SUBPROCESS);
    assert_int_equal(plan.shm_bytes, 32 << 20);
}

static void plans(void **state)
{
    struct trust_options options = level(NULL);
    struct plan plan = {.memory_bytes = 256 << 20, .shm_bytes = 64 << 20};
    trust_plan(&options, &plan);
    assert_int_equal(plan.flags, 0);
    options = level("untrusted");
    trust_plan(&options, &plan);
    assert_int_equal(plan.flags, PLAN_NO_NEW_PRIVS | PLAN_NO_SUBPROCESS | PLAN_NO_CAPABILITIES |
                                     PLAN_STRICT_CALLS | PLAN_READ_ONLY_ROOT);
    assert_int_equal(plan.scratch_bytes, 64 << 20);
    /* What can be filled leaves some memory for those who run. */
    assert_true(2 * plan.scratch_bytes + plan.shm_bytes < plan.memory_bytes);
}

static void limits(void **state)
{
    struct trust_request request = {.level = "untrusted"};
    struct trust_options options = level("untrusted");
    struct error err;
    const uint64_t mib = 1 << 20;
    assert_int_equal(trust_check_limits(&request, 256 * mib, 500, &options, &err), 0);
    assert_int_equal(trust_check_limits(&request, 256 * mib + 1, 500, &options, &err), -1);
    assert_int_equal(err.code, ERROR_FORBIDDEN);
    assert_non_null(strstr(err.message, "resources.memory"));
    assert_int_equal(trust_check_limits(&request, mib, 501, &options, &err), -1);
    assert_int_equal(err.code, ERROR_FORBIDDEN);
    assert_non_null(strstr(err.message, "resources.cpu"));
    request.may_loosen = true;
    assert_int_equal(trust_check_limits(&request, 300 * mib + 1, 501, &options, &err), 0);
    assert_int_equal(options.memory_limit_mb, 301);
    assert_int_equal(options.cpu_limit_millis, 501);
    request.given = 1U << TRUST_MEMORY_LIMIT_MB;
    assert_int_equal(trust_check_limits(&request, 400 * mib, 501, &options, &err), -1);
    assert_int_equal(err.code, ERROR_INVALID_ARGUMENT);
    options = level(NULL);
    assert_int_equal(trust_check_limits(&request, UINT64_MAX / 2, UINT32_MAX, &options, &err), 0);
}

#define LIST(text)                                                                                 \
    {                                                                                              \
        text, sizeof(text)                                                                         \
    }

static void shells(void **state)
{
    static const struct slice refused[] = {
        LIST("sh\0-c\0x"),
        LIST("/bin/sh"),
        LIST("bash"),
        LIST("/usr/bin/bash"),
        LIST("./dash"),
        LIST("fish"),
        LIST("pip\0install\0x"),
        LIST("/usr/bin/pip3.11"),
        LIST("python3\0-m\0pip\0install\0x"),
        LIST("/usr/bin/python3\0-I\0-m\0pip"),
        LIST("python\0-mpip"),
    };
    static const struct slice fine[] = {
        LIST("python3"),       LIST("/usr/bin/python3\0-c\0-m\0pip"),
        LIST("bashful"),       LIST("sh/ls"),
        LIST("echo\0-m\0pip"), LIST("python3\0-m\0pipeline"),
        LIST("pipeline"),      LIST("python3\0x.py\0-m\0pip"),
        LIST("python3\0-m"),   LIST("python3\0-m\0json.tool\0pip"),
    };
    const struct trust_options open = level(NULL), strict = level("untrusted");
    struct error err;
    for (size_t i = 0; i < ARRAY_LEN(refused); i++) {
        assert_int_equal(trust_check_program(&open, refused[i], &err), 0);
        assert_int_equal(trust_check_program(&strict, refused[i], &err), -1);
        assert_int_equal(err.code, ERROR_SHELL_NOT_ALLOWED);
    }
    for (size_t i = 0; i < ARRAY_LEN(fine); i++)
        assert_int_equal(trust_check_program(&strict, fine[i], &err), 0);
    assert_int_equal(trust_check_shell(&open, "a terminal", &err), 0);
    assert_int_equal(trust_check_shell(&strict, "a terminal", &err), -1);
    assert_int_equal(err.code, ERROR_SHELL_NOT_ALLOWED);
}

static void timeouts(void **state)
{
    const struct trust_options open = level(NULL), strict = level("untrusted");
    assert_int_equal(trust_timeout_ms(&open, 0), 0);
    assert_int_equal(trust_timeout_ms(&open, 7), 7);
    assert_int_equal(trust_timeout_ms(&strict, 0), 60000);
    assert_int_equal(trust_timeout_ms(&strict, 5000), 5000);
    assert_int_equal(trust_timeout_ms(&strict, 60001), 60000);
    assert_int_equal(trust_timeout_ms(&strict, UINT64_MAX), 60000);
}

static void the_store_gives_back_what_it_got(void **state)
{
    struct arena *arena = arena_new();
    struct error err;
    for (enum trust_level i = 0; i < TRUST_LEVEL_COUNT; i++) {
        struct trust_options again, options = level(trust_level_text(i));
        options.timeout_seconds = 12345;
        options.allow_subprocess = false;
        options.no_new_privs = true;
        assert_int_equal(
            trust_from_text(trust_level_text(i), trust_text(&options, arena), &again, &err), 0);
        assert_true(trust_same(&again, &options));
        assert_true(again.no_new_privs);
        assert_int_equal(again.no_capabilities, options.no_capabilities);
    }
    struct trust_options again;
    assert_int_equal(trust_from_text(NULL, NULL, &again, &err), 0);
    assert_int_equal(again.level, TRUST_STANDARD);
    assert_true(again.allow_shell);
    static const char *const bad[] = {"x",
                                      "x=1",
                                      "allow_shell",
                                      "allow_shell=",
                                      "allow_shell=1 \n",
                                      "=1",
                                      "allow_shell=1\n\nallow_subprocess=1"};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        assert_int_equal(trust_from_text(NULL, bad[i], &again, &err), -1);
        assert_int_equal(err.code, ERROR_CONFLICT);
    }
    arena_free(arena);
}

static void resources_that_are_not_asked_for(void **state)
{
    struct arena *arena = arena_new();
    struct trust_options options = level("untrusted");
    assert_string_equal(trust_memory(&options, arena), "256Mi");
    assert_string_equal(trust_cpu(&options, arena), "500m");
    options = level("trusted");
    assert_string_equal(trust_memory(&options, arena), "2Gi");
    assert_null(trust_cpu(&options, arena));
    arena_free(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(levels_are_known),
        cmocka_unit_test(rows_are_what_they_are_said_to_be),
        cmocka_unit_test(tightening_is_free_and_loosening_is_not),
        cmocka_unit_test(numbers_have_bounds),
        cmocka_unit_test(levels_have_networks),
        cmocka_unit_test(a_clone_is_no_looser_than_its_source),
        cmocka_unit_test(no_subprocess_brings_no_new_privs),
        cmocka_unit_test(plans),
        cmocka_unit_test(limits),
        cmocka_unit_test(shells),
        cmocka_unit_test(timeouts),
        cmocka_unit_test(the_store_gives_back_what_it_got),
        cmocka_unit_test(resources_that_are_not_asked_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
