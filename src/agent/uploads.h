/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Uploads in parts. One is a directory in STATE_DIR/uploads, named by its id:
 *
 *   meta      a list of strings: where the file goes, its mode, when it was started
 *   p00001 …  the parts, each with its MD5 behind it (16 bytes), so that a part and its etag are
 *             replaced together
 *
 * Whoever receives a part holds a shared lock on the directory; completing and dropping need it
 * alone. Its modification time is the time of its newest part.
 */

#include <stdbool.h>
#include <stdint.h>

/* Drops uploads without a new part for UPLOAD_IDLE_S, or (all) every one. Returns how many are
 * left. */
unsigned uploads_expire(const char *state_dir, bool all);
