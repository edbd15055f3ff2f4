/* SPDX-License-Identifier: Apache-2.0 */

/* What a kernel sends, read as cellad does: nothing that is told lies outside of what came, however
 * it lies about its lengths. */

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/limits.h"
#include "code/frames.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void expect(bool fact)
{
    if (!fact)
        abort();
}

static void expect_inside(struct slice part, struct slice whole)
{
    expect(part.len == 0 || (part.data >= whole.data && part.len <= whole.len &&
                             (size_t)(part.data - whole.data) <= whole.len - part.len));
}

static void check_event(const struct code_event *event, struct slice whole)
{
    const struct slice parts[] = {event->text, event->name, event->value, event->traceback};
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
        expect_inside(parts[i], whole);
    expect(event->item_count <= CODE_ITEMS_MAX);
    for (size_t i = 0; i < event->item_count; i++) {
        expect_inside(event->items[i].value, whole);
        expect(strlen(event->items[i].format) <= UINT8_MAX);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct slice rest = {(const char *)data, size};
    struct code_frame frame;
    struct error err;
    size_t taken;
    while (code_frame_next(rest, &frame, &taken, &err) > 0) {
        struct arena *arena = arena_new();
        struct code_event event;
        uint32_t numbers[3];
        expect(taken == CODE_HEADER_SIZE + frame.payload.len && taken <= rest.len);
        expect_inside(frame.payload, rest);
        bool has_numbers = code_frame_numbers(&frame, numbers, &err) == 0;
        bool has_event = code_frame_event(&frame, arena, &event, &err) == 0;
        expect(!has_numbers || !has_event); /* it is one or the other, or broken */
        if (has_event)
            check_event(&event, frame.payload);
        arena_free(arena);
        rest.data += taken;
        rest.len -= taken;
    }
    return 0;
}
