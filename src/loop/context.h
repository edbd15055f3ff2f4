/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Changing stacks. A context is a place in a computation that is not running: switching keeps the
 * present place in one and goes on at another.
 */

#include <stddef.h>

#if defined(__x86_64__) || defined(__aarch64__)
struct context {
    void *sp; /* everything else lies on the stack that it points to */
};
#else
#include <ucontext.h>
struct context {
    ucontext_t ucontext;
};
#endif

/* A context that runs entry(arg) on this stack once it is switched to. entry must not return. */
void context_make(struct context *context, void *bottom, size_t size, void (*entry)(void *arg),
                  void *arg);
void context_switch(struct context *keep, const struct context *to);
