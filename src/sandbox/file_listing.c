/* SPDX-License-Identifier: Apache-2.0 */

/* Lists of directories, entry by entry. */

#include "sandbox/file_listing.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/limits.h"
#include "sandbox/transfer.h"

static int in_order(const void *a, const void *b)
{
    const struct file_entry *x = a, *y = b;
    bool x_dir = x->type == FILE_DIRECTORY, y_dir = y->type == FILE_DIRECTORY;
    return x_dir != y_dir ? (int)x_dir - (int)y_dir : strcmp(x->path, y->path);
}

static int hold_all(struct file_listing *listing, struct arena *arena, struct error *err)
{
    struct frame_header last;
    struct slice payload;
    if (transfer_entries(listing->transfer, DIR_ENTRIES_MAX, arena, &listing->items,
                         &listing->item_count, &last, &payload, err) < 0)
        return -1;
    if (last.type != WIRE_OK)
        return transfer_unexpected(last.type, err);
    qsort(listing->items, listing->item_count, sizeof(*listing->items), in_order);
    return 0;
}

int file_listing_begin(struct sandboxes *s, const char *workspace, const char *name,
                       const char *path, struct arena *arena, struct file_listing *ret_listing,
                       struct file_entry *ret_dir, struct error *err)
{
    _cleanup_file_listing_ struct file_listing listing = {0};
    const struct file_ref request = {.path = path, .flags = FILE_SORTED};
    if (transfer_open(s, workspace, name, &listing.transfer, err) < 0)
        return -1;
    transfer_charge(listing.transfer, arena);
    if (transfer_send(listing.transfer, &file_list_schema, &request, err) < 0 ||
        transfer_answer(listing.transfer, &file_entry_schema, arena, ret_dir, err) < 0 ||
        (ret_dir->sorted == 0 && hold_all(&listing, arena, err) < 0))
        return -1;
    *ret_listing = listing;
    listing.transfer = NULL;
    return 0;
}

static int next_sent(struct file_listing *listing, struct file_entry *ret_entry, struct error *err)
{
    struct frame_header header;
    struct slice payload;
    if (transfer_next(listing->transfer, 0, &header, &payload, err) < 0)
        return -1;
    if (header.type == WIRE_OK)
        return 0;
    if (header.type != FILE_ENTRY)
        return transfer_unexpected(header.type, err);
    if (wire_decode(&file_entry_schema, payload, ret_entry, err) < 0)
        return -1;
    if (listing->in_directories && ret_entry->type != FILE_DIRECTORY)
        return error_set(err, ERROR_UNAVAILABLE, "the sandbox sent a list that is out of order");
    return 1;
}

int file_listing_next(struct file_listing *listing, struct file_entry *ret_entry, struct error *err)
{
    if (listing->items != NULL) {
        if (listing->count == listing->item_count)
            return 0;
        *ret_entry = listing->items[listing->count++];
        return 1;
    }
    int got = next_sent(listing, ret_entry, err);
    if (got <= 0)
        return got;
    if (++listing->count > DIR_ENTRIES_MAX)
        return error_set(err, ERROR_LIMIT_EXCEEDED, "more than %d entries", DIR_ENTRIES_MAX);
    listing->in_directories = ret_entry->type == FILE_DIRECTORY;
    return 1;
}

void file_listing_end(struct file_listing *listing)
{
    file_transfer_end(listing->transfer);
    listing->transfer = NULL;
}
