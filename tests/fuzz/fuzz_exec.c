/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Commands over a WebSocket: a client's message, a place to go on from, and output as text. The
 * first byte says how the output is cut, between the streams too; whatever the cuts, and wherever a
 * reader comes back, the pieces put together are the bytes that went in.
 */

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "api/v0/exec_message.h"
#include "base/buf.h"
#include "base/cleanup.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool truth)
{
    if (!truth)
        abort();
}

static void check_message(struct arena *arena, struct slice text)
{
    struct exec_ask_message message;
    const char *id;
    struct error err = {.code = ERROR_NONE};
    if (exec_message_read(arena, text, &message, &id, &err) < 0) {
        require(err.code != ERROR_NONE && err.code != ERROR_INTERNAL);
        return;
    }
    require((message.id == NULL) == (message.ask == EXEC_ASK_PING) && id == message.id);
    require(message.ask != EXEC_ASK_RESIZE);
    require(message.data.len <= EXEC_INPUT_MAX);
    require(message.from.held_len[0] <= 3 && message.from.held_len[1] <= 3);
    require((message.exec.flags & EXEC_WAIT) == 0);
    if (message.ask == EXEC_ASK_SIGNAL)
        require(message.signal > 0 && message.signal <= 64);
}

static void check_place(struct arena *arena, struct slice text)
{
    struct exec_place place, again;
    char out[EXEC_PLACE_TEXT];
    const char *copy = arena_dup(arena, text.data, text.len);
    if (exec_place_parse(copy, &place, NULL) < 0)
        return;
    exec_place_text(&place, out);
    require(strlen(out) < EXEC_PLACE_TEXT && exec_place_parse(out, &again, NULL) == 0);
    require(again.offset == place.offset && again.held_len[0] == place.held_len[0] &&
            again.held_len[1] == place.held_len[1]);
    for (unsigned stream = 0; stream < 2; stream++)
        require(memcmp(again.held[stream], place.held[stream], place.held_len[stream]) == 0);
}

static void come_back(struct exec_place *place)
{
    struct exec_place again;
    char text[EXEC_PLACE_TEXT];
    exec_place_text(place, text);
    require(exec_place_parse(text, &again, NULL) == 0);
    *place = again;
}

static void check_output(struct arena *arena, struct slice bytes, size_t piece)
{
    struct buf wanted[2] = {BUF_INIT(1 << 20), BUF_INIT(1 << 20)};
    struct buf told[2] = {BUF_INIT(1 << 20), BUF_INIT(1 << 20)};
    struct exec_place place = {0};
    unsigned stream = 0;
    for (size_t at = 0; at < bytes.len; at += piece, stream = 1 - stream) {
        size_t len = bytes.len - at < piece ? bytes.len - at : piece;
        struct slice part = {bytes.data + at, len};
        buf_add(&wanted[stream], part.data, part.len);
        place.offset += len;
        struct slice text = exec_text_take(arena, &place, stream, part, false);
        buf_add(&told[stream], text.data, text.len);
        come_back(&place);
    }
    for (stream = 0; stream < 2; stream++) {
        struct slice text = exec_text_take(arena, &place, stream, (struct slice){NULL, 0}, true);
        buf_add(&told[stream], text.data, text.len);
        require(told[stream].len == wanted[stream].len &&
                (told[stream].len == 0 ||
                 memcmp(told[stream].data, wanted[stream].data, told[stream].len) == 0));
        buf_release(&told[stream]);
    }
    buf_release(&wanted[0]);
    buf_release(&wanted[1]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0 || size > 1 << 16)
        return 0;
    struct arena *arena = arena_new();
    struct slice rest = {(const char *)data + 1, size - 1};
    check_message(arena, rest);
    check_place(arena, rest);
    check_output(arena, rest, 1 + data[0] % 32);
    arena_free(arena);
    return 0;
}
