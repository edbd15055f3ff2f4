/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The workspaces in memory, and who gets into which. There is one door, auth_workspace_enter():
 * every request passes it before its handler runs, and all it gives out is the name of a workspace
 * that the caller may be in.
 */

#include "auth/workspaces.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "auth/state.h"
#include "base/cleanup.h"
#include "base/limits.h"
#include "base/names.h"
#include "base/timetext.h"

#define DEFAULT_ALIAS "default-workspace"

/* First segments of paths, of this version and of what may come: /{workspace}/… must not hide one.
 * A test holds the route table against it. */
static const char *const reserved[] = {
    "admin",      "api",     "assets",    "auth",      "console",    "dashboard",     "docs",
    "download",   "e2b",     "events",    "favicon",   "filesystem", "function",      "functions",
    "health",     "healthz", "help",      "internal",  "login",      "logout",        "mcp",
    "metrics",    "files",   "templates", "snapshots", "volumes",    "volumecontent", "secrets",
    "network",    "oauth",   "envs",      "execute",   "contexts",   "openapi",       "port",
    "ports",      "preview", "previews",  "process",   "ready",      "readyz",        "registry",
    "robots",     "root",    "sandbox",   "sandboxes", "session",    "sessions",      "ssh",
    "static",     "status",  "system",    "terminal",  "token",      "tokens",        "upload",
    "v0",         "v1",      "v2",        "v3",        "version",    "watch",         "well-known",
    "workspaces", "ws",
};

const char *workspace_canonical(const char *name)
{
    return strcmp(name, DEFAULT_ALIAS) == 0 ? WORKSPACE_DEFAULT : name;
}

bool workspace_is_reserved(const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(reserved); i++)
        if (strcmp(reserved[i], name) == 0)
            return true;
    return strcmp(name, DEFAULT_ALIAS) == 0;
}

int auth_insert_workspace(struct auth *auth, const struct store_workspace *row, struct error *err)
{
    struct workspace *workspace = calloc(1, sizeof(*workspace));
    if (workspace == NULL)
        return error_sys(err, "keeping a workspace");
    snprintf(workspace->name, sizeof(workspace->name), "%s", row->name);
    snprintf(workspace->created_by, sizeof(workspace->created_by), "%s", row->created_by);
    workspace->created_ms = row->created_ms;
    snprintf(workspace->rates, sizeof(workspace->rates), "%s", row->rates ? row->rates : "");
    snprintf(workspace->quotas, sizeof(workspace->quotas), "%s", row->quotas ? row->quotas : "");
    HASH_ADD_KEYPTR(by_name, auth->workspaces, workspace->name, strlen(workspace->name), workspace);
    return 0;
}

static struct workspace *find(const struct auth *auth, const char *name)
{
    struct workspace *workspace;
    HASH_FIND(by_name, auth->workspaces, name, strlen(name), workspace);
    return workspace;
}

static int not_found(const char *name, struct error *err)
{
    return error_set(err, ERROR_WORKSPACE_NOT_FOUND, "there is no workspace \"%.63s\"", name);
}

int auth_workspace_enter(const struct auth *auth, const struct principal *principal,
                         const char *named, struct arena *arena, const char **ret_workspace,
                         struct error *err)
{
    const char *name =
        named == NULL || named[0] == '\0' ? principal->workspace : workspace_canonical(named);
    if ((principal->scopes & SCOPE_SERVER) == 0 && strcmp(name, principal->workspace) != 0)
        return not_found(name, err);
    const struct workspace *workspace = find(auth, name);
    if (workspace == NULL || workspace->closing)
        return not_found(name, err);
    *ret_workspace = arena_strdup(arena, name);
    return 0;
}

static struct workspace_info info_of(const struct workspace *workspace, struct arena *arena)
{
    return (struct workspace_info){
        .name = arena_strdup(arena, workspace->name),
        .created_ms = workspace->created_ms,
        .created_by = arena_strdup(arena, workspace->created_by),
        .rates = arena_strdup(arena, workspace->rates),
        .quotas = arena_strdup(arena, workspace->quotas),
    };
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct workspace_info *)a)->name,
                  ((const struct workspace_info *)b)->name);
}

void auth_workspaces(const struct auth *auth, const struct principal *principal,
                     struct arena *arena, struct workspace_info **ret_items, size_t *ret_count)
{
    bool all = (principal->scopes & SCOPE_SERVER) != 0;
    size_t count = 0, most = HASH_CNT(by_name, auth->workspaces);
    struct workspace_info *items = arena_alloc(arena, (most + 1) * sizeof(*items));
    struct workspace *workspace, *next;
    HASH_ITER(by_name, auth->workspaces, workspace, next)
    {
        if (all || strcmp(workspace->name, principal->workspace) == 0)
            items[count++] = info_of(workspace, arena);
    }
    qsort(items, count, sizeof(*items), by_name);
    *ret_items = items;
    *ret_count = count;
}

int auth_workspace_get(const struct auth *auth, const char *name, struct arena *arena,
                       struct workspace_info *ret_info, struct error *err)
{
    const struct workspace *workspace = find(auth, name);
    if (workspace == NULL)
        return not_found(name, err);
    *ret_info = info_of(workspace, arena);
    return 0;
}

int auth_workspace_create(struct auth *auth, const char *name, const char *actor, struct error *err)
{
    if (name_check(name, err) < 0)
        return -1;
    if (workspace_is_reserved(name))
        return error_set(err, ERROR_INVALID_NAME,
                         "\"%s\" cannot be a workspace: paths of the API begin with it", name);
    if (find(auth, name) != NULL)
        return error_set(err, ERROR_ALREADY_EXISTS, "a workspace named \"%s\" exists already",
                         name);
    if (HASH_CNT(by_name, auth->workspaces) >= WORKSPACES_MAX)
        return error_set(err, ERROR_LIMIT_EXCEEDED, "there are %d workspaces, and no more fit",
                         WORKSPACES_MAX);
    const struct store_workspace row = {
        .name = name, .created_ms = time_now_ms(), .created_by = actor};
    if (store_add_workspace(auth->store, &row, err) < 0)
        return -1;
    return auth_insert_workspace(auth, &row, err);
}

int auth_workspace_set_limits(struct auth *auth, const char *name, const char *rates,
                              const char *quotas, struct error *err)
{
    if (strlen(rates) > WORKSPACE_LIMITS_MAX || strlen(quotas) > WORKSPACE_LIMITS_MAX)
        return error_set(err, ERROR_INVALID_ARGUMENT, "limits of a workspace have %d bytes at most",
                         WORKSPACE_LIMITS_MAX);
    if (find(auth, name) == NULL)
        return not_found(name, err);
    if (store_set_workspace_limits(auth->store, name, rates, quotas, err) < 0)
        return -1;
    struct workspace *workspace = find(auth, name);
    if (workspace == NULL) /* it was deleted meanwhile */
        return not_found(name, err);
    snprintf(workspace->rates, sizeof(workspace->rates), "%s", rates);
    snprintf(workspace->quotas, sizeof(workspace->quotas), "%s", quotas);
    return 0;
}

int auth_workspace_close(struct auth *auth, const char *name, struct error *err)
{
    struct workspace *workspace = find(auth, name);
    if (workspace == NULL)
        return not_found(name, err);
    if (strcmp(name, WORKSPACE_DEFAULT) == 0)
        return error_set(err, ERROR_CONFLICT, "the workspace \"%s\" cannot be deleted", name);
    if (workspace->closing)
        return error_set(err, ERROR_CONFLICT, "the workspace \"%s\" is being deleted already",
                         name);
    workspace->closing = true;
    return 0;
}

void auth_workspace_reopen(struct auth *auth, const char *name)
{
    struct workspace *workspace = find(auth, name);
    if (workspace != NULL)
        workspace->closing = false;
}

int auth_workspace_delete(struct auth *auth, const char *name, struct error *err)
{
    if (store_delete_workspace(auth->store, name, err) < 0)
        return -1;
    struct key *key, *next;
    HASH_ITER(by_id, auth->ids, key, next)
    {
        if (strcmp(key->row.workspace, name) == 0)
            auth_remove_key(auth, key);
    }
    auth_forget_secrets(auth, name);
    struct workspace *workspace = find(auth, name);
    if (workspace != NULL) {
        HASH_DELETE(by_name, auth->workspaces, workspace);
        free(workspace);
    }
    return 0;
}
