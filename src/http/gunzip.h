/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A request's body that came with Content-Encoding: gzip, unpacked piece by piece in constant
 * memory. How much it unpacks to is for the reader to bound: a few bytes can become very many. */

#include <sys/types.h>

#include "base/error.h"
#include "http/server.h"

struct gunzip;

int gunzip_open(struct http_exchange *x, struct gunzip **ret_gunzip, struct error *err);
/* Some of it; 0 at its end. INVALID_ARGUMENT for what is no gzip, or is cut off. */
ssize_t gunzip_read(struct gunzip *gunzip, void *to, size_t len, struct error *err);
void gunzip_close(struct gunzip *gunzip); /* NULL is fine */
