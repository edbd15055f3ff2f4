/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What is left of sandboxes' networks (leaks.h): rules and interfaces of nobody in the router, and,
 * where there is no router, its cable and its table on the machine.
 */

#include <stdbool.h>

#include "base/error.h"

struct net_leaks {
    const char *data;
    const char *instance;
    bool (*is_running)(void *arg, int index); /* whether one that runs has it */
    void (*leak)(void *arg, const char *kind, const char *what);
    void *arg;
};

/* Enters another network namespace: for a process that does nothing else. */
int net_leaks_find(const struct net_leaks *leaks, struct error *err);
