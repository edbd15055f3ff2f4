/* SPDX-License-Identifier: Apache-2.0 */

/*
 * WebSocket frames from a stranger. The first byte says in which steps they arrive (what is
 * understood must not depend on it), the second whose they are. Messages that come out keep the
 * decoder's promises.
 */

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "http/ws_frame.h"
#include "http/ws_key.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition))                                                                          \
            abort();                                                                               \
    } while (0)

enum { MESSAGE_MAX = 4096 };

struct outcome {
    unsigned frames;
    unsigned messages;
    unsigned close_code;
    uint32_t hash; /* of all payloads */
    struct ws_text text;
    uint64_t message_len;
};

static bool take(struct outcome *o, struct ws_decoder *d, const uint8_t *in, size_t n)
{
    uint8_t *copy = malloc(n);
    memcpy(copy, in, n);
    bool fine = ws_took(d, copy, n);
    for (size_t i = 0; fine && i < n; i++)
        o->hash = o->hash * 31 + copy[i];
    if (fine && d->opcode < WS_CLOSE) {
        o->message_len += n;
        if (d->message == WS_TEXT)
            CHECK(ws_text_feed(&o->text, copy, n));
    }
    free(copy);
    return fine;
}

static void frame_ended(struct outcome *o, const struct ws_decoder *d)
{
    o->frames++;
    if (d->opcode >= WS_CLOSE) {
        CHECK(d->fin);
        return;
    }
    CHECK(o->message_len <= MESSAGE_MAX);
    if (!d->fin)
        return;
    CHECK(d->opcode == WS_TEXT || d->opcode == WS_BINARY);
    CHECK(o->text.need == 0);
    o->messages++;
    o->message_len = 0;
}

static struct outcome decode(const uint8_t *in, size_t len, bool from_client, size_t step)
{
    struct ws_decoder d = {.from_client = from_client, .message_max = MESSAGE_MAX};
    struct outcome o = {0};
    size_t at = 0, have = 0;
    for (;;) {
        size_t used = 0;
        enum ws_step next = ws_decode(&d, in + at, have - at, &used);
        CHECK(used <= have - at);
        at += used;
        bool fine = next != WS_BAD;
        if (next == WS_DATA && have > at) {
            size_t n = have - at < d.left ? have - at : (size_t)d.left;
            fine = take(&o, &d, in + at, n);
            at += n;
        } else if (next == WS_FRAME_END)
            frame_ended(&o, &d);
        else if (fine && have == len)
            return o;
        else
            have = have + step < len ? have + step : len;
        if (!fine) {
            CHECK(ws_close_code_valid(d.close_code) && d.problem != NULL);
            o.close_code = d.close_code;
            return o;
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2)
        return 0;
    bool from_client = data[1] & 1;
    struct outcome a = decode(data + 2, size - 2, from_client, (size_t)data[0] + 1);
    struct outcome b = decode(data + 2, size - 2, from_client, size);
    /* A bad text may be noticed some bytes earlier or later; that it is bad may not depend on
     * the steps. */
    CHECK(a.frames == b.frames && a.messages == b.messages && a.close_code == b.close_code);
    CHECK(a.close_code == WS_CLOSE_BAD_TEXT || a.hash == b.hash);
    unsigned code;
    ws_close_parse(data, size < WS_CONTROL_MAX ? size : WS_CONTROL_MAX, &code);
    char *key = calloc(1, size + 1), accept[WS_ACCEPT_SIZE];
    memcpy(key, data, size);
    if (ws_key_valid(key))
        ws_key_accept(key, accept);
    free(key);
    return 0;
}
