/* SPDX-License-Identifier: Apache-2.0 */

/* Reading a kernel's frames. Every length is held against what is there before it is believed. */

#include "code/frames.h"

#include <string.h>

#include "base/limits.h"

static uint32_t get32(const char *at)
{
    const unsigned char *b = (const unsigned char *)at;
    return (uint32_t)b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24;
}

static void put32(char *at, uint32_t value)
{
    for (unsigned i = 0; i < 4; i++)
        at[i] = (char)(value >> (8 * i));
}

static int broken(struct error *err, const char *what)
{
    return error_set(err, ERROR_CODE_KERNEL_FAILED, "the interpreter's channel holds %s", what);
}

int code_frame_next(struct slice bytes, struct code_frame *ret_frame, size_t *ret_size,
                    struct error *err)
{
    if (bytes.len == 0)
        return 0;
    if (memchr("HSOERXGD", bytes.data[0], 8) == NULL)
        return broken(err, "what is no message");
    if (bytes.len < CODE_HEADER_SIZE)
        return 0;
    uint32_t len = get32(bytes.data + 1);
    if (len > CODE_FRAME_MAX)
        return broken(err, "a message that is too long");
    if (bytes.len - CODE_HEADER_SIZE < len)
        return 0;
    ret_frame->type = bytes.data[0];
    ret_frame->payload = (struct slice){bytes.data + CODE_HEADER_SIZE, len};
    *ret_size = CODE_HEADER_SIZE + len;
    return 1;
}

int code_frame_numbers(const struct code_frame *frame, uint32_t ret_numbers[3], struct error *err)
{
    size_t count = frame->type == 'H' || frame->type == 'D' ? 3 : frame->type == 'S' ? 1 : 0;
    if (count == 0 || frame->payload.len != count * 4)
        return broken(err, "a message of the wrong size");
    for (size_t i = 0; i < count; i++)
        ret_numbers[i] = get32(frame->payload.data + 4 * i);
    return 0;
}

/* Takes bytes with their length in front, of `width` bytes. */
static bool take(struct slice *rest, size_t width, struct slice *ret)
{
    if (rest->len < width)
        return false;
    size_t len = width == 1 ? (unsigned char)rest->data[0] : get32(rest->data);
    if (rest->len - width < len)
        return false;
    *ret = (struct slice){rest->data + width, len};
    rest->data += width + len;
    rest->len -= width + len;
    return true;
}

static bool name_is_plain(struct slice name)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "+-./_;=*";
    for (size_t i = 0; i < name.len; i++)
        if (memchr(plain, name.data[i], sizeof(plain) - 1) == NULL)
            return false;
    return name.len > 0;
}

static int take_result(struct slice rest, struct arena *arena, struct code_event *event,
                       struct error *err)
{
    struct code_item *items = arena_alloc(arena, CODE_ITEMS_MAX * sizeof(*items));
    size_t count = 0;
    if (rest.len < 1)
        return broken(err, "an empty result");
    event->kind = CODE_RESULT;
    event->is_main = (rest.data[0] & 1) != 0;
    rest.data++;
    rest.len--;
    while (rest.len > 0) {
        struct slice name, value;
        if (count == CODE_ITEMS_MAX || !take(&rest, 1, &name) || !take(&rest, 4, &value) ||
            !name_is_plain(name))
            return broken(err, "a result that is not whole");
        /* What is JSON has a mark in front of its name. */
        bool is_json = name.data[0] == '*';
        items[count++] =
            (struct code_item){.format = arena_dup(arena, name.data + is_json, name.len - is_json),
                               .value = value,
                               .is_json = is_json};
    }
    event->items = items;
    event->item_count = count;
    return 0;
}

int code_frame_event(const struct code_frame *frame, struct arena *arena,
                     struct code_event *ret_event, struct error *err)
{
    struct slice rest = frame->payload;
    struct code_event event = {0};
    switch (frame->type) {
    case 'O':
    case 'E':
        event.kind = frame->type == 'O' ? CODE_STDOUT : CODE_STDERR;
        event.text = rest;
        break;
    case 'R':
        if (take_result(rest, arena, &event, err) < 0)
            return -1;
        break;
    case 'X':
        event.kind = CODE_ERROR;
        if (!take(&rest, 4, &event.name) || !take(&rest, 4, &event.value) ||
            !take(&rest, 4, &event.traceback) || rest.len > 0)
            return broken(err, "an error that is not whole");
        break;
    case 'G':
        event.kind = CODE_DROPPED;
        if (rest.len != 8)
            return broken(err, "a message of the wrong size");
        event.dropped = get32(rest.data) | (uint64_t)get32(rest.data + 4) << 32;
        break;
    default:
        return broken(err, "a message out of turn");
    }
    *ret_event = event;
    return 0;
}

void code_frame_run(struct buf *out, uint32_t number, struct slice env, struct slice code)
{
    char head[CODE_HEADER_SIZE + 8];
    head[0] = 'R';
    put32(head + 1, (uint32_t)(8 + env.len + code.len));
    put32(head + 5, number);
    put32(head + 9, (uint32_t)env.len);
    buf_add(out, head, sizeof(head));
    if (env.len > 0)
        buf_add(out, env.data, env.len);
    if (code.len > 0)
        buf_add(out, code.data, code.len);
}
