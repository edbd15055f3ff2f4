/* SPDX-License-Identifier: Apache-2.0 */

/* Webhooks against our own server, and everything that must not be called. */

#include "fixture.h"

#include "http/webhook.h"

static int serve(struct http_exchange *x, void *ctx, struct error *err)
{
    struct fixture *f = ctx;
    const char *path = http_request(x)->path;
    f->count++;
    if (strcmp(path, "/fail") == 0)
        return error_set(err, ERROR_UNAVAILABLE, "not now");
    if (strcmp(path, "/elsewhere") == 0) {
        http_set_header(x, "Location", "http://%s/there", f->address);
        return http_reply(x, 302, NULL, NULL, 0, err);
    }
    if (strcmp(path, "/long") == 0) {
        if (http_reply_start(x, 200, NULL, -1, err) != 0)
            return -1;
        char piece[4096] = {0};
        for (int i = 0; i < 1000; i++)
            if (http_reply_write(x, piece, sizeof(piece), err) != 0)
                return -1;
        return 0;
    }
    struct slice body;
    if (http_body_all(x, 1000, &body, err) != 0)
        return -1;
    bool right = strcmp(http_request(x)->method, "POST") == 0 &&
                 http_content_is(x, "application/json") && strcmp(body.data, "{\"a\":1}") == 0;
    return http_reply(x, right ? 204 : 400, NULL, NULL, 0, err);
}

static struct webhook *make(struct fixture *f, bool allow_private)
{
    struct error err;
    struct webhook *w = webhook_new(f->loop, allow_private, &err);
    assert_non_null(w);
    return w;
}

static enum error_code post(struct fixture *f, struct webhook *w, const char *host,
                            const char *path)
{
    struct error err = {0};
    char url[256];
    snprintf(url, sizeof(url), "http://%s%s%s", host, strchr(f->address, ':'), path);
    return webhook_post(w, url, slice_of("{\"a\":1}"), &err) == 0 ? ERROR_NONE : err.code;
}

static void delivers(struct fixture *f)
{
    struct webhook *w = make(f, true);
    assert_int_equal(post(f, w, "127.0.0.1", "/"), ERROR_NONE);
    assert_int_equal(f->count, 1);
    assert_int_equal(post(f, w, "127.0.0.1", "/fail"), ERROR_UNAVAILABLE);
    assert_int_equal(post(f, w, "127.0.0.1", "/long"), ERROR_NONE);
    assert_int_equal(f->count, 3);
    /* A redirect is an answer, and not a good one. */
    assert_int_equal(post(f, w, "127.0.0.1", "/elsewhere"), ERROR_UNAVAILABLE);
    assert_int_equal(f->count, 4);
    /* No proxy of the environment gets to see it. */
    setenv("http_proxy", "http://127.0.0.1:1/", 1);
    assert_int_equal(post(f, w, "127.0.0.1", "/"), ERROR_NONE);
    unsetenv("http_proxy");
    webhook_stop(w);
    assert_int_not_equal(post(f, w, "127.0.0.1", "/"), ERROR_NONE);
    webhook_free(w);
}

/* Names that pass for names, and lead home all the same: the address decides, at the last moment.
 */
static void names_that_lead_home(struct fixture *f)
{
    char hostname[256] = "localhost";
    gethostname(hostname, sizeof(hostname) - 1);
    const char *const names[] = {
        hostname, "localhost",  "ip6-localhost", "127.0.0.1",  "0.0.0.0",           "0",
        "127.1",  "2130706433", "[::1]",         "0x7f000001", "[::ffff:127.0.0.1]"};
    struct webhook *w = make(f, false);
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        enum error_code code = post(f, w, names[i], "/");
        if (code != ERROR_CALLBACK_REFUSED && code != ERROR_UNAVAILABLE)
            fail_msg("%s: %s", names[i], error_name(code));
    }
    assert_int_equal(post(f, w, "127.0.0.1", "/"), ERROR_CALLBACK_REFUSED);
    assert_int_equal(post(f, w, "localhost", "/"), ERROR_CALLBACK_REFUSED);
    assert_int_equal(f->count, 0);
    webhook_free(w);
}

static void urls(struct fixture *f)
{
    static const struct {
        const char *url;
        enum error_code code;
    } rows[] = {
        {"https://example.com/callback", ERROR_NONE},
        {"http://example.com:8080/a?b=c", ERROR_NONE},
        {"http://8.8.8.8/", ERROR_NONE},
        {"http://[2606:4700::1111]/", ERROR_NONE},
        {"", ERROR_INVALID_ARGUMENT},
        {"example.com", ERROR_INVALID_ARGUMENT},
        {"ftp://example.com/", ERROR_INVALID_ARGUMENT},
        {"file:///etc/passwd", ERROR_INVALID_ARGUMENT},
        {"gopher://example.com/", ERROR_INVALID_ARGUMENT},
        {"javascript:alert(1)", ERROR_INVALID_ARGUMENT},
        {"http://", ERROR_INVALID_ARGUMENT},
        {"http://user@example.com/", ERROR_INVALID_ARGUMENT},
        {"http://user:secret@example.com/", ERROR_INVALID_ARGUMENT},
        {"http://exa mple.com/", ERROR_INVALID_ARGUMENT},
        {"http://example.com:99999/", ERROR_INVALID_ARGUMENT},
        {"http://localhost/", ERROR_CALLBACK_REFUSED},
        {"http://LOCALHOST./", ERROR_CALLBACK_REFUSED},
        {"http://a.localhost:80/", ERROR_CALLBACK_REFUSED},
        {"http://127.0.0.1/", ERROR_CALLBACK_REFUSED},
        {"http://127.1/", ERROR_CALLBACK_REFUSED},
        {"http://2130706433/", ERROR_CALLBACK_REFUSED},
        {"http://0x7f.0.0.1/", ERROR_CALLBACK_REFUSED},
        {"http://0/", ERROR_CALLBACK_REFUSED},
        {"http://10.1.2.3:7070/v0/sandbox", ERROR_CALLBACK_REFUSED},
        {"http://169.254.169.254/latest/meta-data/", ERROR_CALLBACK_REFUSED},
        {"https://192.168.0.1/", ERROR_CALLBACK_REFUSED},
        {"http://[::1]/", ERROR_CALLBACK_REFUSED},
        {"http://[::ffff:127.0.0.1]/", ERROR_CALLBACK_REFUSED},
        {"http://[::ffff:8.8.8.8]/", ERROR_CALLBACK_REFUSED},
        {"http://[fe80::1%25eth0]/", ERROR_CALLBACK_REFUSED},
        {"http://[64:ff9b::7f00:1]/", ERROR_CALLBACK_REFUSED},
        {"http://[2002:7f00:1::]/", ERROR_CALLBACK_REFUSED},
    };
    struct webhook *w = make(f, false), *any = make(f, true);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct error err = {0};
        char *url = NULL;
        int rc = webhook_check(w, rows[i].url, &url, &err);
        if ((rc == 0 ? ERROR_NONE : err.code) != rows[i].code)
            fail_msg("%s: %s %s", rows[i].url, error_name(err.code), err.message);
        free(url);
        url = NULL;
        bool allowed = webhook_check(any, rows[i].url, &url, &err) == 0;
        assert_int_equal(allowed, rows[i].code != ERROR_INVALID_ARGUMENT);
        free(url);
    }
    char longest[3000];
    struct error err = {0};
    char *url = NULL;
    memset(longest, 'a', sizeof(longest) - 1);
    longest[sizeof(longest) - 1] = '\0';
    memcpy(longest, "http://example.com/", 19);
    assert_int_equal(webhook_check(w, longest, &url, &err), -1);
    assert_int_equal(err.code, ERROR_INVALID_ARGUMENT);
    webhook_free(w);
    webhook_free(any);
}

static void test_delivers(void **state)
{
    fixture_run(serve, NULL, delivers, NULL);
}

static void test_names_that_lead_home(void **state)
{
    fixture_run(serve, NULL, names_that_lead_home, NULL);
}

static void test_urls(void **state)
{
    fixture_run(serve, NULL, urls, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_delivers),
        cmocka_unit_test(test_names_that_lead_home),
        cmocka_unit_test(test_urls),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
