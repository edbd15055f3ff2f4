/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Terminals: a client's frame, and a program's output as text. The first byte says how the output
 * is cut into pieces; whatever the cuts, the frames put together are the bytes that went in.
 */

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "api/v0/terminal_json.h"
#include "base/cleanup.h"
#include "base/limits.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool truth)
{
    if (!truth)
        abort();
}

static void check_message(struct arena *arena, struct slice text)
{
    struct terminal_message message;
    struct error err = {.code = ERROR_NONE};
    if (terminal_message_from_json(arena, text, &message, &err) < 0) {
        require(err.code != ERROR_NONE && err.code != ERROR_INTERNAL);
        return;
    }
    require(message.cols <= TERMINAL_SIZE_MAX && message.rows <= TERMINAL_SIZE_MAX);
    size_t sum = 0; /* every byte can be read */
    for (size_t i = 0; i < message.data.len; i++)
        sum += (unsigned char)message.data.data[i];
    require(sum <= message.data.len * UINT8_MAX);
}

/* The bytes that a frame stands for. */
static void add_frame(struct arena *arena, struct slice frame, struct buf *all)
{
    yyjson_val *root;
    struct error err;
    if (frame.len == 0)
        return;
    require(json_parse(arena, frame, &root, &err) == 0);
    require(yyjson_get_uint(yyjson_obj_get(root, "offset")) == all->len);
    yyjson_val *exact = yyjson_obj_get(root, "dataBase64"), *plain = yyjson_obj_get(root, "data");
    struct slice bytes = {yyjson_get_str(plain), yyjson_get_len(plain)};
    if (exact != NULL)
        require(json_base64_decode(arena,
                                   (struct slice){yyjson_get_str(exact), yyjson_get_len(exact)},
                                   &bytes, &err) == 0);
    require(bytes.len > 0);
    buf_add(all, bytes.data, bytes.len);
}

static void check_output(struct arena *arena, struct slice bytes, size_t piece)
{
    _cleanup_buf_ struct buf all = BUF_INIT(1 << 20);
    struct terminal_text text = {0};
    for (size_t at = 0; at < bytes.len; at += piece) {
        size_t len = bytes.len - at < piece ? bytes.len - at : piece;
        add_frame(
            arena,
            terminal_output_frame(arena, &text, at, (struct slice){bytes.data + at, len}, false),
            &all);
        require(text.held_len <= 3);
    }
    add_frame(arena, terminal_output_frame(arena, &text, 0, (struct slice){NULL, 0}, true), &all);
    require(all.len == bytes.len && (all.len == 0 || memcmp(all.data, bytes.data, all.len) == 0));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0 || size > 1 << 16)
        return 0;
    struct arena *arena = arena_new();
    struct slice rest = {(const char *)data + 1, size - 1};
    check_message(arena, rest);
    check_output(arena, rest, 1 + data[0] % 32);
    arena_free(arena);
    return 0;
}
