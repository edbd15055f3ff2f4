/* SPDX-License-Identifier: Apache-2.0 */

/* Marks in the output of a kernel: nothing is lost, nothing stands still, and whatever pieces it
 * comes in, the same is found. The first byte says how large the pieces are. */

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "code/marks.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void expect(bool fact)
{
    if (!fact)
        abort();
}

/* Takes what can be taken, and writes it down: text as it is, marks as such. Returns how much was
 * taken. */
static size_t read_on(struct slice bytes, struct buf *out)
{
    size_t at = 0;
    while (at < bytes.len) {
        struct slice rest = {bytes.data + at, bytes.len - at};
        size_t taken;
        struct mark mark = mark_next(rest, &taken);
        expect((mark.kind == MARK_NONE) == (taken == 0) && taken <= rest.len);
        if (mark.kind == MARK_NONE) {
            expect(rest.len < MARK_SIZE_MAX);
            break;
        }
        if (mark.kind == MARK_TEXT)
            buf_add(out, rest.data, taken);
        else
            buf_addf(out, "[%d %u %u %u]", mark.kind, mark.numbers[0], mark.numbers[1],
                     mark.numbers[2]);
        at += taken;
    }
    return at;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    size_t step = (size_t)data[0] % 16 + 1;
    struct slice all = {(const char *)data + 1, size - 1};
    _cleanup_buf_ struct buf whole = BUF_INIT(16 * size + 64), pieces = BUF_INIT(16 * size + 64);
    size_t taken = read_on(all, &whole), from = 0;
    mark_last_begin(all);
    for (size_t to = 0; to < all.len;) {
        to = all.len - to < step ? all.len : to + step;
        from += read_on((struct slice){all.data + from, to - from}, &pieces);
    }
    expect(from == taken && whole.len == pieces.len);
    expect(whole.len == 0 || memcmp(whole.data, pieces.data, whole.len) == 0);
    return 0;
}
