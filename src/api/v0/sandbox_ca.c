/* SPDX-License-Identifier: Apache-2.0 */

/*
 * /v0/sandbox/{name}/network/ca: the certificate authority of a sandbox. With one, programs inside
 * speak TLS to the hosts of its headers as they always do, and the egress process, which ends it,
 * adds the secrets. Its certificate is put where programs look for whom to believe.
 */

#include "api/v0/sandbox_ca.h"

#include <stdio.h>
#include <string.h>

#include "api/handlers.h"
#include "auth/authority.h"
#include "auth/sandbox_ca.h"
#include "base/cleanup.h"
#include "base/limits.h"
#include "base/log.h"
#include "sandbox/files.h"
#include "sandbox/network.h"
#include "sandbox/sandbox.h"

#define BUNDLE "/etc/ssl/certs/ca-certificates.crt"
#define SOURCE "/usr/local/share/ca-certificates/cella.crt" /* update-ca-certificates' */
#define HASHED "/etc/ssl/certs/%s.0"

enum { BUNDLE_MAX = 4 << 20, FILE_MODE = 0644 };

struct place {
    struct sandboxes *sandboxes;
    const char *workspace, *name;
    struct arena *arena;
};

/* --- files of the sandbox --- */

static int write_file(const struct place *place, const char *path, struct slice content,
                      struct error *err)
{
    struct file_transfer *t = NULL;
    struct file_entry entry;
    int r =
        file_write_begin(place->sandboxes, place->workspace, place->name, path, FILE_MODE, &t, err);
    while (r == 0 && content.len > 0) {
        size_t piece = content.len < WIRE_DATA_CHUNK ? content.len : WIRE_DATA_CHUNK;
        r = file_write_chunk(t, piece, err);
        if (r == 0)
            r = file_transfer_put(t, content.data, piece, err);
        content.data += piece;
        content.len -= piece;
    }
    if (r == 0)
        r = file_write_commit(t, place->arena, &entry, err);
    file_transfer_end(t);
    return r;
}

/* An empty one when there is none. */
static int read_file(const struct place *place, const char *path, struct buf *out,
                     struct error *err)
{
    struct file_transfer *t = NULL;
    struct file_entry entry;
    if (file_read_begin(place->sandboxes, place->workspace, place->name, path, 0, BUNDLE_MAX,
                        place->arena, &entry, &t, err) < 0)
        return err->code == ERROR_FILE_NOT_FOUND ? 0 : -1;
    int r = 0;
    for (size_t len = 1; r == 0 && len > 0;) {
        r = file_read_next(t, &len, err);
        char *to = r == 0 && len > 0 ? buf_reserve(out, len) : NULL;
        if (r == 0 && len > 0)
            r = to == NULL ? buf_check(out, path, err) : file_transfer_take(t, to, len, err);
        if (r == 0)
            buf_commit(out, len);
    }
    file_transfer_end(t);
    return r;
}

/* The bundle with the certificate at its end, or without it; as it was, it is left alone. */
static int change_bundle(const struct place *place, const char *certificate, bool trusted,
                         struct error *err)
{
    _cleanup_buf_ struct buf bundle = BUF_INIT(BUNDLE_MAX + AUTHORITY_TEXT_MAX);
    if (read_file(place, BUNDLE, &bundle, err) < 0)
        return -1;
    const size_t len = strlen(certificate);
    const char *at = memmem(bundle.data, bundle.len, certificate, len);
    if (trusted == (at != NULL))
        return 0;
    if (trusted) {
        if (bundle.len > 0 && bundle.data[bundle.len - 1] != '\n')
            buf_addc(&bundle, '\n');
        buf_add(&bundle, certificate, len);
        if (buf_check(&bundle, BUNDLE, err) < 0)
            return -1;
    } else {
        size_t from = (size_t)(at - bundle.data);
        memmove(bundle.data + from, bundle.data + from + len, bundle.len - from - len);
        bundle.len -= len;
    }
    return write_file(place, BUNDLE, (struct slice){bundle.data, bundle.len}, err);
}

static int trust(const struct place *place, const char *certificate, struct error *err)
{
    char hashed[64], hash[AUTHORITY_HASH_SIZE];
    struct slice text = slice_of(certificate);
    if (authority_hash(certificate, hash, err) < 0)
        return -1;
    snprintf(hashed, sizeof(hashed), HASHED, hash);
    if (write_file(place, SOURCE, text, err) < 0 || write_file(place, hashed, text, err) < 0)
        return -1;
    return change_bundle(place, certificate, true, err);
}

static int distrust(const struct place *place, const char *certificate, struct error *err)
{
    char hashed[64], hash[AUTHORITY_HASH_SIZE];
    if (authority_hash(certificate, hash, err) < 0)
        return -1;
    snprintf(hashed, sizeof(hashed), HASHED, hash);
    const char *const files[] = {SOURCE, hashed};
    for (size_t i = 0; i < ARRAY_LEN(files); i++)
        if (sandbox_file_remove(place->sandboxes, place->workspace, place->name, files[i], false,
                                err) < 0 &&
            err->code != ERROR_FILE_NOT_FOUND)
            return -1;
    return change_bundle(place, certificate, false, err);
}

/* --- calls --- */

static struct place place_of(struct http_exchange *x, const struct route_params *params,
                             const struct api_call *call)
{
    return (struct place){call->api->sandboxes, call->workspace, route_param(params, "name"),
                          http_arena(x)};
}

static int reply(struct http_exchange *x, const char *certificate, const char *state,
                 const char *message, struct error *err)
{
    yyjson_mut_val *root;
    yyjson_mut_doc *doc = api_json_new(http_arena(x), &root);
    if (certificate != NULL)
        yyjson_mut_obj_add_str(doc, root, "certificate", certificate);
    else
        yyjson_mut_obj_add_null(doc, root, "certificate");
    if (state != NULL)
        yyjson_mut_obj_add_bool(doc, root, state, message == NULL);
    if (message != NULL)
        yyjson_mut_obj_add_str(doc, root, "message", message);
    return api_reply_json(x, 200, doc, err);
}

int v0_sandbox_ca_get(struct http_exchange *x, const struct route_params *params, void *ctx,
                      struct error *err)
{
    const struct api_call *call = ctx;
    const struct place place = place_of(x, params, call);
    struct sandbox_info info;
    if (sandboxes_get(place.sandboxes, place.workspace, place.name, place.arena, &info, err) < 0)
        return -1;
    return reply(x, auth_ca_certificate(call->api->auth, info.id, place.arena), NULL, NULL, err);
}

static bool exists(void *ctx, const char *sandbox_id)
{
    return sandboxes_has(ctx, sandbox_id);
}

/* *ret_why: what kept it from being believed; NULL: nothing. */
static int install(const struct place *place, const struct api_call *call,
                   const char **ret_certificate, const char **ret_why, struct error *err)
{
    struct sandbox_info info;
    struct error why;
    if (sandboxes_get(place->sandboxes, place->workspace, place->name, place->arena, &info, err) <
        0)
        return -1;
    auth_ca_sweep(call->api->auth, exists, place->sandboxes);
    if (auth_ca_make(call->api->auth, info.id, info.name, err) < 0)
        return -1;
    const char *certificate = auth_ca_certificate(call->api->auth, info.id, place->arena);
    if (certificate == NULL)
        return error_set(err, ERROR_CONFLICT, "somebody is deleting it");
    /* First believed, then used. */
    int r = trust(place, certificate, &why);
    sandboxes_secrets_changed(place->sandboxes, place->workspace);
    *ret_certificate = certificate;
    *ret_why = r == 0 ? NULL : arena_strdup(place->arena, why.message);
    return 0;
}

int v0_sandbox_ca_put(struct http_exchange *x, const struct route_params *params, void *ctx,
                      struct error *err)
{
    const struct api_call *call = ctx;
    const struct place place = place_of(x, params, call);
    const char *certificate, *why;
    if (install(&place, call, &certificate, &why, err) < 0)
        return -1;
    return reply(x, certificate, "installed", why, err);
}

int sandbox_ca_install(struct http_exchange *x, const struct api_call *call, const char *name,
                       struct error *err)
{
    const struct place place = {call->api->sandboxes, call->workspace, name, http_arena(x)};
    const char *certificate, *why;
    if (install(&place, call, &certificate, &why, err) < 0)
        return -1;
    return why == NULL ? 0 : error_set(err, ERROR_UNAVAILABLE, "%s", why);
}

int v0_sandbox_ca_delete(struct http_exchange *x, const struct route_params *params, void *ctx,
                         struct error *err)
{
    const struct api_call *call = ctx;
    const struct place place = place_of(x, params, call);
    struct sandbox_info info;
    struct error why;
    if (sandboxes_get(place.sandboxes, place.workspace, place.name, place.arena, &info, err) < 0)
        return -1;
    const char *certificate = auth_ca_certificate(call->api->auth, info.id, place.arena);
    if (certificate == NULL)
        return reply(x, NULL, "removed", NULL, err);
    if (auth_ca_delete(call->api->auth, info.id, err) < 0)
        return -1;
    sandboxes_secrets_changed(place.sandboxes, place.workspace);
    int r = distrust(&place, certificate, &why);
    return reply(x, NULL, "removed", r == 0 ? NULL : arena_strdup(place.arena, why.message), err);
}

void sandbox_ca_clone(struct http_exchange *x, const struct api_call *call, const char *source,
                      const char *clone_id)
{
    struct sandbox_info info;
    struct error err;
    if (sandboxes_get(call->api->sandboxes, call->workspace, source, http_arena(x), &info, &err) <
            0 ||
        auth_ca_certificate(call->api->auth, info.id, http_arena(x)) == NULL)
        return;
    if (auth_ca_copy(call->api->auth, info.id, clone_id, &err) < 0)
        log_warn("sandbox %s: its source's certificate authority: %s", clone_id, err.message);
    sandboxes_secrets_changed(call->api->sandboxes, call->workspace);
}
