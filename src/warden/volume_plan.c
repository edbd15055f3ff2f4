/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The arithmetic of the volume's size. Growing is cheap and shrinking is not (btrfs moves data out
 * of the way), so the two thresholds are far apart.
 */

#include "warden/volume_plan.h"

#include <stdlib.h>
#include <string.h>

#define MIB (UINT64_C(1) << 20)
#define GIB (UINT64_C(1) << 30)

static const uint64_t free_min = 256 * MIB, free_max = 4 * GIB;
static const uint64_t first_max = GIB;
static const uint64_t step_min = 16 * MIB;
/* Room for another chunk of metadata: full of data, the volume could take no more files. */
static const uint64_t unallocated_min = 64 * MIB;
/* Above twice the wanted free space and this much, unused space is given back. */
static const uint64_t shrink_slack = GIB;
static const uint64_t writer_bytes_per_s = GIB;

enum { LOOK_MIN_MS = 100, LOOK_MAX_MS = 2000 };

static uint64_t at_most(uint64_t value, uint64_t most)
{
    return value < most ? value : most;
}

static uint64_t less(uint64_t value, uint64_t by)
{
    return value > by ? value - by : 0;
}

bool volume_reserve_parse(const char *text, struct volume_reserve *ret_reserve)
{
    char *end;
    if (*text < '0' || *text > '9' || strlen(text) > 18)
        return false;
    uint64_t number = strtoull(text, &end, 10);
    struct volume_reserve reserve = {.bytes = number};
    if (strcmp(end, "%") == 0 && number < 100)
        reserve = (struct volume_reserve){.percent = (unsigned)number};
    else if (*end != '\0')
        return false;
    *ret_reserve = reserve;
    return true;
}

uint64_t volume_reserve_of(const struct volume_reserve *reserve, uint64_t disk_size)
{
    return reserve->percent > 0 ? disk_size / 100 * reserve->percent : reserve->bytes;
}

uint64_t volume_first_size(uint64_t disk_free, uint64_t max)
{
    uint64_t size = at_most(disk_free / 8 / MIB * MIB, first_max);
    if (max != 0)
        size = at_most(size, max / MIB * MIB);
    return size < VOLUME_SIZE_MIN ? VOLUME_SIZE_MIN : size;
}

uint64_t volume_growable(const struct volume_state *state)
{
    uint64_t spare = less(state->disk_free, state->reserve);
    return state->max == 0 ? spare : at_most(spare, less(state->max, state->size));
}

uint64_t volume_wanted_free(uint64_t pool)
{
    uint64_t wanted = at_most(pool / 2, free_max);
    return wanted < free_min ? at_most(pool, free_min) : wanted;
}

static uint64_t grown(const struct volume_state *state, uint64_t wanted)
{
    uint64_t more = less(wanted, state->free);
    if (state->unallocated < unallocated_min && more < free_min)
        more = free_min;
    more = at_most(more, volume_growable(state)) / MIB * MIB;
    return more < step_min ? state->size : state->size + more;
}

static uint64_t shrunk(const struct volume_state *state, uint64_t wanted)
{
    uint64_t target = less(state->size, state->free - wanted - shrink_slack / 2);
    target = (target + MIB - 1) / MIB * MIB;
    return target < VOLUME_SIZE_MIN ? VOLUME_SIZE_MIN : target;
}

uint64_t volume_wanted_size(const struct volume_state *state)
{
    /* The reserve comes first. */
    uint64_t pool = less(state->free + state->disk_free, state->reserve);
    uint64_t wanted = volume_wanted_free(pool);
    if (state->read_only)
        return state->size;
    if (state->free > 2 * wanted + shrink_slack)
        return shrunk(state, wanted);
    if (state->free < wanted / 4 * 3 || state->unallocated < unallocated_min)
        return grown(state, wanted);
    return state->size;
}

unsigned volume_look_after_ms(const struct volume_state *state)
{
    uint64_t ms = at_most(state->free, 16 * GIB) * 1000 / writer_bytes_per_s / 2;
    if (ms > LOOK_MAX_MS || volume_growable(state) < step_min)
        return LOOK_MAX_MS;
    return ms < LOOK_MIN_MS ? LOOK_MIN_MS : (unsigned)ms;
}
