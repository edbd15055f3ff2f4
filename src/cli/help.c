/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Help as text. Nothing here knows a verb: what is printed is in the rows of commands.c, so it
 * cannot be out of date.
 */

#include "cli/help.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "cli/args.h"
#include "cli/output.h"
#include "cli/verbs.h"

enum { LINE_WIDTH = 96, SUMMARY_COLUMN = 38, OPTION_COLUMN = 30 };

const struct exit_row exit_rows[] = {
    {0, "success"},
    {1, "something failed that no other status stands for"},
    {2, "wrong usage, or a value that cannot be right"},
    {3, "no such sandbox, file, process or image"},
    {4, "not possible in the present state: it exists, runs, or does not run"},
    {5, "no right to do that, or no key"},
    {6, "no server answers, or it took too long"},
    {7, "a limit or quota was reached"},
    {0, NULL},
};

const struct variable_row variable_rows[] = {
    {"CELLA_URL", "the server, as --url; BL_API_URL is looked at next"},
    {"CELLA_API_KEY", "its key, as --api-key; BL_API_KEY is looked at next"},
    {"CELLA_WORKSPACE", "the workspace, as --workspace; BL_WORKSPACE is looked at next"},
    {"CELLA_CONFIG", "where `cella login` keeps them (default: ~/.config/cella/config.json)"},
    {"CELLA_DATA", "the data folder, as --data"},
    {NULL, NULL},
};

/* Adds text, broken at blanks, from the column that the line has reached. */
static void add_wrapped(struct buf *out, const char *text, size_t indent)
{
    size_t column = indent;
    while (*text != '\0') {
        size_t len = strcspn(text, " ");
        if (column > indent && column + 1 + len > LINE_WIDTH) {
            buf_addf(out, "\n%*s", (int)indent, "");
            column = indent;
        } else if (column > indent) {
            buf_addc(out, ' ');
            column++;
        }
        buf_add(out, text, len);
        column += len;
        text += len;
        text += strspn(text, " ");
    }
    buf_addc(out, '\n');
}

/* "  left      text", the text in a column of its own. */
static void add_entry(struct buf *out, const char *left, const char *text, size_t column)
{
    size_t used = 2 + strlen(left);
    buf_addf(out, "  %s", left);
    if (used + 2 > column)
        buf_addf(out, "\n%*s", (int)column, "");
    else
        buf_addf(out, "%*s", (int)(column - used), "");
    add_wrapped(out, text, column);
}

static void add_options(struct buf *out, const struct option_row *row)
{
    for (; row != NULL && row->name != NULL; row++) {
        char left[160];
        char letter[8] = "    ";
        if (row->letter != 0)
            snprintf(letter, sizeof(letter), "-%c, ", row->letter);
        snprintf(left, sizeof(left), "%s--%s%s%s", letter, row->name, row->value == NULL ? "" : " ",
                 row->value == NULL ? "" : row->value);
        add_entry(out, left, row->help, OPTION_COLUMN);
    }
}

/* --- the help on one verb, on several, on all --- */

static void help_verb(const struct commands *commands, const struct verb_row *verb, struct buf *out)
{
    buf_addf(out, "Usage: cella %s [options]\n\n", verb->usage);
    buf_addf(out, "%c%s.\n", toupper((unsigned char)verb->summary[0]), verb->summary + 1);
    if (verb->details != NULL) {
        buf_addc(out, '\n');
        add_wrapped(out, verb->details, 0);
    }
    if (verb->options != NULL) {
        buf_adds(out, "\nOptions\n");
        add_options(out, verb->options);
    }
    buf_adds(out, "\nOptions of every command\n");
    add_options(out, commands->globals);
}

static bool begins(const struct verb_row *verb, const char *const *words, size_t count)
{
    bool fits;
    return verb->section != NULL && verb_match(verb, words, count, &fits) == count;
}

static void help_list(const struct commands *commands, const char *const *words, size_t count,
                      struct buf *out)
{
    const char *section = NULL;
    for (size_t i = 0; i < commands->verb_count; i++) {
        const struct verb_row *verb = &commands->verbs[i];
        if (!begins(verb, words, count))
            continue;
        if (section == NULL || strcmp(section, verb->section) != 0)
            buf_addf(out, "%s%s\n", section == NULL ? "" : "\n", verb->section);
        section = verb->section;
        add_entry(out, verb->usage, verb->summary, SUMMARY_COLUMN);
    }
}

static void help_all(const struct commands *commands, struct buf *out)
{
    buf_adds(out, "Cella gives AI agents computers of their own: sandboxes that start in "
                  "milliseconds.\n\nUsage: cella COMMAND [options]\n\n");
    help_list(commands, NULL, 0, out);
    buf_adds(out, "\nOptions of every command\n");
    add_options(out, commands->globals);
    buf_adds(out, "\nEnvironment\n");
    for (const struct variable_row *row = variable_rows; row->name != NULL; row++)
        add_entry(out, row->name, row->text, OPTION_COLUMN);
    buf_adds(out, "\nExit status\n");
    for (const struct exit_row *row = exit_rows; row->text != NULL; row++) {
        char status[16];
        snprintf(status, sizeof(status), "%d", row->status);
        add_entry(out, status, row->text, 6);
    }
    buf_adds(out, "\n`cella help COMMAND` says more about one command.\n");
}

bool help_write(const struct commands *commands, const char *const *words, size_t count,
                struct buf *out)
{
    const struct verb_row *only = NULL;
    size_t found = 0;
    for (size_t i = 0; count > 0 && i < commands->verb_count; i++) {
        if (!begins(&commands->verbs[i], words, count))
            continue;
        only = &commands->verbs[i];
        found++;
    }
    if (count == 0)
        help_all(commands, out);
    else if (found == 1)
        help_verb(commands, only, out);
    else if (found > 1)
        help_list(commands, words, count, out);
    return count == 0 || found > 0;
}

/* --- verbs --- */

/*
 * `help run file read` is how people ask for `run NAME file read`: a word too few in the middle. So
 * when the words do not fit, a made-up name after "run" gets a second chance.
 */
static bool help_with_name(const struct commands *commands, const char **words, size_t count,
                           struct buf *out)
{
    enum { MOST = 8 };
    const char *filled[MOST + 1] = {words[0], "NAME"};
    if (count < 2 || count > MOST)
        return false;
    memcpy(filled + 2, words + 1, (count - 1) * sizeof(*words));
    return help_write(commands, filled, count + 1, out);
}

int verb_help(struct invocation *inv, int *ret_status, struct error *err)
{
    _cleanup_buf_ struct buf out = BUF_INIT(OUTPUT_MAX);
    const char **words = inv->args->words;
    size_t count = inv->args->word_count;
    if (inv->args->verb != NULL)
        words = args_rest(inv->args, &count);
    if (!help_write(inv->commands, words, count, &out) &&
        !help_with_name(inv->commands, words, count, &out)) {
        /* The parser knows best what is wrong with them. */
        struct args probe = {.words = words, .word_count = count};
        return args_bind(inv->commands, &probe, err);
    }
    return output_buf(&out, err);
}

int verb_version(struct invocation *inv, int *ret_status, struct error *err)
{
    _cleanup_buf_ struct buf out = BUF_INIT(OUTPUT_MAX);
    if (inv->json)
        buf_addf(&out, "{\n  \"version\": \"%s\"\n}\n", CELLA_VERSION);
    else
        buf_addf(&out, "cella %s\n", CELLA_VERSION);
    return output_buf(&out, err);
}
