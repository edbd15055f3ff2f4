/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * From what a sandbox's files are to a commit of what has changed. On coroutines; nobody else may
 * be at work on the same repository.
 */

#include "base/arena.h"
#include "sandbox/history_repo.h"
#include "sandbox/history_tree.h"

/* Where files are listed and read: an agent, or a test. As history_tree_list() and
 * history_tree_read() are. */
struct history_source {
    void *ctx;
    int (*list)(void *ctx, history_visit *visit, void *visit_ctx, struct error *err);
    int (*read)(void *ctx, const char *const *paths, size_t count, uint64_t size_max,
                const struct history_sink *sink, void *sink_ctx, struct error *err);
};

struct history_commit_request {
    const char *execution; /* NULL: only the first commit is wanted */
    const char *message;
    bool even_empty;     /* a commit, whether something has changed or not */
    uint64_t file_max;   /* larger files are left out */
    struct slice ignore; /* patterns that the source's listing leaves out; NULL: the usual */
    uint64_t pack_max;   /* bytes that git may add; 0: no limit. More is QUOTA_EXCEEDED */
    uint64_t total_max;  /* all of them together: more is LIMIT_EXCEEDED, and no commit */
    uint64_t created_ns; /* what was last changed before is the image's, and in the first commit */
};

struct history_committed {
    bool made;                 /* a commit; otherwise nothing had changed */
    const struct slice *files; /* as people see them; at most HISTORY_FILES_SHOWN */
    size_t file_count;
    bool files_cut;
};

/*
 * Compares, reads what may have changed, and commits. A file that has become too large stays in
 * commits as it was kept last, and is marked (`outgrown`); so does, unmarked, one that other
 * patterns than before leave out: neither has gone. r->head is the newest commit afterwards: ""
 * when there has never been a file. `ret_manifest` (initialized) has what is there now.
 */
int history_commit_files(struct repository *r, const struct history_source *source,
                         const struct history_commit_request *request, struct arena *arena,
                         struct manifest *ret_manifest, struct history_committed *ret_committed,
                         struct error *err);
