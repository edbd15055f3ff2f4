/* SPDX-License-Identifier: Apache-2.0 */

/* First messages of TLS: however the bytes come, they mean the same, and a name is a C string. */

#include "egress/client_hello.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_in_pieces(const uint8_t *data, size_t size, size_t piece,
                           struct client_hello *hello)
{
    client_hello_init(hello);
    for (size_t at = 0; at < size && hello->state == CLIENT_HELLO_MORE; at += piece)
        client_hello_feed(hello, data + at, size - at < piece ? size - at : piece);
    client_hello_release(hello);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct client_hello whole, pieces;
    read_in_pieces(data, size, size == 0 ? 1 : size, &whole);
    read_in_pieces(data, size, 1, &pieces);
    if (whole.state != pieces.state || strcmp(whole.name, pieces.name) != 0 ||
        whole.encrypted != pieces.encrypted)
        abort();
    if (whole.state == CLIENT_HELLO_REFUSED && whole.why == NULL)
        abort();
    return 0;
}
