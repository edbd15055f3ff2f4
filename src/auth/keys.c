/* SPDX-License-Identifier: Apache-2.0 */

/* API keys: made, listed and revoked. */

#include "auth/keys.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "auth/state.h"
#include "auth/workspaces.h"
#include "base/cleanup.h"
#include "base/limits.h"
#include "base/names.h"
#include "base/timetext.h"

enum { HINT_LEN = 10 }; /* "cella_" and four characters: 24 of 258 bits */

/* Names that createdBy shows for callers who are no such key. */
static const char *const reserved_names[] = {KEY_FIRST, "anonymous", "system"};

int auth_store_first_key(struct store *store, const char *hash, struct error *err)
{
    struct store_key key = {
        .id = KEY_FIRST,
        .name = KEY_FIRST,
        .workspace = WORKSPACE_DEFAULT,
        .scopes = SCOPE_ALL,
        .created_ms = time_now_ms(),
    };
    snprintf(key.hash, sizeof(key.hash), "%s", hash);
    return store_put_key(store, &key, err);
}

static int check_key_name(const char *name, struct error *err)
{
    if (name_check(name, err) < 0)
        return -1;
    for (size_t i = 0; i < ARRAY_LEN(reserved_names); i++)
        if (strcmp(name, reserved_names[i]) == 0)
            return error_set(err, ERROR_INVALID_NAME,
                             "\"%s\" is the server's own name: choose another one", name);
    return 0;
}

static int check_reach(const struct auth *auth, const struct principal *by,
                       const struct key_request *request, int64_t expires_ms, struct error *err)
{
    char more[SCOPES_TEXT_SIZE];
    scopes_text(request->scopes & ~by->scopes, more);
    if (more[0] != '\0')
        return error_set(err, ERROR_FORBIDDEN,
                         "the key \"%s\" does not have %s itself, so it cannot grant it", by->name,
                         more);
    if ((by->scopes & SCOPE_SERVER) == 0 && strcmp(by->workspace, request->workspace) != 0)
        return error_set(err, ERROR_WORKSPACE_NOT_FOUND, "there is no workspace \"%.63s\"",
                         request->workspace);
    const struct key *own = auth_find_key(auth, by->key_id);
    int64_t own_end = own != NULL ? own->row.expires_ms : by->expires_ms;
    if (own_end != 0 && (expires_ms == 0 || expires_ms > own_end))
        return error_set(err, ERROR_FORBIDDEN,
                         "the key \"%s\" expires, so it cannot make one that lives longer: give "
                         "expiresIn",
                         by->name);
    return 0;
}

static size_t count_keys(const struct auth *auth, const char *workspace)
{
    size_t count = 0;
    struct key *key, *next;
    HASH_ITER(by_id, auth->ids, key, next)
    {
        count += strcmp(key->row.workspace, workspace) == 0;
    }
    return count;
}

int auth_key_create(struct auth *auth, const struct principal *by,
                    const struct key_request *request, char ret_secret[AUTH_KEY_SIZE],
                    struct store_key *ret_key, struct error *err)
{
    struct store_key row = {.scopes = request->scopes, .created_ms = time_now_ms()};
    if (request->lifetime_s > 0)
        row.expires_ms = row.created_ms + request->lifetime_s * 1000;
    if (check_key_name(request->name, err) < 0 ||
        check_reach(auth, by, request, row.expires_ms, err) < 0)
        return -1;
    if (count_keys(auth, request->workspace) >= KEYS_PER_WORKSPACE_MAX)
        return error_set(err, ERROR_LIMIT_EXCEEDED,
                         "the workspace has %d keys, and no more fit: delete some",
                         KEYS_PER_WORKSPACE_MAX);
    char secret[AUTH_KEY_SIZE];
    auth_make_key(secret);
    auth_hash_key(secret, row.hash);
    random_id(row.id, KEY_ID_LEN);
    snprintf(row.hint, sizeof(row.hint), "%.*s", HINT_LEN, secret);
    snprintf(row.name, sizeof(row.name), "%s", request->name);
    snprintf(row.workspace, sizeof(row.workspace), "%s", request->workspace);
    snprintf(row.created_by, sizeof(row.created_by), "%s", by->name);
    snprintf(row.issuer, sizeof(row.issuer), "%s", by->issuer);
    if (store_put_key(auth->store, &row, err) < 0 || auth_insert_key(auth, &row, err) < 0)
        return -1;
    memcpy(ret_secret, secret, sizeof(secret));
    explicit_bzero(secret, sizeof(secret));
    *ret_key = row;
    return 0;
}

static int by_age(const void *a, const void *b)
{
    const struct store_key *one = a, *two = b;
    if (one->created_ms != two->created_ms)
        return one->created_ms < two->created_ms ? -1 : 1;
    return strcmp(one->id, two->id);
}

void auth_keys(const struct auth *auth, const char *workspace, struct arena *arena,
               struct store_key **ret_items, size_t *ret_count)
{
    size_t count = 0;
    struct store_key *items =
        arena_alloc(arena, (count_keys(auth, workspace) + 1) * sizeof(*items));
    struct key *key, *next;
    HASH_ITER(by_id, auth->ids, key, next)
    {
        if (strcmp(key->row.workspace, workspace) == 0)
            items[count++] = key->row;
    }
    qsort(items, count, sizeof(*items), by_age);
    *ret_items = items;
    *ret_count = count;
}

int auth_key_get(const struct auth *auth, const char *workspace, const char *id,
                 struct store_key *ret_key, struct error *err)
{
    const struct key *key = auth_find_key(auth, id);
    if (key == NULL || strcmp(key->row.workspace, workspace) != 0)
        return error_set(err, ERROR_KEY_NOT_FOUND, "there is no key with the id \"%.20s\"", id);
    *ret_key = key->row;
    return 0;
}

int auth_key_revoke(struct auth *auth, const struct principal *by, const char *workspace,
                    const char *id, struct error *err)
{
    struct store_key row;
    if (auth_key_get(auth, workspace, id, &row, err) < 0)
        return -1;
    if ((row.scopes & ~by->scopes) != 0)
        return error_set(err, ERROR_FORBIDDEN,
                         "the key \"%s\" can do more than \"%s\", which cannot delete it", row.name,
                         by->name);
    if (strcmp(id, KEY_FIRST) == 0)
        return error_set(err, ERROR_CONFLICT,
                         "this is the key in the file api-key of the data folder: remove the file "
                         "and start the server again to get another one");
    if (store_delete_key(auth->store, row.id, err) < 0)
        return -1;
    struct key *key = auth_find_key(auth, row.id);
    if (key != NULL) /* somebody else was faster */
        auth_remove_key(auth, key);
    return 0;
}
