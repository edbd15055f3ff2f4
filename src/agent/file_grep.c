/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Searching a file's content, literally, through a buffer of fixed size: a line that is longer than
 * the buffer is searched in pieces that overlap by the length of the query. Files with a NUL among
 * their first bytes are binary and left out, as are large ones. Each line is told once.
 */

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/file_find.h"
#include "base/cleanup.h"

enum { BINARY_LOOK = 8192, TEXT_BEFORE = 128 };

struct reading {
    int fd;
    const struct walk_item *item;
    uint64_t line;   /* that text[0] is in */
    uint64_t column; /* of text[0], from 0 */
    size_t len;      /* bytes in text */
    bool end;        /* nothing more to read */
    bool told;       /* the line that text[0] is in was told already */
};

static const char *search(const struct finder *finder, const char *text, size_t len)
{
    const char *query = finder->request->query;
    size_t query_len = strlen(query);
    if (!(finder->request->flags & FIND_ANY_CASE))
        return memmem(text, len, query, query_len);
    int first = tolower((unsigned char)query[0]);
    for (size_t i = 0; i + query_len <= len; i++)
        if (tolower((unsigned char)text[i]) == first &&
            strncasecmp(text + i, query, query_len) == 0)
            return text + i;
    return NULL;
}

static enum walk_next tell_line(struct finder *finder, const struct reading *r, const char *line,
                                size_t len, size_t at, uint64_t column, struct error *err)
{
    size_t start = 0;
    if (len > FIND_TEXT_MAX) {
        start = at > TEXT_BEFORE ? at - TEXT_BEFORE : 0;
        if (start + FIND_TEXT_MAX > len)
            start = len - FIND_TEXT_MAX;
        len = FIND_TEXT_MAX;
    }
    struct file_match match = {
        .path = r->item->path,
        .type = FILE_REGULAR,
        .line = r->line,
        .column = column + at + 1,
        .text = {line + start, len},
    };
    return find_send(finder, &match, err);
}

/* Goes through what is in the buffer line by line; *ret_used: what is done with. */
static enum walk_next search_lines(struct finder *finder, struct reading *r, size_t *ret_used,
                                   struct error *err)
{
    const char *at = finder->text, *end = finder->text + r->len;
    enum walk_next next = WALK_ON;
    while (next == WALK_ON && at < end) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        bool piece = newline == NULL && !r->end;
        if (piece && (at > finder->text || r->len < FIND_BUFFER_SIZE))
            break; /* its end may still come */
        size_t len = (size_t)((newline == NULL ? end : newline) - at);
        const char *match = r->told ? NULL : search(finder, at, len);
        if (match != NULL) {
            size_t shown = len > 0 && at[len - 1] == '\r' ? len - 1 : len;
            next = tell_line(finder, r, at, shown, (size_t)(match - at), r->column, err);
            r->told = true;
        }
        if (piece) {
            size_t keep = strlen(finder->request->query) - 1;
            r->column += len - keep;
            at += len - keep;
            break;
        }
        at = newline == NULL ? end : newline + 1;
        r->line++;
        r->column = 0;
        r->told = false;
    }
    *ret_used = (size_t)(at - finder->text);
    return next;
}

static enum walk_next search_file(struct finder *finder, struct reading *r, struct error *err)
{
    bool first = true;
    while (!r->end || r->len > 0) {
        ssize_t n = read(r->fd, finder->text + r->len, FIND_BUFFER_SIZE - r->len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return WALK_ON; /* as if it were not there */
        r->end = n == 0;
        r->len += (size_t)n;
        size_t look = r->len < BINARY_LOOK ? r->len : BINARY_LOOK;
        if (first && memchr(finder->text, '\0', look) != NULL)
            return WALK_ON;
        first = false;
        size_t used;
        enum walk_next next = search_lines(finder, r, &used, err);
        if (next != WALK_ON)
            return next;
        memmove(finder->text, finder->text + used, r->len - used);
        r->len -= used;
        if (find_out_of_time(finder))
            return WALK_STOP;
    }
    return WALK_ON;
}

enum walk_next find_in_file(struct finder *finder, const struct walk_item *item, struct error *err)
{
    struct stat st;
    if (item->st.st_size > FIND_FILE_MAX)
        return WALK_ON;
    _cleanup_fd_ int fd =
        openat(item->dir_fd, item->name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
        return WALK_ON;
    struct reading reading = {.fd = fd, .item = item, .line = 1};
    return search_file(finder, &reading, err);
}
