/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Requests of the command line to the server. On a coroutine. What goes wrong on the way, and what
 * the server answers in its error envelope, both come back as an error with the code that decides
 * the exit status.
 */

#include <stdint.h>
#include <sys/types.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"
#include "cli/args.h"
#include "base/slice.h"
#include "cli/settings.h"
#include "json/json.h"
#include "loop/loop.h"

struct client;

/* settings: borrowed. Nothing is sent yet. */
int client_new(struct loop *loop, const struct settings *settings, struct client **ret_client,
               struct error *err);
void client_free(struct client *client);

/* From now on requests are made with this key. */
void client_set_key(struct client *client, const char *key);

struct loop *client_loop(const struct client *client);
struct arena *client_arena(const struct client *client); /* lives as long as the client */
const struct settings *client_settings(const struct client *client);

/* --- targets --- */

enum { TARGET_MAX = 16 * 1024 };

/* Appends text percent-encoded; slashes stay when they part the path's segments. */
void target_add(struct buf *target, const char *text, bool keep_slashes);
/* "&NAME=VALUE" for each of these options that was given. */
void target_add_options(struct buf *target, const struct args *args, const char *const *names,
                        size_t count);
/* "/v0/sandbox/NAME", then `below` as it is. Which workspace that is in, every request says in a
 * field. */
void target_sandbox(const struct client *client, struct buf *target, const char *name,
                    const char *below);

/* --- whole answers --- */

/* Sends a request with a JSON body (NULL: none) and parses the JSON that comes back; it lives in
 * client_arena(). timeout_ms: without progress; 0: the default; -1: none. */
int client_json(struct client *client, const char *method, const struct buf *target,
                yyjson_mut_doc *body, int64_t timeout_ms, yyjson_val **ret_root, struct error *err);

/* --- streams --- */

/* A GET whose answer is raw bytes. *ret_length: -1 when it is not known. Then client_read() to 0.
 */
int client_get_bytes(struct client *client, const struct buf *target, int64_t *ret_length,
                     struct error *err);
ssize_t client_read(struct client *client, void *to, size_t len, struct error *err);

/* A PUT of raw bytes: length -1 when it is not known. Then client_write() …, client_put_end(). */
int client_put_bytes(struct client *client, const struct buf *target, int64_t length,
                     struct error *err);
int client_write(struct client *client, const void *data, size_t len, struct error *err);
int client_put_end(struct client *client, yyjson_val **ret_root, struct error *err);

/* A GET that goes on in another protocol: after it, the connection's descriptor is the caller's.
 * *ret_early: bytes that came already, until the next call on this client. */
int client_upgrade(struct client *client, const struct buf *target, const char *protocol,
                   int *ret_fd, struct slice *ret_early, struct error *err);
/* The same for a WebSocket. Free it before the client. */
struct websocket;
int client_websocket(struct client *client, const struct buf *target, struct websocket **ret_ws,
                     struct error *err);
/* A request with a JSON body (NULL: none) whose answer is a stream of the given type. *ret_answer
 * is good until the next call. Then client_read() to 0. */
struct http_answer;
int client_stream(struct client *client, const char *method, const struct buf *target,
                  yyjson_mut_doc *body, const char *accept, struct http_answer *ret_answer,
                  struct error *err);
/* A POST of bytes that are there; waits for the answer as long as it takes. */
int client_post_bytes(struct client *client, const struct buf *target, struct slice bytes,
                      struct error *err);

/* --- JSON --- */

/* Adds an object of the NAME=value pairs that an option was given, when it was. */
void client_add_pairs(const struct args *args, const char *option, yyjson_mut_doc *doc,
                      yyjson_mut_val *object, const char *key);
/* Those of --env. */
void client_add_env(const struct client *client, const struct args *args, yyjson_mut_doc *doc,
                    yyjson_mut_val *object, const char *key);

/* A document whose root is an empty object; lives as long as the client. */
yyjson_mut_doc *client_body(const struct client *client, yyjson_mut_val **ret_root);

/*
 * The bytes of a member that came out of a sandbox: where they are no UTF-8, the server gives them
 * in base64 as a second member, named `key` + "Base64".
 */
int client_exact(const struct client *client, yyjson_val *object, const char *key,
                 struct slice *ret_bytes, struct error *err);

/* Text at a JSON pointer ("/metadata/name"); an empty slice when there is none. */
struct slice client_text(yyjson_val *root, const char *pointer);
