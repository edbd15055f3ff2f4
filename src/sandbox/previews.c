/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The previews in memory: a list with each sandbox, a map by id for those who come from outside.
 * Changes are made here first and then written; what could not be written is taken back. While the
 * store is at work others run, so nothing found before is used after it.
 */

#include "sandbox/previews.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "base/cleanup.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/names.h"
#include "base/timetext.h"
#include "sandbox/state.h"

enum { PREVIEW_ID_LEN = 26, TOKEN_LEN = 43 };

struct preview_token {
    char *name;
    char token[TOKEN_LEN + 1];
    int64_t expires_ms;
    struct preview_token *prev, *next;
};

struct preview {
    struct sandbox *sandbox;
    char id[PREVIEW_ID_LEN + 1];
    char *name;
    unsigned port;
    bool is_public;
    int64_t expires_ms, created_ms, updated_ms;
    char created_by[ACTOR_MAX];
    struct slice request_headers, response_headers; /* owned */
    char *spec;
    struct preview_token *tokens;
    struct preview *prev, *next;
    UT_hash_handle hh;
};

static bool has_ended(int64_t expires_ms)
{
    return expires_ms != 0 && expires_ms <= time_now_ms();
}

/* A few hundred bytes at a time, and limited in number: without them nothing sensible can go on. */
static char *copy(const void *data, size_t len)
{
    char *made = malloc(len + 1);
    if (made == NULL)
        abort();
    if (len > 0)
        memcpy(made, data, len);
    made[len] = '\0';
    return made;
}

static char *copy_text(const char *text)
{
    return copy(text == NULL ? "" : text, text == NULL ? 0 : strlen(text));
}

static struct slice copy_slice(struct slice bytes)
{
    return (struct slice){copy(bytes.data, bytes.len), bytes.len};
}

/* --- the list of a sandbox --- */

static void token_free(struct preview *p, struct preview_token *token)
{
    DL_DELETE(p->tokens, token);
    free(token->name);
    free(token);
}

static void release_content(struct preview *p)
{
    free((char *)p->request_headers.data);
    free((char *)p->response_headers.data);
    free(p->spec);
}

static void preview_free(struct preview *p)
{
    while (p->tokens != NULL)
        token_free(p, p->tokens);
    HASH_DEL(p->sandbox->owner->previews, p);
    DL_DELETE(p->sandbox->previews, p);
    release_content(p);
    free(p->name);
    free(p);
}

void sandbox_forget_previews(struct sandbox *sb)
{
    while (sb->previews != NULL)
        preview_free(sb->previews);
}

static struct preview *preview_add(struct sandbox *sb, const char *id, const char *name)
{
    struct preview *p = calloc(1, sizeof(*p));
    if (p == NULL)
        abort();
    p->sandbox = sb;
    snprintf(p->id, sizeof(p->id), "%s", id);
    p->name = copy_text(name);
    p->created_ms = time_now_ms();
    DL_APPEND(sb->previews, p);
    HASH_ADD_STR(sb->owner->previews, id, p);
    return p;
}

static struct preview *find_named(struct sandbox *sb, const char *name)
{
    struct preview *p;
    DL_FOREACH(sb->previews, p)
    if (strcmp(p->name, name) == 0)
        return has_ended(p->expires_ms) ? NULL : p;
    return NULL;
}

static struct preview_token *find_token(struct preview *p, const char *name)
{
    struct preview_token *token;
    DL_FOREACH(p->tokens, token)
    if (strcmp(token->name, name) == 0)
        return token;
    return NULL;
}

static struct preview *find_id(struct sandboxes *s, const char *id)
{
    struct preview *p = NULL;
    HASH_FIND_STR(s->previews, id, p);
    return p;
}

/* NULL with the error set. Nothing that waits may come between this and the use of what it gives.
 */
static struct preview *find(struct sandboxes *s, const char *workspace, const char *sandbox,
                            const char *name, struct error *err)
{
    struct sandbox *sb = sandbox_find(s, workspace, sandbox, err);
    struct preview *p = sb == NULL ? NULL : find_named(sb, name);
    if (sb != NULL && p == NULL)
        error_set(err, ERROR_PREVIEW_NOT_FOUND, "sandbox \"%s\" has no preview \"%.63s\"", sb->name,
                  name);
    return p;
}

static void tell(const struct preview *p, struct arena *arena, struct preview_info *ret_info)
{
    const struct sandbox *sb = p->sandbox;
    *ret_info = (struct preview_info){
        .id = arena_strdup(arena, p->id),
        .name = arena_strdup(arena, p->name),
        .sandbox_id = arena_strdup(arena, sb->id),
        .sandbox_name = arena_strdup(arena, sandbox_path(sb)),
        .workspace = arena_strdup(arena, sb->workspace),
        .port = p->port,
        .is_public = p->is_public,
        .expires_ms = p->expires_ms,
        .created_ms = p->created_ms,
        .updated_ms = p->updated_ms,
        .created_by = arena_strdup(arena, p->created_by),
        .request_headers = {arena_dup(arena, p->request_headers.data, p->request_headers.len),
                            p->request_headers.len},
        .response_headers = {arena_dup(arena, p->response_headers.data, p->response_headers.len),
                             p->response_headers.len},
        .spec = arena_strdup(arena, p->spec),
    };
}

/* What has ended goes when somebody looks: first here, then in the store. */
static void sweep(struct sandboxes *s, const char *workspace, const char *sandbox)
{
    char ended[PREVIEW_ID_LEN + 1];
    for (;;) {
        struct sandbox *sb = sandbox_find(s, workspace, sandbox, NULL);
        struct preview *p = sb == NULL ? NULL : sb->previews;
        while (p != NULL && !has_ended(p->expires_ms))
            p = p->next;
        if (p == NULL)
            return;
        memcpy(ended, p->id, sizeof(ended));
        preview_free(p);
        struct error err;
        if (store_delete_preview(s->store, ended, &err) < 0)
            log_error("preview %s: %s", ended, err.message);
    }
}

/* --- previews --- */

static int check_request(const struct preview_request *request, struct error *err)
{
    if (name_check(request->name, err) < 0)
        return -1;
    if (request->port < 1 || request->port > UINT16_MAX)
        return error_set(err, ERROR_INVALID_ARGUMENT, "port: %u is not between 1 and %d",
                         request->port, UINT16_MAX);
    if (has_ended(request->expires_ms))
        return error_set(err, ERROR_INVALID_ARGUMENT, "expires: that time is over");
    if (request->request_headers.len + request->response_headers.len > PREVIEW_HEADERS_MAX)
        return error_set(err, ERROR_PAYLOAD_TOO_LARGE, "the headers take more than %d bytes",
                         PREVIEW_HEADERS_MAX);
    return 0;
}

static struct preview *take_place(struct sandbox *sb, const struct preview_request *request,
                                  struct error *err)
{
    struct preview *p = find_named(sb, request->name);
    int count = 0;
    if (p != NULL && !request->replace) {
        error_set(err, ERROR_ALREADY_EXISTS, "sandbox \"%s\" has a preview named \"%s\" already",
                  sb->name, request->name);
        return NULL;
    }
    if (p != NULL)
        return p;
    DL_COUNT(sb->previews, p, count);
    if (count >= PREVIEWS_MAX) {
        error_set(err, ERROR_LIMIT_EXCEEDED, "sandbox \"%s\" has %d previews already", sb->name,
                  PREVIEWS_MAX);
        return NULL;
    }
    char id[PREVIEW_ID_LEN + 1];
    random_id(id, PREVIEW_ID_LEN);
    p = preview_add(sb, id, request->name);
    snprintf(p->created_by, sizeof(p->created_by), "%s", request->actor);
    return p;
}

static void fill(struct preview *p, const struct preview_request *request)
{
    release_content(p);
    p->port = request->port;
    p->is_public = request->is_public;
    p->expires_ms = request->expires_ms;
    p->updated_ms = time_now_ms();
    p->request_headers = copy_slice(request->request_headers);
    p->response_headers = copy_slice(request->response_headers);
    p->spec = copy_text(request->spec);
}

static int save(struct sandboxes *s, const struct preview_info *info, bool drops_tokens,
                struct error *err)
{
    const struct store_preview row = {
        .id = info->id,
        .sandbox_id = info->sandbox_id,
        .name = info->name,
        .port = info->port,
        .is_public = info->is_public,
        .expires_ms = info->expires_ms,
        .created_ms = info->created_ms,
        .updated_ms = info->updated_ms,
        .created_by = info->created_by,
        .request_headers = info->request_headers,
        .response_headers = info->response_headers,
        .spec = info->spec,
        .drops_tokens = drops_tokens,
    };
    return store_put_preview(s->store, &row, err);
}

int previews_put(struct sandboxes *s, const char *workspace, const char *sandbox,
                 const struct preview_request *request, struct arena *arena,
                 struct preview_info *ret_info, struct error *err)
{
    if (check_request(request, err) < 0)
        return -1;
    sweep(s, workspace, sandbox);
    struct sandbox *sb = sandbox_find(s, workspace, sandbox, err);
    struct preview *p = sb == NULL ? NULL : take_place(sb, request, err);
    if (p == NULL)
        return -1;
    bool was_session = p->port == PREVIEW_PORT_SANDBOX && !p->is_public;
    bool readmits = p->port != request->port || p->is_public != request->is_public;
    fill(p, request);
    tell(p, arena, ret_info);
    ret_info->readmits = readmits;
    bool grows = preview_is_session(ret_info) && !was_session;
    while (grows && p->tokens != NULL)
        token_free(p, p->tokens);
    if (save(s, ret_info, grows, err) == 0)
        return 0;
    if ((p = find_id(s, ret_info->id)) != NULL)
        preview_free(p);
    return -1;
}

int previews_list(struct sandboxes *s, const char *workspace, const char *sandbox,
                  struct arena *arena, struct preview_info **ret_items, size_t *ret_count,
                  struct error *err)
{
    sweep(s, workspace, sandbox);
    struct sandbox *sb = sandbox_find(s, workspace, sandbox, err);
    if (sb == NULL)
        return -1;
    struct preview_info *items = arena_alloc(arena, (PREVIEWS_MAX + 1) * sizeof(*items));
    struct preview *p;
    size_t count = 0;
    DL_FOREACH(sb->previews, p)
    tell(p, arena, &items[count++]);
    *ret_items = items;
    *ret_count = count;
    return 0;
}

int previews_get(struct sandboxes *s, const char *workspace, const char *sandbox, const char *name,
                 struct arena *arena, struct preview_info *ret_info, struct error *err)
{
    const struct preview *p = find(s, workspace, sandbox, name, err);
    if (p == NULL)
        return -1;
    tell(p, arena, ret_info);
    return 0;
}

int previews_delete(struct sandboxes *s, const char *workspace, const char *sandbox,
                    const char *name, struct arena *arena, struct preview_info *ret_info,
                    struct error *err)
{
    struct preview *p = find(s, workspace, sandbox, name, err);
    if (p == NULL)
        return -1;
    tell(p, arena, ret_info);
    preview_free(p);
    return store_delete_preview(s->store, ret_info->id, err);
}

/* --- tokens --- */

static void drop_ended_tokens(struct preview *p)
{
    struct preview_token *token, *next;
    DL_FOREACH_SAFE(p->tokens, token, next)
    if (has_ended(token->expires_ms))
        token_free(p, token); /* its row goes with the next one's coming */
}

static struct preview_token *token_add(struct preview *p, const char *name, const char *text,
                                       int64_t expires_ms)
{
    struct preview_token *token = calloc(1, sizeof(*token));
    if (token == NULL)
        abort();
    token->name = copy_text(name);
    token->expires_ms = expires_ms;
    snprintf(token->token, sizeof(token->token), "%s", text);
    DL_APPEND(p->tokens, token);
    return token;
}

static int check_token(struct preview *p, const char *name, int64_t expires_ms, struct error *err)
{
    struct preview_token *token;
    int count = 0;
    if (name_check(name, err) < 0)
        return -1;
    if (has_ended(expires_ms))
        return error_set(err, ERROR_INVALID_ARGUMENT, "expiresAt: that time is over");
    if (find_token(p, name) != NULL)
        return error_set(err, ERROR_ALREADY_EXISTS,
                         "preview \"%s\" has a token named \"%s\" already", p->name, name);
    DL_COUNT(p->tokens, token, count);
    if (count >= PREVIEW_TOKENS_MAX)
        return error_set(err, ERROR_LIMIT_EXCEEDED, "preview \"%s\" has %d tokens already", p->name,
                         PREVIEW_TOKENS_MAX);
    return 0;
}

static void tell_token(const struct preview_token *token, struct arena *arena,
                       struct preview_token_info *ret_token)
{
    *ret_token = (struct preview_token_info){
        .name = arena_strdup(arena, token->name),
        .token = arena_strdup(arena, token->token),
        .expires_ms = token->expires_ms,
    };
}

int preview_tokens_add(struct sandboxes *s, const char *workspace, const char *sandbox,
                       const char *preview, const char *name, int64_t expires_ms,
                       struct arena *arena, struct preview_token_info *ret_token, struct error *err)
{
    char made_up[NAME_MAX_LEN + 1], text[TOKEN_LEN + 1], id[PREVIEW_ID_LEN + 1];
    struct preview *p = find(s, workspace, sandbox, preview, err);
    if (p == NULL)
        return -1;
    random_name(made_up);
    random_id(text, TOKEN_LEN);
    if (name == NULL)
        name = made_up;
    drop_ended_tokens(p);
    if (check_token(p, name, expires_ms, err) < 0)
        return -1;
    memcpy(id, p->id, sizeof(id));
    tell_token(token_add(p, name, text, expires_ms), arena, ret_token);
    const struct store_preview_token row = {ret_token->name, ret_token->token, expires_ms,
                                            time_now_ms()};
    if (store_put_preview_token(s->store, id, &row, err) == 0)
        return 0;
    p = find_id(s, id);
    struct preview_token *token = p == NULL ? NULL : find_token(p, ret_token->name);
    if (token != NULL && strcmp(token->token, ret_token->token) == 0)
        token_free(p, token);
    return -1;
}

int preview_tokens_list(struct sandboxes *s, const char *workspace, const char *sandbox,
                        const char *preview, struct arena *arena,
                        struct preview_token_info **ret_items, size_t *ret_count, struct error *err)
{
    struct preview *p = find(s, workspace, sandbox, preview, err);
    if (p == NULL)
        return -1;
    struct preview_token_info *items =
        arena_alloc(arena, (PREVIEW_TOKENS_MAX + 1) * sizeof(*items));
    struct preview_token *token;
    size_t count = 0;
    drop_ended_tokens(p);
    DL_FOREACH(p->tokens, token)
    tell_token(token, arena, &items[count++]);
    *ret_items = items;
    *ret_count = count;
    return 0;
}

int preview_tokens_delete(struct sandboxes *s, const char *workspace, const char *sandbox,
                          const char *preview, const char *name, struct error *err)
{
    char id[PREVIEW_ID_LEN + 1];
    struct preview *p = find(s, workspace, sandbox, preview, err);
    if (p == NULL)
        return -1;
    struct preview_token *token = find_token(p, name);
    if (token == NULL)
        return error_set(err, ERROR_TOKEN_NOT_FOUND, "preview \"%s\" has no token \"%.63s\"",
                         p->name, name);
    memcpy(id, p->id, sizeof(id));
    token_free(p, token);
    return store_delete_preview_token(s->store, id, name, err);
}

/* --- coming in --- */

/* In the same time whatever is wrong about it. */
static bool same_token(const char *shown, const char *token)
{
    unsigned char differs = strlen(shown) != TOKEN_LEN;
    if (differs)
        return false;
    for (size_t i = 0; i < TOKEN_LEN; i++)
        differs |= (unsigned char)(shown[i] ^ token[i]);
    return differs == 0;
}

/* The token that it is; NULL: none. */
static const struct preview_token *opens(const struct preview *p, const char *shown)
{
    const struct preview_token *token, *fits = NULL;
    if (shown != NULL)
        DL_FOREACH(p->tokens, token)
    if (same_token(shown, token->token) && !has_ended(token->expires_ms))
        fits = token;
    return fits;
}

static struct preview *find_lasting(struct sandboxes *s, const char *id, struct error *err)
{
    struct preview *p = find_id(s, id);
    if (p != NULL && !has_ended(p->expires_ms))
        return p;
    error_set(err, ERROR_PREVIEW_NOT_FOUND, "there is no such preview");
    return NULL;
}

int preview_find(struct sandboxes *s, const char *id, struct arena *arena,
                 struct preview_info *ret_info, struct error *err)
{
    const struct preview *p = find_lasting(s, id, err);
    if (p == NULL)
        return -1;
    tell(p, arena, ret_info);
    return 0;
}

int preview_open(struct sandboxes *s, const char *id, const char *token, struct arena *arena,
                 struct preview_info *ret_info, struct error *err)
{
    const struct preview *p = find_lasting(s, id, err);
    if (p == NULL)
        return -1;
    const struct preview_token *opener = p->is_public ? NULL : opens(p, token);
    if (!p->is_public && opener == NULL)
        return error_set(err, ERROR_UNAUTHORIZED,
                         token == NULL ? "this preview is private: send X-Blaxel-Preview-Token, or "
                                         "bl_preview_token in the query"
                                       : "the preview token is not known here, or has ended");
    tell(p, arena, ret_info);
    ret_info->opened_by = opener == NULL ? NULL : arena_strdup(arena, opener->name);
    return 0;
}

/* --- start-up --- */

static int load_preview(void *ctx, const struct store_preview *row, struct error *err)
{
    struct sandboxes *s = ctx;
    struct sandbox *sb = NULL;
    HASH_FIND(by_id, s->ids, row->sandbox_id, strlen(row->sandbox_id), sb);
    if (sb == NULL || find_id(s, row->id) != NULL)
        return 0;
    struct preview *p = preview_add(sb, row->id, row->name);
    fill(p, &(struct preview_request){.port = row->port,
                                      .is_public = row->is_public,
                                      .expires_ms = row->expires_ms,
                                      .request_headers = row->request_headers,
                                      .response_headers = row->response_headers,
                                      .spec = row->spec});
    p->created_ms = row->created_ms;
    p->updated_ms = row->updated_ms;
    snprintf(p->created_by, sizeof(p->created_by), "%s", row->created_by);
    return 0;
}

static int load_token(void *ctx, const char *preview_id, const struct store_preview_token *row,
                      struct error *err)
{
    struct preview *p = find_id(ctx, preview_id);
    if (p != NULL && find_token(p, row->name) == NULL)
        token_add(p, row->name, row->token, row->expires_ms);
    return 0;
}

int sandboxes_load_previews(struct sandboxes *s, struct error *err)
{
    const struct store_load_previews load = {load_preview, load_token, s};
    return store_load_previews(s->store, &load, err);
}
