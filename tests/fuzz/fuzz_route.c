/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Paths of requests against a route table. The first byte chooses the method, the rest is the path
 * as it came. What is found has parameters that are C strings of their length, and a path that has
 * no row is refused with a reason.
 */

#include "http/router.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "http/conn.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int never(struct http_exchange *x, const struct route_params *params, void *ctx,
                 struct error *err)
{
    return error_set(err, ERROR_INTERNAL, "not called here");
}

static const struct route table[] = {
    ROUTE("GET", "/", 1, never),
    ROUTE("GET", "/v0/sandbox", 1, never),
    ROUTE("POST", "/v0/sandbox", 1, never),
    ROUTE("GET", "/v0/sandbox/{name}/process/all", 1, never),
    ROUTE("GET", "/v0/sandbox/{name}/process/{pid}", 1, never),
    ROUTE("GET", "/v0/sandbox/{name}/filesystem/{path*}", 1, never),
    ROUTE("GET", "/{workspace}/sandbox/{name}", 1, never),
    ROUTE("ANY", "/v0/sandbox/{name}/port/{port}/{path*}", 1, never),
};

static void require(bool truth)
{
    if (!truth)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const methods[] = {"GET", "HEAD", "POST", "DELETE", "PROPFIND", "OPTIONS"};
    struct route_params params = {.count = 0};
    struct error err = {0};
    bool any;
    if (size < 1)
        return 0;
    struct arena *arena = arena_new();
    struct http_exchange x = {.arena = arena};
    buf_init(&x.fields, 4096);
    x.head.request.method = methods[data[0] % ARRAY_LEN(methods)];
    x.head.request.path = arena_dup(arena, (const char *)data + 1, size - 1);
    const struct route *row = route_find(table, ARRAY_LEN(table), &x, &params, &err);
    require(row != NULL || (err.code != ERROR_NONE && err.message[0] != '\0'));
    for (size_t i = 0; row != NULL && i < params.count; i++) {
        require(params.items[i].value.len == strlen(params.items[i].value.data));
        require(strcmp(route_param(&params, params.items[i].name), params.items[i].value.data) ==
                0);
    }
    route_methods(table, ARRAY_LEN(table), &x, x.head.request.path, &any);
    buf_release(&x.fields);
    arena_free(arena);
    return 0;
}
