/* SPDX-License-Identifier: Apache-2.0 */

/* Telling marks from output, as bytes come in any pieces: a mark's beginning at the end of what is
 * there is kept back, and nothing else is. */

#include "code/marks.h"

#include <string.h>

enum { RS = 0x1e };

static const char head[] = "\036\036cella ";
enum { HEAD_SIZE = sizeof(head) - 1 };

/* How long the mark at the beginning of the bytes is: 0 when it is none, -1 when more has to come.
 */
static int mark_length(struct slice bytes)
{
    size_t have = bytes.len < HEAD_SIZE ? bytes.len : HEAD_SIZE;
    if (memcmp(bytes.data, head, have) != 0)
        return 0;
    if (bytes.len <= HEAD_SIZE)
        return -1;
    size_t max = bytes.len < MARK_SIZE_MAX ? bytes.len : MARK_SIZE_MAX;
    const char *end = memchr(bytes.data + HEAD_SIZE, RS, max - HEAD_SIZE);
    if (end != NULL)
        return (int)(end - bytes.data) + 1;
    return bytes.len < MARK_SIZE_MAX ? -1 : 0;
}

/* Takes " 123" off the text. */
static bool take_number(struct slice *text, uint32_t *ret_number)
{
    uint64_t number = 0;
    size_t at = 1;
    if (text->len < 2 || text->data[0] != ' ')
        return false;
    for (; at < text->len && text->data[at] >= '0' && text->data[at] <= '9'; at++) {
        number = number * 10 + (uint64_t)(text->data[at] - '0');
        if (number > UINT32_MAX)
            return false;
    }
    if (at == 1)
        return false;
    text->data += at;
    text->len -= at;
    *ret_number = (uint32_t)number;
    return true;
}

/* What stands between the head and the last RS. */
static bool read_mark(struct slice text, struct mark *ret_mark)
{
    static const struct {
        char letter;
        enum mark_kind kind;
        size_t numbers;
    } rows[] = {{'H', MARK_HELLO, 0}, {'S', MARK_BEGIN, 1}, {'D', MARK_END, 3}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct mark mark = {.kind = rows[i].kind};
        struct slice rest = {text.data + 1, text.len - 1};
        if (text.len == 0 || text.data[0] != rows[i].letter)
            continue;
        for (size_t n = 0; n < rows[i].numbers; n++)
            if (!take_number(&rest, &mark.numbers[n]))
                return false;
        *ret_mark = mark;
        return rest.len == 0;
    }
    return false;
}

/* A mark that is whole, and one. */
static bool is_mark(struct slice bytes, int length, struct mark *ret_mark)
{
    return length > 0 &&
           read_mark((struct slice){bytes.data + HEAD_SIZE, (size_t)length - HEAD_SIZE - 1},
                     ret_mark);
}

struct mark mark_next(struct slice bytes, size_t *ret_size)
{
    struct mark mark = {.kind = MARK_NONE};
    *ret_size = 0;
    for (size_t at = 0; at < bytes.len; at++) {
        const char *next = memchr(bytes.data + at, RS, bytes.len - at);
        if (next == NULL)
            break;
        at = (size_t)(next - bytes.data);
        struct slice rest = {next, bytes.len - at};
        int length = mark_length(rest);
        bool whole = is_mark(rest, length, &mark);
        if (length == 0 || (length > 0 && !whole))
            continue; /* output, from here to the next RS at least */
        *ret_size = at > 0 ? at : whole ? (size_t)length : 0;
        if (at > 0)
            mark.kind = MARK_TEXT;
        else if (!whole)
            mark.kind = MARK_NONE;
        return mark;
    }
    *ret_size = bytes.len;
    return (struct mark){.kind = bytes.len > 0 ? MARK_TEXT : MARK_NONE};
}

uint32_t mark_last_begin(struct slice bytes)
{
    uint32_t found = 0;
    for (size_t size; bytes.len > 0; bytes.data += size, bytes.len -= size) {
        struct mark mark = mark_next(bytes, &size);
        if (mark.kind == MARK_NONE)
            break;
        if (mark.kind == MARK_BEGIN)
            found = mark.numbers[0];
    }
    return found;
}
