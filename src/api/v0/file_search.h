/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Searching files, for every facade that has it. */

#include "api/v0/filesystem.h"

/* Reads the parameters of a search from the request's query into *request, whose path is set. */
int file_search_read(struct http_exchange *x, enum find_mode mode, struct file_find *request,
                     struct error *err);

/* {"query", "matches": […], "total"} and "truncated" when there may be more. */
int file_search_reply(struct http_exchange *x, const struct file_place *place, enum find_mode mode,
                      struct error *err);
/* The same for a request that was read in another way, with matches in the shape of `mode`. */
int file_search_run(struct http_exchange *x, const struct file_place *place,
                    const struct file_find *request, enum find_mode mode, struct error *err);
