/* SPDX-License-Identifier: Apache-2.0 */

/* What a kernel sends, read as cellad does. */

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/arena.h"
#include "code/frames.h"
#include "code/marks.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct slice rest = {(const char *)data, size};
    struct arena *arena = arena_new();
    struct code_frame frame;
    struct error err;
    size_t taken;
    while (code_frame_next(rest, &frame, &taken, &err) > 0) {
        struct code_event event;
        uint32_t numbers[3];
        code_frame_numbers(&frame, numbers, &err);
        code_frame_event(&frame, arena, &event, &err);
        rest.data += taken;
        rest.len -= taken;
    }
    arena_free(arena);
    rest = (struct slice){(const char *)data, size};
    mark_last_begin(rest);
    /* Whatever pieces it comes in, nothing is lost and nothing stands still. */
    while (rest.len > 0) {
        struct mark mark = mark_next(rest, &taken);
        if ((mark.kind == MARK_NONE) != (taken == 0) || taken > rest.len ||
            (mark.kind == MARK_NONE && rest.len >= MARK_SIZE_MAX))
            abort();
        if (mark.kind == MARK_NONE)
            break;
        rest.data += taken;
        rest.len -= taken;
    }
    return 0;
}
