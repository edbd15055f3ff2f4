/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A search under way, shared by the walk (file_find.c) and what looks into files (file_grep.c). */

#include <stdbool.h>
#include <stdio.h>

#include "agent/file_worker.h"
#include "agent/walk.h"
#include "base/limits.h"

enum { FIND_BUFFER_SIZE = 256 * 1024 };

struct best;

struct finder {
    struct file_worker *worker;
    uint32_t id;
    const struct file_find *request;
    uint64_t deadline_ms;
    uint64_t found;
    bool cut;  /* there is, or may be, more */
    bool more; /* fuzzy: something did not make it */
    struct best *best;
    size_t best_count;
    char *text; /* FIND_BUFFER_SIZE */
    char path[PATH_BYTES_MAX];
};

/* Whether the time is over (finder->cut then). */
bool find_out_of_time(struct finder *finder);
/* The absolute path of one below the root; NULL when it is too long. */
const char *find_path(struct finder *finder, const char *below);
/* Sends a match, whose path is below the root. */
enum walk_next find_send(struct finder *finder, struct file_match *match, struct error *err);

/* The lines of a regular file that hold the query. */
enum walk_next find_in_file(struct finder *finder, const struct walk_item *item, struct error *err);
