/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The data folder as the supervisor prepares it: folders, owners, the lock, the ids and the key. */

#include <limits.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/limits.h"

struct datadir {
    int fd;
    int lock_fd; /* held by the server and its children, so that none overlaps the next server */
    char path[PATH_MAX];
    char instance[INSTANCE_ID_LEN + 1];
    char key_hash[65];
    char secret_key[65]; /* what secrets are sealed with, in hex */
};

/* Opens or makes it, takes the lock (waiting a moment for the processes of a server that was
 * killed), and makes what is missing. uid and gid are those of cellad. */
int datadir_open(const char *path, uid_t uid, gid_t gid, struct datadir *ret_dir,
                 struct error *err);

/* The text of a small file; empty when there is none. LIMIT_EXCEEDED when it is too large. */
int datadir_read(const struct datadir *dir, const char *name, struct buf *text, struct error *err);

/* Replaces a small file in one step. */
int datadir_write(const struct datadir *dir, const char *name, const char *text, mode_t mode,
                  struct error *err);

/* Writes over a small file that is there, in its own blocks: on a full disk that still works. Who
 * reads it meanwhile may see a part of each. */
int datadir_overwrite(const struct datadir *dir, const char *name, const char *text,
                      struct error *err);
