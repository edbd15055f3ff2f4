/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Completion. The shell's part is a few lines that never change: it hands the words to the hidden
 * verb __complete, which finds the candidates in the rows. So a new verb or option is completed
 * without a new script, and what is completed can be tested without a shell.
 */

#include "cli/help.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "cli/args.h"
#include "cli/client.h"
#include "cli/output.h"
#include "cli/sandbox.h"
#include "cli/verbs.h"

/* Bash splits --name=value at the '=', and completes what comes after it. */
static const char bash_script[] =
    "# Completion for cella and bl. To use it: source <(cella completion bash)\n"
    "_cella() {\n"
    "    local word option candidates=() server=()\n"
    "    local current=${COMP_WORDS[COMP_CWORD]}\n"
    "    [ \"$current\" = = ] && current=\n"
    "    for word in \"${COMP_WORDS[@]:1:COMP_CWORD-1}\"; do\n"
    "        case ${option-} in\n"
    "            --url | --api-key | --data)\n"
    "                [ \"$word\" = = ] && continue\n"
    "                server+=(\"$option\" \"$word\") ;;\n"
    "        esac\n"
    "        option=$word\n"
    "    done\n"
    "    while IFS= read -r word; do\n"
    "        case $word in\n"
    "            @names)\n"
    "                mapfile -t -O \"${#candidates[@]}\" candidates < <(\n"
    "                    \"${COMP_WORDS[0]}\" __names \"${server[@]}\" 2>/dev/null) ;;\n"
    "            @files)\n"
    "                compopt -o filenames 2>/dev/null\n"
    "                mapfile -t -O \"${#candidates[@]}\" candidates < <(compgen -f -- "
    "\"$current\") ;;\n"
    "            @dirs)\n"
    "                compopt -o filenames 2>/dev/null\n"
    "                mapfile -t -O \"${#candidates[@]}\" candidates < <(compgen -d -- "
    "\"$current\") ;;\n"
    "            *) candidates+=(\"$word\") ;;\n"
    "        esac\n"
    "    done < <(\"${COMP_WORDS[0]}\" __complete -- \"${COMP_WORDS[@]:1:COMP_CWORD}\" "
    "2>/dev/null)\n"
    "    COMPREPLY=()\n"
    "    for word in \"${candidates[@]}\"; do\n"
    "        [[ $word == \"$current\"* ]] && COMPREPLY+=(\"$word\")\n"
    "    done\n"
    "}\n"
    "complete -F _cella cella bl\n";

/* The line so far, as far as the table can make sense of it. */
struct line {
    const struct commands *commands;
    const char **words; /* those before the current one that are no options */
    size_t count;
    const struct option_row *pending; /* an option that the current word is the value of */
    bool options_end;
    const char *current;
};

static void add_candidate(struct buf *out, const char *current, const char *text, size_t len)
{
    size_t begun = strlen(current);
    if (begun <= len && memcmp(current, text, begun) == 0)
        buf_addf(out, "%.*s\n", (int)len, text);
}

/* The option that a word names, whichever verb it belongs to. */
static const struct option_row *option_of(const struct commands *c, const char *word)
{
    for (size_t i = 0; i <= c->verb_count; i++) {
        const struct option_row *rows = i == 0 ? c->globals : c->verbs[i - 1].options;
        const struct option_row *row = word[1] == '-'
                                           ? option_find(rows, word + 2, strcspn(word + 2, "="))
                                           : option_find_letter(rows, word[1]);
        if (row != NULL)
            return row;
    }
    return NULL;
}

static void read_word(struct line *line, const char *word)
{
    if (line->pending != NULL) {
        if (strcmp(word, "=") != 0)
            line->pending = NULL;
    } else if (line->options_end || word[0] != '-' || word[1] == '\0') {
        line->words[line->count++] = word;
    } else if (strcmp(word, "--") == 0) {
        line->options_end = true;
    } else {
        const struct option_row *row = option_of(line->commands, word);
        if (row != NULL && row->kind != OPTION_FLAG && strchr(word, '=') == NULL)
            line->pending = row;
    }
}

static void complete_value(const struct option_row *row, const char *current, struct buf *out)
{
    const char *cursor = row->value, *text;
    size_t len;
    if (row->kind == OPTION_FILE)
        buf_adds(out, "@files\n");
    else if (row->kind == OPTION_DIR)
        buf_adds(out, "@dirs\n");
    while (row->kind == OPTION_CHOICE && choice_next(&cursor, &text, &len))
        add_candidate(out, current, text, len);
}

static void complete_options(const struct option_row *row, const char *current, struct buf *out)
{
    for (; row != NULL && row->name != NULL; row++) {
        char name[OPTION_NAME_SIZE];
        snprintf(name, sizeof(name), "--%s", row->name);
        add_candidate(out, current, name, strlen(name));
    }
}

static void complete_place(const struct usage_word *place, const char *current, struct buf *out)
{
    static const struct {
        const char *place, *candidate;
    } known[] = {{"NAME", "@names"}, {"SHELL", "bash"}, {"SOURCE", "-"}};
    for (size_t i = 0; i < ARRAY_LEN(known); i++) {
        if (strlen(known[i].place) != place->len ||
            memcmp(known[i].place, place->text, place->len) != 0)
            continue;
        if (known[i].candidate[0] == '@')
            buf_addf(out, "%s\n", known[i].candidate);
        else
            add_candidate(out, current, known[i].candidate, strlen(known[i].candidate));
    }
}

/* What may come after the words: of every verb that begins with them, the next one. */
static void complete_words(const struct line *line, struct buf *out)
{
    struct usage_word last = {0};
    for (size_t i = 0; i < line->commands->verb_count; i++) {
        const struct verb_row *verb = &line->commands->verbs[i];
        const char *cursor = verb->usage;
        struct usage_word place;
        bool fits, there = true;
        if (verb->section == NULL ||
            verb_match(verb, line->words, line->count, &fits) != line->count)
            continue;
        for (size_t w = 0; there && w <= line->count; w++)
            there = usage_next(&cursor, &place);
        bool again = there && last.len == place.len && memcmp(last.text, place.text, last.len) == 0;
        if (!there || again)
            continue;
        if (place.kind == WORD_LITERAL)
            add_candidate(out, line->current, place.text, place.len);
        else
            complete_place(&place, line->current, out);
        last = place;
    }
}

static void complete_line(const struct line *line, struct buf *out)
{
    const char *current = line->current;
    if (line->pending != NULL) {
        complete_value(line->pending, current, out);
        return;
    }
    if (current[0] != '-' || line->options_end) {
        complete_words(line, out);
        return;
    }
    const struct option_row *row = option_of(line->commands, current);
    const char *value = strchr(current, '=');
    if (row != NULL && value != NULL) {
        complete_value(row, value + 1, out);
        return;
    }
    for (size_t i = 0; i < line->commands->verb_count; i++) {
        const struct verb_row *verb = &line->commands->verbs[i];
        bool fits;
        /* Options of a verb that is written out; of all that are left would be a long list. */
        if (verb_match(verb, line->words, line->count, &fits) == line->count && fits)
            complete_options(verb->options, current, out);
    }
    complete_options(line->commands->globals, current, out);
}

void complete_write(const struct commands *commands, const char *const *words, size_t count,
                    struct buf *out)
{
    _cleanup_free_ const char **plain = calloc(count + 1, sizeof(*plain));
    if (plain == NULL || count == 0)
        return;
    struct line line = {.commands = commands, .words = plain, .current = words[count - 1]};
    for (size_t i = 0; i + 1 < count; i++)
        read_word(&line, words[i]);
    if (line.pending != NULL && strcmp(line.current, "=") == 0)
        line.current = "";
    /* What follows "help" is a command again. */
    if (line.count > 0 && strcmp(line.words[0], "help") == 0) {
        line.words++;
        line.count--;
    }
    complete_line(&line, out);
}

/* --- verbs --- */

int verb_completion(struct invocation *inv, int *ret_status, struct error *err)
{
    const char *shell = args_word(inv->args, "SHELL");
    if (strcmp(shell, "bash") != 0)
        return error_set(err, ERROR_INVALID_ARGUMENT,
                         "there is completion for bash, not for \"%s\"", shell);
    return output_bytes(STDOUT_FILENO, bash_script, strlen(bash_script), err);
}

int verb_complete(struct invocation *inv, int *ret_status, struct error *err)
{
    _cleanup_buf_ struct buf out = BUF_INIT(OUTPUT_MAX);
    size_t count;
    const char **words = args_rest(inv->args, &count);
    complete_write(inv->commands, words, count, &out);
    return output_buf(&out, err);
}

int verb_names(struct invocation *inv, int *ret_status, struct error *err)
{
    _cleanup_buf_ struct buf target = BUF_INIT(TARGET_MAX);
    _cleanup_buf_ struct buf out = BUF_INIT(OUTPUT_MAX);
    yyjson_val *root, *sandbox;
    size_t i, count;
    buf_adds(&target, "/v0/sandbox?limit=1000");
    if (client_json(inv->client, "GET", &target, NULL, 2000, &root, err) < 0)
        return -1;
    yyjson_arr_foreach(yyjson_obj_get(root, "sandboxes"), i, count, sandbox)
    {
        struct slice name = sandbox_full_name(inv, sandbox);
        buf_addf(&out, "%.*s\n", (int)name.len, name.data);
    }
    return output_buf(&out, err);
}
