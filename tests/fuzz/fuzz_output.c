/* SPDX-License-Identifier: Apache-2.0 */

/* Output on its way into JSON strings: in whatever pieces it comes, every byte is told once, and a
 * character that was cut is told in one. The first byte says how large the pieces are. */

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "api/code_json.h"
#include "base/buf.h"
#include "base/cleanup.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    size_t step = (size_t)data[0] % 8 + 1;
    struct code_text text = {0};
    struct arena *arena = arena_new();
    _cleanup_buf_ struct buf told = BUF_INIT(size + 1);
    for (size_t at = 1; at < size; at += step) {
        size_t len = size - at < step ? size - at : step;
        struct slice now =
            code_text_add(&text, arena, (struct slice){(const char *)data + at, len});
        if (now.len > 0)
            buf_add(&told, now.data, now.len);
    }
    struct slice rest = code_text_end(&text);
    if (rest.len >= sizeof(text.cut))
        abort();
    if (rest.len > 0)
        buf_add(&told, rest.data, rest.len);
    if (told.len != size - 1 || (told.len > 0 && memcmp(told.data, data + 1, told.len) != 0))
        abort();
    arena_free(arena);
    return 0;
}
