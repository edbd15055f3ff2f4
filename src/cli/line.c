/* SPDX-License-Identifier: Apache-2.0 */

/* Keys, as terminals send them, and what they do to a line. */

#include "cli/line.h"

#include <string.h>

#include "base/cleanup.h"

#define CLEAR_REST "\033[K"

enum { ESCAPE = 27, DELETE = 127, CTRL = 0x1f, SEQUENCE_MAX = 16 };

void line_init(struct line *line, struct history *history)
{
    *line = (struct line){.history = history, .at = history->count};
    buf_init(&line->text, LINE_BYTES_MAX);
    buf_init(&line->kept, LINE_BYTES_MAX);
}

void line_release(struct line *line)
{
    buf_release(&line->text);
    buf_release(&line->kept);
}

/* --- moving --- */

static bool is_inside(char c)
{
    return ((unsigned char)c & 0xc0) == 0x80;
}

static size_t before(const struct line *line, size_t at)
{
    while (at > 0 && is_inside(line->text.data[--at]))
        ;
    return at;
}

static size_t after(const struct line *line, size_t at)
{
    if (at < line->text.len)
        at++;
    while (at < line->text.len && is_inside(line->text.data[at]))
        at++;
    return at;
}

static bool is_word(char c)
{
    return c == '_' || is_inside(c) || (unsigned char)c >= 0x80 || (c >= '0' && c <= '9') ||
           (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static size_t word_before(const struct line *line)
{
    size_t at = line->cursor;
    while (at > 0 && !is_word(line->text.data[at - 1]))
        at--;
    while (at > 0 && is_word(line->text.data[at - 1]))
        at--;
    return at;
}

static size_t word_after(const struct line *line)
{
    size_t at = line->cursor;
    while (at < line->text.len && !is_word(line->text.data[at]))
        at++;
    while (at < line->text.len && is_word(line->text.data[at]))
        at++;
    return at;
}

/* --- changing --- */

static void cut(struct line *line, size_t from, size_t to)
{
    if (to <= from)
        return;
    memmove(line->text.data + from, line->text.data + to, line->text.len - to);
    line->text.len -= to - from;
    line->text.data[line->text.len] = '\0';
    line->cursor = from;
}

static void insert(struct line *line, const char *data, size_t len)
{
    if (buf_reserve(&line->text, len) == NULL) {
        line->text.failed = false; /* as long as a line gets: the rest is not taken */
        return;
    }
    char *at = line->text.data + line->cursor;
    memmove(at + len, at, line->text.len - line->cursor);
    memcpy(at, data, len);
    buf_commit(&line->text, len);
    line->cursor += len;
}

static void show(struct line *line, size_t at)
{
    struct history *history = line->history;
    if (line->at == history->count && at != history->count) {
        buf_clear(&line->kept);
        buf_add(&line->kept, line->text.data, line->text.len);
    }
    line->at = at;
    buf_clear(&line->text);
    if (at == history->count)
        buf_add(&line->text, line->kept.data, line->kept.len);
    else
        buf_adds(&line->text, history->lines[at]);
    line->cursor = line->text.len;
}

/* --- keys --- */

enum action {
    NOTHING,
    LEFT,
    RIGHT,
    HOME,
    END,
    OLDER,
    NEWER,
    ERASE,
    ERASE_NEXT,
    ERASE_WORD,
    ERASE_START,
    ERASE_END,
    WORD_LEFT,
    WORD_RIGHT,
    INDENT,
};

static void act(struct line *line, enum action action)
{
    switch (action) {
    case NOTHING:
        break;
    case LEFT:
        line->cursor = before(line, line->cursor);
        break;
    case RIGHT:
        line->cursor = after(line, line->cursor);
        break;
    case HOME:
        line->cursor = 0;
        break;
    case END:
        line->cursor = line->text.len;
        break;
    case OLDER:
        if (line->at > 0)
            show(line, line->at - 1);
        break;
    case NEWER:
        if (line->at < line->history->count)
            show(line, line->at + 1);
        break;
    case ERASE:
        cut(line, before(line, line->cursor), line->cursor);
        break;
    case ERASE_NEXT:
        cut(line, line->cursor, after(line, line->cursor));
        break;
    case ERASE_WORD:
        cut(line, word_before(line), line->cursor);
        break;
    case ERASE_START:
        cut(line, 0, line->cursor);
        break;
    case ERASE_END:
        cut(line, line->cursor, line->text.len);
        break;
    case WORD_LEFT:
        line->cursor = word_before(line);
        break;
    case WORD_RIGHT:
        line->cursor = word_after(line);
        break;
    case INDENT:
        insert(line, "    ", 4);
    }
}

static const struct {
    char key;
    enum action action;
} control_keys[] = {
    {'A' & CTRL, HOME},       {'E' & CTRL, END},         {'B' & CTRL, LEFT},
    {'F' & CTRL, RIGHT},      {'P' & CTRL, OLDER},       {'N' & CTRL, NEWER},
    {'H' & CTRL, ERASE},      {DELETE, ERASE},           {'D' & CTRL, ERASE_NEXT},
    {'W' & CTRL, ERASE_WORD}, {'U' & CTRL, ERASE_START}, {'K' & CTRL, ERASE_END},
    {'\t', INDENT},
};

/* What follows an ESC. */
static const struct {
    const char *text;
    enum action action;
} sequences[] = {
    {"[A", OLDER},        {"[B", NEWER},    {"[C", RIGHT},       {"[D", LEFT},
    {"OA", OLDER},        {"OB", NEWER},    {"OC", RIGHT},       {"OD", LEFT},
    {"[H", HOME},         {"[F", END},      {"OH", HOME},        {"OF", END},
    {"[1~", HOME},        {"[4~", END},     {"[3~", ERASE_NEXT}, {"[1;5C", WORD_RIGHT},
    {"[1;5D", WORD_LEFT}, {"b", WORD_LEFT}, {"f", WORD_RIGHT},   {"\177", ERASE_WORD},
};

/* The length of the sequence after an ESC; 0: it is not whole. */
static size_t sequence_length(const char *in, size_t len)
{
    if (len == 0)
        return 0;
    if (in[0] == 'O')
        return len >= 2 ? 2 : 0;
    if (in[0] != '[')
        return 1;
    for (size_t i = 1; i < len; i++)
        if (in[i] >= '@' && in[i] <= '~')
            return i + 1;
    return len < SEQUENCE_MAX ? 0 : len;
}

static enum line_key take_sequence(struct line *line, const char *in, size_t len, size_t *ret_used)
{
    size_t size = sequence_length(in + 1, len - 1);
    if (size == 0)
        return LINE_NEEDS_MORE;
    *ret_used = 1 + size;
    for (size_t i = 0; i < ARRAY_LEN(sequences); i++)
        if (strlen(sequences[i].text) == size && memcmp(sequences[i].text, in + 1, size) == 0)
            act(line, sequences[i].action);
    return LINE_CHANGED;
}

static enum line_key take_character(struct line *line, const char *in, size_t len, size_t *ret_used)
{
    unsigned char first = (unsigned char)in[0];
    size_t size = first < 0xc0 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
    if (size > len)
        return LINE_NEEDS_MORE;
    *ret_used = size;
    if (first >= ' ')
        insert(line, in, size);
    return LINE_CHANGED;
}

enum line_key line_take(struct line *line, const char *in, size_t len, size_t *ret_used)
{
    *ret_used = 0;
    if (len == 0)
        return LINE_NEEDS_MORE;
    if (in[0] == ESCAPE)
        return take_sequence(line, in, len, ret_used);
    *ret_used = 1;
    if (in[0] == '\r' || in[0] == '\n')
        return LINE_DONE;
    if (in[0] == ('C' & CTRL))
        return LINE_CANCELLED;
    if (in[0] == ('L' & CTRL))
        return LINE_REDRAW;
    if (in[0] == ('D' & CTRL) && line->text.len == 0)
        return LINE_ENDED;
    for (size_t i = 0; i < ARRAY_LEN(control_keys); i++)
        if (control_keys[i].key == in[0]) {
            act(line, control_keys[i].action);
            return LINE_CHANGED;
        }
    *ret_used = 0;
    return take_character(line, in, len, ret_used);
}

/* --- drawing --- */

static size_t width(const char *text, size_t len)
{
    size_t count = 0;
    for (size_t i = 0; i < len; i++)
        count += !is_inside(text[i]);
    return count;
}

void line_draw(const struct line *line, const char *prompt, size_t columns, struct buf *out)
{
    size_t taken = width(prompt, strlen(prompt)) + 1;
    size_t room = columns > taken + 8 ? columns - taken : 8;
    size_t from = 0, to = line->cursor;
    while (width(line->text.data + from, line->cursor - from) > room)
        from = after(line, from);
    while (to < line->text.len && width(line->text.data + from, to - from) < room)
        to = after(line, to);
    buf_addf(out, "\r%s", prompt);
    if (to > from)
        buf_add(out, line->text.data + from, to - from);
    buf_adds(out, CLEAR_REST);
    size_t back = width(line->text.data + line->cursor, to - line->cursor);
    if (back > 0)
        buf_addf(out, "\033[%zuD", back);
}
