/* SPDX-License-Identifier: Apache-2.0 */

/* Byte by byte, with the few bytes that are held back compared anew: secrets are short, and hardly
 * anything looks like their beginning. */

#include "egress/redact.h"

#include <string.h>

/* With `c` behind the bytes that are held: how many of them all are a beginning of the secret. What
 * is in front of those is passed on. */
static void step(struct redact *r, char c, struct buf *out)
{
    const char *secret = r->secret.data;
    size_t held = r->held;
    for (;;) {
        if (secret[held] == c) {
            held++;
            break;
        }
        if (held == 0) {
            buf_add(out, secret, r->held);
            buf_addc(out, c);
            r->held = 0;
            return;
        }
        /* The longest end of what is held that is also a beginning. */
        size_t shorter = held - 1;
        while (shorter > 0 && memcmp(secret, secret + held - shorter, shorter) != 0)
            shorter--;
        held = shorter;
    }
    buf_add(out, secret, r->held + 1 - held);
    r->held = held;
    if (held < r->secret.len)
        return;
    for (size_t i = 0; i < held; i++)
        buf_addc(out, '*');
    r->held = 0;
}

void redact_feed(struct redact *redact, const char *data, size_t len, struct buf *out)
{
    if (redact->secret.len < REDACT_MIN) {
        buf_add(out, data, len);
        return;
    }
    for (size_t i = 0; i < len;) {
        if (redact->held == 0) { /* what cannot be its beginning goes as it is */
            const char *next = memchr(data + i, redact->secret.data[0], len - i);
            size_t plain = next == NULL ? len - i : (size_t)(next - data) - i;
            buf_add(out, data + i, plain);
            i += plain;
            if (i == len)
                return;
        }
        step(redact, data[i++], out);
    }
}

void redact_end(struct redact *redact, struct buf *out)
{
    buf_add(out, redact->secret.data, redact->held);
    redact->held = 0;
}
