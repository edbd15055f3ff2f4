/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The calls of the public API that are measured, over client/http.h. */

#include <stddef.h>

#include "base/error.h"
#include "client/http.h"

/* The mode of network that all sandboxes get from now on. */
void api_network(const char *mode);

/* resources: a JSON object, as in {"memory":"512Mi"}. */
int api_create(struct http *http, const char *name, const char *resources, struct error *err);

/* Runs a command to its end. Fails unless it exits with 0 and its output is `output` (which has to
 * be plain text without characters that JSON escapes; a final newline is added). NULL: any. */
int api_exec(struct http *http, const char *name, const char *command, const char *output,
             struct error *err);

int api_delete(struct http *http, const char *name, struct error *err);
/* Returns when the name is free again. */
int api_await_gone(struct http *http, const char *name, struct error *err);

/* Returns when the pool has as many ready as it should, and makes none. */
int api_await_pool(struct http *http, const char *pool, struct error *err);

int api_put_file(struct http *http, const char *name, const char *path, const void *data,
                 size_t len, struct error *err);
/* The whole file, dropped; its size is checked. */
int api_get_file(struct http *http, const char *name, const char *path, size_t len,
                 struct error *err);
