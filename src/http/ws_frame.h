/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * WebSocket frames (RFC 6455, 5), as pure functions: no socket, no waiting.
 *
 * Receiving goes as with chunks (http/chunk.h): the decoder eats the framing and says what comes.
 *
 *     ws_decode(&d, in, len, &used)  … skip `used` bytes; then:
 *       WS_MORE       wants more input
 *       WS_DATA       d.left bytes of payload come next, of a frame of d.opcode;
 *                     take some, ws_took(&d, bytes, n)
 *       WS_FRAME_END  that frame is over (d.opcode, d.fin)
 *       WS_BAD        close with d.close_code; nothing after it can be understood
 *
 * Strict: no reserved bits, no unknown opcodes, lengths in their shortest form, clients mask and
 * servers do not, control frames are short and whole, a message's pieces are in order, its text is
 * UTF-8 (over the pieces' borders), and it is no longer than message_max.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum ws_opcode {
    WS_CONTINUATION = 0,
    WS_TEXT = 1,
    WS_BINARY = 2,
    WS_CLOSE = 8,
    WS_PING = 9,
    WS_PONG = 10,
};

enum ws_close_code {
    WS_CLOSE_NORMAL = 1000,
    WS_CLOSE_GOING_AWAY = 1001,
    WS_CLOSE_PROTOCOL = 1002,
    WS_CLOSE_UNSUPPORTED = 1003,
    WS_CLOSE_NO_CODE = 1005,  /* never sent: the peer gave none */
    WS_CLOSE_ABNORMAL = 1006, /* never sent: there was no Close at all */
    WS_CLOSE_BAD_TEXT = 1007,
    WS_CLOSE_POLICY = 1008,
    WS_CLOSE_TOO_BIG = 1009,
    WS_CLOSE_INTERNAL = 1011,
    WS_CLOSE_TRY_AGAIN = 1013,
};

enum {
    WS_HEADER_MAX = 14,
    WS_CONTROL_MAX = 125, /* payload of a control frame */
    WS_REASON_MAX = WS_CONTROL_MAX - 2,
};

/* UTF-8 that comes in pieces. */
struct ws_text {  /* start from a zeroed struct: between two characters */
    uint8_t need; /* bytes that the present character still wants */
    uint8_t low;  /* what the next one of them may be */
    uint8_t high;
};

bool ws_text_feed(struct ws_text *text, const unsigned char *data, size_t len);

enum ws_step { WS_MORE, WS_DATA, WS_FRAME_END, WS_BAD };

struct ws_decoder {       /* set these two, zero the rest */
    bool from_client;     /* whose frames these are: clients' are masked */
    uint64_t message_max; /* bytes */

    /* the present frame */
    enum ws_opcode opcode;
    bool fin;
    uint64_t left;

    /* the present message */
    enum ws_opcode message; /* WS_TEXT, WS_BINARY, or WS_CONTINUATION: there is none */
    uint64_t message_len;
    struct ws_text text;

    enum ws_close_code close_code; /* after WS_BAD */
    const char *problem;           /* … and why */

    unsigned char head[WS_HEADER_MAX];
    unsigned head_len;
    bool in_frame;
    uint8_t mask[4];
    unsigned mask_at;
};

enum ws_step ws_decode(struct ws_decoder *d, const void *in, size_t len, size_t *ret_used);
/* Unmasks n bytes of payload (at most d->left) in place. False: no text; as WS_BAD. */
bool ws_took(struct ws_decoder *d, void *data, size_t n);

/* The head of a frame; mask NULL: none. Returns its length. */
size_t ws_header_encode(unsigned char out[WS_HEADER_MAX], enum ws_opcode opcode, bool fin,
                        uint64_t length, const uint8_t mask[4]);
/* Masks or unmasks; `at` bytes of the payload came before. */
void ws_mask(void *data, size_t len, const uint8_t mask[4], size_t at);

/* A Close frame's payload. False: malformed. Without one the code is WS_CLOSE_NO_CODE. */
bool ws_close_parse(const unsigned char *payload, size_t len, unsigned *ret_code);
/* Whether a code may be sent. */
bool ws_close_code_valid(unsigned code);
