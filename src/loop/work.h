/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Worker threads for calls that must block (SQLite, getaddrinfo, …).
 *
 * A coroutine hands a function over and waits for it. The wait cannot be cancelled, because the
 * function usually works on the coroutine's stack. With one thread a pool is also a queue: what is
 * handed over runs in that order, one at a time.
 */

#include "base/error.h"
#include "loop/loop.h"

struct workers;

struct workers *workers_new(struct loop *loop, unsigned threads, struct error *err);
void workers_free(struct workers *workers); /* waits for what runs; NULL is fine */

/* Runs fn(arg) on a worker thread and waits for its end. Outside a coroutine (before the loop runs,
 * and after) it is an ordinary call. */
void workers_run(struct workers *workers, void (*fn)(void *arg), void *arg);
