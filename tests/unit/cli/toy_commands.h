/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A small command line of every shape that rows can have, so that tests of the parser and of what
 * is made from rows do not change with the real table. */

#include "cli/command.h"

static const struct option_row toy_globals[] = {
    {.name = "output", .letter = 'o', .kind = OPTION_CHOICE, .value = "table|json", .help = "how"},
    {.name = "data", .kind = OPTION_DIR, .value = "DIR", .help = "where"},
    {.name = "help", .letter = 'h', .kind = OPTION_FLAG, .help = "help"},
    {.name = NULL},
};

static const struct option_row toy_make_options[] = {
    {.name = "name", .kind = OPTION_TEXT, .value = "NAME", .help = "its name"},
    {.name = "env",
     .letter = 'e',
     .repeats = true,
     .kind = OPTION_PAIR,
     .value = "NAME=VALUE",
     .help = "a variable"},
    {.name = "limit", .kind = OPTION_NUMBER, .value = "N", .help = "how many"},
    {.name = "wait", .kind = OPTION_FLAG, .help = "wait for it"},
    {.name = NULL},
};

static const struct option_row toy_put_options[] = {
    {.name = "from-file", .kind = OPTION_FILE, .value = "FILE", .help = "a file"},
    {.name = NULL},
};

static const struct verb_row toy_verbs[] = {
    {"Boxes", "box list", "show all", NULL, NULL, VERB_LOCAL, NULL},
    {"Boxes", "box make", "make one", "Says more.", toy_make_options, VERB_LOCAL, NULL},
    {"Boxes", "box get NAME", "show one", NULL, NULL, VERB_LOCAL, NULL},
    {"Inside", "run NAME file put PATH [SOURCE]", "write", NULL, toy_put_options, VERB_LOCAL, NULL},
    {"Inside", "run NAME exec COMMAND...", "run", NULL, NULL, VERB_LOCAL, NULL},
    {"Help", "help [COMMAND...]", "help", NULL, NULL, VERB_LOCAL, NULL},
    {NULL, "__hidden", NULL, NULL, NULL, VERB_LOCAL, NULL},
};

static const struct commands toy = {toy_verbs, sizeof(toy_verbs) / sizeof(toy_verbs[0]),
                                    toy_globals};

/* A line of words, as a shell would hand them over. */
enum { LINE_WORDS_MAX = 16 };
#define LINE(...) ((const char *const[LINE_WORDS_MAX]){"cella", __VA_ARGS__})

static inline int line_length(const char *const *line)
{
    int n = 0;
    while (n < LINE_WORDS_MAX && line[n] != NULL)
        n++;
    return n;
}
