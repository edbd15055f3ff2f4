/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Port 443. Nothing is decrypted (but for hosts whose requests get a secret, where the sandbox's
 * own authority makes that possible: proxy_inject.h): the server's name in the first message
 * decides where the connection goes, and all bytes, that message included, pass as they are.
 * Without a name, with an encrypted one, or with anything that is not TLS, it goes nowhere. Only
 * where no name is ever refused (it is proxied for the sake of other hosts' headers) may a hello
 * hide its name: it goes on to the address that it was sent to. Browsers send an encrypted part
 * with every hello, most often an empty one.
 */

#include <errno.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "egress/client_hello.h"
#include "egress/proxy.h"
#include "egress/proxy_inject.h"
#include "loop/net.h"

enum { TLS_PORT = 443, PIECE = 4096, SEEN_MAX = 2 * CLIENT_HELLO_MAX };

/* Reads on until the hello is whole; `seen` holds every byte that came. */
static int read_hello(struct proxied *p, struct client_hello *hello, struct buf *seen,
                      struct error *err)
{
    struct loop *loop = p->egress->loop;
    int64_t deadline = loop_now(loop) + PROXY_FIRST_BYTES_MS;
    while (hello->state == CLIENT_HELLO_MORE) {
        int64_t left = deadline - loop_now(loop);
        char *to = buf_reserve(seen, PIECE);
        if (to == NULL)
            return error_set(err, ERROR_PAYLOAD_TOO_LARGE, "its first message is too long");
        ssize_t n = net_read(loop, p->client, to, PIECE, left > 0 ? left : 0, err);
        if (n < 0)
            return -1;
        if (n == 0)
            return error_set(err, ERROR_UNAVAILABLE, "it ended before its first message did");
        client_hello_feed(hello, to, (size_t)n);
        buf_commit(seen, (size_t)n);
    }
    return 0;
}

static void alert(struct proxied *p, unsigned char description)
{
    unsigned char bytes[TLS_ALERT_SIZE];
    tls_alert_write(bytes, description);
    if (send(p->client, bytes, sizeof(bytes), MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
        return; /* who does not listen is not told */
    shutdown(p->client, SHUT_WR);
}

static unsigned char alert_for(enum net_verdict verdict)
{
    return verdict == NET_FAILED_CONNECT || verdict == NET_FAILED_LOOKUP ? TLS_ALERT_INTERNAL
                                                                         : TLS_ALERT_ACCESS_DENIED;
}

/* To the address that the sandbox has chosen, since no name is to be had. */
static enum net_verdict connect_nameless(struct proxied *p, const char *shown,
                                         enum net_verdict otherwise)
{
    enum net_verdict verdict = proxy_connect_target(p, shown);
    if (verdict != NET_ALLOWED)
        proxy_note(p, otherwise, shown, NULL);
    return verdict;
}

/* Where the hello wants to go. NET_ALLOWED: connected. */
static enum net_verdict connect_by_hello(struct proxied *p, const struct client_hello *hello)
{
    if (hello->encrypted && net_policy_names_decide(&p->flow.guest->policy)) {
        proxy_note(p, NET_REFUSED_HIDDEN_NAME, hello->name, NULL);
        return NET_REFUSED_HIDDEN_NAME;
    }
    if (hello->encrypted)
        return connect_nameless(p, hello->name, NET_REFUSED_HIDDEN_NAME);
    if (hello->name[0] == '\0')
        return connect_nameless(p, NULL, NET_REFUSED_NO_NAME);
    enum net_verdict verdict = proxy_judge(p, slice_of(hello->name));
    return verdict == NET_ALLOWED ? proxy_connect(p) : verdict;
}

static void forward(struct proxied *p, struct client_hello *hello, struct buf *seen)
{
    struct error err;
    const bool hidden = hello->encrypted && net_policy_names_decide(&p->flow.guest->policy);
    const bool ends_here = !hidden && proxy_ends_tls(p, hello->name);
    enum net_verdict verdict =
        ends_here ? proxy_inject(p, hello->name, (struct slice){seen->data, seen->len}, true)
                  : connect_by_hello(p, hello);
    if (verdict != NET_ALLOWED) {
        alert(p, alert_for(verdict));
        return;
    }
    if (ends_here)
        return;
    client_hello_release(hello);
    if (net_write(p->egress->loop, p->upstream, seen->data, seen->len, PROXY_FIRST_BYTES_MS,
                  &err) != 0)
        return;
    p->flow.live.moved.there += seen->len;
    buf_release(seen);
    proxy_relay(p);
}

static void handle(struct proxied *p)
{
    struct client_hello hello;
    _cleanup_buf_ struct buf seen = BUF_INIT(SEEN_MAX);
    struct error err = {0};
    client_hello_init(&hello);
    if (read_hello(p, &hello, &seen, &err) != 0)
        proxy_note(p, NET_REFUSED_MALFORMED, NULL, err.message);
    else if (hello.state == CLIENT_HELLO_REFUSED) {
        proxy_note(p, NET_REFUSED_MALFORMED, NULL, hello.why);
        alert(p, TLS_ALERT_DECODE_ERROR);
    } else
        forward(p, &hello, &seen);
    client_hello_release(&hello);
}

void tls_proxy_serve(struct egress *egress, int fd)
{
    proxy_serve(egress, fd, EGRESS_TLS, TLS_PORT, handle);
}
