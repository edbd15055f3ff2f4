/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Whose tokens are trusted: the file of --jwt-config, with the key sets of files that it names put
 * into it, for the process that serves, which can open none of them.
 */

#include "base/error.h"

/* *ret_fd: a file without a name that holds it; empty when path is NULL. INVALID_ARGUMENT says what
 * is wrong with the configuration or a key set. */
int jwt_files_open(const char *path, int *ret_fd, struct error *err);

/* Looks again. 1: it is not as before; 0: it is. After an error the file is as it was, unless it
 * could not be written. */
int jwt_files_renew(const char *path, int fd, struct error *err);
