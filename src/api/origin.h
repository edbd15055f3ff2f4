/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Requests from web pages: which pages may read the API's answers (CORS), and, on a server that
 * asks nobody for a key, which may make requests at all.
 */

#include "api/api.h"
#include "http/router.h"

/* Sets the fields that let pages of api->cors_origin read whatever the answer will be. */
void origin_fields(struct http_exchange *x, const struct api *api);

/* A browser asks, before the request itself and without a key, whether a page may make it. */
bool origin_is_preflight(const struct http_exchange *x);

/* Answers OPTIONS: 204, what may be done here, and to whom. methods: "GET, HEAD, PUT". */
int origin_reply_options(struct http_exchange *x, const struct api *api, const char *methods,
                         struct error *err);

/*
 * Without keys (api->open) whoever can connect may do everything, and every page in a browser of
 * this machine can: so a request has to be addressed to this machine by a name of its own (else a
 * stranger's name that leads here would do), must not come from a page of another origin (a link
 * that somebody follows to /docs or a preview may), and has to come from this machine.
 * FORBIDDEN.
 */
int origin_check_open(struct http_exchange *x, const struct api *api, struct error *err);

/* The same for a program of a sandbox, at a name or a port of its own: the name is known to be
 * ours, or this machine's, and links to it may be anywhere. */
int origin_check_own(struct http_exchange *x, const struct api *api, struct error *err);
