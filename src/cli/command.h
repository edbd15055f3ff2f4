/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What a verb is: one row. Parsing, usage errors, help, completion and the manual page all read the
 * same rows (commands.c), so a new verb or option is one edit there and the function it calls.
 *
 * A row's usage is also its grammar: lower-case words are literal, "NAME" is a required word,
 * "[NAME]" an optional one, "NAME..." one or more and "[NAME...]" any number of words (last only).
 */

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

enum option_kind {
    OPTION_FLAG,   /* takes no value */
    OPTION_TEXT,   /* any text */
    OPTION_NUMBER, /* a whole number, not negative */
    OPTION_CHOICE, /* one of those in `value`, which are parted by '|' */
    OPTION_PAIR,   /* NAME=value */
    OPTION_FILE,   /* a path on this machine: the same as text, but for completion */
    OPTION_DIR,
};

enum { OPTION_NAME_SIZE = 32 }; /* with its dashes */

struct option_row {
    const char *name; /* without the dashes. The same name has the same kind everywhere */
    char letter;      /* of the short form; 0: none */
    bool repeats;     /* may be given several times */
    enum option_kind kind;
    const char *value; /* what help calls the value: "DIR"; NULL for a flag */
    const char *help;
};

struct invocation;

/* Does the verb's work. *ret_status (0 so far) is the exit status when it succeeds. */
typedef int verb_function(struct invocation *inv, int *ret_status, struct error *err);

enum verb_place {
    VERB_LOCAL,  /* runs as it is */
    VERB_REMOTE, /* speaks to a server: runs on a coroutine, with inv->client */
};

struct verb_row {
    const char *section; /* heading in the help; NULL: hidden */
    const char *usage;
    const char *summary;
    const char *details;              /* more for its own help and the manual, or NULL */
    const struct option_row *options; /* ended by a row without a name, or NULL */
    enum verb_place place;
    verb_function *run;
};

/* All of the command line. Rows of one section stand together. */
struct commands {
    const struct verb_row *verbs;
    size_t verb_count;
    const struct option_row *globals; /* options of every verb, ended by a row without a name */
};

extern const struct commands cli_commands;

/* A verb at work. */
struct args;
struct client;
struct invocation {
    const struct commands *commands;
    const struct args *args;
    struct client *client; /* NULL for a local verb */
    bool json;             /* --output json */
};

/* --- walking a usage --- */

enum word_kind { WORD_LITERAL, WORD_REQUIRED, WORD_OPTIONAL, WORD_SOME, WORD_ANY };

struct usage_word {
    enum word_kind kind;
    const char *text; /* without brackets and dots */
    size_t len;
};

/* The next word of a usage, moving *cursor on; false at its end. */
bool usage_next(const char **cursor, struct usage_word *ret_word);

/* The option of that name among rows ended by a row without a name (NULL is fine), or NULL. */
const struct option_row *option_find(const struct option_row *rows, const char *name, size_t len);
const struct option_row *option_find_letter(const struct option_row *rows, char letter);

/* The next choice of "a|b|c", moving *cursor on; false at the end. */
bool choice_next(const char **cursor, const char **ret_text, size_t *ret_len);
