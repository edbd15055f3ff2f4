/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Help, completion and the manual page, made from the rows. */

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "cli/command.h"

/* Help on the verbs that begin with these words; on everything when there are none. False when no
 * verb does: nothing was written. */
bool help_write(const struct commands *commands, const char *const *words, size_t count,
                struct buf *out);

/* The manual page, in man(7)'s language. */
void man_write(const struct commands *commands, struct buf *out);

/*
 * What could stand in the place of the last word, which may be empty or begun: one candidate per
 * line. A line that begins with '@' asks the shell for candidates that the table cannot know:
 * "@names" (of sandboxes), "@files", "@dirs".
 */
void complete_write(const struct commands *commands, const char *const *words, size_t count,
                    struct buf *out);

/* What the exit statuses mean, for the help and the manual; ended by a row without text. */
struct exit_row {
    int status;
    const char *text;
};
extern const struct exit_row exit_rows[];
/* Variables that commands look at; ended by a row without a name. */
struct variable_row {
    const char *name;
    const char *text;
};
extern const struct variable_row variable_rows[];
