/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "api/api.h"

/* Answers with one whole sandbox, the addresses it is reached at included. */
int sandbox_reply(struct http_exchange *x, int status, const struct api *api,
                  const struct sandbox_info *info, struct error *err);
