/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Whether a command line needs a shell.
 *
 * Most do not, and starting one costs as much as the command itself. As in GNU make: a line
 * without any character that is special to a shell, and whose first word is not something that
 * the shell does itself, means the same as its words passed to exec.
 */

/*
 * The words of a line that needs no shell: a NULL-terminated array to free() in one piece
 * (strings included). NULL when it needs one (or there is no memory: a shell does it then).
 */
char **shell_words_split(const char *command);
