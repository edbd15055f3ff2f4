/* SPDX-License-Identifier: Apache-2.0 */

/* Builds command lines. Words are copied, so that callers need not keep them. */

#include "main/command_line.h"

#include <stdio.h>
#include <string.h>

void command_line_begin(struct command_line *line, const char *program)
{
    line->count = line->used = 0;
    line->failure.code = ERROR_NONE;
    command_line_add(line, program, program);
}

static void fail(struct command_line *line, const char *option, const char *unit, int max)
{
    if (line->failure.code == ERROR_NONE)
        error_set(&line->failure, ERROR_INVALID_ARGUMENT,
                  "%s does not fit: all options together may take %d %s on the command line of %s",
                  option, max, unit, line->argv[0]);
}

/* Room for a word of `len` bytes, its end written already. NULL: it does not fit. */
static char *add_room(struct command_line *line, const char *option, size_t len)
{
    char *to = line->text + line->used;
    if (line->count == COMMAND_WORDS_MAX)
        fail(line, option, "words", COMMAND_WORDS_MAX);
    else if (len >= sizeof(line->text) - line->used)
        fail(line, option, "bytes", COMMAND_BYTES_MAX);
    if (line->failure.code != ERROR_NONE)
        return NULL;
    to[len] = '\0';
    line->used += len + 1;
    line->argv[line->count++] = to;
    line->argv[line->count] = NULL;
    return to;
}

void command_line_add_part(struct command_line *line, const char *option, const char *text,
                           size_t len)
{
    char *to = add_room(line, option, len);
    if (to != NULL)
        memcpy(to, text, len);
}

void command_line_add(struct command_line *line, const char *option, const char *word)
{
    command_line_add_part(line, option, word, strlen(word));
}

void command_line_add_pair(struct command_line *line, const char *option, const char *name,
                           const char *value)
{
    command_line_add(line, option, name);
    command_line_add(line, option, value);
}

void command_line_add_setting(struct command_line *line, const char *name, const char *value)
{
    char option[64];
    if (value == NULL || value[0] == '\0')
        return;
    snprintf(option, sizeof(option), "--%s", name);
    size_t len = strlen(name) + 1 + strlen(value);
    char *to = add_room(line, option, len);
    if (to != NULL)
        snprintf(to, len + 1, "%s=%s", name, value);
}

int command_line_check(const struct command_line *line, struct error *err)
{
    if (line->failure.code == ERROR_NONE)
        return 0;
    if (err != NULL)
        *err = line->failure;
    return -1;
}
