/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Request memory. A request makes many small strings that all die together; handing them out of
 * a few blocks costs a pointer bump each and one free per block at the end, and nobody has to
 * remember who owns what.
 */

#include "base/arena.h"

#include <stdalign.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    FIRST_BLOCK = 4096,
    LARGEST_BLOCK = 64 * 1024,
};

struct block {
    struct block *next;
    size_t used;
    size_t cap;
    alignas(max_align_t) char data[];
};

struct arena {
    struct block *first; /* the one that is being filled */
    size_t next_cap;
    struct memory_account *account; /* NULL: none */
};

static size_t rounded(size_t size)
{
    size_t align = alignof(max_align_t);
    if (size > SIZE_MAX / 2)
        abort();
    return (size + align - 1) / align * align;
}

/* Zeroed by calloc(), which knows which pages are fresh from the kernel. */
static struct block *block_new(size_t cap, struct memory_account *account)
{
    struct block *block = calloc(1, sizeof(struct block) + cap);
    if (block == NULL)
        abort();
    block->cap = cap;
    memory_take(account, sizeof(struct block) + cap);
    return block;
}

static struct arena *arena_in(struct block *block, size_t next_cap, struct memory_account *account)
{
    struct arena *arena = (struct arena *)block->data;
    block->used = rounded(sizeof(struct arena));
    *arena = (struct arena){.first = block, .next_cap = next_cap, .account = account};
    return arena;
}

struct arena *arena_new_for(struct memory_account *account)
{
    return arena_in(block_new(FIRST_BLOCK - sizeof(struct block), account), (size_t)2 * FIRST_BLOCK,
                    account);
}

struct arena *arena_new(void)
{
    return arena_new_for(NULL);
}

struct arena *arena_new_sized(size_t size)
{
    size_t cap = rounded(sizeof(struct arena)) + rounded(size);
    return arena_in(block_new(cap, NULL), cap, NULL);
}

struct memory_account *arena_account(const struct arena *arena)
{
    return arena->account;
}

int arena_check(const struct arena *arena, size_t bytes, struct error *err)
{
    return memory_check(arena->account, bytes, err);
}

static void block_free(struct block *block, struct memory_account *account)
{
    memory_give(account, sizeof(struct block) + block->cap);
    free(block);
}

void arena_free(struct arena *arena)
{
    if (arena == NULL)
        return;
    struct block *block = arena->first; /* the arena itself lies in one of them */
    struct memory_account *account = arena->account;
    while (block != NULL) {
        struct block *next = block->next;
        block_free(block, account);
        block = next;
    }
}

/* The block that the arena itself lies in is the last of the list, unless large blocks of their
 * own were put behind it. */
void arena_clear(struct arena *arena)
{
    struct block *home = NULL;
    for (struct block *block = arena->first, *next; block != NULL; block = next) {
        next = block->next;
        if (block->data == (char *)arena)
            home = block;
        else
            block_free(block, arena->account);
    }
    size_t start = rounded(sizeof(struct arena));
    memset(home->data + start, 0, home->used - start);
    home->used = start;
    home->next = NULL;
    arena->first = home;
}

void *arena_alloc(struct arena *arena, size_t size)
{
    size = rounded(size);
    struct block *block = arena->first;
    if (size <= block->cap - block->used) {
        void *p = block->data + block->used;
        block->used += size;
        return p;
    }
    if (size >= arena->next_cap / 2) { /* its own block, behind the one that is being filled */
        struct block *own = block_new(size, arena->account);
        own->used = size;
        own->next = block->next;
        block->next = own;
        return own->data;
    }
    block = block_new(arena->next_cap, arena->account);
    if (arena->next_cap < LARGEST_BLOCK)
        arena->next_cap *= 2;
    block->next = arena->first;
    block->used = size;
    arena->first = block;
    return block->data;
}

char *arena_dup(struct arena *arena, const void *data, size_t len)
{
    char *copy = arena_alloc(arena, len + 1);
    if (len > 0)
        memcpy(copy, data, len);
    return copy;
}

char *arena_strdup(struct arena *arena, const char *str)
{
    return str == NULL ? NULL : arena_dup(arena, str, strlen(str));
}

char *arena_printf(struct arena *arena, const char *fmt, ...)
{
    va_list args, again;
    va_start(args, fmt);
    va_copy(again, args);
    int len = vsnprintf(NULL, 0, fmt, again);
    va_end(again);
    if (len < 0)
        abort();
    char *text = arena_alloc(arena, (size_t)len + 1);
    vsnprintf(text, (size_t)len + 1, fmt, args);
    va_end(args);
    return text;
}
