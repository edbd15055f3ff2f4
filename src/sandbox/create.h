/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What making and cloning have in common, for this folder alone. */

#include "sandbox/state.h"

struct first_event {
    const char *type; /* literal */
    const char *message;
};

/*
 * Records a new sandbox and sets its driver to work. The row has everything but id, times and
 * status; a name of NULL means that one is made up. Its strings have been checked, but for the
 * name.
 */
int sandbox_add(struct sandboxes *s, struct store_sandbox *row, const struct first_event *event,
                struct arena *arena, struct sandbox_info *ret_info, struct error *err);

/* ALREADY_EXISTS when another sandbox than `own` has this external id. NULL and "" are fine. */
int sandbox_check_external(struct sandboxes *s, const char *workspace, const char *external_id,
                           const struct sandbox *own, struct error *err);
