/* SPDX-License-Identifier: Apache-2.0 */

/* When freed memory is given back to the system. */

#include "api/memory_return.h"

#include <malloc.h>

#include "base/cleanup.h"

enum {
    LARGE_BLOCK = 128 * 1024,
    HEAPS = 2, /* the loop's, and one for the threads that wait for the database */
    FREED_MIN = 8 << 20,
    DELAY_MS = 5 * 1000,
};

void memory_return_init(void)
{
    /* Setting the threshold also keeps glibc from raising it, up to 32 MiB, whenever a large block
     * is freed: such blocks would stay in the heap from then on. */
    mallopt(M_MMAP_THRESHOLD, LARGE_BLOCK);
    mallopt(M_TRIM_THRESHOLD, 4 * LARGE_BLOCK);
    mallopt(M_ARENA_MAX, HEAPS);
}

static void give_back(struct timer *timer)
{
    struct memory_return *r = container_of(timer, struct memory_return, timer);
    r->freed = 0;
    malloc_trim(LARGE_BLOCK);
}

void memory_return_soon(struct memory_return *r, struct loop *loop, size_t bytes)
{
    r->freed += bytes;
    if (r->freed >= FREED_MIN && r->timer.loop == NULL)
        timer_start(loop, &r->timer, DELAY_MS, give_back);
}

void memory_return_stop(struct memory_return *r)
{
    timer_stop(&r->timer);
}
