/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Part of a content: the fields Range and If-Range (RFC 9110, 14). One range of bytes is served;
 * several at once, other units and what cannot be read are ignored, as the RFC allows, and the
 * whole content is sent.
 */

#include <stdbool.h>
#include <stdint.h>

#include "http/server.h"

struct http_range {
    uint64_t offset;
    uint64_t length;
};

enum http_range_kind {
    HTTP_RANGE_NONE,          /* all of it */
    HTTP_RANGE_PART,          /* 206 with *ret_range */
    HTTP_RANGE_UNSATISFIABLE, /* 416: it begins behind the end */
};

/* What a Range field's value (NULL: there is none) means for a content of that size. */
enum http_range_kind http_range_parse(const char *value, uint64_t size,
                                      struct http_range *ret_range);

/* The same for a request: with If-Range the range counts only while etag or last_modified (either
 * may be NULL) is what the client has. */
enum http_range_kind http_range(const struct http_exchange *x, uint64_t size, const char *etag,
                                const char *last_modified, struct http_range *ret_range);

/* Whether If-None-Match names the etag (or is "*"): 304 then. */
bool http_not_modified(const struct http_exchange *x, const char *etag);
