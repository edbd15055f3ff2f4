/* SPDX-License-Identifier: Apache-2.0 */

/* The manual page, from the same rows as everything else. */

#include "cli/help.h"

#include <ctype.h>
#include <string.h>

#include "base/cleanup.h"
#include "cli/output.h"
#include "cli/verbs.h"

/* Text in roff: a backslash and a dot at the start of a line are commands there, and a plain '-'
 * may be set as a hyphen that nobody can copy. */
static void add_text(struct buf *out, const char *text)
{
    if (*text == '.' || *text == '\'')
        buf_adds(out, "\\&");
    for (; *text != '\0'; text++) {
        if (*text == '\\')
            buf_adds(out, "\\e");
        else if (*text == '-')
            buf_adds(out, "\\-");
        else
            buf_addc(out, *text);
    }
}

/* A usage: literals bold, places in italics, brackets and dots as they are. */
static void add_usage(struct buf *out, const char *usage)
{
    static const struct {
        const char *before, *after;
    } marks[] = {[WORD_LITERAL] = {"\\fB", "\\fR"},
                 [WORD_REQUIRED] = {"\\fI", "\\fR"},
                 [WORD_OPTIONAL] = {"[\\fI", "\\fR]"},
                 [WORD_SOME] = {"\\fI", "\\fR..."},
                 [WORD_ANY] = {"[\\fI", "\\fR...]"}};
    struct usage_word word;
    buf_adds(out, "\\fBcella\\fR");
    while (usage_next(&usage, &word))
        buf_addf(out, " %s%.*s%s", marks[word.kind].before, (int)word.len, word.text,
                 marks[word.kind].after);
    buf_addc(out, '\n');
}

static void add_options(struct buf *out, const struct option_row *row)
{
    for (; row != NULL && row->name != NULL; row++) {
        buf_adds(out, ".TP\n");
        if (row->letter != 0)
            buf_addf(out, "\\fB\\-%c\\fR, ", row->letter);
        buf_adds(out, "\\fB\\-\\-");
        add_text(out, row->name);
        buf_adds(out, "\\fR");
        if (row->value != NULL) {
            buf_adds(out, " \\fI");
            add_text(out, row->value);
            buf_adds(out, "\\fR");
        }
        buf_addc(out, '\n');
        add_text(out, row->help);
        buf_addc(out, '\n');
    }
}

static void add_verb(struct buf *out, const struct verb_row *verb)
{
    buf_adds(out, ".TP\n");
    add_usage(out, verb->usage);
    buf_addc(out, (char)toupper((unsigned char)verb->summary[0]));
    add_text(out, verb->summary + 1);
    buf_adds(out, ".\n");
    if (verb->details != NULL) {
        add_text(out, verb->details);
        buf_addc(out, '\n');
    }
    if (verb->options == NULL)
        return;
    buf_adds(out, ".RS\n");
    add_options(out, verb->options);
    buf_adds(out, ".RE\n");
}

void man_write(const struct commands *commands, struct buf *out)
{
    buf_addf(out,
             ".TH CELLA 1 \"\" \"cella %s\" \"User commands\"\n"
             ".SH NAME\ncella \\- sandboxes for AI agents\n"
             ".SH SYNOPSIS\n\\fBcella\\fR \\fICOMMAND\\fR [\\fIoptions\\fR]\n.br\n"
             "\\fBbl\\fR \\fICOMMAND\\fR [\\fIoptions\\fR]\n"
             ".SH DESCRIPTION\n"
             "Makes sandboxes, runs commands and keeps files in them, and serves them from this "
             "machine. Options may stand anywhere, as \\fB\\-\\-name value\\fR or "
             "\\fB\\-\\-name=value\\fR; words after \\fB\\-\\-\\fR are never options.\n",
             CELLA_VERSION);
    const char *section = NULL;
    for (size_t i = 0; i < commands->verb_count; i++) {
        const struct verb_row *verb = &commands->verbs[i];
        if (verb->section == NULL)
            continue;
        if (section == NULL || strcmp(section, verb->section) != 0)
            buf_addf(out, ".SH \"%s\"\n", verb->section);
        section = verb->section;
        add_verb(out, verb);
    }
    buf_adds(out, ".SH \"Options of every command\"\n");
    add_options(out, commands->globals);
    buf_adds(out, ".SH ENVIRONMENT\n");
    for (const struct variable_row *row = variable_rows; row->name != NULL; row++) {
        buf_addf(out, ".TP\n\\fB%s\\fR\n", row->name);
        add_text(out, row->text);
        buf_addc(out, '\n');
    }
    buf_adds(out, ".SH \"EXIT STATUS\"\n");
    for (const struct exit_row *row = exit_rows; row->text != NULL; row++) {
        buf_addf(out, ".TP\n\\fB%d\\fR\n", row->status);
        add_text(out, row->text);
        buf_addc(out, '\n');
    }
    buf_adds(out, ".PP\n\\fBprocess exec\\fR exits as the command did.\n");
}

int verb_man(struct invocation *inv, int *ret_status, struct error *err)
{
    _cleanup_buf_ struct buf out = BUF_INIT(OUTPUT_MAX);
    man_write(inv->commands, &out);
    return output_buf(&out, err);
}
