/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* For the layers that write JSON by hand, below the one that has a library for it. */

#include <stddef.h>

/* The length of the UTF-8 sequence at text (NUL-terminated); 0: it is none. */
size_t utf8_len(const unsigned char *text);
