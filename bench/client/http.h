/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A small blocking HTTP/1.1 client on one kept connection: what a measurement needs and no more.
 * Deliberately not the product's own client, so that neither hides a fault of the other.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

enum { HTTP_KEPT = 64 * 1024 };

struct http {
    int fd;
    char *key;  /* borrowed */
    char *host; /* borrowed; for the Host field */
    size_t used, filled;
    char in[256 * 1024];
    char body[HTTP_KEPT + 1]; /* the first bytes of the last answer's body, NUL-terminated */
    size_t body_len;
    uint64_t body_total;
    int status;
    bool closing; /* the server said that this was the last answer */
};

struct http_request {
    const char *method;
    const char *path;
    const char *type;   /* Content-Type; NULL: application/json where there is a body */
    const char *accept; /* NULL: none */
    const void *body;
    size_t body_len;
};

/* address: "127.0.0.1:7070". */
int http_open(struct http *http, const char *address, struct error *err);
void http_close(struct http *http);

/* Sends, and takes the whole answer in; http->status, body… say what came. Only failing to
 * speak is an error here, an answer of 500 is not. */
int http_call(struct http *http, const struct http_request *request, struct error *err);

/* As http_call(), and anything but the wanted status is an error with the start of the body. */
int http_expect(struct http *http, const struct http_request *request, int status,
                struct error *err);
