/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Folders below the data folder with a file per sandbox, called by its id. Names that begin with a
 * dot are the folder's own.
 */

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/error.h"

/* Opens the folder, made if it is missing. */
int id_folder_open(int data_dir_fd, const char *path, int *ret_fd, struct error *err);

/* Removes the files of those that keep() does not want; it may do something with the others. */
void id_folder_sweep(int dir_fd, bool (*keep)(void *ctx, const char *id), void *ctx);

/* All of it, or an error; `what` is for that. */
int id_file_write_at(int fd, const void *data, size_t len, off_t offset, const char *what,
                     struct error *err);
