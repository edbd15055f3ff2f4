/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Telling AddressSanitizer about a change of stacks. Nothing at all in ordinary builds.
 *
 * fiber_leave() right before a switch: where the stack to come lies, and where to keep this one's
 * state (NULL: this stack ends here). fiber_arrive() right after one: this stack's kept state, and
 * where the stack lies that control came from.
 */

#include <stddef.h>

#if defined(__SANITIZE_ADDRESS__)
#define FIBER_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define FIBER_ASAN 1
#endif
#endif

#ifdef FIBER_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

static inline void fiber_leave(void **keep, const void *bottom, size_t size)
{
#ifdef FIBER_ASAN
    __sanitizer_start_switch_fiber(keep, bottom, size);
#else
    (void)keep, (void)bottom, (void)size;
#endif
}

static inline void fiber_arrive(void *kept, const void **ret_bottom, size_t *ret_size)
{
#ifdef FIBER_ASAN
    __sanitizer_finish_switch_fiber(kept, ret_bottom, ret_size);
#else
    (void)kept, (void)ret_bottom, (void)ret_size;
#endif
}

/* A stack that is used again: the marks of the frames that were there last are wiped. */
static inline void fiber_clean(void *bottom, size_t size)
{
#ifdef FIBER_ASAN
    __asan_unpoison_memory_region(bottom, size);
#else
    (void)bottom, (void)size;
#endif
}
