/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Secrets that never enter a sandbox. Requests of a sandbox to some hosts get a header added whose
 * value only cellad and this process know. The sandbox speaks plain HTTP to port 80 of the host,
 * or, where it has an authority of its own (egress/ca.h), TLS to port 443, which ends here; from
 * here to the host it is always TLS, with the host's certificate checked.
 *
 * What comes back is passed on without the secret where it stands in it literally
 * (egress/redact.h). Requests that would have it echoed (TRACE), and those on the same connection
 * to other hosts, are refused.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/slice.h"
#include "egress/ca.h"
#include "egress/tls.h"
#include "loop/loop.h"
#include "network/policy.h"
#include "wire/messages.h"

struct inject_header {
    struct net_rule host;
    char *name;   /* of the field */
    char *value;  /* all of it; "": there is none, and requests fail */
    char *secret; /* the part of it that is one */
};

/* The headers of one sandbox. Held by who uses it, because it is replaced as a whole when any of it
 * changes. */
struct inject {
    unsigned refs;
    struct inject_header *headers;
    size_t count;
    struct ca *ca;            /* NULL: TLS is not ended here */
    unsigned char digest[32]; /* of the message that it was made of */
};

/* What cellad says: foreign bytes, checked. INVALID_ARGUMENT. */
int inject_new(const struct egress_secrets *message, struct inject **ret_inject, struct error *err);
struct inject *inject_ref(struct inject *inject);
void inject_unref(struct inject *inject); /* NULL is fine. Values are wiped */

/* Whether two say the same; either may be NULL. */
bool inject_same(const struct inject *a, const struct inject *b);

/* The next header for requests to this host (canonical), after `after` (NULL: the first); NULL: no
 * more. inject may be NULL. */
const struct inject_header *inject_next(const struct inject *inject, const char *host,
                                        const struct inject_header *after);
/* Whether TLS to this host ends here. */
bool inject_ends_tls(const struct inject *inject, const char *host);

/* A connection from a sandbox for such a host, and how to get to it. */
struct inject_session {
    struct loop *loop;
    struct inject *inject; /* borrowed: held by the caller */
    const char *host;      /* canonical */
    int fd;                /* from the sandbox; stays the caller's */
    struct slice early;    /* what was read from it already */
    bool tls;              /* it begins TLS (the client's hello may be in early); else HTTP */
    bool upgrades;         /* requests may become WebSockets */
    bool *upgraded;        /* set when one has; may be NULL */
    struct tls_roots *roots;
    /* A connection to port 443 of the host, which may be asked for several times. Whether the host
     * and its address may be reached is the caller's matter. The descriptor is the session's. */
    int (*dial)(void *ctx, int *ret_fd, struct error *err);
    void *ctx;
    /* Bytes that were moved, counted while it goes on; may be NULL. */
    uint64_t *to_sandbox, *from_sandbox;
    /* Why it failed, as the log has it; set with every -1. */
    enum net_verdict verdict;
};

/* On a coroutine: serves requests until either side has enough. Failures were told to the sandbox
 * already, where that was possible; no message holds anything of a secret. */
int inject_serve(struct inject_session *session, struct error *err);
