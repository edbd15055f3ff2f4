/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The mount table of a sandbox, carried out by its first process in its own namespaces. The table
 * itself is in mounts.c.
 */

#include "base/error.h"
#include "warden/layers.h"
#include "wire/messages.h"

enum { MOUNTS_MAX = 32 };

/* File systems that are made and not yet mounted, by row of the table; -1: none. */
struct mounts {
    int made[MOUNTS_MAX];
};

/* Makes what does not depend on the sandbox's root, while the warden is making that. */
int mounts_prepare(const struct plan *plan, struct mounts *ret_mounts, struct error *err);

/* Puts everything together and makes it /. Afterwards nothing of the machine's mounts is left. */
int mounts_enter(const struct plan *plan, const struct layers *layers, const struct mounts *mounts,
                 struct error *err);
