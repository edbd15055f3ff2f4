/* SPDX-License-Identifier: Apache-2.0 */

/* Slides a window over the body and lets form.c say what is in it. */

#include "http/multipart.h"

#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"

enum { WINDOW = 64 * 1024 };

struct multipart {
    struct http_exchange *x;
    struct form_decoder decoder;
    char *window; /* window[start … end) is not used yet */
    size_t start;
    size_t end;
    size_t ready; /* of it: content of the present part, found and not taken */
    bool in_part;
    bool at_end; /* the body holds no more */
};

int multipart_open(struct http_exchange *x, struct multipart **ret_form, struct error *err)
{
    struct form_decoder decoder;
    if (form_decoder_init(&decoder, http_header(x, "Content-Type"), err) != 0)
        return -1;
    struct multipart *form = arena_alloc(http_arena(x), sizeof(*form));
    *form = (struct multipart){
        .x = x, .decoder = decoder, .window = arena_alloc(http_arena(x), WINDOW)};
    *ret_form = form;
    return 0;
}

static int fill(struct multipart *form, struct error *err)
{
    memmove(form->window, form->window + form->start, form->end - form->start);
    form->end -= form->start;
    form->start = 0;
    ssize_t n = http_body_read(form->x, form->window + form->end, WINDOW - form->end, err);
    if (n < 0)
        return -1;
    form->end += (size_t)n;
    form->at_end = n == 0;
    return 0;
}

/* The next thing in the form that is not FORM_MORE. FORM_BAD also when the body cannot be read. */
static enum form_step step(struct multipart *form, size_t *ret_used, struct error *err)
{
    for (;;) {
        enum form_step what = form_decode(&form->decoder, form->window + form->start,
                                          form->end - form->start, form->at_end, ret_used, err);
        if (what != FORM_MORE)
            return what;
        form->start += *ret_used;
        if (*ret_used == 0 && fill(form, err) != 0)
            return FORM_BAD;
    }
}

/* Makes content ready, or ends the part. */
static int find_content(struct multipart *form, struct error *err)
{
    size_t used = 0;
    if (form->ready > 0 || !form->in_part)
        return 0;
    switch (step(form, &used, err)) {
    case FORM_DATA:
        form->ready = used;
        return 0;
    case FORM_PART_END:
        form->start += used;
        form->in_part = false;
        return 0;
    default:
        return -1;
    }
}

int multipart_next(struct multipart *form, struct form_part *ret_part, struct error *err)
{
    while (form->in_part) {
        form->start += form->ready;
        form->ready = 0;
        if (find_content(form, err) != 0)
            return -1;
    }
    size_t used = 0;
    switch (step(form, &used, err)) {
    case FORM_PART:
        if (form_part_parse(http_arena(form->x), form->window + form->start, used, ret_part, err) !=
            0)
            return -1;
        form->start += used;
        form->in_part = true;
        return 1;
    case FORM_END:
        form->start += used;
        return 0;
    default:
        return -1;
    }
}

ssize_t multipart_read(struct multipart *form, void *to, size_t len, struct error *err)
{
    if (find_content(form, err) != 0)
        return -1;
    size_t n = form->ready < len ? form->ready : len;
    memcpy(to, form->window + form->start, n);
    form->start += n;
    form->ready -= n;
    return (ssize_t)n;
}

int multipart_read_all(struct multipart *form, size_t max, struct slice *ret_content,
                       struct error *err)
{
    _cleanup_buf_ struct buf b = BUF_INIT(max);
    char piece[8192];
    ssize_t n;
    while ((n = multipart_read(form, piece, sizeof(piece), err)) > 0) {
        buf_add(&b, piece, (size_t)n);
        if (buf_check(&b, "a part of the form", err) != 0)
            return -1;
    }
    if (n < 0)
        return -1;
    *ret_content = (struct slice){arena_dup(http_arena(form->x), b.data, b.len), b.len};
    return 0;
}
