/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Ranges of user and group ids, shared by all servers of the machine.
 *
 * Slot n is the range ID_BASE + n * ID_RANGE …, long ID_RANGE. Who holds it is said by the symlink
 * /run/cella/ids/<n> → "<data folder>:<sandbox id>", made with symlink(2), which succeeds for one
 * caller only. Ids on disk are canonical (0…65535), so a slot belongs to a start, not to a
 * sandbox: another one may come the next time.
 */

#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"

#define IDS_DIR "/run/cella/ids"

enum {
    ID_BASE = 0x30000000, /* above what useradd, systemd and Docker's subuid files hand out */
    ID_RANGE = 65536,
    ID_SLOTS = 16384,
};

struct ids {
    const char *dir;  /* IDS_DIR, but in tests */
    const char *data; /* the data folder's real path; borrowed */
    int cursor;       /* where the next search starts */
};

static inline uid_t ids_base(int slot)
{
    return (uid_t)(ID_BASE + slot * ID_RANGE);
}

/* Starts the search at a place of the instance's own, so that servers seldom meet. */
void ids_init(struct ids *ids, const char *data, const char *instance);

/* Takes a free slot; those of data folders that are gone count as free. */
int ids_take(struct ids *ids, const char *id, int *ret_slot, struct error *err);

/* Gives a slot back if this sandbox holds it. */
void ids_give(const struct ids *ids, const char *id, int slot);

/* Calls fn for every slot that this data folder holds, until it returns non-zero. */
typedef int (*ids_fn)(int slot, const char *id, void *arg);
int ids_each(const struct ids *ids, ids_fn fn, void *arg, struct error *err);

/* Removes the registry's folders if nobody holds anything. */
void ids_tidy(const struct ids *ids);

/* Splits "<data folder>:<id>"; false when it is something else. The folder is a prefix of target
 * with *ret_data_len bytes, *ret_id points into it. */
bool ids_parse(const char *target, size_t *ret_data_len, const char **ret_id);
