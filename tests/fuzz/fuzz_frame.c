/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Frames from a stranger: the input is a stream of them. Whatever decodes must encode to something
 * that decodes to the same again.
 */

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/limits.h"
#include "wire/messages.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

union message {
    uint64_t align;
    unsigned char bytes[512];
};

/* The bytes of each field have to be readable as what they are said to be. */
static void touch(const struct wire_schema *schema, const union message *msg)
{
    volatile size_t sum = 0;
    for (size_t i = 0; i < schema->count; i++) {
        const unsigned char *at = msg->bytes + schema->fields[i].offset;
        const char *text;
        struct slice bytes;
        switch (schema->fields[i].kind) {
        case WIRE_U64:
            break;
        case WIRE_STR:
            memcpy(&text, at, sizeof(text));
            sum += text == NULL ? 0 : strlen(text);
            break;
        case WIRE_BYTES:
            memcpy(&bytes, at, sizeof(bytes));
            for (size_t k = 0; k < bytes.len; k++)
                sum += (unsigned char)bytes.data[k];
            break;
        case WIRE_STRV:
            memcpy(&bytes, at, sizeof(bytes));
            strv_each (item, bytes)
                sum += strlen(item);
            break;
        }
    }
    (void)sum;
}

static void decode(const struct wire_schema *schema, struct slice payload)
{
    union message msg, again;
    struct error err;
    if (schema->size > sizeof(msg))
        abort();
    if (wire_decode(schema, payload, &msg, &err) < 0) {
        if (!error_known((unsigned)err.code))
            abort();
        return;
    }
    touch(schema, &msg);

    _cleanup_buf_ struct buf first = BUF_INIT(2 * WIRE_PAYLOAD_MAX);
    _cleanup_buf_ struct buf second = BUF_INIT(2 * WIRE_PAYLOAD_MAX);
    struct frame_header header;
    struct slice body;
    wire_encode(&first, schema, 1, &msg);
    if (first.failed || wire_next(&first, &header, &body, &err) != 1 ||
        header.type != schema->type || wire_decode(schema, body, &again, &err) < 0)
        abort();
    wire_encode(&second, schema, 1, &again);
    if (first.len != second.len || memcmp(first.data, second.data, first.len) != 0)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    _cleanup_buf_ struct buf in = BUF_INIT(4 << 20);
    buf_add(&in, data, size);
    for (;;) {
        struct frame_header header;
        struct slice payload;
        struct error err;
        if (wire_next(&in, &header, &payload, &err) != 1)
            return 0;
        /* In memory of its own size, so that a step beyond it is seen. */
        _cleanup_free_ char *copy = malloc(payload.len + (payload.len == 0));
        if (copy == NULL)
            return 0;
        memcpy(copy, payload.data, payload.len);
        struct slice body = {copy, payload.len};
        wire_take_error(body, &err);
        for (const struct wire_schema *const *at = wire_schemas; *at != NULL; at++)
            if ((*at)->type == header.type || header.type == 0) /* 0: try them all */
                decode(*at, body);
        buf_consume(&in, FRAME_HEADER_SIZE + header.length);
    }
}
