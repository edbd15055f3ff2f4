/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The quotas of a workspace with their use, as JSON. */

#include "api/call.h"
#include "api/call_limits.h"
#include "json/json.h"

/* "quotas": an array with an object for each kind. */
void quotas_add(yyjson_mut_doc *doc, yyjson_mut_val *object, const struct api_call *call,
                struct caller caller);
