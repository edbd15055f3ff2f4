/* SPDX-License-Identifier: Apache-2.0 */

/* Counts the memory that requests hold, and refuses more than the budgets allow. */

#include "base/memory.h"

static void add(struct memory_budget *budget, size_t bytes)
{
    budget->used += bytes;
    if (budget->used > budget->peak)
        budget->peak = budget->used;
}

static void subtract(struct memory_budget *budget, size_t bytes)
{
    budget->used -= bytes < budget->used ? bytes : budget->used;
}

void memory_take(struct memory_account *account, size_t bytes)
{
    if (account == NULL || account->server == NULL)
        return;
    account->used += bytes;
    add(account->server, bytes);
    if (account->owner != NULL)
        add(&account->owner->budget, bytes);
}

void memory_give(struct memory_account *account, size_t bytes)
{
    if (account == NULL || account->server == NULL)
        return;
    account->used -= bytes < account->used ? bytes : account->used;
    subtract(account->server, bytes);
    if (account->owner != NULL)
        subtract(&account->owner->budget, bytes);
}

static bool fits(const struct memory_budget *budget, size_t max, size_t bytes)
{
    return budget->max == 0 || (bytes <= max && budget->used <= max - bytes);
}

static size_t mebibytes(size_t bytes)
{
    return (bytes + (1 << 20) - 1) >> 20;
}

int memory_check(struct memory_account *account, size_t bytes, struct error *err)
{
    if (account == NULL || account->server == NULL)
        return 0;
    size_t whole = account->used + bytes;
    struct memory_budget *server = account->server;
    if (whole <= MEMORY_SMALL)
        return 0;
    /* A caller's only request may be as large as any: its budget is about how many there are. */
    bool only = account->owner != NULL && account->owner->budget.used <= account->used;
    if (account->owner != NULL && !only &&
        !fits(&account->owner->budget, account->owner->budget.max, bytes)) {
        struct memory_budget *own = &account->owner->budget;
        return error_set(err, ERROR_MEMORY_LIMITED,
                         "this request needs %zu MiB more of the server's memory, and the requests "
                         "of this caller that are under way hold %zu of the %zu MiB they may have: "
                         "read their answers, or try again later",
                         mebibytes(bytes), mebibytes(own->used), mebibytes(own->max));
    }
    size_t max = whole > MEMORY_LARGE ? server->max - server->max / 4 : server->max;
    if (!fits(server, max, bytes))
        return error_set(err, ERROR_OVERLOADED,
                         "the server holds %zu MiB for requests that are under way, and has no "
                         "room for %zu MiB more: try again later",
                         mebibytes(server->used), mebibytes(bytes));
    return 0;
}

int memory_reserve(struct memory_account *account, size_t bytes, struct error *err)
{
    if (memory_check(account, bytes, err) < 0)
        return -1;
    memory_take(account, bytes);
    return 0;
}

void memory_set_owner(struct memory_account *account, struct memory_owner *owner)
{
    struct memory_owner *old = account->owner;
    if (owner == old)
        return;
    if (owner != NULL) {
        owner->accounts++;
        add(&owner->budget, account->used);
    }
    account->owner = owner;
    if (old == NULL)
        return;
    subtract(&old->budget, account->used);
    if (--old->accounts == 0 && old->unused != NULL)
        old->unused(old);
}
