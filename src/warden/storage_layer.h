/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* How much a layer holds, for the files that storage is made of. */

#include <stdint.h>

#include "base/error.h"
#include "warden/storage.h"

/* What a layer began with; 0 for one that is no copy. */
int storage_inherited_of(int layer, uint64_t *ret_bytes, struct error *err);
int storage_inherited(const struct storage *storage, const char *id, uint64_t *ret_bytes,
                      struct error *err);

/* What it is charged with, and what it inherited; by a walk where nobody keeps count. */
int storage_used(const struct storage *storage, const char *id, uint64_t *ret_bytes,
                 struct error *err);

/* RESOURCE_IN_USE */
int storage_in_use(struct error *err, uint64_t used, uint64_t quota);
