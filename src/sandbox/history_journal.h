/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The newest executions of all sandboxes in one file, DATA/history/journal, which is kept open: an
 * execution is written down by one write(2), and a sandbox that is made for one command and gone
 * after it needs no folder for its history.
 *
 * Each sandbox has its lines in memory, too, until somebody asks for its history or they are many:
 * then they are put into its own list (DATA/history/<id>/executions). The journal still has them
 * for a while, so a line may be found in both; of an execution's lines the newest counts, wherever
 * it is. The journal is written anew, from memory, when most of it is old. At a start its lines are
 * given back to their sandboxes; those of sandboxes that are no more are dropped.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/slice.h"

struct journal {
    int dir_fd; /* DATA/history; borrowed */
    int fd;
    uint64_t bytes; /* that it has */
    uint64_t kept;  /* of them, when it was last written anew */
};

/* Lines are "<sandbox> <what executions_line() makes>\n". */
typedef void journal_visit(void *ctx, struct slice sandbox, struct slice line);

int journal_open(struct journal *j, int dir_fd, struct error *err);
void journal_close(struct journal *j);
/* Every whole line, in order; the line has its end. What is no line is left out. */
int journal_read(struct journal *j, journal_visit *visit, void *ctx, struct error *err);
/* `line` with its end. All of it is written, or nothing. */
int journal_add(struct journal *j, const char *sandbox, struct slice line, struct error *err);
/* Whether it is time for journal_replace(). */
bool journal_is_old(const struct journal *j);
int journal_replace(struct journal *j, struct slice lines, struct error *err);
