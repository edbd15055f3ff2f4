/* SPDX-License-Identifier: Apache-2.0 */

/* The shape of a sandbox, and what a request to create one may say. */

#include "helpers.h"

#include "api/v0/env.h"
#include "api/v0/sandbox_create.h"
#include "api/v0/sandbox_json.h"
#include "base/cleanup.h"
#include "base/limits.h"

static const struct sandbox_event events[] = {
    {"CREATE", "SUCCESS", "Sandbox created successfully", 1696951800000, 123},
    {"START", "SUCCESS", "Sandbox started successfully", 1696951830000, 124},
};

static const struct sandbox_info info = {
    .id = "abcdefghijkl",
    .workspace = "default",
    .name = "my-sandbox",
    .image = "host",
    .resources = {.cpu = "1000m", .memory = "1Gi", .disk = "10Gi"},
    .env = {"MY_VAR=my_value\0EMPTY=\0", 23},
    .metadata = {.labels = {"team=a b", 9}, .external_id = "ext-1", .display_name = "My box"},
    .security = {.level = TRUST_SANDBOXED,
                 .allow_shell = true,
                 .memory_limit_mb = 2048,
                 .cpu_limit_millis = 1500,
                 .read_only_root = true,
                 .log_all_commands = true,
                 .no_new_privs = true},
    .enabled = true,
    .status = SANDBOX_RUNNING,
    .revision = 124,
    .created_ms = 1696951800000,
    .updated_ms = 1696956300999,
    .created_by = "user-123",
    .updated_by = "user-456",
    .events = events,
    .event_count = 2,
};

#define INFO_TEXT                                                                                  \
    "\"metadata\":{\"name\":\"my-sandbox\",\"id\":\"abcdefghijkl\","                               \
    "\"displayName\":\"My box\",\"externalId\":\"ext-1\",\"labels\":{\"team\":\"a b\"},"           \
    "\"revision\":\"rev-124\","                                                                    \
    "\"createdAt\":\"2023-10-10T15:30:00Z\",\"updatedAt\":\"2023-10-10T16:45:00Z\","               \
    "\"createdBy\":\"user-123\",\"updatedBy\":\"user-456\",\"workspace\":\"default\"},"            \
    "\"spec\":{\"enabled\":true,\"image\":\"host\","                                               \
    "\"resources\":{\"cpu\":\"1000m\",\"memory\":\"1Gi\",\"disk\":\"10Gi\"},"                      \
    "\"history\":{\"enabled\":true,\"maxFileSize\":\"10Mi\",\"ignore\":[\"@default\"]},"           \
    "\"trustLevel\":\"sandboxed\",\"security\":{\"network_enabled\":false,"                        \
    "\"allowed_hosts\":[],\"allow_shell\":true,\"allow_subprocess\":false,"                        \
    "\"allow_network_tools\":false,\"memory_limit_mb\":2048,\"cpu_limit\":1.5,"                    \
    "\"timeout_seconds\":null,\"read_only_root\":true,\"log_all_commands\":true,"                  \
    "\"no_new_privs\":true,\"capabilities\":\"default\",\"enforcement\":{"                         \
    "\"network_enabled\":\"the level has a network; this sandbox goes without, because somebody "  \
    "said so or because the machine had none to give\"}},"                                         \
    "\"network\":{\"mode\":\"none\"},"                                                             \
    "\"env_vars\":{\"MY_VAR\":\"my_value\",\"EMPTY\":\"\"},\"restart\":\"on-use\"},"               \
    "\"status\":\"running\","                                                                      \
    "\"events\":[{\"type\":\"CREATE\",\"status\":\"SUCCESS\","                                     \
    "\"message\":\"Sandbox created successfully\",\"time\":\"2023-10-10T15:30:00Z\","              \
    "\"revision\":\"rev-123\"},"                                                                   \
    "{\"type\":\"START\",\"status\":\"SUCCESS\",\"message\":\"Sandbox started successfully\","     \
    "\"time\":\"2023-10-10T15:30:30Z\",\"revision\":\"rev-124\"}]"

static void in_a_list(void **state)
{
    yyjson_mut_doc *doc = json_doc(*state);
    assert_string_equal(text_of(*state, doc, sandbox_json(*state, doc, &info, NULL)),
                        "{" INFO_TEXT "}");
}

static void with_its_addresses(void **state)
{
    yyjson_mut_doc *doc = json_doc(*state);
    assert_string_equal(
        text_of(*state, doc, sandbox_json(*state, doc, &info, "https://run.example")),
        "{" INFO_TEXT ",\"access\":{"
        "\"api_endpoint\":\"https://run.example/default/sandbox/my-sandbox\","
        "\"mcp_endpoint\":\"https://run.example/default/function/my-sandbox\"}}");
}

#define CHANGE(status, message)                                                                    \
    "{\"metadata\":{\"name\":\"my-sandbox\",\"workspace\":\"default\"},"                           \
    "\"status\":\"" status "\",\"message\":\"" message "\"}"

static void changes(void **state)
{
    static const struct {
        enum sandbox_status status;
        const char *text;
    } rows[] = {
        {SANDBOX_STARTING, CHANGE("starting", "Sandbox is starting")},
        {SANDBOX_STOPPING, CHANGE("stopping", "Sandbox is stopping")},
        {SANDBOX_DELETING, CHANGE("deleting", "Sandbox is being deleted")},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct sandbox_info changed = info;
        changed.status = rows[i].status;
        yyjson_mut_doc *doc = json_doc(*state);
        yyjson_mut_val *root = yyjson_mut_obj(doc);
        sandbox_change_json(doc, root, &changed);
        assert_string_equal(text_of(*state, doc, root), rows[i].text);
    }
}

static void how_long_it_lives(void **state)
{
    struct sandbox_info living = info;
    living.lifespan = (struct lifespan){.ttl_s = 1800,
                                        .idle_s = 90,
                                        .max_age_s = 604800,
                                        .expires_ms = 1696951800000,
                                        .on_expire = LIFESPAN_STOP};
    living.expires_ms = 1696951800000;
    living.idle_since_ms = 1696951710000;
    yyjson_mut_doc *doc = json_doc(*state);
    const char *text = text_of(*state, doc, sandbox_json(*state, doc, &living, NULL));
    assert_non_null(strstr(text, "\"lifecycle\":{\"ttl\":\"30m\",\"idleTimeout\":\"1m30s\","
                                 "\"maxAge\":\"7d\",\"expires\":\"2023-10-10T15:30:00Z\","
                                 "\"onExpire\":\"stop\"}"));
    assert_non_null(strstr(text, "\"expiresAt\":\"2023-10-10T15:30:00Z\","
                                 "\"idleSince\":\"2023-10-10T15:28:30Z\""));
    struct sandbox_create request = {0};
    struct error err;
    assert_int_equal(sandbox_create_from_json(*state, value_of(*state, text), &request, &err), 0);
    assert_true(lifespan_equal(&request.lifespan, &living.lifespan));
}

static void how_it_comes_back(void **state)
{
    struct sandbox_info waiting = info;
    waiting.restart = RESTART_ALWAYS;
    waiting.status = SANDBOX_STOPPED;
    waiting.starts_on_use = true;
    yyjson_mut_doc *doc = json_doc(*state);
    const char *text = text_of(*state, doc, sandbox_json(*state, doc, &waiting, NULL));
    assert_non_null(strstr(text, "\"restart\":\"always\"},\"status\":\"stopped\","
                                 "\"startsOnUse\":true,"));
    assert_int_equal(sandbox_seen_status(&waiting), SANDBOX_RUNNING);
    struct sandbox_create request = {0};
    struct error err;
    assert_int_equal(sandbox_create_from_json(*state, value_of(*state, text), &request, &err), 0);
    assert_int_equal(request.restart, RESTART_ALWAYS);
}

/* What GET answers can be POSTed: what only the server sets is ignored, the rest arrives. */
static void an_answer_is_a_request(void **state)
{
    yyjson_mut_doc *doc = json_doc(*state);
    const char *text = text_of(*state, doc, sandbox_json(*state, doc, &info, "http://h"));
    struct sandbox_create request = {.workspace = "default"};
    struct error err;
    assert_int_equal(sandbox_create_from_json(*state, value_of(*state, text), &request, &err), 0);
    assert_string_equal(request.name, "my-sandbox");
    assert_string_equal(request.image, "host");
    assert_string_equal(request.resources.cpu, "1000m");
    assert_string_equal(request.resources.memory, "1Gi");
    assert_string_equal(request.resources.disk, "10Gi");
    assert_int_equal(request.env.len, info.env.len);
    assert_memory_equal(request.env.data, info.env.data, info.env.len);
    assert_string_equal(request.metadata.external_id, "ext-1");
    assert_string_equal(request.metadata.display_name, "My box");
    assert_string_equal(request.metadata.labels.data, "team=a b");
    assert_true(request.enabled);
    assert_int_equal(request.restart, RESTART_ON_USE);
    assert_string_equal(request.security.level, "sandboxed");
    assert_true(request.security.wanted.allow_shell);
    assert_int_equal(request.security.wanted.cpu_limit_millis, 1500);
    assert_false(request.security.given & 1U << TRUST_TIMEOUT_SECONDS);
    request.security.may_loosen = true;
    struct trust_options again;
    assert_int_equal(trust_resolve(&request.security, NULL, &again, &err), 0);
    assert_true(again.allow_shell);
    assert_int_equal(again.memory_limit_mb, 2048);
}

static void everything_has_a_default(void **state)
{
    static const char *const bodies[] = {NULL, "{}", "{\"metadata\":{},\"spec\":{}}",
                                         "{\"metadata\":null,\"spec\":{\"resources\":null}}"};
    for (size_t i = 0; i < ARRAY_LEN(bodies); i++) {
        struct sandbox_create request = {0};
        struct error err;
        yyjson_val *body = bodies[i] == NULL ? NULL : value_of(*state, bodies[i]);
        assert_int_equal(sandbox_create_from_json(*state, body, &request, &err), 0);
        assert_null(request.name);
        assert_null(request.image);
        assert_null(request.resources.cpu);
        assert_int_equal(request.env.len, 0);
        assert_true(request.enabled);
        assert_null(request.security.level);
        assert_int_equal(request.security.given, 0);
    }
}

static void numbers_are_quantities(void **state)
{
    struct sandbox_create request = {0};
    struct error err;
    const char *text = "{\"spec\":{\"enabled\":false,\"resources\":{\"cpu\":0.5,"
                       "\"memory\":1073741824,\"disk\":\"1e9\"}}}";
    assert_int_equal(sandbox_create_from_json(*state, value_of(*state, text), &request, &err), 0);
    assert_string_equal(request.resources.cpu, "0.5");
    assert_string_equal(request.resources.memory, "1073741824");
    assert_string_equal(request.resources.disk, "1e9");
    assert_false(request.enabled);
}

static void requests_refused(void **state)
{
    static const struct {
        const char *body;
        enum error_code code;
        const char *names;
    } rows[] = {
        {"{\"name\":\"x\"}", ERROR_UNKNOWN_FIELD, "name"},
        {"{\"metadata\":{\"labels\":{\"a\":1}}}", ERROR_INVALID_ARGUMENT, "metadata.labels.a"},
        {"{\"metadata\":{\"labels\":{\"a\":null}}}", ERROR_INVALID_ARGUMENT, "metadata.labels.a"},
        {"{\"metadata\":{\"labels\":{\"a=b\":\"\"}}}", ERROR_INVALID_ARGUMENT, "a=b"},
        {"{\"metadata\":{\"labels\":[]}}", ERROR_INVALID_ARGUMENT, "metadata.labels"},
        {"{\"metadata\":{\"lables\":{}}}", ERROR_UNKNOWN_FIELD, "lables"},
        {"{\"metadata\":{\"name\":5}}", ERROR_INVALID_ARGUMENT, "metadata.name"},
        {"{\"metadata\":\"x\"}", ERROR_INVALID_ARGUMENT, "metadata"},
        {"{\"spec\":[]}", ERROR_INVALID_ARGUMENT, "spec"},
        {"{\"spec\":{\"memory\":\"1Gi\"}}", ERROR_UNKNOWN_FIELD, "memory"},
        {"{\"spec\":{\"enabled\":\"yes\"}}", ERROR_INVALID_ARGUMENT, "spec.enabled"},
        {"{\"spec\":{\"image\":7}}", ERROR_INVALID_ARGUMENT, "spec.image"},
        {"{\"spec\":{\"restart\":\"never\"}}", ERROR_INVALID_ARGUMENT, "spec.restart"},
        {"{\"spec\":{\"restart\":true}}", ERROR_INVALID_ARGUMENT, "spec.restart"},
        {"{\"spec\":{\"resources\":{\"memroy\":\"1Gi\"}}}", ERROR_UNKNOWN_FIELD, "memroy"},
        {"{\"spec\":{\"resources\":{\"cpu\":true}}}", ERROR_INVALID_ARGUMENT, "spec.resources.cpu"},
        {"{\"spec\":{\"env_vars\":{\"A\":1}}}", ERROR_INVALID_ARGUMENT, "spec.env_vars.A"},
        {"{\"spec\":{\"trustLevel\":1}}", ERROR_INVALID_ARGUMENT, "spec.trustLevel"},
        {"{\"spec\":{\"security\":[]}}", ERROR_INVALID_ARGUMENT, "spec.security"},
        {"{\"spec\":{\"security\":{\"allow_shel\":true}}}", ERROR_UNKNOWN_FIELD, "allow_shel"},
        {"{\"spec\":{\"security\":{\"allow_shell\":1}}}", ERROR_INVALID_ARGUMENT, "allow_shell"},
        {"{\"spec\":{\"security\":{\"allow_shell\":\"no\"}}}", ERROR_INVALID_ARGUMENT,
         "allow_shell"},
        {"{\"spec\":{\"security\":{\"memory_limit_mb\":1.5}}}", ERROR_INVALID_ARGUMENT, "whole"},
        {"{\"spec\":{\"security\":{\"memory_limit_mb\":-1}}}", ERROR_INVALID_ARGUMENT, "negative"},
        {"{\"spec\":{\"security\":{\"memory_limit_mb\":\"1\"}}}", ERROR_INVALID_ARGUMENT, "memory"},
        {"{\"spec\":{\"security\":{\"memory_limit_mb\":1e300}}}", ERROR_INVALID_ARGUMENT, "memory"},
        {"{\"spec\":{\"security\":{\"cpu_limit\":true}}}", ERROR_INVALID_ARGUMENT, "cpu_limit"},
        {"{\"spec\":{\"security\":{\"cpu_limit\":0.0001}}}", ERROR_INVALID_ARGUMENT, "cpu_limit"},
        {"{\"spec\":{\"security\":{\"allowed_hosts\":\"a\"}}}", ERROR_INVALID_ARGUMENT, "array"},
        {"{\"spec\":{\"security\":{\"allowed_hosts\":[1]}}}", ERROR_INVALID_ARGUMENT, "strings"},
        {"{\"spec\":{\"network\":[]}}", ERROR_INVALID_ARGUMENT, "spec.network"},
        {"{\"spec\":{\"network\":{\"mode\":\"some\"}}}", ERROR_INVALID_ARGUMENT, "allowlist"},
        {"{\"spec\":{\"network\":{\"mode\":1}}}", ERROR_INVALID_ARGUMENT, "network.mode"},
        {"{\"spec\":{\"network\":{\"alow\":[]}}}", ERROR_UNKNOWN_FIELD, "alow"},
        {"{\"spec\":{\"network\":{\"allow\":\"a\"}}}", ERROR_INVALID_ARGUMENT, "network.allow"},
        {"{\"spec\":{\"network\":{\"allow\":[1]}}}", ERROR_INVALID_ARGUMENT, "network.allow"},
        {"{\"spec\":{\"network\":{\"deny\":[\"a\\u0000b\"]}}}", ERROR_INVALID_ARGUMENT, "NUL"},
        {"{\"spec\":{\"network\":{\"ipv6\":1}}}", ERROR_INVALID_ARGUMENT, "network.ipv6"},
        {"{\"spec\":{\"network\":{\"headers\":[1]}}}", ERROR_INVALID_ARGUMENT, "objects"},
        {"{\"spec\":{\"network\":{\"headers\":[{\"host\":\"a\"}]}}}", ERROR_INVALID_ARGUMENT,
         "header"},
        {"{\"spec\":{\"network\":{\"bandwidth\":{\"up\":1}}}}", ERROR_UNKNOWN_FIELD, "up"},
        {"{\"spec\":{\"resources\":{\"networkIn\":\"1M\"},\"network\":{\"bandwidth\":"
         "{\"in\":\"2M\"}}}}",
         ERROR_INVALID_ARGUMENT, "twice"},
        {"{\"spec\":{\"env_vars\":{\"A\":null}}}", ERROR_INVALID_ARGUMENT, "spec.env_vars.A"},
        {"{\"spec\":{\"env_vars\":{\"A\":\"x\\u0000y\"}}}", ERROR_INVALID_ARGUMENT,
         "spec.env_vars.A"},
        {"{\"spec\":{\"env_vars\":{\"1A\":\"\"}}}", ERROR_INVALID_ARGUMENT, "1A"},
        {"{\"spec\":{\"env_vars\":{\"\":\"\"}}}", ERROR_INVALID_ARGUMENT, "spec.env_vars"},
        {"{\"spec\":{\"env_vars\":{\"A=B\":\"\"}}}", ERROR_INVALID_ARGUMENT, "A=B"},
        {"{\"spec\":{\"env_vars\":{\"A\\u0000\":\"\"}}}", ERROR_INVALID_ARGUMENT, "spec.env_vars"},
        {"{\"spec\":{\"env_vars\":{\"\xc3\xa4\":\"\"}}}", ERROR_INVALID_ARGUMENT, "\xc3\xa4"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct sandbox_create request = {0};
        struct error err = {0};
        print_message("%s\n", rows[i].body);
        assert_int_equal(
            sandbox_create_from_json(*state, value_of(*state, rows[i].body), &request, &err), -1);
        assert_int_equal(err.code, rows[i].code);
        assert_non_null(strstr(err.message, rows[i].names));
    }
}

static int env_with(struct arena *arena, size_t variables, size_t value_len, struct error *err)
{
    yyjson_mut_doc *doc = json_doc(arena);
    yyjson_mut_val *object = yyjson_mut_obj(doc);
    char *value = arena_alloc(arena, value_len + 1);
    memset(value, 'v', value_len);
    for (size_t i = 0; i < variables; i++)
        yyjson_mut_obj_add_str(doc, object, arena_printf(arena, "V%03zu", i), value);
    struct slice env;
    return env_from_json(arena, value_of(arena, text_of(arena, doc, object)), "env", &env, err);
}

static void environments_have_limits(void **state)
{
    struct error err = {0};
    assert_int_equal(env_with(*state, ENV_VARS_MAX, 1, &err), 0);
    assert_int_equal(env_with(*state, ENV_VARS_MAX + 1, 1, &err), -1);
    assert_int_equal(err.code, ERROR_INVALID_ARGUMENT);
    /* "V000=" and the NUL count too. */
    assert_int_equal(env_with(*state, 1, ENV_BYTES_MAX - 6, &err), 0);
    assert_int_equal(env_with(*state, 1, ENV_BYTES_MAX - 5, &err), -1);
    assert_int_equal(err.code, ERROR_PAYLOAD_TOO_LARGE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        api_test(in_a_list),
        api_test(with_its_addresses),
        api_test(changes),
        api_test(how_long_it_lives),
        api_test(how_it_comes_back),
        api_test(an_answer_is_a_request),
        api_test(everything_has_a_default),
        api_test(numbers_are_quantities),
        api_test(requests_refused),
        api_test(environments_have_limits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
