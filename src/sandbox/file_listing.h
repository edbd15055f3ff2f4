/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A directory's entries one after the other, in order: what is no directory first, each kind by
 * name. Nothing is held but a piece of what the agent sends, which waits while nobody asks for the
 * next entry; so a directory of any size costs little.
 */

#include "sandbox/files.h"

struct file_listing {
    struct file_transfer *transfer;
    size_t count; /* of entries that were given out */
    /* From an agent of an older server, which does not sort: all of them, held. */
    struct file_entry *items;
    size_t item_count;
    bool in_directories; /* from here on there is nothing else */
};

/* *ret_dir lives in the arena. */
int file_listing_begin(struct sandboxes *s, const char *workspace, const char *name,
                       const char *path, struct arena *arena, struct file_listing *ret_listing,
                       struct file_entry *ret_dir, struct error *err);
/* 1 with an entry (its path is the name alone), which is good until the next call; 0 at the end.
 * LIMIT_EXCEEDED past DIR_ENTRIES_MAX. */
int file_listing_next(struct file_listing *listing, struct file_entry *ret_entry,
                      struct error *err);
void file_listing_end(struct file_listing *listing); /* a zeroed one is fine */
#define _cleanup_file_listing_ __attribute__((cleanup(file_listing_end)))
