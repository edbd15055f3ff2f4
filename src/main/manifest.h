/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What a backup says of itself: the first file in it, text, a line each.
 *
 *   cella-backup 1
 *   version 0.1.0
 *   schema 22
 *   created 2026-01-31T12:00:00Z
 *   file SHA-256 SIZE PATH
 *
 * with a `file` for every regular file. In paths, "%", control characters and bytes above 126 are
 * written as %XX.
 */

#include <stdint.h>
#include <stdio.h>

#include "base/error.h"

#define MANIFEST_NAME "MANIFEST"

/* Writes the head. */
int manifest_begin(FILE *out, struct error *err);
/* Adds what is in a folder; paths begin with `prefix`. */
int manifest_add(FILE *out, int dir_fd, const char *prefix, uint64_t *files, uint64_t *bytes,
                 struct error *err);

/*
 * Holds a folder to the manifest in it. CONFLICT when it is from a newer version of Cella;
 * INVALID_ARGUMENT, with the reason, when it is none, when a file is missing, different or not
 * mentioned.
 */
int manifest_verify(int dir_fd, uint64_t *ret_files, struct error *err);
