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
 * status; its name is the one in the group (NULL: in none), and NULL means that one is made up. Its
 * strings have been checked, but for the name. GROUP_NOT_FOUND when that is ending.
 */
int sandbox_add(struct sandboxes *s, const char *group, struct store_sandbox *row,
                const struct first_event *event, struct arena *arena, struct sandbox_info *ret_info,
                struct error *err);

/* Checks what is asked for, and fills the row with it, as sandbox_add() wants it. */
int sandbox_create_row(struct sandboxes *s, const struct sandbox_create *request,
                       struct arena *arena, struct store_sandbox *ret_row, struct error *err);

extern const struct first_event sandbox_created;

/*
 * The two halves of sandbox_add(), neither of which waits: an id, a place in the maps and its first
 * event; then its driver is set to work. The sandbox is held. One that is not wanted after all is
 * given to sandbox_remove() before the second half, or condemned after it.
 */
struct sandbox *sandbox_admit(struct sandboxes *s, struct group *group, struct store_sandbox *row,
                              const struct first_event *event, struct error *err);
void sandbox_launch(struct sandbox *sb);

/* The life span of one that is to be made, as sandbox_add() takes it; all of it counts from then
 * on. */
int sandbox_new_lifespan(const struct lifespan *before, const struct lifespan_change *change,
                         struct store_lifespan *ret_row, struct error *err);

/* ALREADY_EXISTS when another sandbox than `own` has this external id. NULL and "" are fine. */
int sandbox_check_external(struct sandboxes *s, const char *workspace, const char *external_id,
                           const struct sandbox *own, struct error *err);
