/* SPDX-License-Identifier: Apache-2.0 */

/*
 * From a call to its method. A unary call can wait for the sandbox for as long as the sandbox likes
 * (a program that does not read its input), so the client's time-out is kept here, for all of them:
 * its coroutine is cancelled, which every wait below knows how to end.
 */

#include "api/connect/service.h"

#include <string.h>
#include <strings.h>

#include "api/connect/connect.h"
#include "base/cleanup.h"
#include "loop/co.h"

/* --- what every call is held to --- */

static int check_kind(struct http_exchange *x, const struct connect_method *method,
                      struct error *err)
{
    static const char *const wanted[] = {
        [CONNECT_UNARY] = "application/json",
        [CONNECT_STREAM] = CONNECT_STREAM_TYPE,
        [CONNECT_INPUT] = CONNECT_STREAM_TYPE,
    };
    bool is_stream = connect_is_stream(x);
    if (is_stream == (method->kind != CONNECT_UNARY))
        return 0;
    const char *type = http_header(x, "Content-Type");
    http_set_header(x, "Accept-Post", "%s", wanted[method->kind]);
    return error_set(err, ERROR_UNSUPPORTED_MEDIA_TYPE, "%s takes %s, not %.100s", method->name,
                     wanted[method->kind], type == NULL ? "a body of no type" : type);
}

/* Messages are small, so nothing is gained by taking compressed ones; what cannot be read is said
 * so, in the protocol's own way. */
static int check_encoding(struct http_exchange *x, struct error *err)
{
    const char *field = connect_is_stream(x) ? "Connect-Content-Encoding" : "Content-Encoding";
    const char *encoding = http_header(x, field);
    if (encoding == NULL || encoding[0] == '\0' || strcasecmp(encoding, "identity") == 0)
        return 0;
    http_set_header(x, connect_is_stream(x) ? "Connect-Accept-Encoding" : "Accept-Encoding",
                    "identity");
    return error_set(err, ERROR_NOT_IMPLEMENTED, "%s: \"%.40s\": messages are taken uncompressed",
                     field, encoding);
}

static int check_version(struct http_exchange *x, struct error *err)
{
    const char *version = http_header(x, "Connect-Protocol-Version");
    if (version == NULL || strcmp(version, "1") == 0)
        return 0;
    return error_set(err, ERROR_INVALID_ARGUMENT,
                     "Connect-Protocol-Version: \"%.40s\" is not 1, which is spoken here", version);
}

/* --- time --- */

struct call_time {
    struct timer timer;
    struct co *co;
    bool is_over;
};

static void time_is_over(struct timer *timer)
{
    struct call_time *time = container_of(timer, struct call_time, timer);
    time->is_over = true;
    co_cancel(time->co);
}

static int serve_in_time(struct http_exchange *x, const struct connect_box *box,
                         const struct connect_method *method, yyjson_val *message,
                         struct error *err)
{
    struct loop *loop = http_loop(x);
    struct call_time time = {.co = co_self(loop)};
    int64_t timeout_ms = 0;
    if (connect_timeout(x, &timeout_ms, err) < 0)
        return -1;
    if (timeout_ms > 0)
        timer_start(loop, &time.timer, timeout_ms, time_is_over);
    int rc = method->serve(x, box, message, err);
    timer_stop(&time.timer);
    if (rc < 0 && time.is_over && !http_started(x))
        return connect_too_late(err);
    return rc;
}

int connect_serve(struct http_exchange *x, const struct connect_box *box, const char *service,
                  const struct connect_method *methods, size_t count, const char *method,
                  struct error *err)
{
    yyjson_val *message = NULL;
    for (size_t i = 0; i < count; i++) {
        if (strcmp(methods[i].name, method) != 0)
            continue;
        if (check_kind(x, &methods[i], err) < 0 || check_version(x, err) < 0 ||
            check_encoding(x, err) < 0 ||
            (methods[i].kind != CONNECT_INPUT && connect_request(x, &message, err) < 0))
            return -1;
        return methods[i].kind == CONNECT_UNARY ? serve_in_time(x, box, &methods[i], message, err)
                                                : methods[i].serve(x, box, message, err);
    }
    return error_set(err, ERROR_ROUTE_NOT_FOUND, "%s has no method \"%.60s\" here", service,
                     method);
}
