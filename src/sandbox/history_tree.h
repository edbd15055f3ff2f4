/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A sandbox's files as its history sees them: what is there, what is in it, and making it look
 * otherwise. On coroutines, on one connection to a worker of the sandbox's agent, so that a listing
 * and the contents that it asks for need no second one. Nothing is remembered here.
 *
 * The agent is a stranger's: what comes back is checked for what one entry can be checked for
 * (below), bounded in number and bytes, and can be a lie in every other respect. So a caller keeps
 * its own memory bounded, and takes an entry twice, a file with something below it, or contents
 * that are of no size for what they are: wrong, and harmless.
 *
 * Whether a listing is worth the while is what the agent says at the end of a command, and what
 * history_tree_clean() asks it at the end of anything else. That word is about the agent's last
 * listing, whoever asked for it: a cellad that has not itself brought one to a commit since it was
 * started takes everything as changed, and so does one whose commit failed.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/slice.h"
#include "sandbox/sandbox.h"
#include "wire/messages.h"

/* Asks the agent, over the channel that commands use: one small frame each way, and no worker.
 * False also when it cannot be asked. */
bool history_tree_clean(struct sandboxes *s, const char *workspace, const char *name);

struct history_tree;

/* After a listing: a descriptor of the queue in which the agent collects signs of changes; whether
 * it is one is the caller's to find out. The connection is good for nothing else afterwards. */
int history_tree_watch(struct history_tree *tree, int *ret_fd, struct error *err);

/* `roots`: a list of strings, absolute and normalized, at most HISTORY_ROOTS_MAX, none in another;
 * copied. Waits for a sandbox that is being made, as in processes.h. NOT_RUNNING, … */
int history_tree_open(struct sandboxes *s, const char *workspace, const char *name,
                      struct slice roots, struct history_tree **ret_tree, struct error *err);
/* Ends what is under way. NULL is fine. */
void history_tree_close(struct history_tree *tree);

static inline void cleanup_history_tree(struct history_tree **tree)
{
    history_tree_close(*tree);
}
#define _cleanup_history_tree_ __attribute__((cleanup(cleanup_history_tree)))

/* May wait. -1 with *err set ends the listing with it. The entry is valid during the call. */
typedef int history_visit(void *ctx, const struct history_entry *entry, struct error *err);

/*
 * Everything below the roots, and the roots that are there. A directory comes before what is in it,
 * otherwise there is no order. An entry's path is absolute, normalized and in one of the roots, its
 * type a file, a directory or a symlink (with a target), its mode and owner are possible ones.
 * Files of any size are listed. `ignore` is as history_list's. LIMIT_EXCEEDED past
 * HISTORY_ENTRIES_MAX or HISTORY_LISTING_MAX, which an honest agent does not reach: it says `cut`.
 */
int history_tree_list(struct history_tree *tree, struct slice ignore, uint64_t entries_max,
                      history_visit *visit, void *ctx, struct history_listed *ret_listed,
                      struct error *err);

/* Where contents go; each may wait, and -1 ends the reading. */
struct history_sink {
    /* The path that was asked for, and what is there now. With HISTORY_NO_CONTENT that is all;
     * else exactly entry->size bytes follow in data(), and then end(). */
    int (*begin)(void *ctx, const struct history_entry *entry, struct error *err);
    int (*data)(void *ctx, struct slice data, struct error *err);
    /* torn: it was changed while it was read. The next listing shows it again. */
    int (*end)(void *ctx, bool torn, struct error *err);
};

/* The contents of so many paths (absolute ones, as listed), in this order, in as many requests as
 * it takes. Links are not followed on the way; one that is asked for has its target in the entry.
 * Files over size_max (at most HISTORY_FILE_MAX) are HISTORY_NO_CONTENT. */
int history_tree_read(struct history_tree *tree, const char *const *paths, size_t count,
                      uint64_t size_max, const struct history_sink *sink, void *ctx,
                      struct error *err);

/*
 * Making the roots look as told: begin, then the items in the order in which they are to be done
 * (removing what is in a directory before itself, making it before what is in it, its attributes
 * last where they would be in the way), each HISTORY_FILE with exactly its size in put()s, then
 * end. What fails is counted, with the first failure's words, and the rest is done: see
 * history_applied. Not all or none: whoever needs that has what was there before in a commit.
 * Missing parents are made. Nothing outside of the roots is touched, whatever links lie on the way.
 */
int history_tree_apply_begin(struct history_tree *tree, struct error *err);
int history_tree_apply_item(struct history_tree *tree, const struct history_item *item,
                            struct error *err);
int history_tree_apply_put(struct history_tree *tree, struct slice data, struct error *err);
/* Its texts are in the arena: failure "" when nothing failed, left of whole pairs, no more than
 * failed. */
int history_tree_apply_end(struct history_tree *tree, struct arena *arena,
                           struct history_applied *ret_applied, struct error *err);
