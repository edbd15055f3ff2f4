/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Reads a command line with the help of the table and of nothing else: getopt would need a second
 * description of the options, and could not say which verb an option belongs to, or what somebody
 * meant who wrote --imgae.
 *
 * Options may stand anywhere, even before the verb that they belong to. That works because an
 * option name means the same kind of value in every row (a unit test keeps it so).
 */

#include "cli/args.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"

/* --- rows --- */

bool usage_next(const char **cursor, struct usage_word *ret_word)
{
    const char *at = *cursor;
    while (*at == ' ')
        at++;
    if (*at == '\0')
        return false;
    size_t len = strcspn(at, " ");
    *cursor = at + len;

    bool optional = *at == '[';
    if (optional) {
        at++;
        len -= 2;
    }
    bool many = len > 3 && strncmp(at + len - 3, "...", 3) == 0;
    if (many)
        len -= 3;
    enum word_kind kind = isupper((unsigned char)*at) ? WORD_REQUIRED : WORD_LITERAL;
    if (many)
        kind = optional ? WORD_ANY : WORD_SOME;
    else if (optional)
        kind = WORD_OPTIONAL;
    *ret_word = (struct usage_word){kind, at, len};
    return true;
}

const struct option_row *option_find(const struct option_row *rows, const char *name, size_t len)
{
    for (; rows != NULL && rows->name != NULL; rows++)
        if (strlen(rows->name) == len && memcmp(rows->name, name, len) == 0)
            return rows;
    return NULL;
}

const struct option_row *option_find_letter(const struct option_row *rows, char letter)
{
    for (; rows != NULL && rows->name != NULL; rows++)
        if (rows->letter == letter)
            return rows;
    return NULL;
}

bool choice_next(const char **cursor, const char **ret_text, size_t *ret_len)
{
    if (**cursor == '\0')
        return false;
    size_t len = strcspn(*cursor, "|");
    *ret_text = *cursor;
    *ret_len = len;
    *cursor += len + ((*cursor)[len] == '|');
    return true;
}

/* --- what did they mean? --- */

static size_t min3(size_t a, size_t b, size_t c)
{
    size_t ab = a < b ? a : b;
    return ab < c ? ab : c;
}

size_t edit_distance(const char *a, size_t a_len, const char *b, size_t b_len)
{
    enum { LONGEST = 40 };
    size_t rows[3][LONGEST + 1];
    if (a_len > LONGEST || b_len > LONGEST)
        return LONGEST;
    size_t *before = rows[0], *above = rows[1], *row = rows[2];
    for (size_t j = 0; j <= b_len; j++)
        above[j] = j;
    for (size_t i = 1; i <= a_len; i++) {
        row[0] = i;
        for (size_t j = 1; j <= b_len; j++) {
            size_t change = above[j - 1] + (a[i - 1] != b[j - 1]);
            row[j] = min3(above[j] + 1, row[j - 1] + 1, change);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
                before[j - 2] + 1 < row[j])
                row[j] = before[j - 2] + 1;
        }
        size_t *spare = before;
        before = above;
        above = row;
        row = spare;
    }
    return above[b_len];
}

struct guess {
    const char *word;
    size_t len;
    const char *best;
    size_t best_len;
    size_t distance;
};

static void guess_try(struct guess *g, const char *text, size_t len)
{
    size_t distance = edit_distance(g->word, g->len, text, len);
    /* A third of the word may be wrong; the beginning of a longer word counts as near, too. */
    size_t near = g->len / 3 + 1;
    bool begins = g->len >= 3 && g->len < len && memcmp(g->word, text, g->len) == 0;
    if (begins)
        distance = 1;
    if (distance <= near && (g->best == NULL || distance < g->distance)) {
        g->best = text;
        g->best_len = len;
        g->distance = distance;
    }
}

/* --- options --- */

static const struct option_row *find_anywhere(const struct commands *c, const char *name,
                                              size_t len, char letter)
{
    for (size_t i = 0; i <= c->verb_count; i++) {
        const struct option_row *rows = i == 0 ? c->globals : c->verbs[i - 1].options;
        const struct option_row *row =
            name != NULL ? option_find(rows, name, len) : option_find_letter(rows, letter);
        if (row != NULL)
            return row;
    }
    return NULL;
}

static int unknown_option(const struct commands *c, const char *word, const char *name, size_t len,
                          struct error *err)
{
    struct guess g = {.word = name, .len = len};
    for (size_t i = 0; name != NULL && i <= c->verb_count; i++) {
        const struct option_row *row = i == 0 ? c->globals : c->verbs[i - 1].options;
        for (; row != NULL && row->name != NULL; row++)
            guess_try(&g, row->name, strlen(row->name));
    }
    if (g.best != NULL)
        return error_set(err, ERROR_INVALID_ARGUMENT, "unknown option %s; did you mean --%.*s?",
                         word, (int)g.best_len, g.best);
    return error_set(err, ERROR_INVALID_ARGUMENT,
                     "unknown option %s (words after -- are never taken for options)", word);
}

static int check_number(const struct option_row *row, const char *value, struct error *err)
{
    char *end = NULL;
    errno = 0;
    if (isdigit((unsigned char)value[0]))
        (void)strtoull(value, &end, 10);
    if (end == NULL || *end != '\0' || errno != 0)
        return error_set(err, ERROR_INVALID_ARGUMENT, "--%s needs a whole number, not \"%s\"",
                         row->name, value);
    return 0;
}

static int check_choice(const struct option_row *row, const char *value, struct error *err)
{
    const char *cursor = row->value, *text;
    size_t len;
    while (choice_next(&cursor, &text, &len))
        if (strlen(value) == len && memcmp(text, value, len) == 0)
            return 0;
    return error_set(err, ERROR_INVALID_ARGUMENT, "--%s is one of %s, not \"%s\"", row->name,
                     row->value, value);
}

static int check_value(const struct option_row *row, const char *value, struct error *err)
{
    if (row->kind == OPTION_NUMBER)
        return check_number(row, value, err);
    if (row->kind == OPTION_CHOICE)
        return check_choice(row, value, err);
    if (row->kind == OPTION_PAIR && (value[0] == '=' || strchr(value, '=') == NULL))
        return error_set(err, ERROR_INVALID_ARGUMENT, "--%s needs %s, not \"%s\"", row->name,
                         row->value, value);
    return 0;
}

static int add_option(struct args *args, const struct option_row *row, const char *value,
                      struct error *err)
{
    if (row->kind == OPTION_FLAG && value != NULL)
        return error_set(err, ERROR_INVALID_ARGUMENT, "--%s takes no value", row->name);
    if (row->kind != OPTION_FLAG && value == NULL)
        return error_set(err, ERROR_INVALID_ARGUMENT, "--%s needs a value: --%s %s", row->name,
                         row->name, row->value);
    /* Choices may differ between verbs, and the verb is not known yet. */
    if (value != NULL && row->kind != OPTION_CHOICE && check_value(row, value, err) < 0)
        return -1;
    args->options[args->option_count++] = (struct given_option){row, value};
    return 0;
}

/* Takes the option at argv[*i], and the argument after it when that is its value. */
static int take_option(const struct commands *c, char **argv, int argc, int *i, struct args *args,
                       struct error *err)
{
    const char *word = argv[*i];
    const char *name = NULL, *value = NULL;
    size_t len = 0;
    const struct option_row *row;
    if (word[1] == '-') {
        name = word + 2;
        len = strcspn(name, "=");
        value = name[len] == '=' ? name + len + 1 : NULL;
        row = find_anywhere(c, name, len, 0);
    } else {
        row = find_anywhere(c, NULL, 0, word[1]);
        value = word[2] != '\0' ? word + 2 : NULL;
        if (row != NULL && row->kind == OPTION_FLAG && value != NULL)
            row = NULL; /* letters are not put together: -la is a slip, not -l and -a */
    }
    if (row == NULL)
        return unknown_option(c, word, name, len, err);
    if (row->kind != OPTION_FLAG && value == NULL && *i + 1 < argc)
        value = argv[++*i];
    return add_option(args, row, value, err);
}

int args_split(const struct commands *commands, int argc, char **argv, struct args *args,
               struct error *err)
{
    args->words = calloc((size_t)argc + 1, sizeof(*args->words));
    args->options = calloc((size_t)argc + 1, sizeof(*args->options));
    if (args->words == NULL || args->options == NULL)
        return error_set(err, ERROR_INTERNAL, "out of memory");
    bool options_end = false;
    for (int i = 1; i < argc; i++) {
        const char *word = argv[i];
        if (options_end || word[0] != '-' || word[1] == '\0') {
            args->words[args->word_count++] = word;
        } else if (strcmp(word, "--") == 0) {
            options_end = true;
        } else if (take_option(commands, argv, argc, &i, args, err) < 0) {
            return -1;
        }
    }
    return 0;
}

void args_release(struct args *args)
{
    free(args->words);
    free(args->options);
    *args = (struct args){0};
}

/* --- verbs --- */

size_t verb_match(const struct verb_row *verb, const char *const *words, size_t count,
                  bool *ret_fits)
{
    const char *cursor = verb->usage;
    struct usage_word word;
    size_t i = 0;
    *ret_fits = false;
    while (usage_next(&cursor, &word)) {
        if (word.kind == WORD_ANY || (word.kind == WORD_SOME && i < count)) {
            i = count;
            break;
        }
        if (i == count) {
            if (word.kind == WORD_OPTIONAL)
                continue;
            return i;
        }
        if (word.kind == WORD_LITERAL &&
            (strlen(words[i]) != word.len || memcmp(words[i], word.text, word.len) != 0))
            return i;
        i++;
    }
    *ret_fits = i == count;
    return i;
}

/* The word of a usage at a place; false past its end. */
static bool usage_at(const char *usage, size_t place, struct usage_word *ret_word)
{
    for (size_t i = 0; usage_next(&usage, ret_word); i++)
        if (i == place)
            return true;
    return false;
}

/* What the command line could go on with after its first `depth` words. */
struct next_words {
    struct guess guess;
    struct buf list;             /* "file, process" */
    const struct verb_row *verb; /* one that fits so far */
};

/* Rows that begin with the same word need not stand side by side. */
static void list_word(struct buf *list, const struct usage_word *word)
{
    for (size_t at = 0, len; at < list->len; at += len + strlen(", ")) {
        const char *there = list->data + at;
        const char *comma = memchr(there, ',', list->len - at);
        len = comma == NULL ? list->len - at : (size_t)(comma - there);
        if (len == word->len && memcmp(there, word->text, len) == 0)
            return;
    }
    buf_addf(list, "%s%.*s", list->len > 0 ? ", " : "", (int)word->len, word->text);
}

static void collect_next(const struct commands *c, const struct args *args, size_t depth,
                         struct next_words *next)
{
    struct usage_word place;
    for (size_t i = 0; i < c->verb_count; i++) {
        const struct verb_row *verb = &c->verbs[i];
        bool fits;
        if (verb->section == NULL || verb_match(verb, args->words, args->word_count, &fits) < depth)
            continue;
        next->verb = verb;
        if (!usage_at(verb->usage, depth, &place) || place.kind != WORD_LITERAL)
            continue;
        if (next->guess.word != NULL)
            guess_try(&next->guess, place.text, place.len);
        list_word(&next->list, &place);
    }
}

/* No verb fits. Says why, from the rows that fit for longest. */
static int no_verb(const struct commands *c, const struct args *args, size_t depth,
                   struct error *err)
{
    const char *word = depth < args->word_count ? args->words[depth] : NULL;
    struct next_words next = {.guess = {.word = word, .len = word == NULL ? 0 : strlen(word)},
                              .list = BUF_INIT(ERROR_MESSAGE_MAX)};
    collect_next(c, args, depth, &next);
    struct usage_word place;
    const char *usage = next.verb == NULL ? "" : next.verb->usage;
    if (next.list.len > 0 && word == NULL)
        error_set(err, ERROR_INVALID_ARGUMENT, "what to do? one of: %s", next.list.data);
    else if (next.guess.best != NULL)
        error_set(err, ERROR_INVALID_ARGUMENT, "unknown command \"%s\"; did you mean %.*s?", word,
                  (int)next.guess.best_len, next.guess.best);
    else if (next.list.len > 0)
        error_set(err, ERROR_INVALID_ARGUMENT, "unknown command \"%s\"; there are: %s", word,
                  next.list.data);
    else if (word == NULL && usage_at(usage, depth, &place))
        error_set(err, ERROR_INVALID_ARGUMENT, "%.*s is missing (usage: cella %s)", (int)place.len,
                  place.text, usage);
    else
        error_set(err, ERROR_INVALID_ARGUMENT, "\"%s\" is one word too many (usage: cella %s)",
                  word, usage);
    buf_release(&next.list);
    return -1;
}

/* Literals of a usage, for messages: "sandbox list", "run file read". */
static void verb_title(const struct verb_row *verb, char *out, size_t size)
{
    const char *cursor = verb->usage;
    struct usage_word word;
    size_t used = 0;
    out[0] = '\0';
    while (used < size && usage_next(&cursor, &word))
        if (word.kind == WORD_LITERAL)
            used += (size_t)snprintf(out + used, size - used, "%s%.*s", used > 0 ? " " : "",
                                     (int)word.len, word.text);
}

static int check_options(const struct commands *c, const struct args *args, struct error *err)
{
    char title[64];
    verb_title(args->verb, title, sizeof(title));
    for (size_t i = 0; i < args->option_count; i++) {
        const struct option_row *row = args->options[i].row;
        size_t len = strlen(row->name);
        const struct option_row *own = option_find(args->verb->options, row->name, len);
        if (own == NULL)
            own = option_find(c->globals, row->name, len);
        if (own == NULL)
            return error_set(err, ERROR_INVALID_ARGUMENT, "\"%s\" has no option --%s", title,
                             row->name);
        /* The row of this verb, from here on: choices may differ. */
        if (args->options[i].value != NULL && check_value(own, args->options[i].value, err) < 0)
            return -1;
        args->options[i].row = own;
        for (size_t j = 0; j < i && !own->repeats; j++)
            if (args->options[j].row == own)
                return error_set(err, ERROR_INVALID_ARGUMENT, "--%s was given twice", own->name);
    }
    return 0;
}

int args_bind(const struct commands *commands, struct args *args, struct error *err)
{
    size_t depth = 0;
    for (size_t i = 0; i < commands->verb_count; i++) {
        bool fits;
        size_t matched = verb_match(&commands->verbs[i], args->words, args->word_count, &fits);
        if (fits) {
            args->verb = &commands->verbs[i];
            return check_options(commands, args, err);
        }
        if (commands->verbs[i].section != NULL && matched > depth)
            depth = matched;
    }
    return no_verb(commands, args, depth, err);
}

/* --- reading what was given --- */

const char *args_option(const struct args *args, const char *name, const char *fallback)
{
    for (size_t i = args->option_count; i > 0; i--)
        if (strcmp(args->options[i - 1].row->name, name) == 0)
            return args->options[i - 1].value;
    return fallback;
}

bool args_flag(const struct args *args, const char *name)
{
    for (size_t i = 0; i < args->option_count; i++)
        if (strcmp(args->options[i].row->name, name) == 0)
            return true;
    return false;
}

uint64_t args_number(const struct args *args, const char *name, uint64_t fallback)
{
    const char *value = args_option(args, name, NULL);
    return value == NULL ? fallback : strtoull(value, NULL, 10);
}

const char *args_word(const struct args *args, const char *name)
{
    const char *cursor = args->verb->usage;
    struct usage_word word;
    for (size_t i = 0; i < args->word_count && usage_next(&cursor, &word); i++)
        if (word.kind != WORD_LITERAL && word.len == strlen(name) &&
            memcmp(word.text, name, word.len) == 0)
            return args->words[i];
    return NULL;
}

const char **args_rest(const struct args *args, size_t *ret_count)
{
    const char *cursor = args->verb->usage;
    struct usage_word word;
    size_t i = 0;
    while (usage_next(&cursor, &word) && word.kind != WORD_SOME && word.kind != WORD_ANY)
        i++;
    *ret_count = args->word_count > i ? args->word_count - i : 0;
    return args->words + (args->word_count > i ? i : args->word_count);
}

static void add_quoted(struct buf *out, const char *word)
{
    buf_addc(out, '\'');
    for (; *word != '\0'; word++) {
        if (*word == '\'')
            buf_adds(out, "'\\''");
        else
            buf_addc(out, *word);
    }
    buf_addc(out, '\'');
}

int args_command(const struct args *args, struct buf *out, struct error *err)
{
    size_t count;
    const char **words = args_rest(args, &count);
    if (count == 1)
        buf_adds(out, words[0]);
    for (size_t i = 0; count > 1 && i < count; i++) {
        if (i > 0)
            buf_addc(out, ' ');
        add_quoted(out, words[i]);
    }
    return buf_check(out, "the command", err);
}
