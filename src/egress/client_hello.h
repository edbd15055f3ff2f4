/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The first message of a TLS connection (RFC 8446, 6066), read only to learn which host it is for.
 * It may come in any number of TCP segments and TLS records. Whatever could mean one thing here and
 * another to the server is refused: other record types in between, bytes behind the message in its
 * record, an extension twice, more names than one, a name that is no plain host name's bytes.
 *
 *     struct client_hello hello;   client_hello_init(&hello);
 *     while (client_hello_feed(&hello, data, len) == CLIENT_HELLO_MORE) …read on…
 *     client_hello_release(&hello);
 *
 * Pure, but for its buffer.
 */

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

enum {
    CLIENT_HELLO_MAX = 32 * 1024, /* bytes of the message: post-quantum keys and tickets fit */
    CLIENT_HELLO_NAME_SIZE = 256,
};

enum client_hello_state {
    CLIENT_HELLO_MORE,
    CLIENT_HELLO_DONE,    /* the fields below are set */
    CLIENT_HELLO_REFUSED, /* `why` says what is wrong with it */
};

struct client_hello {
    enum client_hello_state state;
    const char *why;                   /* a literal */
    bool encrypted;                    /* it may ask for another host, in an encrypted part */
    char name[CLIENT_HELLO_NAME_SIZE]; /* as it was sent; "" when it names none */

    struct buf message; /* the handshake message so far */
    unsigned char record[5];
    size_t record_have; /* of the five */
    size_t record_left; /* bytes of its body still to come */
};

void client_hello_init(struct client_hello *hello);
void client_hello_release(struct client_hello *hello);

/* Takes the next bytes of the stream. Those behind a hello that is done are not looked at. */
enum client_hello_state client_hello_feed(struct client_hello *hello, const void *data, size_t len);

/* A fatal alert for the client, in the clear as all are before keys: what it says is shown. */
enum { TLS_ALERT_ACCESS_DENIED = 49, TLS_ALERT_DECODE_ERROR = 50, TLS_ALERT_INTERNAL = 80 };
enum { TLS_ALERT_SIZE = 7 };
void tls_alert_write(unsigned char out[TLS_ALERT_SIZE], unsigned char description);
