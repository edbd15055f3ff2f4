/* SPDX-License-Identifier: Apache-2.0 */

/* Server-sent events, one line of data each. */

#include "cli/follow.h"

#include <string.h>

#include "base/cleanup.h"
#include "cli/client.h"
#include "cli/output.h"
#include "http/client.h"

enum { ENTRY_MAX = 1 << 20, READ_SIZE = 64 * 1024 };

/* One line of the stream of events. Its memory goes with it: this may run for days. */
static int print_line(struct invocation *inv, struct slice line, follow_text *text,
                      struct error *err)
{
    static const char data[] = "data: ";
    _cleanup_buf_ struct buf out = BUF_INIT(8 * ENTRY_MAX);
    if (line.len < strlen(data) || memcmp(line.data, data, strlen(data)) != 0)
        return 0; /* the end of an event, or a sign of life */
    line.data += strlen(data);
    line.len -= strlen(data);
    if (inv->json) {
        buf_add(&out, line.data, line.len);
        buf_addc(&out, '\n');
        return output_buf(&out, err);
    }
    struct arena *arena = arena_new();
    yyjson_val *entry;
    int rc = json_parse(arena, line, &entry, err);
    if (rc == 0)
        rc = text(arena, &out, entry, err);
    arena_free(arena);
    return rc < 0 ? -1 : output_buf(&out, err);
}

static int print_lines(struct invocation *inv, struct buf *in, follow_text *text, struct error *err)
{
    size_t used = 0;
    for (const char *end; (end = memchr(in->data + used, '\n', in->len - used)) != NULL;) {
        struct slice line = {in->data + used, (size_t)(end - in->data) - used};
        if (print_line(inv, line, text, err) < 0)
            return -1;
        used += line.len + 1;
    }
    buf_consume(in, used);
    return 0;
}

int follow_entries(struct invocation *inv, const struct buf *target, follow_text *text,
                   struct error *err)
{
    _cleanup_buf_ struct buf in = BUF_INIT(8 * ENTRY_MAX);
    struct http_answer answer;
    /* Events, because they come with signs of life: a server that is gone is noticed. */
    if (client_stream(inv->client, "GET", target, NULL, "text/event-stream", &answer, err) < 0)
        return -1;
    for (;;) {
        char *to = buf_reserve(&in, READ_SIZE);
        if (to == NULL)
            return buf_check(&in, "an entry of the log", err);
        ssize_t n = client_read(inv->client, to, READ_SIZE, err);
        if (n <= 0)
            return (int)n;
        buf_commit(&in, (size_t)n);
        if (print_lines(inv, &in, text, err) < 0)
            return -1;
    }
}
