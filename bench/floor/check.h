/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/error.h"
#include "floor/sandbox.h"

/* Asserts, from inside, that the sandbox is one: a floor that left something out would be a
 * low one. shell: a busybox, as it is called inside. */
int check_sandbox(struct sandbox *sandbox, const char *shell, struct error *err);
