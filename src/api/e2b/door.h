/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Which requests are for the inside of a sandbox, as E2B's clients address it: by the fields
 * E2b-Sandbox-Id and E2b-Sandbox-Port, by a host name {port}-{id}.{domain}, or (a signed address
 * of a file) by neither. Two ports are ours: what E2B has an own daemon for in each sandbox is
 * served here, and nothing listens there.
 */

#include <stdint.h>

#include "api/connect/box.h"

enum { E2B_ENVD_PORT = 49983, E2B_CODE_PORT = 49999 };

/* Extended attributes with this prefix are a file's metadata. */
#define E2B_ATTRIBUTES "user.e2b."

struct e2b_visit {
    const char *sandbox_id; /* as it was sent; NULL: the request names none */
    uint16_t port;
};

/* Whether the port is one of the two. */
bool e2b_port_is_ours(uint16_t port);

/* False: the request is not for a sandbox, or by a host name for another port than the two. */
bool e2b_visits(const struct http_exchange *x, const struct api *api, struct e2b_visit *ret_visit);

/* Whether a browser asks if a page may send a request of that kind: the fields are not there yet.
 */
bool e2b_will_visit(const struct http_exchange *x);

enum e2b_key {
    E2B_NEEDS_TOKEN,   /* X-Access-Token */
    E2B_NEEDS_TRAFFIC, /* that, or the token of its ports: what comes without the first */
};

/*
 * The sandbox that the request is for, ready to be worked in: it exists, the caller may, and it
 * runs (one that is to be woken by its visitors is). `user`: whose paths are meant (NULL: by
 * `Authorization: Basic`, else "user"). SANDBOX_NOT_FOUND, NOT_RUNNING, UNAUTHORIZED,
 * TOO_MANY_ATTEMPTS.
 */
int e2b_box(struct http_exchange *x, const struct api *api, enum e2b_key key, const char *user,
            struct connect_box *ret_box, struct error *err);
/* The same for a sandbox that was found by other means, and whose caller was checked. */
int e2b_box_of(struct http_exchange *x, const struct api *api, const char *sandbox_id,
               const char *user, struct connect_box *ret_box, struct error *err);
/* Whether the sandbox of the request runs, for whoever asks: nothing is woken, entered or waited
 * for. SANDBOX_NOT_FOUND, NOT_RUNNING. */
int e2b_box_runs(struct http_exchange *x, const struct api *api, struct error *err);
