/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Names, ids and paths that come from outside. */

#include <stddef.h>

#include "base/error.h"
#include "base/limits.h"

/* A DNS label: 1 to 63 of a-z, 0-9 and '-', beginning and ending with a letter or digit.
 * INVALID_NAME says what is wrong with it. */
int name_check(const char *name, struct error *err);

/* The name of a secret: 1 to 63 letters, digits, '-', '_' and '.', the first a letter or digit.
 * INVALID_NAME. */
int secret_name_check(const char *name, struct error *err);

/* Random lower-case letters and digits from the kernel's generator, NUL-terminated; the first one
 * is a letter. out holds len + 1 bytes. */
void random_id(char *out, size_t len);

/* "brave-otter-4f2a": for sandboxes that were given no name. */
void random_name(char out[NAME_MAX_LEN + 1]);

/*
 * Makes a path from outside absolute and plain, lexically: one leading slash, no empty, "." or ".."
 * components. A relative path counts from "/". INVALID_PATH when it is empty, holds a NUL (len
 * tells), climbs out of the root, or is longer than PATH_BYTES_MAX. out holds PATH_BYTES_MAX + 1
 * bytes.
 */
int path_normalize(const char *path, size_t len, char *out, struct error *err);
