/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Gives memory that requests have freed back to the system. malloc() keeps freed memory below the
 * highest block in use; malloc_trim() returns it, but walks the whole heap. So it is called some
 * seconds after requests have used much, and never while nothing happens: an idle server has no
 * timer.
 */

#include <stddef.h>

#include "loop/loop.h"

struct memory_return { /* start from a zeroed struct */
    struct timer timer;
    size_t freed; /* by requests, since it was last done */
};

/* Has malloc() return large blocks as soon as they are freed, and use few heaps. Once, before any
 * thread is started. */
void memory_return_init(void);
/* A request ends that has held so much. */
void memory_return_soon(struct memory_return *r, struct loop *loop, size_t bytes);
void memory_return_stop(struct memory_return *r);
