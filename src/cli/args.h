/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Parsing the command line by the table. In two steps, because help has to work on a line that is
 * not complete: args_split() parts options from words, args_bind() finds the verb that the words
 * name and checks that the options are its own.
 *
 * All failures are INVALID_ARGUMENT and say what would have been right, with the nearest match for
 * what looks like a slip. Strings are borrowed from argv.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "cli/command.h"

struct given_option {
    const struct option_row *row;
    const char *value; /* NULL for a flag */
};

struct args {
    const struct verb_row *verb; /* NULL before args_bind() */
    const char **words;          /* everything that is no option, the verb's literals too */
    size_t word_count;
    struct given_option *options;
    size_t option_count;
};

/* args must be zeroed; release it whatever came back. argv[0] is skipped. */
int args_split(const struct commands *commands, int argc, char **argv, struct args *args,
               struct error *err);
int args_bind(const struct commands *commands, struct args *args, struct error *err);
void args_release(struct args *args);

/* The last value given to an option; fallback when there was none. */
const char *args_option(const struct args *args, const char *name, const char *fallback);
bool args_flag(const struct args *args, const char *name);
/* A number option's value: it was checked when the line was parsed. */
uint64_t args_number(const struct args *args, const char *name, uint64_t fallback);

/* The word in the place that the usage calls `name`, or NULL. */
const char *args_word(const struct args *args, const char *name);
/* The words from the place on that the usage ends with ("COMMAND..."). */
const char **args_rest(const struct args *args, size_t *ret_count);
/* The same as a command line for a sandbox's shell: one word is one as it is; several are a program
 * and its arguments, which have to reach it as they are. */
int args_command(const struct args *args, struct buf *out, struct error *err);

/* How many of the words name literals and places of the verb before one does not fit. *ret_fits:
 * whether all of them do and nothing is missing. */
size_t verb_match(const struct verb_row *verb, const char *const *words, size_t count,
                  bool *ret_fits);

/* The number of edits between two words (a swap of neighbours counts as one). */
size_t edit_distance(const char *a, size_t a_len, const char *b, size_t b_len);
