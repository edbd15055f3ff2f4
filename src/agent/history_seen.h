/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Whether what is at a place is what history saw there. Between the last look at the files and the
 * way back somebody may have written: that is in no commit, and would be lost.
 *
 * It is told by its inode and the time of its last change, one system call before the one that
 * replaces it: what is written in between, or in the same tick of the clock that files are stamped
 * by as what history has read, is not noticed. Taking away one name of a file that has several
 * changes its time for the others; so those are remembered.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "wire/messages.h"

struct seen_link {
    uint64_t dev, inode; /* inode 0: nothing is here */
    uint64_t was_ns, is_ns;
};

struct history_seen { /* start from a zeroed struct */
    struct seen_link *links;
    size_t count, cap; /* a power of two, or 0 */
};

void history_seen_release(struct history_seen *seen);

/* One place, from before its change to after it. */
struct seen_place {
    int fd; /* of a file with other names; -1: there is nothing to remember */
    bool is_directory;
};

/* CONFLICT when there is something else than the item says; fine when there is nothing. */
int history_seen_check(const struct history_seen *seen, int dir_fd, const char *name,
                       const struct history_item *item, struct seen_place *ret_place,
                       struct error *err);
/* It was replaced, or removed, or was not: closes what check() has opened. */
void history_seen_done(struct history_seen *seen, const struct history_item *item,
                       struct seen_place *place);
