/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * How large the volume should be. Its file is allocated in full, so whatever btrfs sees as free
 * really is there: a full disk below it means ENOSPC for a sandbox, and never a write error. To
 * leave room for everything else on that disk, the file starts small and grows while the disk keeps
 * a reserve. Only arithmetic is here; volume_resize.h carries it out.
 */

#include <stdbool.h>
#include <stdint.h>

/* What the disk below the volume keeps free: a number of bytes, or a share of the disk. */
struct volume_reserve {
    uint64_t bytes;
    unsigned percent; /* not 0: this counts */
};

#define VOLUME_RESERVE_PERCENT 5
#define VOLUME_SIZE_MIN        (UINT64_C(256) << 20) /* btrfs shrinks no further; new ones have it */

/* "5%", or a number of bytes. */
bool volume_reserve_parse(const char *text, struct volume_reserve *ret_reserve);
uint64_t volume_reserve_of(const struct volume_reserve *reserve, uint64_t disk_size);

struct volume_state {
    uint64_t size;        /* of the file system */
    uint64_t max;         /* what it may grow to; 0: whatever the disk has */
    uint64_t used;        /* by what is in it */
    uint64_t free;        /* for what is to be in it */
    uint64_t unallocated; /* in none of its chunks: part of free */
    uint64_t disk_free;   /* on the disk below it */
    uint64_t reserve;     /* which that disk is to keep */
    bool read_only;
};

/* The size of a new one: an eighth of what the disk has left, from 256 MiB to 1 GiB. */
uint64_t volume_first_size(uint64_t disk_free, uint64_t max);

/* How much of the disk the volume may still take. */
uint64_t volume_growable(const struct volume_state *state);

/* How much of `pool`, which is all that could be free in the volume, should be: half of it, so
 * that fast writers and large preallocations find room at once, but at most 10 GiB. */
uint64_t volume_wanted_free(uint64_t pool);

/* The size that it should have now. The current one when a change would not be worth it. */
uint64_t volume_wanted_size(const struct volume_state *state);

/* When to look again while sandboxes write, in milliseconds: before a fast writer could have used
 * half of what is free. */
unsigned volume_look_after_ms(const struct volume_state *state);
