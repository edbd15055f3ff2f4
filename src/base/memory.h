/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Budgets for the memory that requests hold: their bodies, their arenas, the answers that a client
 * has not read yet, and what agents have sent for them.
 *
 * A request has an account. What it holds counts against the budget of its owner (an API key, or
 * an address without one) and against the server's. Taking memory always succeeds, because an
 * allocation in the middle of an answer cannot be refused; code that is about to hold much asks
 * memory_check() first, while the request can still be answered with an error. So a budget is
 * exceeded by one request's last step at most.
 */

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

struct memory_budget {
    size_t max; /* bytes; 0: no limit */
    size_t used;
    size_t peak;
};

/* Whose requests share a budget. */
struct memory_owner {
    struct memory_budget budget;
    unsigned accounts;                          /* of requests under way */
    void (*unused)(struct memory_owner *owner); /* called when the last of them has ended */
};

struct memory_account {
    struct memory_budget *server; /* NULL: nothing is counted */
    struct memory_owner *owner;   /* NULL: not known (yet) */
    size_t used;
};

enum {
    /* A request that holds less is never refused: its answer fits into the socket's buffer. */
    MEMORY_SMALL = 64 * 1024,
    /* A request that holds more may not use the last quarter of the server's budget, which is
     * kept for the others. */
    MEMORY_LARGE = 1 << 20,
};

/* account may be NULL: then nothing is counted. */
void memory_take(struct memory_account *account, size_t bytes);
void memory_give(struct memory_account *account, size_t bytes);

/* Whether the request may hold so many bytes more: MEMORY_LIMITED when its owner has no room for
 * them, OVERLOADED when the server has none. */
int memory_check(struct memory_account *account, size_t bytes, struct error *err);
/* Both: checks, and takes. */
int memory_reserve(struct memory_account *account, size_t bytes, struct error *err);

/* Moves what the account holds to another owner. NULL: to none, as at the request's end. */
void memory_set_owner(struct memory_account *account, struct memory_owner *owner);
