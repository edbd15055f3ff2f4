/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Fills headers in. A secret that is gone, or that may not be sent to the host, leaves an empty
 * value: the egress process refuses such requests, and everything else of the sandbox goes on.
 */

#include "api/secret_source.h"

#include <string.h>

#include "auth/sandbox_ca.h"
#include "auth/seal.h"
#include "auth/secrets.h"
#include "base/cleanup.h"
#include "base/limits.h"

/* "Bearer {}" with the secret in it. */
static void add_value(struct buf *out, const char *format, const struct buf *secret)
{
    const char *mark = strstr(format, "{}");
    size_t before = mark == NULL ? 0 : (size_t)(mark - format);
    buf_add(out, format, before);
    buf_add(out, secret->data, secret->len);
    if (mark != NULL)
        buf_adds(out, mark + 2);
    buf_addc(out, '\0');
}

static void add_header(const struct auth *auth, const char *workspace,
                       const struct net_header *header, struct buf *out)
{
    _cleanup_wipe_ struct buf secret = BUF_INIT(SECRET_VALUE_MAX + 1);
    char host[NET_RULE_TEXT];
    struct error err;
    net_rule_text(&header->host, host);
    buf_add(out, host, strlen(host) + 1);
    buf_add(out, header->header, strlen(header->header) + 1);
    if (strcmp(header->secret, NET_NO_SECRET) == 0) {
        buf_add(out, header->format, strlen(header->format) + 1);
        buf_addc(out, '\0'); /* nothing to be kept from anybody */
        return;
    }
    if (auth_secret_value(auth, workspace, header->secret, host, &secret, &err) < 0) {
        buf_add(out, "\0", 2); /* two empty strings */
        return;
    }
    add_value(out, header->format, &secret);
    buf_add(out, secret.data, secret.len + 1);
}

int secret_source_fill(void *ctx, const char *id, const char *workspace,
                       const struct net_policy *policy, struct arena *arena,
                       struct egress_secrets *ret_secrets, struct error *err)
{
    const struct auth *auth = ctx;
    _cleanup_wipe_ struct buf headers = BUF_INIT(EGRESS_SECRETS_MAX);
    _cleanup_wipe_ struct buf key = BUF_INIT(EGRESS_CA_MAX);
    const char *certificate = auth_ca_certificate(auth, id, arena);
    for (size_t i = 0; i < policy->header_count; i++)
        add_header(auth, workspace, &policy->headers[i], &headers);
    if (buf_check(&headers, "what is sent for the sandbox", err) < 0 ||
        (certificate != NULL && auth_ca_key(auth, id, &key, err) < 0))
        return -1;
    *ret_secrets = (struct egress_secrets){
        .id = id,
        .headers = {arena_dup(arena, headers.data, headers.len), headers.len},
        .ca_certificate = certificate,
        .ca_key = {arena_dup(arena, key.data, key.len), key.len},
    };
    return 0;
}

int secret_source_check(void *ctx, const char *workspace, const struct net_header *header,
                        struct error *err)
{
    char host[NET_RULE_TEXT];
    if (strcmp(header->secret, NET_NO_SECRET) == 0)
        return 0;
    net_rule_text(&header->host, host);
    return auth_secret_may_go(ctx, workspace, header->secret, host, err);
}
