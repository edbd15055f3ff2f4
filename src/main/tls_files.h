/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The server's certificate: from files that were given, or from the data folder, where it and the
 * authority that signed it are made when they are missing, and the certificate again when it is
 * getting old or is wanted for other names.
 */

#include "base/error.h"
#include "main/datadir.h"
#include "main/options.h"

/* *ret_fd: a file without a name that holds certificate, chain and key in PEM, for the process that
 * serves; empty with --tls off. INVALID_ARGUMENT says what is wrong with files that were given. */
int tls_files_open(const struct datadir *dir, const struct server_options *options, int *ret_fd,
                   struct error *err);

/* Looks again, and writes what it finds into that file. 1: it is another certificate than before;
 * 0: the same. After an error the file is as it was, unless it could not be written. */
int tls_files_renew(const struct datadir *dir, const struct server_options *options, int fd,
                    struct error *err);
