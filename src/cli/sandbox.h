/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What the verbs of `cella sandbox` share. */

#include "base/buf.h"
#include "base/slice.h"
#include "cli/args.h"
#include "cli/command.h"
#include "json/json.h"

/* METHOD /v0/sandbox[/name[/verb]] with a body (NULL: none), and the JSON that comes back. */
int sandbox_call(struct invocation *inv, const char *method, const char *name, const char *verb,
                 yyjson_mut_doc *body, yyjson_val **ret_root, struct error *err);

/* What a sandbox in an answer is called on the command line: "name", or "group/name". Lives as long
 * as the client. */
struct slice sandbox_full_name(const struct invocation *inv, yyjson_val *sandbox);

/* metadata and spec of what the options of create ask for. */
yyjson_mut_doc *sandbox_create_body(const struct invocation *inv);

/* The limits that options give, as members of an object. */
void resources_add(const struct args *args, yyjson_mut_doc *doc, yyjson_mut_val *object);

/* What --network, --allow and --deny give, as the member `key` of a spec; key NULL: as members of
 * the object itself. */
void network_add(const struct args *args, yyjson_mut_doc *doc, yyjson_mut_val *spec,
                 const char *key);

/* --auto-lower as autoLower of an object. What is no number goes as it is, for the server to
 * refuse. */
void auto_lower_add(const struct args *args, yyjson_mut_doc *doc, yyjson_mut_val *object);

/* What a sandbox uses of its limits, as a table; nothing when the answer does not say. */
void usage_write(yyjson_val *usage, struct buf *out);

/* What the options of resize ask for. */
int resize_body(const struct invocation *inv, yyjson_mut_doc **ret_doc, struct error *err);

/* --wait and --no-wait: which one? INVALID_ARGUMENT for both. */
int wants_to_wait(const struct args *args, bool *ret_wait, struct error *err);

/*
 * Looks again and again, until look(ctx) says that it is done (*ret_done), or fails, or --timeout
 * seconds are over: then TIMEOUT, which says what `name` is, and what it should be.
 */
int wait_until_done(struct invocation *inv,
                    int (*look)(void *ctx, bool *ret_done, const char **ret_now, struct error *err),
                    void *ctx, const char *name, const char *status, struct error *err);
