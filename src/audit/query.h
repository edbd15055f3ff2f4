/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Finding lines of an audit log. Blocks: for worker threads and the command line. */

#include "audit/files.h"
#include "base/buf.h"

enum { AUDIT_QUERY_MAX = 1000 };

/* What has to be true of a line; NULL and 0 ask for nothing. */
struct audit_query {
    const char *workspace;
    const char *key;       /* id or name */
    const char *sandbox;   /* id or name */
    const char *operation; /* "POST /v0/sandbox", or a class of routes: "exec" */
    const char *event;
    int64_t since_ms;
    uint64_t before, after; /* numbers, not included */
    unsigned limit;         /* 1…AUDIT_QUERY_MAX */
};

struct audit_matches {
    unsigned count;
    uint64_t oldest; /* number of the last one that was found; 0: none */
    bool more;       /* there may be older ones */
};

/* Appends what was found, newest first, as they stand in the log, with commas between. */
int audit_find(int dir_fd, const struct audit_query *query, struct buf *lines,
               struct audit_matches *ret_matches, struct error *err);
