/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Making text UTF-8, for this folder's own use. */

#include "base/buf.h"
#include "base/slice.h"

/* What `len` bytes can become: one byte that is no character turns into three. */
#define UTF8_CLEAN_MAX(len) (3 * (size_t)(len))

/* Appends the text to out, with U+FFFD in place of what is not UTF-8. */
void utf8_clean(struct slice text, struct buf *out);
