/* SPDX-License-Identifier: Apache-2.0 */

#include "helpers.h"

#include "api/call_limits.h"

static void test_config(void **state)
{
    struct limits_config c;
    struct error err;
    assert_int_equal(limits_config_parse(NULL, NULL, &c, &err), 0);
    assert_false(c.off || c.local);
    assert_int_equal(c.classes[ROUTE_CLASS_FREE].per_second, 0);
    for (int i = 0; i < ROUTE_CLASS_FREE; i++)
        assert_true(c.classes[i].per_second > 0 && c.classes[i].burst >= c.classes[i].per_second);
    assert_int_equal(limits_config_parse("off", "", &c, &err), 0);
    assert_true(c.off);
    assert_int_equal(limits_config_parse("on", "", &c, &err), 0);
    assert_false(c.off);
    assert_int_equal(limits_config_parse("exec=7:9,read=off,files=3,address=11:12,local=on",
                                         "streams=5,streams-per-key=off,sandboxes=2", &c, &err),
                     0);
    assert_int_equal(c.classes[ROUTE_CLASS_EXEC].per_second, 7);
    assert_int_equal(c.classes[ROUTE_CLASS_EXEC].burst, 9);
    assert_int_equal(c.classes[ROUTE_CLASS_READ].per_second, 0);
    assert_int_equal(c.classes[ROUTE_CLASS_FILES].burst, 3);
    assert_int_equal(c.address.burst, 12);
    assert_true(c.local);
    assert_int_equal(c.quotas.of[QUOTA_STREAMS], 5);
    assert_int_equal(c.quotas.of[QUOTA_STREAMS_PER_KEY], 0);
    assert_int_equal(c.quotas.of[QUOTA_SANDBOXES], 2);
}

static void test_wrong_config(void **state)
{
    static const struct {
        const char *rates, *quotas;
    } rows[] = {
        {"exec", NULL},      {"exec=", NULL},        {"exec=0", NULL},     {"exec=1:0", NULL},
        {"exec=-1", NULL},   {"exec=1:", NULL},      {"exec=1:2:3", NULL}, {"exec=1x", NULL},
        {"nothing=1", NULL}, {"exec=9999999", NULL}, {"local=1", NULL},    {"=1", NULL},
        {NULL, "streams"},   {NULL, "streams=0"},    {NULL, "boxes=1"},    {NULL, "off"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct limits_config c;
        struct error err = {0};
        assert_int_equal(limits_config_parse(rows[i].rates, rows[i].quotas, &c, &err), -1);
        assert_int_equal(err.code, ERROR_INVALID_ARGUMENT);
    }
}

static bool same(struct caller a, struct caller b)
{
    return memcmp(&a, &b, sizeof(a)) == 0;
}

static void test_callers(void **state)
{
    const struct principal key = {.name = "k", .key_id = "abcdefghijkl"};
    const struct principal anonymous = {.name = "anonymous"};
    const struct principal ann = {.name = "ann", .workspace = "w"};
    const struct principal bob = {.name = "bob", .workspace = "w"};
    assert_true(same(caller_of_principal(&key, "192.0.2.1:1"), caller_of_principal(&key, "unix")));
    assert_true(
        same(caller_of_principal(&anonymous, "192.0.2.1:1"), caller_of_peer("192.0.2.1:2")));
    assert_false(same(caller_of_principal(&ann, "unix"), caller_of_principal(&bob, "unix")));
    assert_true(same(caller_of_peer("[2001:db8::1]:1"), caller_of_peer("[2001:db8::2]:2")));
    assert_false(same(caller_of_peer("[2001:db8::1]:1"), caller_of_peer("[2001:db8:0:1::1]:1")));
    assert_false(same(caller_of_sandbox("abcdefghijkl"), caller_of_principal(&key, "unix")));
}

static void test_who_counts(void **state)
{
    struct limits limits;
    struct limits_config c;
    static const char *const local[] = {"127.0.0.1:1", "127.9.9.9:1", "[::1]:1",
                                        "[::ffff:127.0.0.1]:1", "unix"};
    assert_int_equal(limits_config_parse(NULL, NULL, &c, NULL), 0);
    limits_init(&limits, &c);
    for (size_t i = 0; i < sizeof(local) / sizeof(local[0]); i++)
        assert_false(limits_counts(&limits, NULL, local[i]));
    assert_true(limits_counts(&limits, NULL, "192.0.2.1:1"));
    assert_true(limits_counts(&limits, NULL, "[2001:db8::1]:1"));
    limits.config.local = true;
    assert_true(limits_counts(&limits, NULL, "unix"));
    limits.config.off = true;
    assert_false(limits_counts(&limits, NULL, "192.0.2.1:1"));
    /* Where nobody is limited but those of one workspace, they are, in what was said. */
    assert_int_equal(limits_set_workspace(&limits, "blue", "exec=1:2", "", NULL), 0);
    assert_true(limits_counts(&limits, "blue", "192.0.2.1:1"));
    assert_false(limits_counts(&limits, "red", "192.0.2.1:1"));
    assert_int_equal(limits_of(&limits, "blue")->classes[ROUTE_CLASS_EXEC].burst, 2);
    assert_int_equal(limits_of(&limits, "blue")->classes[ROUTE_CLASS_READ].per_second, 0);
    struct caller one = caller_in(caller_of_sandbox("one"), "blue");
    for (int i = 0; i < 2; i++)
        assert_int_equal(limits_admit_more(&limits, "192.0.2.1:1", one, ROUTE_CLASS_EXEC, NULL), 0);
    assert_int_equal(limits_admit_more(&limits, "192.0.2.1:1", one, ROUTE_CLASS_EXEC, NULL), -1);
    limits_release(&limits);
}

static void test_streams(void **state)
{
    struct limits limits;
    struct limits_config c;
    struct error err;
    struct caller one = caller_of_sandbox("one"), two = caller_of_sandbox("two");
    assert_int_equal(limits_config_parse(NULL, "streams=3,streams-per-key=2", &c, &err), 0);
    limits_init(&limits, &c);
    assert_int_equal(limits_stream_begin(&limits, one, &err), 0);
    assert_int_equal(limits_stream_begin(&limits, one, &err), 0);
    assert_int_equal(limits_stream_begin(&limits, one, &err), -1);
    assert_int_equal(err.code, ERROR_TOO_MANY_STREAMS);
    assert_int_equal(limits_stream_begin(&limits, two, &err), 0);
    assert_int_equal(limits_stream_begin(&limits, two, &err), -1); /* of all */
    assert_int_equal(limits_streams_of(&limits, one), 2);
    limits_stream_end(&limits, one);
    assert_int_equal(limits_stream_begin(&limits, two, &err), 0);
    limits_stream_end(&limits, one);
    assert_int_equal(limits_streams_of(&limits, one), 0);
    struct limits_counters counters = limits_counters_of(&limits);
    assert_int_equal(counters.streams, 2);
    assert_int_equal(counters.streams_refused, 2);
    limits_stream_end(&limits, two);
    limits_stream_end(&limits, two);
    limits_release(&limits);
}

/* Lines of the audit log are counted for everybody, and for each by himself. */
static void test_lines(void **state)
{
    struct limits limits;
    struct limits_config c;
    struct caller one = caller_of_sandbox("one"), two = caller_of_peer("127.0.0.1:1");
    assert_int_equal(limits_config_parse("off", NULL, &c, NULL), 0);
    limits_init(&limits, &c);
    int lines = 0;
    while (lines < 2 * LIMITS_LINES_AT_ONCE && limits_take_line(&limits, one))
        lines++;
    assert_in_range(lines, LIMITS_LINES_AT_ONCE, LIMITS_LINES_AT_ONCE + 10 * LIMITS_LINES_PER_S);
    assert_true(limits_take_line(&limits, two));
    limits_release(&limits);
}

/* What a workspace has of its own is on top of the server's, and touches no other. */
static void test_workspaces(void **state)
{
    struct limits limits;
    struct limits_config c;
    struct error err;
    assert_int_equal(
        limits_config_parse("exec=7:9,read=5", "streams=4,streams-per-key=3,sandboxes=9", &c, &err),
        0);
    limits_init(&limits, &c);
    assert_ptr_equal(limits_of(&limits, "blue"), &limits.config);
    assert_int_equal(
        limits_set_workspace(&limits, "blue", "exec=1:2", "streams=2,sandboxes=1", &err), 0);
    const struct limits_config *blue = limits_of(&limits, "blue");
    assert_int_equal(blue->classes[ROUTE_CLASS_EXEC].burst, 2);
    assert_int_equal(blue->classes[ROUTE_CLASS_READ].per_second, 5);
    assert_int_equal(blue->quotas.of[QUOTA_STREAMS_PER_KEY], 3);
    assert_int_equal(limits_quotas_of(&limits, "blue")->of[QUOTA_SANDBOXES], 1);
    assert_int_equal(limits_quotas_of(&limits, "red")->of[QUOTA_SANDBOXES], 9);
    assert_ptr_equal(limits_of(&limits, ""), &limits.config);

    struct caller one = caller_in(caller_of_sandbox("one"), "blue");
    struct caller two = caller_in(caller_of_sandbox("two"), "blue");
    struct caller red = caller_in(caller_of_sandbox("red"), "red");
    assert_int_equal(limits_stream_begin(&limits, one, &err), 0);
    assert_int_equal(limits_stream_begin(&limits, two, &err), 0);
    assert_int_equal(limits_stream_begin(&limits, one, &err), -1);
    assert_int_equal(err.code, ERROR_TOO_MANY_STREAMS);
    assert_non_null(strstr(err.message, "workspace's"));
    assert_int_equal(limits_stream_begin(&limits, red, &err), 0);
    assert_int_equal(limits_streams_in(&limits, "blue"), 2);
    assert_int_equal(limits_streams_in(&limits, "red"), 1);

    /* None of its own any more: what was open is counted still. */
    assert_int_equal(limits_set_workspace(&limits, "blue", "", "", &err), 0);
    assert_ptr_equal(limits_of(&limits, "blue"), &limits.config);
    assert_int_equal(limits_stream_begin(&limits, one, &err), 0);
    assert_int_equal(limits_stream_begin(&limits, red, &err), -1); /* of the server */
    limits_stream_end(&limits, one);
    limits_stream_end(&limits, one);
    limits_stream_end(&limits, two);
    limits_stream_end(&limits, red);
    assert_int_equal(limits_streams_in(&limits, "blue"), 0);

    static const char *const bad[][2] = {{"address=1", ""}, {"local=on", ""}, {"exec=x", ""},
                                         {"", "streams=0"}, {"", "x=1"},      {"", "off"}};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_int_equal(limits_set_workspace(&limits, "red", bad[i][0], bad[i][1], &err), -1);
        assert_int_equal(err.code, ERROR_INVALID_ARGUMENT);
        assert_ptr_equal(limits_of(&limits, "red"), &limits.config);
    }
    assert_int_equal(limits_set_workspace(&limits, "red", "off", "", &err), 0);
    assert_true(limits_of(&limits, "red")->off);
    limits_release(&limits);
}

/* A connection of bytes is an address, here and in its workspace. */
static void test_connections(void **state)
{
    static const char *const here = "192.0.2.1:1", *const there = "192.0.2.2:1";
    struct limits limits;
    struct limits_config c;
    struct error err = {0};
    assert_int_equal(limits_config_parse("proxy=1:3,address=1:5", "", &c, &err), 0);
    limits_init(&limits, &c);
    for (int i = 0; i < 3; i++)
        assert_int_equal(limits_admit_connection(&limits, here, "red", &err), 0);
    assert_int_equal(limits_admit_connection(&limits, here, "red", &err), -1);
    assert_int_equal(err.code, ERROR_RATE_LIMITED);
    assert_non_null(strstr(err.message, "(proxy)"));
    assert_int_equal(limits_admit_connection(&limits, here, "red", &err), -1);
    assert_int_equal(limits_admit_connection(&limits, here, "red", &err), -1);
    assert_non_null(strstr(err.message, "(address)"));
    assert_int_equal(limits_set_workspace(&limits, "blue", "proxy=1:1", "", &err), 0);
    assert_int_equal(limits_admit_connection(&limits, there, "blue", &err), 0);
    assert_int_equal(limits_admit_connection(&limits, there, "blue", &err), -1);
    assert_int_equal(limits_admit_connection(&limits, there, "red", &err), 0);
    for (int i = 0; i < 20; i++) /* who is on this machine is not counted */
        assert_int_equal(limits_admit_connection(&limits, "127.0.0.1:1", "red", &err), 0);
    limits_release(&limits);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_config),     cmocka_unit_test(test_wrong_config),
        cmocka_unit_test(test_callers),    cmocka_unit_test(test_who_counts),
        cmocka_unit_test(test_streams),    cmocka_unit_test(test_lines),
        cmocka_unit_test(test_workspaces), cmocka_unit_test(test_connections),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
