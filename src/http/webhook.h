/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Calls to addresses that strangers name: one POST, no redirect, bounded in time and size. For
 * coroutines; the work is done on threads of its own, by libcurl. And what the operator names, in
 * the same way.
 *
 * A stranger must not reach through the server what he could not reach himself. So the address that
 * is in fact connected to is checked (address_policy.h), after the name was looked up: a name that
 * means one thing when it is checked and another when it is called does not help. Proxies from the
 * environment are not used.
 */

#include <stdbool.h>

#include "base/error.h"
#include "base/slice.h"
#include "loop/loop.h"

struct webhook;

/* allow_private: any address may be called. */
struct webhook *webhook_new(struct loop *loop, bool allow_private, struct error *err);
/* From now on every call fails, those under way within a second. NULL is fine. */
void webhook_stop(struct webhook *webhook);
void webhook_free(struct webhook *webhook); /* NULL is fine */

/* What can be said about a URL without calling it: INVALID_ARGUMENT (not http or https, no host, a
 * user or password in it, too long), CALLBACK_REFUSED (an address that is not public, localhost).
 * ret_url gets it as it will be called, for the caller to free(). */
int webhook_check(struct webhook *webhook, const char *url, char **ret_url, struct error *err);

/* Any POST. A status of 2xx is success; *ret_status (may be NULL) is what was answered, 0: nothing.
 */
struct webhook_call {
    const char *url, *content_type;
    struct slice body;
    struct slice headers; /* "Name: value" strings (base/slice.h); more of them */
    int64_t timeout_ms;   /* 0: the usual */
};
int webhook_send(struct webhook *webhook, const struct webhook_call *call, int *ret_status,
                 struct error *err);

/* Posts JSON, with the place in a trace that the caller's errand has. A status of 2xx is success.
 * CALLBACK_REFUSED, UNAVAILABLE, TIMEOUT. */
int webhook_post(struct webhook *webhook, const char *url, struct slice json, struct error *err);

/* What the operator named, who may name any address; no redirect leads elsewhere. */
struct webhook_get {
    const char *url;
    const char *authorities; /* in PEM: they alone are believed; NULL: those of the machine */
    size_t max;              /* bytes of an answer */
};

/* GETs it. *ret_body, NUL-terminated, is to be freed. UNAVAILABLE (any status but 200, too),
 * TIMEOUT, PAYLOAD_TOO_LARGE over max. */
int webhook_fetch(struct webhook *webhook, const struct webhook_get *get, char **ret_body,
                  size_t *ret_len, struct error *err);
