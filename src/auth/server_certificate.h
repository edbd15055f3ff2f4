/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The server's own TLS certificate, signed by an authority of its own that people can choose to
 * trust. The authority's key is needed for signing only, so whoever serves never sees it.
 */

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/error.h"

enum { SERVER_NAMES_MAX = 16, SERVER_NAME_SIZE = 256 };

/* What it is for: "localhost", "*.example.com", "127.0.0.1", "::1". */
struct server_names {
    size_t count;
    char names[SERVER_NAMES_MAX][SERVER_NAME_SIZE];
};

/* Adds one, unless it is there, is no name at all, or there is no room. */
void server_names_add(struct server_names *names, const char *name, size_t len);

/* Appends certificate and key of a new authority, each in PEM. name: for people. Wipe the key. */
int server_authority_make(const char *name, struct buf *certificate, struct buf *key,
                          struct error *err);

/* Appends a certificate for the names, the authority's, and the key, in PEM. Wipe it. CONFLICT when
 * the authority's certificate and its key do not belong together. */
int server_certificate_make(const char *authority, const char *authority_key,
                            const struct server_names *names, struct buf *pem, struct error *err);

/* Whether it was signed by this authority for all of the names, and has a good part of its time
 * still to go. */
bool server_certificate_fits(const char *pem, const char *authority,
                             const struct server_names *names);
