/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What a sandbox's history keeps: whether there is one at all, how large a file may be, and what is
 * left out by its name. Nobody need say anything; then the usual holds.
 *
 * As the store keeps it, it is a list of what was said: "enabled=false", "maxFileSize=1Mi", and
 * "ignore=" with a pattern behind it for each one, after one "ignore=" that says that the patterns
 * which follow are all there are. An empty list is the usual.
 *
 * A pattern is a name ("dist", at any depth), or a path from /workspace or /home/user ("data/raw"),
 * with all that is below it. In both `*` stands for any characters, slashes too, and `?` for one.
 * HISTORY_IGNORE_USUAL stands for those of the usual rules. ".git" is never kept: git could not.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/slice.h"

#define HISTORY_IGNORE_USUAL "@default"

struct history_rules {
    bool enabled;
    uint64_t file_max;   /* bytes */
    struct slice ignore; /* patterns, the usual ones among them spelt out; a list of strings */
};

extern const struct history_rules history_rules_usual;

/* INVALID_ARGUMENT and INVALID_QUANTITY name the member of spec.history, and say what would be
 * right. */
int history_rules_check(struct slice list, struct error *err);
/* The rules of a list; free() them. */
int history_rules_read(struct slice list, struct history_rules **ret_rules, struct error *err);

/* A list with what the first says, and, where it says nothing, what the second does. */
struct slice history_rules_over(struct slice list, struct slice under, struct arena *arena);

/* As people see them: the size as it was given, and the patterns, HISTORY_IGNORE_USUAL as such. */
bool history_rules_enabled(struct slice list);
const char *history_rules_size(struct slice list);
struct slice history_rules_ignore(struct slice list, struct arena *arena);

/* Patterns as they lie in a commit, one to a line, and back; what is no such text gives what it
 * gives, and nothing that is too long for an agent. */
void history_ignore_write(struct slice ignore, struct buf *out);
struct slice history_ignore_read(struct slice text, struct arena *arena);
/* Another number for other patterns; never 0. */
uint64_t history_ignore_mark(struct slice ignore);
