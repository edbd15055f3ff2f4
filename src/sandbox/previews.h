/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Previews: addresses at which somebody without an API key reaches one port of one sandbox, or
 * (PREVIEW_PORT_SANDBOX, never public) the sandbox's own API. A preview that is not public asks for
 * one of its tokens. Previews and tokens may have an end; what has ended is as if it had never
 * been. They are gone with their sandbox, and survive the server.
 *
 * On coroutines. What is handed out is a copy in the caller's arena.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/slice.h"
#include "sandbox/sandbox.h"

enum { PREVIEW_PORT_SANDBOX = 443 };

struct preview_info {
    const char *id; /* in its address: long and random */
    const char *name;
    const char *sandbox_id, *sandbox_name, *workspace;
    unsigned port;
    bool is_public;
    int64_t expires_ms; /* 0: never */
    int64_t created_ms, updated_ms;
    const char *created_by;
    struct slice request_headers, response_headers; /* "Name: value" lists */
    const char *spec;                               /* the facade's text */
    const char *opened_by; /* by preview_open(): the name of the token; NULL: it asked for none */
    bool readmits; /* by previews_put(): it leads elsewhere than before, or lets others in, so that
                      whoever is there has to come again */
};

struct preview_token_info {
    const char *name;
    const char *token;
    int64_t expires_ms; /* 0: never */
};

struct preview_request {
    const char *name; /* as a sandbox's */
    unsigned port;    /* 1…65535 */
    bool is_public;
    int64_t expires_ms;
    struct slice request_headers, response_headers;
    const char *spec;
    const char *actor;
    bool replace; /* one of that name is changed, and keeps its address; and its tokens, unless it
                     becomes a session: they were for less */
};

/* Whether it is the sandbox's API that the preview serves, and not a port. */
static inline bool preview_is_session(const struct preview_info *info)
{
    return info->port == PREVIEW_PORT_SANDBOX && !info->is_public;
}

/* SANDBOX_NOT_FOUND, INVALID_NAME, INVALID_ARGUMENT, ALREADY_EXISTS, LIMIT_EXCEEDED over
 * PREVIEWS_MAX. */
int previews_put(struct sandboxes *s, const char *workspace, const char *sandbox,
                 const struct preview_request *request, struct arena *arena,
                 struct preview_info *ret_info, struct error *err);
/* Oldest first. */
int previews_list(struct sandboxes *s, const char *workspace, const char *sandbox,
                  struct arena *arena, struct preview_info **ret_items, size_t *ret_count,
                  struct error *err);
/* PREVIEW_NOT_FOUND */
int previews_get(struct sandboxes *s, const char *workspace, const char *sandbox, const char *name,
                 struct arena *arena, struct preview_info *ret_info, struct error *err);
int previews_delete(struct sandboxes *s, const char *workspace, const char *sandbox,
                    const char *name, struct arena *arena, struct preview_info *ret_info,
                    struct error *err);

/* name NULL: one is made up. ALREADY_EXISTS, LIMIT_EXCEEDED over PREVIEW_TOKENS_MAX. */
int preview_tokens_add(struct sandboxes *s, const char *workspace, const char *sandbox,
                       const char *preview, const char *name, int64_t expires_ms,
                       struct arena *arena, struct preview_token_info *ret_token,
                       struct error *err);
/* Oldest first; those that have ended are not among them. */
int preview_tokens_list(struct sandboxes *s, const char *workspace, const char *sandbox,
                        const char *preview, struct arena *arena,
                        struct preview_token_info **ret_items, size_t *ret_count,
                        struct error *err);
/* TOKEN_NOT_FOUND */
int preview_tokens_delete(struct sandboxes *s, const char *workspace, const char *sandbox,
                          const char *preview, const char *name, struct error *err);

/* The one with that id, whoever asks. PREVIEW_NOT_FOUND. */
int preview_find(struct sandboxes *s, const char *id, struct arena *arena,
                 struct preview_info *ret_info, struct error *err);
/*
 * For whoever comes to a preview's address, with the token that was shown (NULL: none).
 * PREVIEW_NOT_FOUND; UNAUTHORIZED when it is not public and the token is none of its own.
 */
int preview_open(struct sandboxes *s, const char *id, const char *token, struct arena *arena,
                 struct preview_info *ret_info, struct error *err);
