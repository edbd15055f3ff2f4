/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* SHA-256 of a file. */

#include "base/error.h"

enum { DIGEST_TEXT_SIZE = 65 };

/* From where the descriptor stands to the file's end, in hex; NUL-terminated. */
int digest_file(int fd, char out[DIGEST_TEXT_SIZE], struct error *err);
