/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A stream is looked at in three views: as it is, with JSON's escapes undone, and with those and
 * the escapes of URLs and HTML undone. Each view is a row of symbols that know which bytes of the
 * stream they come from. It has the hash of all symbols up to each of them, from which the hash of
 * any row of symbols follows. Every symbol costs the same number of steps: how long a stream takes
 * says nothing about the secret either. Where there was no escape for as long as a form is, the
 * views are the same, and one of them is enough.
 */

#include "egress/redact.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/limits.h"

enum {
    BREAK = -1,      /* a symbol that is in no form */
    ESCAPE_MAX = 10, /* symbols of an escape: &#x00027; */
};

struct symbol {
    int c; /* or BREAK */
    uint64_t from, to;
};

/* Rings of the symbols since the last break: each symbol, where it begins in the stream, and for
 * each folding the hash of all symbols in front of it. */
struct view {
    uint8_t *bytes;
    uint64_t *from;
    uint64_t *hashes[FOLD_COUNT];
    size_t mask;
    uint64_t count;
    bool tail; /* the next symbol may hold bits of the secret that was found */
};

/* Undoes escapes: those that are not whole yet are kept. */
struct unescape {
    struct symbol kept[ESCAPE_MAX];
    size_t count;
};

enum { VIEW_PLAIN, VIEW_JSON, VIEW_ALL, VIEW_COUNT };

struct redact {
    const struct redact_set *set;
    struct view views[VIEW_COUNT];
    struct unescape json, all;
    /* Symbols for which a view still differs from the one before it; 0: they are the same. */
    size_t json_apart, all_apart;
    struct buf held;
    uint64_t base; /* position in the stream of the first byte that is held */
    uint64_t next; /* of the byte that comes next */
    uint64_t safe; /* bytes in front of it may go on */
};

/* --- views --- */

static void hide(struct redact *r, uint64_t from, uint64_t to)
{
    for (uint64_t at = from > r->base ? from : r->base; at < to; at++)
        r->held.data[at - r->base] = '*';
}

static uint8_t symbol_at(const struct view *view, uint64_t index)
{
    return view->bytes[index & view->mask];
}

static bool is_form(const struct redact *r, const struct view *view, const struct redact_form *form)
{
    const uint8_t *fold = r->set->fold[form->fold];
    uint8_t differ = 0;
    for (size_t i = 0; i < form->len; i++)
        differ |= form->bytes[i] ^ fold[symbol_at(view, view->count - form->len + i)];
    return differ == 0;
}

static void found(struct redact *r, struct view *view, const struct redact_form *form, uint64_t to)
{
    uint64_t first = view->count - form->len;
    if (form->head && first > 0 && redact_is_base64(symbol_at(view, first - 1)))
        first--;
    hide(r, view->from[first & view->mask], to);
    view->tail |= form->tail;
}

static void view_clear(struct view *view)
{
    view->count = 0;
    view->tail = false;
    for (size_t fold = 0; fold < FOLD_COUNT; fold++)
        view->hashes[fold][0] = 0;
}

static void view_push(const struct redact_set *set, struct view *view, const struct symbol *symbol)
{
    size_t at = view->count & view->mask, next = (view->count + 1) & view->mask;
    view->bytes[at] = (uint8_t)symbol->c;
    view->from[at] = symbol->from;
    for (size_t fold = 0; fold < FOLD_COUNT; fold++)
        view->hashes[fold][next] =
            view->hashes[fold][at] * set->base + set->fold[fold][symbol->c] + 1U;
    view->count++;
}

static void view_add(struct redact *r, struct view *view, const struct symbol *symbol)
{
    const struct redact_set *set = r->set;
    if (symbol->c == BREAK) {
        view_clear(view);
        return;
    }
    if (view->tail && redact_is_base64((uint8_t)symbol->c))
        hide(r, symbol->from, symbol->to);
    view->tail = false;
    view_push(set, view, symbol);
    for (size_t i = 0; i < set->count; i++) {
        const struct redact_form *form = &set->forms[i];
        const uint64_t *hashes = view->hashes[form->fold];
        uint64_t before = hashes[(view->count - form->len) & view->mask];
        if (hashes[view->count & view->mask] - before * form->drop == form->hash &&
            view->count >= form->len && is_form(r, view, form))
            found(r, view, form, symbol->to);
    }
}

/* --- escapes --- */

enum { ESCAPE_MORE = -2, ESCAPE_NONE = -3 };

static int digit(int c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if ((c | 0x20) >= 'a' && (c | 0x20) <= 'f')
        return (c | 0x20) - 'a' + 10;
    return -1;
}

static int symbol_of(long value)
{
    return value >= 0x20 && value < 0x7f ? (int)value : BREAK;
}

/* Exactly so many hexadecimal digits. */
static int hex_digits(const struct symbol *at, size_t have, size_t want)
{
    long value = 0;
    for (size_t i = 0; i < have; i++) {
        if (digit(at[i].c) < 0)
            return ESCAPE_NONE;
        value = value << 4 | digit(at[i].c);
    }
    return have < want ? ESCAPE_MORE : symbol_of(value);
}

/* \" \\ \/ \n … \u0041 \x41 */
static int json_escape(const struct symbol *at, size_t count)
{
    if (at[0].c != '\\')
        return ESCAPE_NONE;
    if (count == 1)
        return ESCAPE_MORE;
    switch (at[1].c) {
    case 'u':
        return hex_digits(at + 2, count - 2, 4);
    case 'x':
        return hex_digits(at + 2, count - 2, 2);
    case '"':
    case '\'':
    case '\\':
    case '/':
        return at[1].c;
    case 'b':
    case 'f':
    case 'n':
    case 'r':
    case 't':
        return BREAK;
    default:
        return ESCAPE_NONE;
    }
}

/* &#65; &#x41; */
static int html_number(const struct symbol *at, size_t count)
{
    bool hex = count > 0 && (at[0].c | 0x20) == 'x';
    long value = 0;
    for (size_t i = hex; i < count; i++) {
        int d = digit(at[i].c);
        if (at[i].c == ';' && i > (size_t)hex)
            return symbol_of(value);
        if (d < 0 || (!hex && d > 9))
            return ESCAPE_NONE;
        value = value * (hex ? 16 : 10) + d;
    }
    return ESCAPE_MORE;
}

/* &amp; and its like. */
static int html_name(const struct symbol *at, size_t count)
{
    static const struct {
        const char *name;
        char c;
    } names[] = {{"amp;", '&'}, {"lt;", '<'}, {"gt;", '>'}, {"quot;", '"'}, {"apos;", '\''}};
    for (size_t n = 0; n < ARRAY_LEN(names); n++) {
        size_t i = 0;
        while (i < count && at[i].c == names[n].name[i])
            if (names[n].name[++i] == '\0')
                return names[n].c;
        if (i == count)
            return ESCAPE_MORE;
    }
    return ESCAPE_NONE;
}

/* %41, and HTML's. */
static int web_escape(const struct symbol *at, size_t count)
{
    if (at[0].c == '%')
        return hex_digits(at + 1, count - 1, 2);
    if (at[0].c != '&')
        return ESCAPE_NONE;
    if (count == 1)
        return ESCAPE_MORE;
    return at[1].c == '#' ? html_number(at + 2, count - 2) : html_name(at + 1, count - 1);
}

typedef int escape_look(const struct symbol *at, size_t count);
typedef void symbol_emit(struct redact *r, const struct symbol *symbol);

static void drop_kept(struct unescape *u, size_t count)
{
    u->count -= count;
    memmove(u->kept, u->kept + count, u->count * sizeof(*u->kept));
}

/* Takes a symbol, and emits what is whole now. */
static void unescape(struct redact *r, struct unescape *u, escape_look *look, symbol_emit *emit,
                     const struct symbol *symbol)
{
    if (u->count == 0 && look(symbol, 1) == ESCAPE_NONE) {
        emit(r, symbol);
        return;
    }
    u->kept[u->count++] = *symbol;
    while (u->count > 0) {
        int c = look(u->kept, u->count);
        struct symbol whole = u->kept[0];
        if (c == ESCAPE_MORE && u->count < ESCAPE_MAX)
            return;
        if (c == ESCAPE_MORE || c == ESCAPE_NONE) { /* it stands for itself */
            drop_kept(u, 1);
        } else {
            whole.c = c;
            whole.to = u->kept[u->count - 1].to;
            u->count = 0;
        }
        emit(r, &whole);
    }
}

static void view_copy(const struct view *from, struct view *to)
{
    size_t size = from->mask + 1;
    memcpy(to->bytes, from->bytes, size);
    memcpy(to->from, from->from, size * sizeof(*from->from));
    for (size_t fold = 0; fold < FOLD_COUNT; fold++)
        memcpy(to->hashes[fold], from->hashes[fold], size * sizeof(**from->hashes));
    to->count = from->count;
    to->tail = from->tail;
}

static void emit_all(struct redact *r, const struct symbol *symbol)
{
    view_add(r, &r->views[VIEW_ALL], symbol);
    r->all_apart--;
}

static void undo_web(struct redact *r, const struct symbol *symbol)
{
    if (r->all_apart > 0)
        unescape(r, &r->all, web_escape, emit_all, symbol);
}

static void emit_json(struct redact *r, const struct symbol *symbol)
{
    if (symbol->c == '%' || symbol->c == '&') {
        if (r->all_apart == 0)
            view_copy(&r->views[VIEW_JSON], &r->views[VIEW_ALL]);
        r->all_apart = r->set->longest + 2 * ESCAPE_MAX;
    }
    view_add(r, &r->views[VIEW_JSON], symbol);
    r->json_apart--;
    undo_web(r, symbol);
}

/* --- the stream --- */

/* Before the symbol is added to the first view. */
static void part_views(struct redact *r, int c)
{
    const size_t apart = r->set->longest + 2 * ESCAPE_MAX;
    if (c == '\\') {
        if (r->json_apart == 0)
            view_copy(&r->views[VIEW_PLAIN], &r->views[VIEW_JSON]);
        r->json_apart = apart;
    } else if ((c == '%' || c == '&') && r->json_apart == 0) {
        if (r->all_apart == 0)
            view_copy(&r->views[VIEW_PLAIN], &r->views[VIEW_ALL]);
        r->all_apart = apart;
    }
}

static void take_byte(struct redact *r, uint8_t byte)
{
    struct symbol symbol = {symbol_of(byte), r->next, r->next + 1};
    r->next++;
    part_views(r, symbol.c);
    view_add(r, &r->views[VIEW_PLAIN], &symbol);
    if (r->json_apart > 0)
        unescape(r, &r->json, json_escape, emit_json, &symbol);
    else
        undo_web(r, &symbol);
    if (symbol.c == BREAK)
        r->safe = r->next;
}

static void pass(struct redact *r, uint64_t to, struct buf *out)
{
    size_t len = (size_t)(to - r->base);
    buf_add(out, r->held.data, len);
    buf_consume(&r->held, len);
    r->base = to;
}

void redact_feed(struct redact *r, struct slice data, struct buf *out)
{
    if (r->set->count == 0) {
        buf_add(out, data.data, data.len);
        return;
    }
    buf_add(&r->held, data.data, data.len);
    if (r->held.failed) {
        out->failed = true;
        return;
    }
    for (size_t i = 0; i < data.len; i++)
        take_byte(r, (uint8_t)data.data[i]);
    if (r->next > r->set->window && r->next - r->set->window > r->safe)
        r->safe = r->next - r->set->window;
    if (r->safe > r->base)
        pass(r, r->safe, out);
}

size_t redact_held(const struct redact *r)
{
    return r->held.len;
}

void redact_release(struct redact *r, struct buf *out)
{
    pass(r, r->next, out);
}

void redact_end(struct redact *r, struct buf *out)
{
    redact_release(r, out);
    redact_reset(r);
}

void redact_reset(struct redact *r)
{
    for (size_t i = 0; i < VIEW_COUNT; i++)
        view_clear(&r->views[i]);
    r->json.count = r->all.count = r->json_apart = r->all_apart = 0;
    buf_clear(&r->held);
    r->base = r->next = r->safe = 0;
}

void redact_text(struct redact *r, struct slice text, struct buf *out)
{
    redact_feed(r, text, out);
    redact_end(r, out);
}

/* --- making one --- */

static bool view_make(const struct redact_set *set, struct view *view)
{
    size_t size = 64;
    while (size < set->longest + 2)
        size *= 2;
    view->mask = size - 1;
    view->bytes = calloc(size, 1);
    view->from = calloc(size, sizeof(*view->from));
    bool made = view->bytes != NULL && view->from != NULL;
    for (size_t fold = 0; fold < FOLD_COUNT; fold++) {
        view->hashes[fold] = calloc(size, sizeof(**view->hashes));
        made = made && view->hashes[fold] != NULL;
    }
    return made;
}

struct redact *redact_new(const struct redact_set *set, struct error *err)
{
    struct redact *r = calloc(1, sizeof(*r));
    bool made = r != NULL;
    if (made) {
        r->set = set;
        buf_init(&r->held, REDACT_HELD_MAX);
        for (size_t i = 0; i < VIEW_COUNT; i++)
            made = view_make(set, &r->views[i]) && made;
    }
    if (!made) {
        error_sys(err, "a buffer for an answer");
        redact_free(r);
        return NULL;
    }
    return r;
}

void redact_free(struct redact *r)
{
    if (r == NULL)
        return;
    for (size_t i = 0; i < VIEW_COUNT; i++) {
        if (r->views[i].bytes != NULL)
            explicit_bzero(r->views[i].bytes, r->views[i].mask + 1);
        free(r->views[i].bytes);
        free(r->views[i].from);
        for (size_t fold = 0; fold < FOLD_COUNT; fold++)
            free(r->views[i].hashes[fold]);
    }
    if (r->held.max > 0)
        explicit_bzero(r->held.data, r->held.len);
    buf_release(&r->held);
    free(r);
}
