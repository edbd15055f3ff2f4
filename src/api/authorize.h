/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Who is calling, by the key or token that the request shows. */

#include "api/call.h"

/* Fills in call->principal and credential_field. flags: a route's scope and ROUTE_ bits. Those of
 * credential_find() and auth_check(); the fields that go with a refusal are set on the answer. */
int api_authorize(struct http_exchange *x, unsigned flags, struct api_call *call,
                  struct error *err);
