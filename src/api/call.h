/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What handlers share: who is calling, and reading requests and writing answers the same way
 * everywhere. Everything handed out lives in the exchange's arena.
 */

#include <stdbool.h>
#include <stdint.h>

#include "api/api.h"
#include "base/timetext.h"
#include "json/json.h"
#include "http/router.h"

/* A handler's ctx. */
struct api_call {
    const struct api *api;
    struct principal principal; /* empty on public routes */
    const char *workspace;      /* the one that names are looked up in; "" on public routes */
    /* The field that held the caller's key, or NULL: who forwards the request leaves it out. */
    const char *credential_field;
};

/*
 * The request's JSON object; *ret_object is NULL when there is no body. UNSUPPORTED_MEDIA_TYPE when
 * the body says it is something else (no Content-Type counts as JSON), PAYLOAD_TOO_LARGE over
 * HTTP_JSON_BODY_MAX, INVALID_JSON, INVALID_ARGUMENT when it is no object.
 */
int api_json_body(struct http_exchange *x, yyjson_val **ret_object, struct error *err);

/* A document whose root is an empty object, to be filled and answered with. */
yyjson_mut_doc *api_json_new(struct arena *arena, yyjson_mut_val **ret_root);
/* What a list says of the part of all that it is. */
void api_json_page(yyjson_mut_doc *doc, yyjson_mut_val *root, uint64_t total, uint64_t limit,
                   uint64_t offset);
int api_reply_json(struct http_exchange *x, int status, const yyjson_mut_doc *doc,
                   struct error *err);

/* X-Cella-Execution: what history calls what is being run, for answers whose shape is somebody
 * else's. Before the answer begins. An agent's word is checked; what is no such id is not told. */
void api_tell_execution(struct http_exchange *x, const char *execution);

/* Query parameters; `fallback` when they are not there. INVALID_ARGUMENT names the parameter. */
int api_query_uint(struct http_exchange *x, const char *name, uint64_t min, uint64_t max,
                   uint64_t fallback, uint64_t *ret_value, struct error *err);
int api_query_bool(struct http_exchange *x, const char *name, bool fallback, bool *ret_value,
                   struct error *err);
/* since=…: a moment, or how long ago it was, as Unix time; 0: it is not there. */
int api_query_since(struct http_exchange *x, int64_t *ret_ms, struct error *err);

/* "a,b,c" as a list of strings (base/slice.h) in the arena, blanks around them and empty ones left
 * out; NULL is an empty list. INVALID_ARGUMENT, naming the parameter, over PATTERNS_BYTES_MAX. */
int api_list(struct arena *arena, const char *name, const char *text, struct slice *ret_list,
             struct error *err);

/* Decimal digits and nothing else, in min…max. Says so, not why: the caller knows what it is. */
bool api_parse_uint(const char *text, uint64_t min, uint64_t max, uint64_t *ret_value);

/* The part `port` of a path: as people write numbers, so that one port has one address. */
int api_port_param(const struct route_params *params, uint16_t *ret_port, struct error *err);

/*
 * Members whose value came out of a sandbox. Text need not be UTF-8 there: `key` then gets U+FFFD
 * for what is not, and `exact_key` the bytes in base64. Times are clamped to years of four digits.
 */
void api_add_text(struct arena *arena, yyjson_mut_doc *doc, yyjson_mut_val *object, const char *key,
                  const char *exact_key, struct slice text);
#define API_TIME_MAX UINT64_C(253402300799999) /* 9999-12-31T23:59:59.999Z */
void api_http_time(uint64_t unix_ms, char out[TIME_TEXT_SIZE]);
void api_add_http_time(yyjson_mut_doc *doc, yyjson_mut_val *object, const char *key,
                       uint64_t unix_ms);

/* Where this server is reached, without a slash at its end. Behind a proxy only the configuration
 * knows; without one, where this request came to is where the next one can go. */
const char *api_base_url(struct http_exchange *x, const struct api *api);
