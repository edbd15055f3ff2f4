/* SPDX-License-Identifier: Apache-2.0 */

#include "api/v0/sandbox_change.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "api/v0/auto_lower_json.h"
#include "base/cleanup.h"
#include "helpers.h"

static void clones_in_every_form(void **state)
{
    static const struct {
        const char *body, *name, *cpu, *memory, *disk;
    } rows[] = {
        {NULL, NULL, NULL, NULL, NULL},
        {"{}", NULL, NULL, NULL, NULL},
        {"{\"name\":\"x\"}", "x", NULL, NULL, NULL},
        {"{\"name\":\"x\",\"cpu\":2,\"memory\":\"2Gi\"}", "x", "2", "2Gi", NULL},
        {"{\"resources\":{\"disk\":\"20Gi\"},\"cpu\":\"1\"}", NULL, "1", NULL, "20Gi"},
        {"{\"metadata\":{\"name\":\"x\"},\"spec\":{\"resources\":{\"cpu\":\"2\"}}}", "x", "2", NULL,
         NULL},
        {"{\"name\":\"x\",\"metadata\":{\"name\":\"x\"},\"cpu\":\"2\",\"resources\":{\"cpu\":\"2\"}"
         "}",
         "x", "2", NULL, NULL},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct sandbox_clone request = {0};
        struct error err = {0};
        yyjson_val *body = rows[i].body == NULL ? NULL : value_of(*state, rows[i].body);
        assert_int_equal(sandbox_clone_from_json(*state, body, &request, &err), 0);
        const char *const wanted[] = {rows[i].name, rows[i].cpu, rows[i].memory, rows[i].disk};
        const char *const got[] = {request.name, request.resources.cpu, request.resources.memory,
                                   request.resources.disk};
        for (size_t f = 0; f < ARRAY_LEN(got); f++)
            if (wanted[f] == NULL)
                assert_null(got[f]);
            else
                assert_string_equal(got[f], wanted[f]);
        assert_null(request.env);
        assert_null(request.labels);
        assert_null(request.enabled);
    }
}

static void clones_refused(void **state)
{
    static const struct {
        const char *body;
        enum error_code code;
        const char *names;
    } rows[] = {
        {"{\"nmae\":\"x\"}", ERROR_UNKNOWN_FIELD, "nmae"},
        {"{\"name\":\"x\",\"metadata\":{\"name\":\"y\"}}", ERROR_INVALID_ARGUMENT, "name"},
        {"{\"disk\":\"1Gi\",\"spec\":{\"resources\":{\"disk\":\"2Gi\"}}}", ERROR_INVALID_ARGUMENT,
         "disk"},
        {"{\"resources\":{\"gpu\":1}}", ERROR_UNKNOWN_FIELD, "gpu"},
        {"{\"spec\":{\"env_vars\":{\"A\":null}}}", ERROR_INVALID_ARGUMENT, "spec.env_vars.A"},
        {"{\"spec\":{\"enabled\":1}}", ERROR_INVALID_ARGUMENT, "spec.enabled"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct sandbox_clone request = {0};
        struct error err = {0};
        yyjson_val *body = value_of(*state, rows[i].body);
        assert_int_equal(sandbox_clone_from_json(*state, body, &request, &err), -1);
        assert_int_equal(err.code, rows[i].code);
        assert_non_null(strstr(err.message, rows[i].names));
    }
}

static void updates_and_patches(void **state)
{
    const char *text =
        "{\"metadata\":{\"name\":\"box\",\"revision\":\"rev-12\",\"labels\":{\"a\":\"1\"}},"
        "\"spec\":{\"enabled\":false,\"env_vars\":{\"X\":\"\",\"Y\":\"2\"}},"
        "\"status\":\"running\"}";
    struct sandbox_update request = {0};
    struct error err = {0};
    assert_int_equal(
        sandbox_update_from_json(*state, value_of(*state, text), false, "box", &request, &err), 0);
    assert_int_equal(request.revision, 12);
    assert_false(request.merge);
    assert_false(*request.enabled);
    assert_int_equal(request.env->len, 7);
    assert_memory_equal(request.env->data, "X=\0Y=2\0", 7);
    assert_int_equal(request.labels->len, 4);
    assert_null(request.resources.cpu);

    memset(&request, 0, sizeof(request));
    text =
        "{\"metadata\":{\"labels\":{\"a\":null}},\"spec\":{\"env_vars\":{\"X\":null,\"Y\":\"2\"}}}";
    assert_int_equal(
        sandbox_update_from_json(*state, value_of(*state, text), true, "box", &request, &err), 0);
    assert_true(request.merge);
    assert_memory_equal(request.env->data, "X\0Y=2\0", 6);
    assert_memory_equal(request.labels->data, "a\0", 2);
    assert_int_equal(request.revision, 0);
}

static void lifecycles(void **state)
{
    enum { TTL = 1 << LIFESPAN_TTL, IDLE = 1 << LIFESPAN_IDLE };
    static const struct {
        const char *spec;
        bool patch;
        unsigned sets; /* 0: nothing about it */
        struct lifespan to;
    } rows[] = {
        {"{}", false, 0, {0}},
        {"{\"lifecycle\":null}", false, 0, {0}},
        {"{\"lifecycle\":{}}", false, LIFESPAN_SETS_ALL, {0}},
        {"{\"lifecycle\":{\"ttl\":\"30m\"}}", false, LIFESPAN_SETS_ALL, {.ttl_s = 1800}},
        {"{\"lifecycle\":{\"maxAge\":\"7d\",\"onExpire\":\"stop\"}}",
         false,
         LIFESPAN_SETS_ALL,
         {.max_age_s = 604800, .on_expire = LIFESPAN_STOP}},
        {"{}", true, 0, {0}},
        {"{\"lifecycle\":{}}", true, 0, {0}},
        {"{\"lifecycle\":null}", true, LIFESPAN_SETS_ALL, {0}},
        {"{\"lifecycle\":{\"ttl\":90,\"idleTimeout\":null}}", true, TTL | IDLE, {.ttl_s = 90}},
        {"{\"lifecycle\":{\"onExpire\":null}}", true, LIFESPAN_SETS_ACTION, {0}},
        {"{\"lifecycle\":{\"wakeOnConnect\":true}}", true, LIFESPAN_SETS_WAKE, {.wake = true}},
        {"{\"lifecycle\":{\"wakeOnConnect\":null}}", true, LIFESPAN_SETS_WAKE, {0}},
        {"{\"lifecycle\":{\"expires\":\"2023-10-10T15:30:00Z\"}}",
         true,
         1 << LIFESPAN_EXPIRES,
         {.expires_ms = 1696951800000}},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct sandbox_update request = {0};
        struct error err = {0};
        const char *text = arena_printf(*state, "{\"spec\":%s}", rows[i].spec);
        assert_int_equal(sandbox_update_from_json(*state, value_of(*state, text), rows[i].patch,
                                                  "box", &request, &err),
                         0);
        assert_int_equal(request.lifespan == NULL ? 0 : request.lifespan->sets, rows[i].sets);
        if (request.lifespan != NULL)
            assert_true(lifespan_equal(&request.lifespan->to, &rows[i].to));
    }
}

static void updates_refused(void **state)
{
    static const struct {
        const char *body;
        enum error_code code;
        const char *names;
    } rows[] = {
        {"{\"name\":\"x\"}", ERROR_UNKNOWN_FIELD, "name"},
        {"{\"cpu\":\"1\"}", ERROR_UNKNOWN_FIELD, "cpu"},
        {"{\"metadata\":{\"name\":\"other\"}}", ERROR_INVALID_ARGUMENT, "metadata.name"},
        {"{\"metadata\":{\"revision\":\"12\"}}", ERROR_INVALID_ARGUMENT, "metadata.revision"},
        {"{\"metadata\":{\"revision\":\"rev-\"}}", ERROR_INVALID_ARGUMENT, "metadata.revision"},
        {"{\"metadata\":{\"revision\":\"rev-0\"}}", ERROR_INVALID_ARGUMENT, "metadata.revision"},
        {"{\"metadata\":{\"revision\":12}}", ERROR_INVALID_ARGUMENT, "metadata.revision"},
        {"{\"spec\":{\"resources\":[]}}", ERROR_INVALID_ARGUMENT, "spec.resources"},
        {"{\"spec\":{\"lifecycle\":5}}", ERROR_INVALID_ARGUMENT, "spec.lifecycle"},
        {"{\"spec\":{\"lifecycle\":{\"tll\":5}}}", ERROR_UNKNOWN_FIELD, "tll"},
        {"{\"spec\":{\"lifecycle\":{\"ttl\":0}}}", ERROR_INVALID_DURATION, "spec.lifecycle.ttl"},
        {"{\"spec\":{\"lifecycle\":{\"ttl\":1.5}}}", ERROR_INVALID_DURATION, "spec.lifecycle.ttl"},
        {"{\"spec\":{\"lifecycle\":{\"maxAge\":\"11y\"}}}", ERROR_INVALID_DURATION,
         "spec.lifecycle.maxAge"},
        {"{\"spec\":{\"lifecycle\":{\"expires\":\"soon\"}}}", ERROR_INVALID_ARGUMENT,
         "spec.lifecycle.expires"},
        {"{\"spec\":{\"lifecycle\":{\"onExpire\":\"sleep\"}}}", ERROR_INVALID_ARGUMENT,
         "spec.lifecycle.onExpire"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct sandbox_update request = {0};
        struct error err = {0};
        yyjson_val *body = value_of(*state, rows[i].body);
        assert_int_equal(sandbox_update_from_json(*state, body, true, "box", &request, &err), -1);
        assert_int_equal(err.code, rows[i].code);
        assert_non_null(strstr(err.message, rows[i].names));
    }
}

static void resizes(void **state)
{
    struct sandbox_update request = {0};
    struct error err = {0};
    yyjson_val *body = value_of(*state, "{\"cpu\":\"2\",\"pids\":100,\"diskRead\":\"5%\"}");
    assert_int_equal(resize_from_json(*state, body, &request, &err), 0);
    assert_string_equal(request.resources.cpu, "2");
    assert_string_equal(request.resources.pids, "100");
    assert_string_equal(request.resources.disk_read, "5%");
    assert_null(request.resources.memory);
    assert_true(request.factor == 0);
    request = (struct sandbox_update){0};
    body = value_of(*state, "{\"factor\":0.5}");
    assert_int_equal(resize_from_json(*state, body, &request, &err), 0);
    assert_true(request.factor == 0.5);
    assert_false(resources_given(&request.resources));
    static const struct {
        const char *body;
        enum error_code code;
    } wrong[] = {
        {"{}", ERROR_INVALID_ARGUMENT},
        {"{\"factor\":0}", ERROR_INVALID_ARGUMENT},
        {"{\"factor\":\"2\"}", ERROR_INVALID_ARGUMENT},
        {"{\"factor\":true}", ERROR_INVALID_ARGUMENT},
        {"{\"factor\":2,\"cpu\":1}", ERROR_INVALID_ARGUMENT},
        {"{\"cpu\":[1]}", ERROR_INVALID_ARGUMENT},
        {"{\"spec\":{}}", ERROR_UNKNOWN_FIELD},
    };
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        struct sandbox_update refused = {0};
        body = value_of(*state, wrong[i].body);
        assert_int_equal(resize_from_json(*state, body, &refused, &err), -1);
        assert_int_equal(err.code, wrong[i].code);
    }
}

static void auto_lower(void **state)
{
    static const struct {
        const char *body;
        const char *list; /* with | for the ends; NULL: refused */
    } rows[] = {
        {"{\"factor\":1.5}", "factor=1.5|"},
        {"{\"factor\":2,\"minimum\":{\"cpu\":\"100m\",\"memory\":\"64Mi\"}}",
         "factor=2|cpu=100m|memory=64Mi|"},
        {"false", ""},
        {"{}", ""},
        {"true", NULL},
        {"1.5", NULL},
        {"{\"minimum\":{}}", NULL},
        {"{\"factor\":{}}", NULL},
        {"{\"factr\":2}", NULL},
        {"{\"factor\":2,\"minimum\":{\"gpu\":1}}", NULL},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct slice list = {NULL, 99};
        struct error err = {0};
        char text[128] = "";
        int rc = auto_lower_from_json(*state, value_of(*state, rows[i].body), &list, &err);
        assert_int_equal(rc, rows[i].list == NULL ? -1 : 0);
        if (rc < 0)
            continue;
        for (size_t k = 0; k < list.len; k++)
            text[k] = list.data[k] == '\0' ? '|' : list.data[k];
        assert_string_equal(text, rows[i].list);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        api_test(clones_in_every_form), api_test(clones_refused),  api_test(updates_and_patches),
        api_test(lifecycles),           api_test(updates_refused), api_test(resizes),
        api_test(auto_lower),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
