/* SPDX-License-Identifier: Apache-2.0 */

/* The route table: which row a request finds, and what its parameters hold. */

#include "fixture.h"

#include "http/router.h"

static int never(struct http_exchange *x, const struct route_params *params, void *ctx,
                 struct error *err)
{
    return error_set(err, ERROR_INTERNAL, "not called here");
}

static const struct route table[] = {
    ROUTE("GET", "/", 1, never),
    ROUTE("GET", "/health", 2, never),
    ROUTE("GET", "/v0/sandbox", 3, never),
    ROUTE("POST", "/v0/sandbox", 4, never),
    ROUTE("GET", "/v0/sandbox/{name}", 5, never),
    ROUTE("DELETE", "/v0/sandbox/{name}", 6, never),
    ROUTE("GET", "/v0/sandbox/{name}/process/all", 7, never),
    ROUTE("GET", "/v0/sandbox/{name}/process/{pid}", 8, never),
    ROUTE("GET", "/v0/sandbox/{name}/filesystem/{path*}", 9, never),
    ROUTE("PUT", "/v0/sandbox/{name}/filesystem/{path*}", 10, never),
    ROUTE("GET", "/{workspace}/sandbox/{name}", 11, never),
    ROUTE("ANY", "/v0/sandbox/{name}/port/{port}/{path*}", 12, never),
};

static int route(struct http_exchange *x, void *ctx, struct error *err)
{
    struct route_params params;
    const struct route *row = route_find(table, ARRAY_LEN(table), x, &params, err);
    if (row == NULL)
        return -1;
    assert_string_equal(route_param(&params, "no-such"), "");
    struct buf b = BUF_INIT(4096);
    buf_addf(&b, "[%u", row->scope);
    for (size_t i = 0; i < params.count; i++) {
        buf_addf(&b, " %s=%s", params.items[i].name, params.items[i].value.data);
        assert_int_equal(params.items[i].value.len, strlen(params.items[i].value.data));
        assert_string_equal(route_param(&params, params.items[i].name), params.items[i].value.data);
    }
    buf_addc(&b, ']');
    int rc = http_reply(x, 200, "text/plain", b.data, b.len, err);
    buf_release(&b);
    return rc;
}

static const struct {
    const char *method, *target;
    const char *has; /* in the answer */
} rows[] = {
    {"GET", "/v0/sandbox/a/port/80", "[12 name=a port=80 path=]"},
    {"POST", "/v0/sandbox/a/port/80/b/c", "[12 name=a port=80 path=b/c]"},
    {"PROPFIND", "/v0/sandbox/a/port/80/", "[12 name=a port=80 path=]"},
    {"GET", "/", "[1]"},
    {"GET", "/?a=b", "[1]"},
    {"GET", "/health", "[2]"},
    {"GET", "/health/", "[2]"},
    {"GET", "/health//", "404 Not Found"},
    {"GET", "/Health", "404 Not Found"},
    {"GET", "/healthy", "404 Not Found"},
    {"GET", "//health", "404 Not Found"},
    {"GET", "//", "404 Not Found"},
    {"GET", "/v0/sandbox", "[3]"},
    {"POST", "/v0/sandbox/", "[4]"},
    {"GET", "/v0/sandbox/a", "[5 name=a]"},
    {"GET", "/v0/sandbox/a/", "[5 name=a]"},
    {"GET", "/v0/sandbox/a%2Fb", "[5 name=a/b]"},
    {"GET", "/v0/sandbox/a%20b%C3%A9+", "[5 name=a b\xc3\xa9+]"},
    {"GET", "/v0/sandbox/..", "[5 name=..]"},
    {"DELETE", "/v0/sandbox/a", "[6 name=a]"},
    {"GET", "/v0/sandbox/a/process/all", "[7 name=a]"},
    {"GET", "/v0/sandbox/a/process/7", "[8 name=a pid=7]"},
    {"GET", "/v0/sandbox/a/process/", "404 Not Found"},
    {"GET", "/v0/sandbox//process/7", "404 Not Found"},
    {"GET", "/v0/sandbox/a/filesystem", "[9 name=a path=]"},
    {"GET", "/v0/sandbox/a/filesystem/", "[9 name=a path=]"},
    {"GET", "/v0/sandbox/a/filesystem/etc/passwd", "[9 name=a path=etc/passwd]"},
    {"GET", "/v0/sandbox/a/filesystem//etc//x/", "[9 name=a path=/etc//x/]"},
    {"GET", "/v0/sandbox/a/filesystem/%2Fetc%2f..", "[9 name=a path=/etc/..]"},
    {"PUT", "/v0/sandbox/a/filesystem/f?mode=1", "[10 name=a path=f]"},
    {"GET", "/ws/sandbox/a", "[11 workspace=ws name=a]"},
    {"GET", "http://h/v0/sandbox/a", "[5 name=a]"},
    {"GET", "/v0/sandbox/a%", "INVALID_PATH"},
    {"GET", "/v0/sandbox/a%2", "INVALID_PATH"},
    {"GET", "/v0/sandbox/a%zz", "INVALID_PATH"},
    {"GET", "/v0/sandbox/a%00", "INVALID_PATH"},
    {"GET", "/v0/sandbox/a/filesystem/%00", "INVALID_PATH"},
    {"PATCH", "/v0/sandbox/a", "405 Method Not Allowed"},
    {"PATCH", "/v0/sandbox/a", "Allow: GET, HEAD, DELETE\r\n"},
    {"PUT", "/v0/sandbox", "Allow: GET, HEAD, POST\r\n"},
    {"POST", "/health", "Allow: GET, HEAD\r\n"},
    {"OPTIONS", "*", "404 Not Found"},
    {"PUT", "/nowhere", "ROUTE_NOT_FOUND"},
};

static void check_rows(struct fixture *f)
{
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char request[256];
        snprintf(request, sizeof(request), "%s %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
                 rows[i].method, rows[i].target);
        _cleanup_fd_ int fd = raw_connect(f);
        raw_sends(f, fd, request);
        char *got = raw_read_all(f, fd);
        if (strstr(got, rows[i].has) == NULL)
            fail_msg("%s %s: no %s in %s", rows[i].method, rows[i].target, rows[i].has, got);
        free(got);
    }
    /* HEAD finds GET's row */
    _cleanup_fd_ int fd = raw_connect(f);
    raw_sends(f, fd, "HEAD /v0/sandbox/abc HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    char *got = raw_read_all(f, fd);
    assert_non_null(strstr(got, "200 OK"));
    assert_non_null(strstr(got, "Content-Length: 12\r\n"));
    free(got);
}

static void rows_are_found(void **state)
{
    fixture_run(route, NULL, check_rows, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(rows_are_found)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
