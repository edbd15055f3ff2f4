/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/buf.h"
#include "base/slice.h"

/* "e2b_" and the key in hexadecimal, which is the same key to the server: E2B's clients check its
 * form before they send it. Appended. One that has that form already stays as it is. */
void key_for_e2b(struct slice key, struct buf *out);
