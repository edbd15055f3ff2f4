/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Authorities of sandboxes, for other handlers. */

#include "api/call.h"

/* Gives a sandbox that runs an authority, unless it has one, and has programs inside believe it.
 * UNAVAILABLE when they do not. */
int sandbox_ca_install(struct http_exchange *x, const struct api_call *call, const char *name,
                       struct error *err);

/* A clone has its source's files, which trust its source's authority: it gets the same one, if
 * there is one. What goes wrong is logged. */
void sandbox_ca_clone(struct http_exchange *x, const struct api_call *call, const char *source,
                      const char *clone_id);
