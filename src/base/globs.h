/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Lists of globs from outside: for names to ignore, to leave out, to find.
 *
 * A pattern of `*` and `?` alone is matched here, in time that grows with pattern times text and no
 * faster, so that a stranger's patterns may be held against a stranger's names by a process that
 * has other things to do; what has brackets or backslashes is fnmatch(3)'s, which promises no such
 * thing.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/slice.h"

/* Whether one of the patterns fits the name, or the path (in which `*` also stands for slashes),
 * or a directory that the path is below. `?` is one character. */
bool globs_match(struct slice patterns, const char *path, const char *name);

/* What such a match costs at most: a step for each plain pattern, and as many as there are bytes of
 * the others for each byte of the path. */
void globs_weigh(struct slice patterns, uint64_t *ret_plain, uint64_t *ret_globs);
