/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The epochs that cellad names in WARDEN_HELLO and EGRESS_HELLO. They come from a clock that only
 * goes forward while the machine is up. That is enough: a cellad is started after the one before
 * has ended, and nobody remembers an epoch longer than the machine is up.
 */

#include <stdint.h>
#include <time.h>

/* One that is higher than `last`, and than those of every earlier process. */
static inline uint64_t wire_epoch_after(uint64_t last)
{
    struct timespec now;
    clock_gettime(CLOCK_BOOTTIME, &now);
    uint64_t epoch = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
    return epoch > last ? epoch : last + 1;
}
