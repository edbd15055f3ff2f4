/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Snapshots: clones that stay stopped, until a sandbox is made of one by cloning it again. */

#include "api/call.h"
#include "api/e2b/sandbox_request.h"

/* By id ("k3vq7xabcdef", "k3vq7xabcdef:default") or name. SNAPSHOT_NOT_FOUND. */
int e2b_snapshot_find(struct http_exchange *x, const struct api_call *call, const char *reference,
                      struct sandbox_info *ret_info, struct error *err);

/* Makes one, and waits until its files are there. name "": none. resources: what differs from the
 * source's. INVALID_ARGUMENT for a name that cannot be. */
int e2b_snapshot_make(struct http_exchange *x, const struct api_call *call,
                      const struct sandbox_info *source, const char *name,
                      const struct sandbox_resources *resources, struct sandbox_info *ret_made,
                      struct error *err);

/* A sandbox that begins with its files. */
int e2b_snapshot_start(struct http_exchange *x, const struct api_call *call,
                       const struct sandbox_info *snapshot,
                       const struct e2b_create_request *request,
                       const struct sandbox_resources *resources, struct sandbox_info *ret_info,
                       struct error *err);
