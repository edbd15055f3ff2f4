/* SPDX-License-Identifier: Apache-2.0 */

/* zlib over a body. A gzip file may be several, one behind the other (RFC 1952, 2.2). */

#include "http/gunzip.h"

#include <stdbool.h>
#include <stdlib.h>

#include <zlib.h>

enum { INPUT_SIZE = 32 * 1024, GZIP_ONLY = 16 + MAX_WBITS };

struct gunzip {
    struct http_exchange *x;
    z_stream stream;
    bool between; /* a member is over: the end, or another one */
    bool over;
    unsigned char input[INPUT_SIZE];
};

int gunzip_open(struct http_exchange *x, struct gunzip **ret_gunzip, struct error *err)
{
    struct gunzip *g = calloc(1, sizeof(*g));
    if (g == NULL || inflateInit2(&g->stream, GZIP_ONLY) != Z_OK) {
        free(g);
        return error_sys_as(err, ERROR_INTERNAL, "unpacking a body");
    }
    g->x = x;
    *ret_gunzip = g;
    return 0;
}

void gunzip_close(struct gunzip *g)
{
    if (g == NULL)
        return;
    inflateEnd(&g->stream);
    free(g);
}

/* 1: there is input; 0: the body is over. */
static int fill(struct gunzip *g, struct error *err)
{
    if (g->stream.avail_in > 0)
        return 1;
    ssize_t n = http_body_read(g->x, g->input, sizeof(g->input), err);
    if (n <= 0)
        return (int)n;
    g->stream.next_in = g->input;
    g->stream.avail_in = (unsigned)n;
    return 1;
}

ssize_t gunzip_read(struct gunzip *g, void *to, size_t len, struct error *err)
{
    g->stream.next_out = to;
    g->stream.avail_out = (unsigned)len;
    while (!g->over && g->stream.avail_out == len) {
        int filled = fill(g, err);
        if (filled < 0)
            return -1;
        if (filled == 0) {
            if (!g->between)
                return error_set(err, ERROR_INVALID_ARGUMENT, "the body's gzip is cut off");
            g->over = true;
            break;
        }
        if (g->between)
            inflateReset(&g->stream);
        int rc = inflate(&g->stream, Z_NO_FLUSH);
        g->between = rc == Z_STREAM_END;
        if (rc != Z_OK && rc != Z_STREAM_END && rc != Z_BUF_ERROR)
            return error_set(err, ERROR_INVALID_ARGUMENT, "the body is not gzip: %s",
                             g->stream.msg != NULL ? g->stream.msg : "bad data");
    }
    return (ssize_t)(len - g->stream.avail_out);
}
