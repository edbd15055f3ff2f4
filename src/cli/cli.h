/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The command line. `cella` (and its link `bl`) is cli_main() and nothing else; the exit status is
 * its return value: 0, 2 for wrong usage, what base/error.h says for the server's errors, or a
 * command's own for `process exec`.
 */

int cli_main(int argc, char **argv);

/*
 * `cella server`, from src/main. The command line has been checked against the verb's row by then,
 * and is handed over in one plain shape: argv[0] is "cella server", each option is "--name"
 * followed, if it takes one, by its value in the next argument; argv[argc] is NULL. Returns the
 * exit status.
 */
int server_main(int argc, char **argv);

/*
 * `cella backup` and `cella restore`, from src/main too. A file "-" is standard output or input.
 * server_backup() may be called while a server runs on the folder; ALREADY_EXISTS rather than
 * writing over a file. server_restore() makes the whole folder or nothing: ALREADY_EXISTS when it
 * is there and not empty, INVALID_ARGUMENT for what is no whole backup, CONFLICT for one of a newer
 * version. The database will belong to `user`.
 */
struct error;
int server_backup(const char *data, const char *file, struct error *err);
int server_restore(const char *file, const char *data, const char *user, struct error *err);
