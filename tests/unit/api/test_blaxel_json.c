/* SPDX-License-Identifier: Apache-2.0 */

/* The shapes that Blaxel's clients send and see. */

#include "helpers.h"

#include "api/blaxel/preview_json.h"
#include "api/blaxel/process_json.h"
#include "api/blaxel/sandbox_json.h"
#include "api/blaxel/sandbox_request.h"
#include "base/cleanup.h"
#include "base/limits.h"
#include "base/timetext.h"

static struct blaxel_sandbox_request read_ok(struct arena *arena, const char *text)
{
    struct blaxel_sandbox_request request;
    struct error err = {0};
    if (blaxel_sandbox_request(arena, value_of(arena, text), 0, &request, &err) < 0)
        fail_msg("%s", err.message);
    return request;
}

static void test_request(void **state)
{
    struct blaxel_sandbox_request request = read_ok(
        *state, "{\"metadata\":{\"name\":\"n\",\"labels\":{\"a\":\"b\"},\"plan\":\"free\"},"
                "\"spec\":{\"runtime\":{\"image\":\"i\",\"memory\":4096,\"envs\":[{\"name\":\"A\","
                "\"value\":\"1\"},{\"name\":\"S\",\"value\":\"2\",\"secret\":true}],"
                "\"generation\":\"mk3\",\"ttl\":null},\"region\":\"r\",\"lifecycle\":null},"
                "\"status\":\"DEPLOYED\",\"unheardOf\":1}");
    assert_string_equal(request.name, "n");
    assert_string_equal(request.image, "i");
    assert_string_equal(request.resources.memory, "4096Mi");
    assert_string_equal(request.resources.cpu, "2000m");
    assert_null(request.enabled);
    assert_int_equal(request.labels->len, 4);
    assert_string_equal(request.labels->data, "a=b");
    assert_int_equal(request.env->len, 8);
    assert_memory_equal(request.env->data, "A=1\0S=2\0", 8);
    assert_string_equal(request.spec,
                        "{\"runtime\":{\"generation\":\"mk3\",\"secretEnvs\":[\"S\"]},"
                        "\"region\":\"r\"}");
}

/* Secrets of routes are not kept; those that an earlier release has kept are not shown. */
static void test_secrets_of_routes(void **state)
{
    static const char with[] =
        "{\"network\":{\"proxy\":{\"routing\":[{\"destinations\":[\"*\"],"
        "\"secrets\":{\"k\":\"value-of-it\"}},7,{\"secrets\":\"value-of-it\"}]}}}",
                      without[] = "{\"network\":{\"proxy\":{\"routing\":[{\"destinations\":[\"*\"]}"
                                  ",7,{}]}}}";
    struct sandbox_info info = {.image = "host", .workspace = "w", .name = "n"};
    yyjson_mut_doc *doc = json_doc(*state);
    struct blaxel_sandbox_request request =
        read_ok(*state, arena_printf(*state, "{\"spec\":%s}", with));
    assert_string_equal(request.spec, without);
    info.created_by = info.updated_by = "me";
    info.metadata.blaxel_spec = with;
    const char *text = text_of(*state, doc, blaxel_sandbox_json(*state, doc, &info, "", false));
    assert_null(strstr(text, "value-of-it"));
    assert_non_null(strstr(text, "destinations"));
}

static void test_nothing_was_sent(void **state)
{
    struct blaxel_sandbox_request request;
    struct error err = {0};
    assert_int_equal(blaxel_sandbox_request(*state, NULL, 0, &request, &err), 0);
    assert_null(request.name);
    assert_null(request.labels);
    assert_null(request.env);
    assert_null(request.spec);
    assert_null(request.resources.memory);
    request = read_ok(*state, "{\"metadata\":{\"name\":\"\"},\"spec\":{\"enabled\":false}}");
    assert_null(request.name);
    assert_false(*request.enabled);
}

static void test_little_memory_has_some_cpu(void **state)
{
    struct blaxel_sandbox_request request =
        read_ok(*state, "{\"spec\":{\"runtime\":{\"memory\":16}}}");
    assert_string_equal(request.resources.cpu, "10m");
}

static struct lifespan read_lifespan(struct arena *arena, const char *spec,
                                     enum error_code *ret_code)
{
    struct blaxel_sandbox_request request = {0};
    struct error err = {0};
    const char *text = arena_printf(arena, "{\"spec\":%s}", spec);
    *ret_code = ERROR_NONE;
    if (blaxel_sandbox_request(arena, value_of(arena, text), 1000000, &request, &err) < 0)
        *ret_code = err.code;
    return request.lifespan;
}

#define POLICIES(list) "{\"lifecycle\":{\"expirationPolicies\":[" list "]}}"

static void test_lifespans(void **state)
{
    static const struct {
        const char *spec;
        int64_t idle_s, expires_ms;
    } rows[] = {
        {"{}", 0, 0},
        {"{\"runtime\":{\"ttl\":\"\",\"expires\":\"\"},\"lifecycle\":{}}", 0, 0},
        {"{\"runtime\":{\"ttl\":\"1h\"}}", 0, 4600000},
        {"{\"runtime\":{\"ttl\":\"1w\"}}", 0, 605800000},
        {"{\"runtime\":{\"expires\":\"2023-10-10T15:30:00.000Z\"}}", 0, 1696951800000},
        {"{\"runtime\":{\"ttl\":\"1h\",\"expires\":\"2023-10-10T15:30:00Z\"}}", 0, 4600000},
        {POLICIES("{\"type\":\"ttl-idle\",\"value\":\"1h\",\"action\":\"delete\"}"), 3600, 0},
        {POLICIES("{\"type\":\"ttl-max-age\",\"value\":\"1d\"},"
                  "{\"type\":\"ttl-max-age\",\"value\":\"1h\"},"
                  "{\"type\":\"ttl-idle\",\"value\":\"5m\"}"),
         300, 4600000},
        {POLICIES("{\"type\":\"date\",\"value\":\"2023-10-10T15:30:00Z\"}"), 0, 1696951800000},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        enum error_code code;
        struct lifespan span = read_lifespan(*state, rows[i].spec, &code);
        assert_int_equal(code, ERROR_NONE);
        assert_int_equal(span.idle_s, rows[i].idle_s);
        assert_int_equal(span.expires_ms, rows[i].expires_ms);
        assert_int_equal(span.on_expire,
                         lifespan_is_none(&span) ? LIFESPAN_AS_USUAL : LIFESPAN_DELETE);
    }
}

static void test_bad_lifespans(void **state)
{
    static const struct {
        const char *spec;
        enum error_code code;
    } rows[] = {
        {"{\"runtime\":{\"ttl\":\"a while\"}}", ERROR_INVALID_DURATION},
        {"{\"runtime\":{\"ttl\":\"0s\"}}", ERROR_INVALID_DURATION},
        {"{\"runtime\":{\"ttl\":\"9999w\"}}", ERROR_INVALID_DURATION},
        {"{\"runtime\":{\"ttl\":5}}", ERROR_INVALID_ARGUMENT},
        {"{\"runtime\":{\"expires\":\"tomorrow\"}}", ERROR_INVALID_ARGUMENT},
        {"{\"lifecycle\":[]}", ERROR_INVALID_ARGUMENT},
        {"{\"lifecycle\":{\"expirationPolicies\":{}}}", ERROR_INVALID_ARGUMENT},
        {POLICIES("7"), ERROR_INVALID_ARGUMENT},
        {POLICIES("{}"), ERROR_INVALID_ARGUMENT},
        {POLICIES("{\"type\":\"ttl-idle\"}"), ERROR_INVALID_ARGUMENT},
        {POLICIES("{\"type\":\"ttl\",\"value\":\"1h\"}"), ERROR_INVALID_ARGUMENT},
        {POLICIES("{\"type\":\"ttl-idle\",\"value\":\"1y\"}"), ERROR_INVALID_DURATION},
        {POLICIES("{\"type\":\"date\",\"value\":\"1h\"}"), ERROR_INVALID_ARGUMENT},
        {POLICIES("{\"type\":\"ttl-idle\",\"value\":\"1h\",\"action\":\"pause\"}"),
         ERROR_INVALID_ARGUMENT},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        enum error_code code;
        read_lifespan(*state, rows[i].spec, &code);
        if (code != rows[i].code)
            fail_msg("%s: %s", rows[i].spec, error_name(code));
    }
}

static void test_bad_requests(void **state)
{
    static const struct {
        const char *text, *named;
    } rows[] = {
        {"{\"metadata\":[]}", "metadata"},
        {"{\"metadata\":{\"name\":1}}", "metadata.name"},
        {"{\"metadata\":{\"labels\":{\"a\":1}}}", "metadata.labels.a"},
        {"{\"metadata\":{\"labels\":{\"a=b\":\"c\"}}}", "metadata.labels"},
        {"{\"metadata\":{\"labels\":{\"\":\"c\"}}}", "metadata.labels"},
        {"{\"spec\":{\"enabled\":\"yes\"}}", "spec.enabled"},
        {"{\"spec\":{\"runtime\":7}}", "spec.runtime"},
        {"{\"spec\":{\"runtime\":{\"memory\":0}}}", "spec.runtime.memory"},
        {"{\"spec\":{\"runtime\":{\"memory\":1.5}}}", "spec.runtime.memory"},
        {"{\"spec\":{\"runtime\":{\"memory\":-1}}}", "spec.runtime.memory"},
        {"{\"spec\":{\"runtime\":{\"envs\":{}}}}", "spec.runtime.envs"},
        {"{\"spec\":{\"runtime\":{\"envs\":[1]}}}", "envs"},
        {"{\"spec\":{\"runtime\":{\"envs\":[{\"value\":\"x\"}]}}}", "envs"},
        {"{\"spec\":{\"runtime\":{\"envs\":[{\"name\":\"A\"}]}}}", "envs.A"},
        {"{\"spec\":{\"runtime\":{\"envs\":[{\"name\":\"A\",\"value\":\"\\u0000\"}]}}}", "envs.A"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct blaxel_sandbox_request request;
        struct error err = {0};
        assert_int_equal(
            blaxel_sandbox_request(*state, value_of(*state, rows[i].text), 0, &request, &err), -1);
        assert_int_equal(err.code, ERROR_INVALID_ARGUMENT);
        if (strstr(err.message, rows[i].named) == NULL)
            fail_msg("%s does not name %s", err.message, rows[i].named);
    }
}

static void test_env_is_laid_over(void **state)
{
    struct slice env = {"A=1\0B=2\0AB=3\0", 13}, over = {"A=9\0C=\0", 7};
    struct error err = {0};
    assert_int_equal(blaxel_merge_env(*state, &env, over, &err), 0);
    assert_int_equal(env.len, 16);
    assert_memory_equal(env.data, "B=2\0AB=3\0A=9\0C=\0", 16);
    char *large = arena_alloc(*state, ENV_BYTES_MAX + 1);
    memset(large, 'x', ENV_BYTES_MAX);
    large[1] = '=';
    assert_int_equal(blaxel_merge_env(*state, &env, (struct slice){large, ENV_BYTES_MAX + 1}, &err),
                     -1);
    assert_int_equal(err.code, ERROR_PAYLOAD_TOO_LARGE);
}

static const struct sandbox_info info = {
    .id = "abcdefghijkl",
    .workspace = "ws",
    .name = "box",
    .image = "host",
    .resources = {.cpu = "1000m", .memory = "1Gi", .disk = "10Gi"},
    .limits = {.cpu_millis = 1000, .memory_bytes = 1 << 30},
    .env = {"A=1\0S=2=3\0", 10},
    .metadata = {.labels = {"a=b=c\0", 6},
                 .external_id = "ext",
                 .display_name = "Box",
                 .blaxel_spec = "{\"runtime\":{\"ttl\":\"1h\",\"secretEnvs\":[\"S\"]}}"},
    .enabled = true,
    .status = SANDBOX_RUNNING,
    .created_ms = 1696951800000,
    .updated_ms = 1696951800000,
    .created_by = "me",
    .updated_by = "you",
};

static void test_sandbox(void **state)
{
    yyjson_mut_doc *doc = json_doc(*state);
    assert_string_equal(
        text_of(*state, doc, blaxel_sandbox_json(*state, doc, &info, "http://h", false)),
        "{\"metadata\":{\"name\":\"box\",\"displayName\":\"Box\",\"externalId\":\"ext\","
        "\"labels\":{\"a\":\"b=c\"},\"url\":\"http://h/ws/sandboxes/box\",\"workspace\":\"ws\","
        "\"createdAt\":\"2023-10-10T15:30:00Z\",\"updatedAt\":\"2023-10-10T15:30:00Z\","
        "\"createdBy\":\"me\",\"updatedBy\":\"you\"},"
        "\"spec\":{\"runtime\":{\"ttl\":\"1h\",\"image\":\"host\",\"memory\":1024,"
        "\"envs\":[{\"name\":\"A\",\"value\":\"1\"},"
        "{\"name\":\"S\",\"value\":\"********\",\"secret\":true}]},\"enabled\":true},"
        "\"status\":\"DEPLOYED\",\"state\":\"RUNNING\"}");
}

/* Text that was kept by something else than this program must not become anything but an object. */
static void test_a_spec_that_is_none(void **state)
{
    static const char *const texts[] = {NULL, "", "[]", "{", "7"};
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        struct sandbox_info other = info;
        yyjson_mut_doc *doc = json_doc(*state);
        other.metadata.blaxel_spec = texts[i];
        other.env.len = 0;
        const char *text =
            text_of(*state, doc, blaxel_sandbox_json(*state, doc, &other, "", false));
        assert_non_null(strstr(text, "\"spec\":{\"runtime\":{\"image\":\"host\",\"memory\":1024},"
                                     "\"enabled\":true}"));
    }
}

static void test_statuses(void **state)
{
    assert_string_equal(blaxel_status(SANDBOX_CREATING), "DEPLOYING");
    assert_string_equal(blaxel_status(SANDBOX_STOPPED), "DEACTIVATED");
    assert_string_equal(blaxel_status(SANDBOX_PAUSED), "DEACTIVATED");
    for (int i = 0; i < SANDBOX_STATUS_COUNT; i++)
        assert_non_null(blaxel_status((enum sandbox_status)i));
}

static void test_process(void **state)
{
    struct agent_process process = {.pid = 12,
                                    .state = PROCESS_EXITED,
                                    .exit_code = 3,
                                    .started_ms = 1696951800000,
                                    .ended_ms = 1696951801000,
                                    .command = "false",
                                    .cwd = "/",
                                    .name = "p",
                                    .flags = EXEC_RESTART | EXEC_STDIN,
                                    .restarts = 2,
                                    .max_restarts = RESTARTS_UNLIMITED};
    const struct box_output output = {{"ab", 2}, {"a", 1}, {"b", 1}};
    yyjson_mut_doc *doc = json_doc(*state);
    yyjson_mut_val *root = yyjson_mut_obj(doc);
    box_process_json(*state, doc, root, &process, &output);
    assert_string_equal(
        text_of(*state, doc, root),
        "{\"pid\":\"12\",\"name\":\"p\",\"command\":\"false\",\"status\":\"failed\","
        "\"startedAt\":\"Tue, 10 Oct 2023 15:30:00 GMT\","
        "\"completedAt\":\"Tue, 10 Oct 2023 15:30:01 GMT\",\"exitCode\":3,"
        "\"workingDir\":\"/\",\"logs\":\"ab\",\"stdout\":\"a\",\"stderr\":\"b\","
        "\"restartOnFailure\":true,\"maxRestarts\":-1,\"restartCount\":2,"
        "\"keepAlive\":false,\"stdin\":true}");
    process.state = PROCESS_RUNNING;
    root = yyjson_mut_obj(doc);
    box_process_json(*state, doc, root, &process, NULL);
    const char *text = text_of(*state, doc, root);
    assert_non_null(strstr(text, "\"status\":\"running\""));
    assert_non_null(strstr(text, "\"completedAt\":\"\",\"exitCode\":0"));
    assert_non_null(strstr(text, "\"logs\":\"\",\"stdout\":\"\",\"stderr\":\"\""));
}

static void test_process_statuses(void **state)
{
    struct agent_process process = {.state = PROCESS_EXITED};
    assert_string_equal(box_process_status(&process), "completed");
    process.state = PROCESS_TIMED_OUT;
    assert_string_equal(box_process_status(&process), "killed");
    process.state = 99; /* an agent that says anything */
    assert_string_equal(box_process_status(&process), "completed");
}

static struct preview_request read_preview(struct arena *arena, const char *text)
{
    struct preview_request request;
    struct error err = {0};
    if (preview_request_from_json(arena, value_of(arena, text), &request, &err) < 0)
        fail_msg("%s", err.message);
    return request;
}

static void test_preview_request(void **state)
{
    struct preview_request request = read_preview(
        *state, "{\"metadata\":{\"name\":\"p\"},\"spec\":{\"port\":3000,\"public\":true,"
                "\"expires\":\"2099-01-01T00:00:00Z\",\"prefixUrl\":\"x\","
                "\"responseHeaders\":{\"X-A\":\"1\",\"X-B\":\"2\"},\"url\":\"http://lie\"}}");
    assert_string_equal(request.name, "p");
    assert_int_equal(request.port, 3000);
    assert_true(request.is_public);
    assert_true(request.expires_ms == 4070908800000);
    assert_int_equal(request.response_headers.len, 14);
    assert_memory_equal(request.response_headers.data, "X-A: 1\0X-B: 2\0", 14);
    assert_int_equal(request.request_headers.len, 0);
    assert_string_equal(request.spec, "{\"prefixUrl\":\"x\"}");
}

static void test_whichever_end_comes_first(void **state)
{
    int64_t now = time_now_ms();
    struct preview_request request = read_preview(*state, "{\"spec\":{\"port\":1,\"ttl\":\"1h\","
                                                          "\"expires\":\"2099-01-01T00:00:00Z\"}}");
    assert_true(request.expires_ms >= now + 3600 * 1000);
    assert_true(request.expires_ms < now + 2 * 3600 * 1000);
    request = read_preview(*state, "{\"spec\":{\"port\":1,\"ttl\":\"9223372036854775807s\"}}");
    assert_true(request.expires_ms == (int64_t)API_TIME_MAX);
    request = read_preview(*state, "{\"spec\":{\"port\":1,\"ttl\":\"\",\"expires\":\"\"}}");
    assert_int_equal(request.expires_ms, 0);
}

static void test_bad_previews(void **state)
{
    static const struct {
        const char *text, *named;
    } rows[] = {
        {"{}", "spec.port"},
        {"{\"spec\":{\"port\":0}}", "spec.port"},
        {"{\"spec\":{\"port\":65536}}", "spec.port"},
        {"{\"spec\":{\"port\":\"80\"}}", "spec.port"},
        {"{\"spec\":{\"port\":1,\"public\":\"yes\"}}", "spec.public"},
        {"{\"spec\":{\"port\":1,\"expires\":\"soon\"}}", "spec.expires"},
        {"{\"spec\":{\"port\":1,\"ttl\":\"-1h\"}}", "spec.ttl"},
        {"{\"spec\":{\"port\":1,\"requestHeaders\":[]}}", "spec.requestHeaders"},
        {"{\"spec\":{\"port\":1,\"requestHeaders\":{\"A\":1}}}", "spec.requestHeaders"},
        {"{\"spec\":{\"port\":1,\"requestHeaders\":{\"A\":null}}}", "spec.requestHeaders"},
        {"{\"spec\":{\"port\":1,\"requestHeaders\":{\"\":\"x\"}}}", "spec.requestHeaders"},
        {"{\"spec\":{\"port\":1,\"requestHeaders\":{\"A:\":\"x\"}}}", "spec.requestHeaders"},
        {"{\"spec\":{\"port\":1,\"requestHeaders\":{\"A\":\"x\\r\\ny\"}}}", "spec.requestHeaders"},
        {"{\"spec\":{\"port\":1,\"requestHeaders\":{\"host\":\"x\"}}}", "spec.requestHeaders"},
        {"{\"spec\":{\"port\":1,\"responseHeaders\":{\"Transfer-Encoding\":\"x\"}}}",
         "spec.responseHeaders"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct preview_request request;
        struct error err = {0};
        assert_int_equal(
            preview_request_from_json(*state, value_of(*state, rows[i].text), &request, &err), -1);
        assert_int_equal(err.code, ERROR_INVALID_ARGUMENT);
        if (strstr(err.message, rows[i].named) == NULL)
            fail_msg("%s does not name %s", err.message, rows[i].named);
    }
}

static void test_preview(void **state)
{
    const struct preview_info preview = {.id = "id",
                                         .name = "p",
                                         .sandbox_name = "box",
                                         .workspace = "ws",
                                         .port = 3000,
                                         .expires_ms = 1696951800000,
                                         .created_by = "me",
                                         .request_headers = {"X-A: b: c\0", 10},
                                         .spec = "{\"prefixUrl\":\"x\"}"};
    yyjson_mut_doc *doc = json_doc(*state);
    assert_string_equal(
        text_of(*state, doc, preview_json(*state, doc, &preview, "http://u", "DEPLOYED")),
        "{\"metadata\":{\"name\":\"p\",\"resourceName\":\"box\",\"resourceType\":\"sandbox\","
        "\"workspace\":\"ws\",\"createdAt\":\"1970-01-01T00:00:00Z\","
        "\"updatedAt\":\"1970-01-01T00:00:00Z\",\"createdBy\":\"me\"},"
        "\"spec\":{\"prefixUrl\":\"x\",\"port\":3000,\"public\":false,\"url\":\"http://u\","
        "\"expires\":\"2023-10-10T15:30:00Z\",\"requestHeaders\":{\"X-A\":\"b: c\"}},"
        "\"status\":\"DEPLOYED\"}");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        api_test(test_request),
        api_test(test_secrets_of_routes),
        api_test(test_nothing_was_sent),
        api_test(test_little_memory_has_some_cpu),
        api_test(test_lifespans),
        api_test(test_bad_lifespans),
        api_test(test_bad_requests),
        api_test(test_env_is_laid_over),
        api_test(test_sandbox),
        api_test(test_a_spec_that_is_none),
        api_test(test_statuses),
        api_test(test_process),
        api_test(test_process_statuses),
        api_test(test_preview_request),
        api_test(test_whichever_end_comes_first),
        api_test(test_bad_previews),
        api_test(test_preview),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
