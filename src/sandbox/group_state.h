/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What the files about groups share, and nobody else. */

#include "sandbox/groups.h"
#include "sandbox/state.h"

/* Makes one and puts it into the map, which holds it. */
struct group *group_new(struct sandboxes *s, const struct store_group *row, struct error *err);
void group_remove(struct group *group); /* out of the map; drops it */
/* GROUP_NOT_FOUND for one that is ending, too. */
struct group *group_find_alive(struct sandboxes *s, const char *workspace, const char *name,
                               struct error *err);
/* That a sandbox with nothing of its own could be made, if not that there is room for it. */
int group_check_spec(struct sandboxes *s, const struct group_create *request, struct arena *arena,
                     struct error *err);
void group_info(const struct group *group, struct arena *arena, struct group_info *ret_info);
void group_row(const struct group *group, struct arena *arena, struct store_group *ret_row);
void group_touch(struct group *group, const char *actor); /* who changes it, and when: now */
int group_save(const struct group *group, struct error *err);
