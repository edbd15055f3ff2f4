/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What E2B's and Scalebox's clients do with a sandbox's life. A time-out is its ttl. Paused is, for
 * them, one that stands still with its memory and one that is stopped, of which only the files are
 * kept. It ends by nothing: where its ttl would delete it, that is taken off before, and set again
 * when somebody comes back.
 */

#include "api/call.h"
#include "sandbox/sandbox.h"

/* Its time counts from now; 0: no end. */
int e2b_set_timeout(struct http_exchange *x, const struct api_call *call, const char *id,
                    int64_t seconds, struct error *err);
/* Reads a request {"timeout": seconds}, which has to be there, and finds the sandbox that it is
 * for. */
int e2b_timeout_request(struct http_exchange *x, const struct api_call *call,
                        const struct route_params *params, struct sandbox_info *ret_info,
                        int64_t *ret_seconds, struct error *err);
/* Returns when it stands still; memory false: when it is stopped. CONFLICT when it is already. */
int e2b_pause(struct http_exchange *x, const struct api_call *call, bool memory,
              struct sandbox_info *info, struct error *err);
/* 1: it is being resumed; 0: it runs. memory false: what it has in memory is dropped before. */
int e2b_come_back(struct http_exchange *x, const struct api_call *call, bool memory,
                  struct sandbox_info *info, struct error *err);
