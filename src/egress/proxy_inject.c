/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The proxies' side of secrets. Whichever port the sandbox came to, the way on is the host's port
 * 443: that is what the policy is asked about, and what the log says.
 */

#include "egress/proxy_inject.h"

#include "base/cleanup.h"
#include "egress/inject.h"

enum { SECURE_PORT = 443 };

bool proxy_has_secret(const struct proxied *p, const char *name)
{
    const struct guest *guest = p->flow.guest;
    return net_policy_header(&guest->policy, name, NULL) != NULL ||
           inject_next(guest->inject, name, NULL) != NULL;
}

bool proxy_ends_tls(const struct proxied *p, const char *name)
{
    struct net_host host;
    struct error err;
    return net_host_parse(slice_of(name), &host, &err) == 0 && host.kind == NET_HOST_NAME &&
           inject_ends_tls(p->flow.guest->inject, host.name);
}

static int dial(void *ctx, int *ret_fd, struct error *err)
{
    struct proxied *p = ctx;
    enum net_verdict verdict = proxy_connect(p);
    if (verdict != NET_ALLOWED)
        return error_set(err, ERROR_UPSTREAM_FAILED, "%s: %s", p->flow.name,
                         net_verdict_text(verdict));
    *ret_fd = steal_fd(&p->upstream);
    return 0;
}

/* Whom to believe is read when it is first needed: few have secrets, and authorities are many. */
static int load_roots(struct egress *egress, struct error *err)
{
    return egress->roots != NULL ? 0 : tls_roots_new(egress->ca_file, &egress->roots, err);
}

enum net_verdict proxy_inject(struct proxied *p, const char *name, struct slice early, bool tls)
{
    struct egress *egress = p->egress;
    struct guest *guest = p->flow.guest;
    struct error err;
    p->flow.port = SECURE_PORT;
    enum net_verdict verdict = proxy_judge(p, slice_of(name));
    if (verdict != NET_ALLOWED)
        return verdict;
    if (inject_next(guest->inject, p->flow.name, NULL) == NULL) {
        proxy_note(p, NET_FAILED_SECRET, NULL, NULL); /* it has not come yet */
        return NET_FAILED_SECRET;
    }
    if (load_roots(egress, &err) < 0) {
        proxy_note(p, NET_FAILED_TLS, NULL, err.message);
        return NET_FAILED_TLS;
    }
    struct inject *inject = inject_ref(guest->inject);
    struct inject_session session = {
        .loop = egress->loop,
        .inject = inject,
        .host = p->flow.name,
        .fd = p->client,
        .early = early,
        .tls = tls,
        .upgrades = net_policy_upgrades(&guest->policy, p->flow.name),
        .upgraded = &p->flow.upgraded,
        .roots = egress->roots,
        .dial = dial,
        .ctx = p,
        .to_sandbox = &p->flow.live.moved.back,
        .from_sandbox = &p->flow.live.moved.there,
    };
    p->flow.secret = true;
    if (inject_serve(&session, &err) < 0) {
        proxy_note(p, session.verdict, NULL, err.message);
        if (p->flow.closed == NET_ALLOWED)
            p->flow.closed = session.verdict;
    }
    inject_unref(inject);
    return NET_ALLOWED;
}
