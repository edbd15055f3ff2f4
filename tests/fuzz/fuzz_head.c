/* SPDX-License-Identifier: Apache-2.0 */

/* Heads of requests: what is sent on is read the same way again, and ends where it says. */

#include "egress/http_head.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_written(const struct http_head *head)
{
    struct http_head again;
    struct error err;
    _cleanup_buf_ struct buf out = BUF_INIT(4 * HTTP_HEAD_MAX);
    const struct http_head_changes changes = {.host = "good.example", .upgrade = true};
    http_head_write(&out, head, &changes);
    if (out.failed || out.len > HTTP_HEAD_MAX || head->count >= HTTP_HEAD_FIELDS_MAX - 2)
        return; /* a Host that is longer than the client's */
    if (http_head_read((struct slice){out.data, out.len}, 0, &again, &err) != HTTP_HEAD_DONE ||
        again.size != out.len || again.body != head->body || again.length != head->length ||
        again.close != head->close || again.websocket != head->websocket ||
        !slice_eq(again.target, head->target) || !slice_eq(again.host, slice_of("good.example")))
        abort();
}

static void check_body(const struct http_head *head, const char *data, size_t size)
{
    struct http_body whole, pieces;
    struct error err;
    http_body_init(&whole, head);
    http_body_init(&pieces, head);
    ptrdiff_t n = http_body_feed(&whole, data, size, &err), total = 0;
    for (size_t at = 0; at < size && !pieces.done && total >= 0; at++) {
        ptrdiff_t one = http_body_feed(&pieces, data + at, 1, &err);
        total = one < 0 ? -1 : total + one;
    }
    if (n != total || (n >= 0 && whole.done != pieces.done) || n > (ptrdiff_t)size)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct http_head head;
    struct error err = {0};
    enum http_head_state state =
        http_head_read((struct slice){(const char *)data, size}, 0, &head, &err);
    if (state == HTTP_HEAD_REFUSED && err.code == ERROR_NONE)
        abort();
    if (state != HTTP_HEAD_DONE)
        return 0;
    if (head.size > size)
        abort();
    check_written(&head);
    check_body(&head, (const char *)data + head.size, size - head.size);
    return 0;
}
