/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A service of the Connect protocol: a table of methods, and what every call of one is held to
 * before its method sees it. */

#include "api/connect/box.h"

enum connect_kind {
    CONNECT_UNARY,
    CONNECT_STREAM, /* of answers */
    CONNECT_INPUT,  /* of requests: the method reads them itself, and its message is NULL */
};

struct connect_method {
    const char *name;
    enum connect_kind kind;
    int (*serve)(struct http_exchange *x, const struct connect_box *box, yyjson_val *message,
                 struct error *err);
};

/*
 * Calls the method: of the kind that the request is, with its one message, within the time that
 * Connect-Timeout-Ms gives. (A stream looks after its time itself: what has begun ends in another
 * way.) ROUTE_NOT_FOUND for a method that is not there, UNSUPPORTED_MEDIA_TYPE for a call of the
 * other kind, INVALID_ARGUMENT for another version of the protocol, NOT_IMPLEMENTED for a message
 * that is compressed, TIMEOUT, and those of connect_request().
 */
int connect_serve(struct http_exchange *x, const struct connect_box *box, const char *service,
                  const struct connect_method *methods, size_t count, const char *method,
                  struct error *err);
