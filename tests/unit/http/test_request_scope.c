/* SPDX-License-Identifier: Apache-2.0 */

/* What a request's span says of who asked. */

#include "fixture.h"

#include "observe/otlp.h"
#include "observe/otlp_json.h"
#include "observe/span.h"

static const struct {
    const char *peer, *address, *port; /* port NULL: there is none */
} rows[] = {
    {"192.0.2.7:4711", "192.0.2.7", "4711"},
    {"[2001:db8::1]:99", "2001:db8::1", "99"},
    {"[::1]:0", "::1", NULL},
    {"192.0.2.7:0", "192.0.2.7", NULL},
    {"unix", "unix", NULL},
};

/* Each request is of the next row. */
static int serve(struct http_exchange *x, void *ctx, struct error *err)
{
    struct fixture *f = ctx;
    http_set_peer(x, rows[f->count++].peer);
    return http_reply(x, 204, NULL, NULL, 0, err);
}

static char *take_spans(struct tracer *tracer)
{
    struct buf request = BUF_INIT(1 << 20), text = BUF_INIT(1 << 20);
    const struct otlp_resource resource = {.version = "1"};
    otlp_traces(&request, &resource, (struct slice){tracer->spans.data, tracer->spans.len});
    otlp_traces_to_json(&text, (struct slice){request.data, request.len});
    buf_release(&request);
    buf_release(&tracer->spans);
    tracer->span_count = 0;
    return buf_steal(&text);
}

static void check_peers(struct fixture *f)
{
    struct tracer tracer;
    tracer_init(&tracer, 1, NULL);
    http_server_set_recorder(f->server, NULL, &tracer);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char address[100], port[100];
        int fd = raw_connect(f);
        raw_sends(f, fd, "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
        free(raw_read_all(f, fd));
        close(fd);
        _cleanup_free_ char *said = take_spans(&tracer);
        snprintf(address, sizeof(address),
                 "{\"key\":\"client.address\",\"value\":{\"stringValue\":\"%s\"}}",
                 rows[i].address);
        snprintf(port, sizeof(port), "{\"key\":\"client.port\",\"value\":{\"intValue\":\"%s\"}}",
                 rows[i].port != NULL ? rows[i].port : "");
        if (strstr(said, address) == NULL ||
            (strstr(said, rows[i].port != NULL ? port : "client.port") != NULL) !=
                (rows[i].port != NULL))
            fail_msg("%s: %s", rows[i].peer, said);
    }
    http_server_set_recorder(f->server, NULL, NULL);
    tracer_release(&tracer);
}

static void test_peers(void **state)
{
    fixture_run(serve, NULL, check_peers, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_peers)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
