/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What both proxies share: taking connections, finding out whose they are, judging where they want
 * to go, getting there, and writing it down.
 *
 * A sandbox connects to some address; the kernel brings it here. Where it is connected to is not
 * that address but one that this process resolves itself, for the name that it asks for. Only a
 * rule about addresses lets a connection through to the address it was made to.
 */

#include "egress/egress.h"

enum {
    PROXY_FIRST_BYTES_MS = 15 * 1000, /* for all that has to be seen before it is connected */
    PROXY_IDLE_MS = 15 * 60 * 1000,
    PROXY_CONNECT_MS = 10 * 1000, /* to one address */
};

struct proxied {
    struct egress *egress;
    struct flow flow;
    int client;
    int upstream;              /* -1: not connected */
    struct net_address target; /* where the sandbox connected to; family 0: not known */
    bool noted;                /* it is in the log already */
};

/* Takes connections for ever, each served by `handle` on a coroutine of its own. What handle leaves
 * open is closed. */
void proxy_serve(struct egress *egress, int fd, enum egress_log_kind kind, uint16_t port,
                 void (*handle)(struct proxied *p));

/* Writes down that it was refused, or failed. The first word counts. */
void proxy_note(struct proxied *p, enum net_verdict verdict, const char *name, const char *detail);

/* May it go to this host, whose name was sent by the sandbox? Sets flow.name. What is refused is
 * written down. */
enum net_verdict proxy_judge(struct proxied *p, struct slice name);

/* Resolves flow.name and connects p->upstream. What is refused or fails is written down. */
enum net_verdict proxy_connect(struct proxied *p);
/* Connects it to where the sandbox connected to, if rules about addresses allow that. The name, if
 * any, is for the log alone: nobody has looked whether it is there. */
enum net_verdict proxy_connect_target(struct proxied *p, const char *name);

/* Joins both sides until they have ended. */
void proxy_relay(struct proxied *p);
