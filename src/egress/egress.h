/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The egress process: resolver and transparent proxy of sandboxes that have a network. It has no
 * privileges and lives in the machine's own network namespace; the sockets that sandboxes reach
 * are in their router's, made by the warden (WARDEN_NET_LISTEN).
 *
 * One loop, one thread. All that is asked of it comes over the control socket (control.h).
 */

#include <stdint.h>

#include "base/error.h"
#include "egress/direct.h"
#include "egress/guests.h"
#include "egress/reach.h"
#include "egress/resolver.h"
#include "egress/tls.h"
#include "egress/warden_link.h"
#include "loop/loop.h"

struct egress {
    struct loop *loop;
    struct guests guests;
    struct reach reach;
    struct resolver resolver;
    struct warden_link warden;
    uint64_t started_ms;      /* Unix time */
    unsigned flows_max;       /* of all guests together: what the limit on open files allows */
    unsigned questions;       /* of all guests, under way */
    struct bucket complaints; /* about the warden, in the server's log */
    struct direct_queue closed;
    const char *ca_file;     /* whom servers are believed for; NULL: this machine's authorities */
    struct tls_roots *roots; /* the same, once they were needed */
};

/* Each serves one of the warden's sockets (owned from now on) until the process ends. On a
 * coroutine of their own. */
void dns_serve_udp(struct egress *egress, int fd);
void dns_serve_tcp(struct egress *egress, int fd);
void http_proxy_serve(struct egress *egress, int fd);
void tls_proxy_serve(struct egress *egress, int fd);
