/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* How well a few letters fit a path, as people type them into a "go to file" box. */

#include <stdint.h>

/*
 * 0: not all of the query's letters (without regard to case, blanks aside) are in the path in this
 * order. Else 1…1000: letters in a row, letters at the beginning of a word, and letters in the
 * last name count more; letters of the path that are left over count a little against it.
 */
uint64_t fuzzy_score(const char *query, const char *path);
