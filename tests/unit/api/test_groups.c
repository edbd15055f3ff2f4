/* SPDX-License-Identifier: Apache-2.0 */

/* Where sandboxes of groups are found, and what a request for a group may say. */

#include "helpers.h"

#include "api/group_path.h"
#include "api/v0/group_json.h"
#include "base/cleanup.h"

static void addresses(void **state)
{
    static const struct {
        const char *given, *read_as;
    } rows[] = {
        {"/v0/groups/g/sandbox/n", "/v0/sandbox/g%2Fn"},
        {"/v0/groups/g/sandbox/n/", "/v0/sandbox/g%2Fn/"},
        {"/v0/groups/g/sandbox/n/filesystem//a%2Fb", "/v0/sandbox/g%2Fn/filesystem//a%2Fb"},
        {"/v0/groups/a%2Fb/sandbox/n", "/v0/sandbox/a%2Fb%2Fn"},
        {"/v0/groups/g/sandbox/..", "/v0/sandbox/g%2F.."},
        {"/v0/groups/g/sandbox", NULL},
        {"/v0/groups/g/sandbox/", NULL},
        {"/v0/groups/g/sandbox//n", NULL},
        {"/v0/groups//sandbox/n", NULL},
        {"/v0/groups/g/sandboxes/n", NULL},
        {"/v0/groups/g", NULL},
        {"/v0/groups", NULL},
        {"/v0/sandbox/g", NULL},
        {"/ws/groups/g/sandbox/n", NULL},
        {"", NULL},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        assert_string_equal(group_path(*state, rows[i].given),
                            rows[i].read_as != NULL ? rows[i].read_as : rows[i].given);
}

static struct group_create request_of(void **state, const char *text)
{
    const struct sandbox_create each = {.workspace = "default", .actor = "me"};
    struct group_create request = {.workspace = "default", .actor = "me"};
    struct error err = {0};
    yyjson_val *body;
    assert_int_equal(json_parse(*state, slice_of(text), &body, &err), 0);
    if (group_create_from_json(*state, body, &each, &request, &err) < 0)
        fail_msg("%s: %s", text, err.message);
    return request;
}

static void many_of_the_same(void **state)
{
    struct group_create request =
        request_of(state, "{\"name\":\"team\",\"count\":2,\"spec\":{\"resources\":{\"cpu\":2}}}");
    assert_string_equal(request.name, "team");
    assert_string_equal(request.spec, "{\"resources\":{\"cpu\":2}}");
    assert_int_equal(request.count, 2);
    assert_string_equal(request.sandboxes[1].name, "sandbox-2");
    assert_string_equal(request.sandboxes[1].resources.cpu, "2");
    assert_string_equal(request.sandboxes[1].actor, "me");
    assert_int_equal(request_of(state, "{}").count, 0);
}

static void one_each(void **state)
{
    struct group_create request = request_of(
        state, "{\"spec\":{\"resources\":{\"cpu\":2,\"memory\":\"1Gi\"},\"enabled\":false},"
               "\"sandboxes\":[{\"name\":\"a\",\"spec\":{\"resources\":{\"cpu\":null},"
               "\"enabled\":true}},{\"metadata\":{\"name\":\"b\"}}]}");
    assert_null(request.name);
    assert_int_equal(request.count, 2);
    assert_string_equal(request.sandboxes[0].name, "a");
    assert_null(request.sandboxes[0].resources.cpu);
    assert_string_equal(request.sandboxes[0].resources.memory, "1Gi");
    assert_true(request.sandboxes[0].enabled);
    assert_string_equal(request.sandboxes[1].name, "b");
    assert_string_equal(request.sandboxes[1].resources.cpu, "2");
    assert_false(request.sandboxes[1].enabled);
}

static void laid_over(void **state)
{
    struct error err = {0};
    yyjson_val *body, *whole;
    assert_int_equal(group_lay_over(*state, "{\"image\":\"host\"}", NULL, &whole, &err), 0);
    assert_string_equal(yyjson_get_str(yyjson_ptr_get(whole, "/spec/image")), "host");
    assert_int_equal(
        json_parse(*state, slice_of("{\"metadata\":{\"name\":\"x\"},\"spec\":null}"), &body, &err),
        0);
    assert_int_equal(group_lay_over(*state, "{\"image\":\"host\"}", body, &whole, &err), 0);
    assert_string_equal(yyjson_get_str(yyjson_ptr_get(whole, "/spec/image")), "host");
    assert_string_equal(yyjson_get_str(yyjson_ptr_get(whole, "/metadata/name")), "x");
}

static void written(void **state)
{
    static const struct group_member members[] = {{"id1", "a", SANDBOX_RUNNING}};
    const struct group_info info = {.id = "gid",
                                    .workspace = "default",
                                    .name = "team",
                                    .spec = "{\"enabled\":true}",
                                    .status = GROUP_RUNNING,
                                    .created_ms = 1696951800000,
                                    .updated_ms = 1696951830000,
                                    .created_by = "a",
                                    .updated_by = "b",
                                    .members = members,
                                    .member_count = 1};
    yyjson_mut_doc *doc = json_doc(*state);
    assert_string_equal(
        text_of(*state, doc, group_json(*state, doc, &info, false)),
        "{\"metadata\":{\"name\":\"team\",\"id\":\"gid\",\"createdAt\":\"2023-10-10T15:30:00Z\","
        "\"updatedAt\":\"2023-10-10T15:30:30Z\",\"createdBy\":\"a\",\"updatedBy\":\"b\","
        "\"workspace\":\"default\"},\"spec\":{\"enabled\":true},\"status\":\"running\","
        "\"count\":1,\"sandboxes\":[{\"name\":\"a\",\"id\":\"id1\",\"status\":\"running\"}]}");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        api_test(addresses), api_test(many_of_the_same), api_test(one_each),
        api_test(laid_over), api_test(written),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
