/* SPDX-License-Identifier: Apache-2.0 */

/* Envelopes, in and out. */

#include "api/connect/frame.h"

#include <arpa/inet.h>
#include <stdint.h>
#include <string.h>

int connect_frame_take(struct slice body, struct slice *ret_message, struct error *err)
{
    uint32_t len;
    if (body.len < CONNECT_HEADER_SIZE)
        return error_set(err, ERROR_INVALID_ARGUMENT,
                         "the request is cut off: %zu bytes are less than an envelope's %d",
                         body.len, CONNECT_HEADER_SIZE);
    if (body.data[0] != 0)
        return error_set(err, ERROR_INVALID_ARGUMENT,
                         "the request's envelope has the flags 0x%02x: messages are taken "
                         "uncompressed, and one per request",
                         (unsigned char)body.data[0]);
    memcpy(&len, body.data + 1, sizeof(len));
    len = ntohl(len);
    if (len != body.len - CONNECT_HEADER_SIZE)
        return error_set(err, ERROR_INVALID_ARGUMENT,
                         "the request's envelope announces %u bytes, and %zu follow", len,
                         body.len - CONNECT_HEADER_SIZE);
    *ret_message = (struct slice){body.data + CONNECT_HEADER_SIZE, len};
    return 0;
}

int connect_frame_head(const char head[CONNECT_HEADER_SIZE], size_t max, size_t *ret_len,
                       struct error *err)
{
    uint32_t len;
    memcpy(&len, head + 1, sizeof(len));
    len = ntohl(len);
    if (head[0] != 0)
        return error_set(err, ERROR_INVALID_ARGUMENT,
                         "an envelope has the flags 0x%02x: messages are taken uncompressed",
                         (unsigned char)head[0]);
    if (len > max)
        return error_set(err, ERROR_PAYLOAD_TOO_LARGE,
                         "an envelope announces %u bytes: a message has at most %zu", len, max);
    *ret_len = len;
    return 0;
}

void connect_frame_add(struct buf *out, unsigned flags, struct slice message)
{
    char header[CONNECT_HEADER_SIZE] = {(char)flags};
    uint32_t len = htonl((uint32_t)message.len);
    memcpy(header + 1, &len, sizeof(len));
    buf_add(out, header, sizeof(header));
    buf_add(out, message.data, message.len);
}
