/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* `cat` through a unix socket: one process reads a file and writes it to a socket, another takes
 * it from there and drops it (the floor under a download) or writes it to a file (an upload). */

#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "floor/host.h"

enum cat_kind { CAT_DROP, CAT_STORE };

/* size: of the file, which is made on the volume. */
int cat_measure(struct host *host, enum cat_kind kind, off_t size, int64_t *ret_ns,
                struct error *err);
