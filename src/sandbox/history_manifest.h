/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What the tracked files of a sandbox are, as one list: the listing that its agent gives, the state
 * of a commit, and (kept beside the repository) the listing that led to the last commit. Comparing
 * two of them says what is to be read, committed or put back. Nothing here waits or does I/O.
 *
 * Paths are those in the commit's tree: absolute ones without their first slash. Items are in the
 * order of file_tree_compare(): a directory stands right before what is in it.
 *
 * git knows of a file whether it can be executed, and nothing of directories or owners. What it
 * does not know is a text, ATTRIBUTES_PATH in the commit's tree: a line for each root, each empty
 * directory, and everything that is not as one would guess (0644 or 0755, owned as the directory
 * that it is in). So most files have no line, and a change of content leaves the text as it is.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/sha1.h"
#include "base/slice.h"
#include "sandbox/history_git.h"
#include "wire/messages.h"

#define ATTRIBUTES_PATH ".cella/attributes"
/* What was left out by its name, a pattern to a line; where there is no such file, the usual. */
#define IGNORE_PATH ".cella/ignore"

enum { TRACKED_TORN = 1 }; /* no file's time */

struct tracked {
    const char *path;
    uint32_t type; /* FILE_REGULAR, FILE_DIRECTORY or FILE_SYMLINK */
    uint32_t mode; /* 07777 */
    uint32_t uid, gid;
    uint64_t size, mtime_ns, inode;
    uint64_t ctime_ns; /* 0: it has to be read to know whether it has changed */
    unsigned char blob[SHA1_SIZE];
    bool has_blob;
    /* Not on disk: */
    bool first;         /* it was there before anybody had used the sandbox */
    const char *target; /* of a symlink that was listed */
    bool outgrown;      /* what is there is too large by now, or cannot be read: this is what was
                         * kept of it last */
    bool ignored;       /* by rules that it was held against */
    uint64_t seen_ns; /* its ctime when it was listed or read; TRACKED_TORN: it was changed then */
};

struct manifest {
    struct arena *arena; /* of the paths; the items are malloc's */
    struct tracked *items;
    size_t count, cap;
    char commit[GIT_NAME_SIZE]; /* that it is the state of; "": none */
    uint64_t rules; /* history_ignore_mark() of the patterns that it was listed by; 0: who knows */
    uint64_t committed;  /* … and of those that the commit says; 0: there is none */
    struct slice ignore; /* a commit's: the patterns of then */
    /* Files that are there and too large to be kept: sorted, as paths of items are. One of them has
     * an item only when something was kept of it once. */
    const char **large; /* malloc's; the paths are the arena's */
    size_t large_count, large_cap;
};

void history_manifest_init(struct manifest *m);
void history_manifest_release(struct manifest *m);
#define _cleanup_manifest_ __attribute__((cleanup(history_manifest_release)))

/* Copies the path. INVALID_PATH for one that could not be in a tree of git's (".git" in it). */
int history_manifest_add(struct manifest *m, const struct tracked *item, struct error *err);
/* The same for one of those that are too large. */
int history_manifest_add_large(struct manifest *m, const char *path, struct error *err);
bool history_manifest_has_large(const struct manifest *m, const char *path);
/* Puts the items in order; of those with the same path the last stays, and what lies below
 * something that is no directory goes. */
void history_manifest_sort(struct manifest *m);
/* Marks what a listing with these patterns leaves out. Sorted; false when that is more work than
 * anybody's files are worth, and then what was not looked at is not marked. */
bool history_manifest_mark(struct manifest *m, struct slice ignore);
/* … and what is, or is below, one that was too large in the other: nobody knows what it was. */
void history_manifest_mark_large(struct manifest *m, const struct manifest *of);
struct tracked *history_manifest_find(const struct manifest *m, const char *path);

/* Whether a stat like this one means that nothing was written since. */
bool tracked_same_stat(const struct tracked *a, const struct tracked *b);
/* The same for the tree: type, content, and the x that git knows. */
bool tracked_same_tree(const struct tracked *a, const struct tracked *b);
/* The rest: mode and owner. */
bool tracked_same_attributes(const struct tracked *a, const struct tracked *b);
/* "100644", "100755" or "120000"; NULL for a directory. */
const char *tracked_git_mode(const struct tracked *item);

/* The name of a blob. */
void blob_name_begin(struct sha1 *sha1, uint64_t size);
void blob_name(const void *data, size_t len, unsigned char ret_blob[SHA1_SIZE]);
void blob_name_text(const unsigned char blob[SHA1_SIZE], char out[GIT_NAME_SIZE]);
int blob_name_parse(const char *text, unsigned char ret_blob[SHA1_SIZE]); /* -1: it is none */
/* Whether it is 40 hexadecimal digits (lower case). */
bool git_name_valid(const char *text);

/* ---- attributes ---- */

void attributes_write(const struct manifest *m, struct buf *out);
/*
 * Gives items (files and links with git's modes; sorted) their attributes, and adds the directories
 * that there are: those of the text, and those on the way to items. Lines that make no sense are
 * left out. Those that were too large are the manifest's then, too.
 */
int attributes_apply(struct manifest *m, struct slice text, struct error *err);

/* A path in one line: bytes that would be in the way as %XX. */
void path_escape(const char *path, struct buf *out);
/* In the arena; NULL when it is not one. */
const char *path_unescape(struct slice text, struct arena *arena);

/* As people see it: relative in /workspace, absolute elsewhere. */
struct slice path_shown(struct slice tree_path, struct arena *arena);

/* ---- on disk ---- */

/* In the order of this machine. */
void history_manifest_encode(const struct manifest *m, struct buf *out);
/* The check at its end, of all that comes from `start` on. */
void history_manifest_seal(struct buf *out, size_t start);
/* Into an empty one. INVALID_ARGUMENT when it is torn, or no manifest. */
int history_manifest_decode(struct slice data, struct manifest *ret_manifest, struct error *err);
