/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The API speaks several dialects: the seed's shapes, and those of clients that people already
 * have. A dialect is a part of the URL space with a table of routes and an error shape of its own.
 * Which one a request is in follows from its path alone, so that a path that leads nowhere is
 * refused in the shape its sender can read, and no handler ever writes an error.
 */

#include "http/router.h"

struct dialect {
    const struct route *routes;
    const size_t *count;
    /* Answers with *why, before which nothing was answered. NULL: as the server itself does. */
    int (*reply_error)(struct http_exchange *x, const struct error *why, struct error *err);
    const char *name; /* for people and tests */
    bool by_box;      /* its handlers settle who is calling, by a sandbox's token */
};

extern const struct dialect dialect_cella;      /* everything that is none of the others */
extern const struct dialect dialect_blaxel;     /* Blaxel's control plane: /v0/sandboxes … */
extern const struct dialect dialect_blaxel_box; /* … and inside: /{workspace}/sandboxes/{name}/… */
extern const struct dialect dialect_preview;    /* /preview/{id}/…: for those without a key */

extern const struct dialect dialect_e2b;      /* E2B's control plane: /sandboxes, /v2 … */
extern const struct dialect dialect_e2b_envd; /* … and inside: by fields or host, and /files */

extern const struct dialect dialect_scalebox;     /* Scalebox's control plane: /v1/… */
extern const struct dialect dialect_scalebox_box; /* … and inside: /sandboxagent.*, /upload … */

extern const struct dialect dialect_aisandbox; /* /api/sandbox … */

/* All of them. */
extern const struct dialect *const dialects[];
extern const size_t dialect_count;

/* path is the request's, still encoded. Which requests are for the inside of a sandbox of E2B's is
 * not told by it alone (e2b/door.h). */
const struct dialect *dialect_of(const char *path);
