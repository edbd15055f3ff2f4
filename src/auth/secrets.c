/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The secrets in memory, sealed as they are in the database. A value is opened for as long as it
 * takes to hand it to the egress process. What it is sealed with includes its workspace, its name
 * and its hosts: a database that was tampered with cannot send it elsewhere.
 */

#include "auth/secrets.h"

#include <openssl/crypto.h>
#include <stdio.h>
#include <stdlib.h>

#include "auth/seal.h"
#include "auth/state.h"
#include "base/cleanup.h"
#include "base/limits.h"
#include "base/names.h"
#include "base/timetext.h"
#include "network/host.h"

#define EVERY_HOST "*"

enum { SECRET_KEY_MAX = 2 * 64, HOSTS_BYTES_MAX = SECRET_HOSTS_MAX * (NET_NAME_MAX + 3) };

struct secret {
    char key[SECRET_KEY_MAX]; /* "workspace/name" */
    char workspace[64];
    char name[64];
    struct buf sealed;
    struct buf hosts; /* a list of strings */
    uint64_t version;
    struct buf metadata; /* JSON text; empty: none */
    int64_t created_ms, updated_ms;
    char created_by[64], updated_by[64];
    UT_hash_handle hh;
};

static struct slice bytes_of(const struct buf *b)
{
    return (struct slice){b->data, b->len};
}

/* --- the map --- */

static struct secret *find(const struct auth *auth, const char *workspace, const char *name)
{
    char key[SECRET_KEY_MAX];
    struct secret *secret;
    snprintf(key, sizeof(key), "%.63s/%.63s", workspace, name);
    HASH_FIND_STR(auth->secrets, key, secret);
    return secret;
}

static struct secret *find_or_fail(const struct auth *auth, const char *workspace, const char *name,
                                   struct error *err)
{
    struct secret *secret = strlen(name) > NAME_MAX_LEN ? NULL : find(auth, workspace, name);
    if (secret == NULL)
        error_set(err, ERROR_SECRET_NOT_FOUND, "there is no secret \"%.63s\"", name);
    return secret;
}

static void secret_remove(struct auth *auth, struct secret *secret)
{
    HASH_DEL(auth->secrets, secret);
    buf_release(&secret->sealed);
    buf_release(&secret->hosts);
    buf_release(&secret->metadata);
    free(secret);
}

/* Takes a row over as it is in the store; one of that name is replaced. */
static int secret_set(struct auth *auth, const struct store_workspace_secret *row,
                      struct error *err)
{
    struct secret *secret = find(auth, row->workspace, row->name);
    if (secret == NULL) {
        secret = calloc(1, sizeof(*secret));
        if (secret == NULL)
            return error_sys(err, "keeping a secret");
        buf_init(&secret->sealed, SECRET_VALUE_MAX + SEAL_OVERHEAD);
        buf_init(&secret->hosts, HOSTS_BYTES_MAX);
        buf_init(&secret->metadata, SECRET_METADATA_MAX);
        snprintf(secret->workspace, sizeof(secret->workspace), "%s", row->workspace);
        snprintf(secret->name, sizeof(secret->name), "%s", row->name);
        snprintf(secret->key, sizeof(secret->key), "%s/%s", row->workspace, row->name);
        snprintf(secret->created_by, sizeof(secret->created_by), "%s", row->created_by);
        secret->created_ms = row->created_ms;
        HASH_ADD_STR(auth->secrets, key, secret);
    }
    buf_clear(&secret->sealed);
    buf_clear(&secret->hosts);
    buf_clear(&secret->metadata);
    buf_adds(&secret->metadata, row->metadata == NULL ? "" : row->metadata);
    secret->version = row->version;
    buf_add(&secret->sealed, row->sealed.data, row->sealed.len);
    buf_add(&secret->hosts, row->hosts.data, row->hosts.len);
    secret->updated_ms = row->updated_ms;
    snprintf(secret->updated_by, sizeof(secret->updated_by), "%s", row->updated_by);
    if (buf_check(&secret->sealed, "the secret", err) < 0 ||
        buf_check(&secret->metadata, "the secret's metadata", err) < 0)
        return -1;
    return buf_check(&secret->hosts, "the list of hosts", err);
}

static int load_secret(void *ctx, const struct store_workspace_secret *row, struct error *err)
{
    if (!strv_valid(row->hosts))
        return error_set(err, ERROR_INTERNAL, "the hosts of the secret \"%s\" are no list",
                         row->name);
    return secret_set(ctx, row, err);
}

int auth_open_secrets(struct auth *auth, const unsigned char *key, struct error *err)
{
    memcpy(auth->seal_key, key, sizeof(auth->seal_key));
    if (store_load_workspace_secrets(auth->store, load_secret, auth, err) < 0)
        return -1;
    return auth_load_cas(auth, err);
}

void auth_forget_secrets(struct auth *auth, const char *workspace)
{
    struct secret *secret, *next;
    HASH_ITER(hh, auth->secrets, secret, next)
    {
        if (workspace == NULL || strcmp(secret->workspace, workspace) == 0)
            secret_remove(auth, secret);
    }
}

static size_t count_secrets(const struct auth *auth, const char *workspace)
{
    size_t count = 0;
    struct secret *secret, *next;
    HASH_ITER(hh, auth->secrets, secret, next)
    {
        count += strcmp(secret->workspace, workspace) == 0;
    }
    return count;
}

/* --- checks --- */

static int check_value(struct slice value, struct error *err)
{
    if (value.len == 0)
        return error_set(err, ERROR_INVALID_ARGUMENT, "value is empty");
    if (value.len > SECRET_VALUE_MAX)
        return error_set(err, ERROR_PAYLOAD_TOO_LARGE, "value has more than %d bytes",
                         SECRET_VALUE_MAX);
    for (size_t i = 0; i < value.len; i++) {
        unsigned char c = (unsigned char)value.data[i];
        if (c < 0x20 || c >= 0x7f)
            return error_set(err, ERROR_INVALID_ARGUMENT,
                             "value holds a byte that a header field cannot, at offset %zu: only "
                             "visible ASCII and spaces fit (is there a line break at its end?)",
                             i);
    }
    if (value.data[0] == ' ' || value.data[value.len - 1] == ' ')
        return error_set(err, ERROR_INVALID_ARGUMENT, "value begins or ends with a space");
    return 0;
}

int secret_host(struct slice text, char out[NET_NAME_MAX + 1], struct error *err)
{
    struct net_host host;
    if (net_host_parse(text, &host, err) < 0)
        return -1;
    if (host.kind != NET_HOST_NAME || strchr(host.name, '.') == NULL)
        return error_set(err, ERROR_INVALID_ARGUMENT,
                         "a secret is sent to a host that has a full name and a certificate for "
                         "it, as \"api.example.com\"");
    memcpy(out, host.name, sizeof(host.name));
    return 0;
}

/* "*.example.com" is everything below example.com, and not that itself; "*" is everything. */
static bool host_matches(const char *allowed, const char *host)
{
    if (allowed[0] != '*')
        return strcmp(allowed, host) == 0;
    if (allowed[1] == '\0')
        return true;
    size_t tail = strlen(allowed + 1), len = strlen(host);
    return len > tail && strcmp(host + len - tail, allowed + 1) == 0;
}

static int take_hosts(struct slice hosts, bool any_host, struct buf *out, struct error *err)
{
    char name[NET_NAME_MAX + 1];
    int count = 0;
    strv_each (host, hosts) {
        const bool wild = strncmp(host, "*.", 2) == 0;
        if (any_host && strcmp(host, EVERY_HOST) == 0)
            memcpy(name, EVERY_HOST, sizeof(EVERY_HOST));
        else if (secret_host(slice_of(wild ? host + 2 : host), name, err) < 0)
            return error_prefix(err, "hosts[%d]", count);
        if (++count > SECRET_HOSTS_MAX)
            return error_set(err, ERROR_LIMIT_EXCEEDED, "hosts has more than %d entries",
                             SECRET_HOSTS_MAX);
        buf_adds(out, wild ? "*." : "");
        buf_add(out, name, strlen(name) + 1);
    }
    if (count == 0)
        return error_set(err, ERROR_INVALID_ARGUMENT,
                         "hosts is empty: name those that the secret may be sent to, as "
                         "\"api.example.com\" or \"*.example.com\"");
    return buf_check(out, "the list of hosts", err);
}

static void secret_place(struct buf *out, const char *workspace, const char *name,
                         struct slice hosts)
{
    buf_addf(out, "secret/%s/%s/", workspace, name);
    buf_add(out, hosts.data, hosts.len);
}

/* The value as it is, opened. */
static int open_value(const struct auth *auth, const struct secret *secret, struct buf *out,
                      struct error *err)
{
    _cleanup_buf_ struct buf place = BUF_INIT(HOSTS_BYTES_MAX + SECRET_KEY_MAX + 16);
    secret_place(&place, secret->workspace, secret->name, bytes_of(&secret->hosts));
    return unseal(auth->seal_key, bytes_of(&place), bytes_of(&secret->sealed), out, err);
}

/* --- storing --- */

static int check_place(const struct auth *auth, const struct secret_request *request,
                       const struct secret *before, struct error *err)
{
    if (request->is_new && before != NULL)
        return error_set(err, ERROR_ALREADY_EXISTS, "a secret named \"%s\" exists already",
                         request->name);
    if (before != NULL)
        return 0;
    if (request->value.data == NULL)
        return error_set(err, ERROR_INVALID_ARGUMENT, "value is required");
    if (request->hosts.data == NULL)
        return error_set(err, ERROR_INVALID_ARGUMENT,
                         "hosts is required: those that the secret may be sent to");
    if (count_secrets(auth, request->workspace) >= SECRETS_MAX)
        return error_set(err, ERROR_LIMIT_EXCEEDED,
                         "the workspace has %d secrets, and no more fit: delete some", SECRETS_MAX);
    return 0;
}

static void tell(const struct secret *secret, struct arena *arena, struct secret_info *ret_info)
{
    *ret_info = (struct secret_info){
        .name = arena_strdup(arena, secret->name),
        .hosts = {arena_dup(arena, secret->hosts.data, secret->hosts.len), secret->hosts.len},
        .version = secret->version,
        .metadata = secret->metadata.len == 0
                        ? NULL
                        : arena_dup(arena, secret->metadata.data, secret->metadata.len),
        .created_ms = secret->created_ms,
        .updated_ms = secret->updated_ms,
        .created_by = arena_strdup(arena, secret->created_by),
        .updated_by = arena_strdup(arena, secret->updated_by),
    };
}

int auth_secret_put(struct auth *auth, const struct secret_request *request, struct arena *arena,
                    struct secret_info *ret_info, struct error *err)
{
    _cleanup_wipe_ struct buf value = BUF_INIT(SECRET_VALUE_MAX + 1);
    _cleanup_buf_ struct buf hosts = BUF_INIT(HOSTS_BYTES_MAX);
    _cleanup_buf_ struct buf place = BUF_INIT(HOSTS_BYTES_MAX + SECRET_KEY_MAX + 16);
    _cleanup_buf_ struct buf sealed = BUF_INIT(SECRET_VALUE_MAX + SEAL_OVERHEAD);
    _cleanup_buf_ struct buf metadata = BUF_INIT(SECRET_METADATA_MAX);
    if (secret_name_check(request->name, err) < 0)
        return -1;
    const struct secret *before = find(auth, request->workspace, request->name);
    if (check_place(auth, request, before, err) < 0)
        return -1;
    if (request->value.data != NULL) {
        if (check_value(request->value, err) < 0)
            return -1;
        buf_add(&value, request->value.data, request->value.len);
    } else if (open_value(auth, before, &value, err) < 0)
        return -1;
    if (request->hosts.data == NULL)
        buf_add(&hosts, before->hosts.data, before->hosts.len);
    else if (take_hosts(request->hosts, request->any_host, &hosts, err) < 0)
        return -1;
    if (request->metadata != NULL)
        buf_adds(&metadata, request->metadata);
    else if (before != NULL)
        buf_add(&metadata, before->metadata.data, before->metadata.len);
    if (metadata.failed)
        return error_set(err, ERROR_PAYLOAD_TOO_LARGE, "metadata has more than %d bytes",
                         SECRET_METADATA_MAX);
    secret_place(&place, request->workspace, request->name, bytes_of(&hosts));
    if (seal(auth->seal_key, bytes_of(&place), bytes_of(&value), &sealed, err) < 0)
        return -1;
    const int64_t now = time_now_ms();
    const struct store_workspace_secret row = {
        .workspace = request->workspace,
        .name = request->name,
        .sealed = bytes_of(&sealed),
        .hosts = bytes_of(&hosts),
        .version = (before == NULL ? 0 : before->version) + (request->value.data != NULL),
        .metadata = metadata.len == 0 ? NULL : metadata.data,
        .created_ms = now,
        .updated_ms = now,
        .created_by = request->actor,
        .updated_by = request->actor,
    };
    if (store_put_workspace_secret(auth->store, &row, err) < 0 || secret_set(auth, &row, err) < 0)
        return -1;
    tell(find(auth, request->workspace, request->name), arena, ret_info);
    return 0;
}

/* --- looking, deleting --- */

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct secret_info *)a)->name, ((const struct secret_info *)b)->name);
}

void auth_secrets(const struct auth *auth, const char *workspace, struct arena *arena,
                  struct secret_info **ret_items, size_t *ret_count)
{
    size_t count = 0;
    struct secret_info *items =
        arena_alloc(arena, (count_secrets(auth, workspace) + 1) * sizeof(*items));
    struct secret *secret, *next;
    HASH_ITER(hh, auth->secrets, secret, next)
    {
        if (strcmp(secret->workspace, workspace) == 0)
            tell(secret, arena, &items[count++]);
    }
    qsort(items, count, sizeof(*items), by_name);
    *ret_items = items;
    *ret_count = count;
}

int auth_secret_get(const struct auth *auth, const char *workspace, const char *name,
                    struct arena *arena, struct secret_info *ret_info, struct error *err)
{
    const struct secret *secret = find_or_fail(auth, workspace, name, err);
    if (secret == NULL)
        return -1;
    tell(secret, arena, ret_info);
    return 0;
}

int auth_secret_delete(struct auth *auth, const char *workspace, const char *name,
                       struct error *err)
{
    if (find_or_fail(auth, workspace, name, err) == NULL ||
        store_delete_workspace_secret(auth->store, workspace, name, err) < 0)
        return -1;
    struct secret *secret = find(auth, workspace, name);
    if (secret != NULL) /* somebody else was faster */
        secret_remove(auth, secret);
    return 0;
}

/* --- where they go --- */

static int check_goal(const struct secret *secret, const char *host, struct error *err)
{
    strv_each (allowed, bytes_of(&secret->hosts))
        if (host_matches(allowed, host))
            return 0;
    return error_set(err, ERROR_FORBIDDEN,
                     "the secret \"%s\" may not be sent to \"%.253s\": whoever keeps the workspace "
                     "can add it to the secret's hosts",
                     secret->name, host);
}

int auth_secret_may_go(const struct auth *auth, const char *workspace, const char *name,
                       const char *host, struct error *err)
{
    const struct secret *secret = find_or_fail(auth, workspace, name, err);
    return secret == NULL ? -1 : check_goal(secret, host, err);
}

int auth_secret_value(const struct auth *auth, const char *workspace, const char *name,
                      const char *host, struct buf *out, struct error *err)
{
    const struct secret *secret = find_or_fail(auth, workspace, name, err);
    if (secret == NULL || check_goal(secret, host, err) < 0)
        return -1;
    return open_value(auth, secret, out, err);
}
