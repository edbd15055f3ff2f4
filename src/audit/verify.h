/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Checking an audit log, from its files alone: whether every line is there, as it was written and
 * in its place. What is found is told with file, line and number.
 */

#include "audit/files.h"

struct audit_finding {
    bool is_note;                    /* something to know of, not a sign of tampering */
    char file[AUDIT_FILE_NAME_SIZE]; /* "": of the log as a whole */
    uint64_t line;                   /* in that file, from 1 */
    uint64_t seq;                    /* the line's number; 0: it has none */
    char text[256];
};

typedef void audit_report(void *ctx, const struct audit_finding *finding);

struct audit_summary {
    uint64_t files, lines, bytes;
    uint64_t problems; /* notes do not count */
    uint64_t first;    /* number of the oldest line; 0: there is none */
    struct audit_head last;
};

/*
 * Reads the whole log. `known` are heads that somebody has kept (of the second place, of a printed
 * one): each has to be a line of the log, unless lines as old were removed by rotation. They have
 * to be read before this is called, or lines that are written meanwhile look as if they were
 * missing. -1: a file could not be read.
 */
int audit_verify(int dir_fd, const struct audit_head *known, size_t known_count,
                 audit_report *report, void *ctx, struct audit_summary *ret_summary,
                 struct error *err);
