/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Pseudo-terminals of the sandbox's own devpts. */

#include <sys/types.h>

#include "base/error.h"

struct pty {
    int master_fd; /* non-blocking */
    int tty_fd;    /* the program's end */
};

/* A new pair, close-on-exec. The program's end belongs to `owner`, so that what runs there can open
 * it again by its name. */
int pty_open(uid_t owner, unsigned cols, unsigned rows, struct pty *ret_pty, struct error *err);

/* The kernel tells the programs there (SIGWINCH) when the size is another one than before. */
void pty_resize(int master_fd, unsigned cols, unsigned rows);
