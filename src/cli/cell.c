/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Just enough of each language to tell brackets from what stands in strings and comments. What a
 * cell means is decided by its interpreter; this decides only which prompt comes next.
 */

#include "cli/cell.h"

#include <string.h>
#include <strings.h>

struct rules {
    const char *names;  /* of the languages, with blanks around each */
    const char *quotes; /* that end with their line */
    const char *long_quotes;
    const char *goes_on; /* what a line ends with that is not the last, besides a backslash */
    bool hash;           /* comments begin with # */
    bool slashes;        /* … with slashes */
    bool triple;         /* quotes may be tripled */
    bool indented;       /* blocks are, and an empty line ends them */
    bool words;          /* blocks are between words: if and fi */
};

static const struct rules table[] = {
    {" python python3 py ", "'\"", "", "", .hash = true, .triple = true, .indented = true},
    {" javascript js node nodejs typescript ts java jshell ", "'\"", "`", "", .slashes = true},
    {" r rlang rscript ", "", "'\"`", "+-*/,=<|&", .hash = true},
    {" bash sh shell ", "", "'\"", "|&", .hash = true, .words = true},
};

static const struct rules *find(const char *language)
{
    size_t len = strlen(language);
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
        for (const char *at = table[i].names; (at = strcasestr(at, language)) != NULL; at++)
            if (at[-(at > table[i].names)] == ' ' && at[len] == ' ')
                return &table[i];
    return &table[0];
}

struct scan {
    int depth;      /* of brackets */
    bool in_string; /* that may go on */
    char last;      /* that is code; 0: none */
    size_t last_at;
};

static bool is_at(struct slice code, size_t at, const char *text)
{
    size_t len = strlen(text);
    return code.len - at >= len && memcmp(code.data + at, text, len) == 0;
}

static bool has(const char *set, char c)
{
    return c != '\0' && strchr(set, c) != NULL;
}

/* From the quote on: where the string ends, or the code. */
static size_t skip_string(const struct rules *rules, struct slice code, size_t at, bool *ret_open)
{
    char quote = code.data[at];
    bool triple = rules->triple && at + 2 < code.len && code.data[at + 1] == quote &&
                  code.data[at + 2] == quote;
    bool is_long = triple || has(rules->long_quotes, quote);
    bool escapes = !(rules->words && quote == '\'');
    size_t width = triple ? 3 : 1;
    for (at += width; at < code.len; at++) {
        if (escapes && code.data[at] == '\\')
            at++;
        else if (code.data[at] == '\n' && !is_long)
            return at;
        else if (code.data[at] == quote &&
                 (!triple ||
                  (at + 2 < code.len && code.data[at + 1] == quote && code.data[at + 2] == quote)))
            return at + width;
    }
    *ret_open = is_long;
    return code.len;
}

static size_t skip_comment(const struct rules *rules, struct slice code, size_t at, bool *ret_open)
{
    bool hash = rules->hash && code.data[at] == '#' &&
                (!rules->words || at == 0 || has(" \t\n;", code.data[at - 1]));
    if (hash || (rules->slashes && is_at(code, at, "//"))) {
        const char *end = memchr(code.data + at, '\n', code.len - at);
        return end == NULL ? code.len : (size_t)(end - code.data);
    }
    if (!rules->slashes || !is_at(code, at, "/*"))
        return at;
    const char *end = memmem(code.data + at + 2, code.len - at - 2, "*/", 2);
    *ret_open = end == NULL;
    return end == NULL ? code.len : (size_t)(end - code.data) + 2;
}

static struct scan scan(const struct rules *rules, struct slice code)
{
    struct scan s = {0};
    for (size_t at = 0; at < code.len;) {
        char c = code.data[at];
        size_t next = skip_comment(rules, code, at, &s.in_string);
        if (next > at) {
            at = next;
            continue;
        }
        if (!has(" \t\r\n", c)) {
            s.last = c;
            s.last_at = at;
        }
        if (has(rules->quotes, c) || has(rules->long_quotes, c)) {
            at = skip_string(rules, code, at, &s.in_string);
            continue;
        }
        if (rules->words && c == '\\') {
            at += 2;
            continue;
        }
        s.depth += has("([{", c) ? 1 : has(")]}", c) ? -1 : 0;
        at++;
    }
    return s;
}

/* Words that open a block, less those that close one, where a command begins. */
static int open_words(struct slice code)
{
    static const char opening[] = " if case for while until select ";
    static const char closing[] = " fi esac done ";
    int open = 0;
    bool begins = true;
    for (size_t at = 0; at < code.len;) {
        size_t len = 0;
        char word[12];
        while (at + len < code.len && !has(" \t\r\n;&|()", code.data[at + len]))
            len++;
        if (len > 0 && len < sizeof(word) - 2) {
            word[0] = ' ';
            memcpy(word + 1, code.data + at, len);
            word[len + 1] = ' ';
            word[len + 2] = '\0';
            open += begins && strstr(opening, word) != NULL;
            open -= begins && strstr(closing, word) != NULL;
            begins = strstr(" then do else elif { ! ", word) != NULL;
        } else if (len > 0) {
            begins = false;
        }
        if (len == 0) {
            begins = begins || !has(" \t", code.data[at]);
            len = 1;
        }
        at += len;
    }
    return open;
}

static struct slice last_line(struct slice code)
{
    while (code.len > 0 && has("\r\n", code.data[code.len - 1]))
        code.len--;
    const char *newline = code.len == 0 ? NULL : memrchr(code.data, '\n', code.len);
    if (newline == NULL)
        return code;
    size_t from = (size_t)(newline - code.data) + 1;
    return (struct slice){code.data + from, code.len - from};
}

/* An indented block goes on until an empty line: two line breaks at the end. */
static bool block_is_open(struct slice code, const struct scan *s)
{
    bool ended = code.len >= 2 && is_at(code, code.len - 2, "\n\n");
    struct slice line = last_line(code);
    if (ended || line.len == 0)
        return false;
    return s->last == ':' || has(" \t", line.data[0]) || line.data[0] == '@';
}

bool cell_wants_more(const char *language, struct slice code)
{
    const struct rules *rules = find(language);
    struct scan s = scan(rules, code);
    struct slice line = last_line(code);
    if (s.in_string || s.depth > 0)
        return true;
    if (line.len > 0 && line.data[line.len - 1] == '\\' && !is_at(code, code.len - 1, "\n\n"))
        return true;
    if (has(rules->goes_on, s.last) && s.last_at + 1 >= (size_t)(line.data + line.len - code.data))
        return true;
    if (rules->words)
        return open_words(code) > 0;
    return rules->indented && block_is_open(code, &s);
}
