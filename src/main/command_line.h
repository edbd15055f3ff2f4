/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The command line of a program that the supervisor starts. It has room for a fixed number of words
 * and bytes. What does not fit is an error that names the option it came from; nothing is cut.
 */

#include <stddef.h>

#include "base/error.h"

enum { COMMAND_WORDS_MAX = 160, COMMAND_BYTES_MAX = 96 * 1024 };

struct command_line {
    const char *argv[COMMAND_WORDS_MAX + 1]; /* ends with NULL; points into `text` */
    size_t count, used;
    struct error failure; /* the first word that did not fit; code 0: everything did */
    char text[COMMAND_BYTES_MAX];
};

void command_line_begin(struct command_line *line, const char *program);

/* Appends a word. `option` is what it comes from, for the error: "--trusted-proxy". */
void command_line_add(struct command_line *line, const char *option, const char *word);
/* Appends the first `len` bytes of a text. */
void command_line_add_part(struct command_line *line, const char *option, const char *text,
                           size_t len);
/* Appends a name and a value as two words. */
void command_line_add_pair(struct command_line *line, const char *option, const char *name,
                           const char *value);
/* Appends "NAME=VALUE" for the option --NAME, unless the value is NULL or "". */
void command_line_add_setting(struct command_line *line, const char *name, const char *value);

/* -1 with the error when something did not fit: INVALID_ARGUMENT. */
int command_line_check(const struct command_line *line, struct error *err);
