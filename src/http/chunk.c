/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The chunked coding. llhttp has a decoder too, but it takes lone CRs and LFs for line ends in
 * places, and every byte of a body would go through it; this one lets bodies pass by.
 */

#include "http/chunk.h"

#include <stdbool.h>

enum {
    DIGITS_MAX = 15, /* stays below 2^60 */
    EXTENSION_MAX = 256,
    TRAILER_MAX = 8192,
};

enum state {
    SIZE,         /* hex digits */
    EXTENSION,    /* after ';' */
    BEFORE_EXT,   /* white space between size and ';' */
    SIZE_LF,      /* after the CR of the size line */
    DATA,         /* the caller's */
    DATA_CR,      /* behind a chunk */
    DATA_LF,      /* … */
    TRAILER,      /* at the start of a trailer line, or of the empty one */
    TRAILER_NAME, /* up to the colon */
    TRAILER_VALUE,
    TRAILER_LF, /* after the CR of a trailer line */
    END_LF,     /* after the CR of the empty line */
    END,
};

static int hex_value(unsigned char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool is_text(unsigned char c)
{
    return (c >= 0x20 && c != 0x7f) || c == '\t';
}

static bool is_name_char(unsigned char c)
{
    return c > 0x20 && c < 0x7f && c != '"' && c != '(' && c != ')' && c != ',' && c != '/' &&
           c != ';' && c != '<' && c != '=' && c != '>' && c != '?' && c != '@' && c != '[' &&
           c != '\\' && c != ']' && c != '{' && c != '}' && c != ':';
}

static int size_byte(struct chunk_decoder *d, unsigned char c)
{
    int value = hex_value(c);
    if (value >= 0 && d->digits < DIGITS_MAX) {
        d->left = d->left << 4 | (uint64_t)value;
        d->digits++;
        return SIZE;
    }
    if (value >= 0 || d->digits == 0)
        return -1;
    if (c == ' ' || c == '\t')
        return BEFORE_EXT;
    return c == ';' ? EXTENSION : c == '\r' ? SIZE_LF : -1;
}

static int extension_byte(struct chunk_decoder *d, unsigned char c)
{
    if (++d->extension > EXTENSION_MAX)
        return -1;
    if (d->state == BEFORE_EXT)
        return c == ';' ? EXTENSION : c == ' ' || c == '\t' ? BEFORE_EXT : -1;
    return c == '\r' ? SIZE_LF : is_text(c) ? EXTENSION : -1;
}

static int trailer_byte(struct chunk_decoder *d, unsigned char c)
{
    if (++d->trailer > TRAILER_MAX)
        return -1;
    switch (d->state) {
    case TRAILER:
        return c == '\r' ? END_LF : is_name_char(c) ? TRAILER_NAME : -1;
    case TRAILER_NAME:
        return c == ':' ? TRAILER_VALUE : is_name_char(c) ? TRAILER_NAME : -1;
    case TRAILER_VALUE:
        return c == '\r' ? TRAILER_LF : is_text(c) ? TRAILER_VALUE : -1;
    default: /* TRAILER_LF */
        return c == '\n' ? TRAILER : -1;
    }
}

/* The state after this byte; -1: it may not stand there. */
static int next_state(struct chunk_decoder *d, unsigned char c)
{
    switch (d->state) {
    case SIZE:
        return size_byte(d, c);
    case BEFORE_EXT:
    case EXTENSION:
        return extension_byte(d, c);
    case SIZE_LF:
        return c != '\n' ? -1 : d->left == 0 ? TRAILER : DATA;
    case DATA_CR:
        return c == '\r' ? DATA_LF : -1;
    case DATA_LF:
        d->digits = d->extension = 0;
        return c == '\n' ? SIZE : -1;
    case END_LF:
        return c == '\n' ? END : -1;
    default:
        return trailer_byte(d, c);
    }
}

enum chunk_step chunk_decode(struct chunk_decoder *d, const char *in, size_t len, size_t *ret_used,
                             struct error *err)
{
    size_t used = 0;
    while (d->state != DATA && d->state != END && used < len) {
        int next = next_state(d, (unsigned char)in[used++]);
        if (next < 0) {
            error_set(err, ERROR_INVALID_HTTP, "malformed chunk");
            return CHUNK_BAD;
        }
        d->state = (unsigned)next;
    }
    *ret_used = used;
    return d->state == DATA ? CHUNK_DATA : d->state == END ? CHUNK_END : CHUNK_MORE;
}

void chunk_took(struct chunk_decoder *d, uint64_t n)
{
    d->left -= n;
    if (d->left == 0)
        d->state = DATA_CR;
}
