/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Memory that lives as long as a request: allocated piece by piece, freed at once. Never returns
 * NULL: running out of memory aborts, and what a stranger can make grow is limited before.
 */

#include <stdarg.h>
#include <stddef.h>

#include "base/memory.h"
#include "base/slice.h"

struct arena;

struct arena *arena_new(void);
/* One whose blocks count as held by a request; the account (borrowed) outlives the arena. */
struct arena *arena_new_for(struct memory_account *account);
struct memory_account *arena_account(const struct arena *arena); /* NULL: none */
/* Whether so many bytes more may be held: memory_check(). */
int arena_check(const struct arena *arena, size_t bytes, struct error *err);
/* One that is kept, and holds about so many bytes: it takes no more than it has to. */
struct arena *arena_new_sized(size_t size);
void arena_free(struct arena *arena);
/* Forgets all that was allocated, and keeps the first block for what comes next. */
void arena_clear(struct arena *arena);

void *arena_alloc(struct arena *arena, size_t size); /* zeroed, aligned for anything */
char *arena_dup(struct arena *arena, const void *data, size_t len); /* with a NUL behind it */
char *arena_strdup(struct arena *arena, const char *str);           /* NULL stays NULL */
char *arena_printf(struct arena *arena, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
