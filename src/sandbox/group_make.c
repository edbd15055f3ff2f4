/* SPDX-License-Identifier: Apache-2.0 */

/*
 * New groups. Everything that can be refused is, before anything is made: first each request is
 * checked, then all sandboxes get their places in memory, which nobody else sees a half of because
 * nothing waits meanwhile. Then they are made while group and sandboxes are recorded in one
 * transaction.
 */

#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/limits.h"
#include "base/names.h"
#include "base/timetext.h"
#include "loop/co.h"
#include "sandbox/create.h"
#include "sandbox/group_state.h"

enum { END_WAIT_MS = 30 * 1000 };

/* The name of a group that is ending is free in a moment: wait for it. */
static int wait_for_name(struct sandboxes *s, const char *workspace, const char *name,
                         struct error *err)
{
    for (;;) {
        _cleanup_group_ struct group *group = group_find(s, workspace, name, NULL);
        if (group == NULL)
            return 0;
        group_hold(group);
        if (!group->ending)
            return error_set(err, ERROR_ALREADY_EXISTS, "a group named \"%s\" exists already",
                             name);
        if (co_cond_wait(s->loop, &group->changed, END_WAIT_MS, err) < 0)
            return -1;
    }
}

static int check_count(struct sandboxes *s, const struct group_create *request, struct error *err)
{
    size_t count = 0;
    for (const struct group *group = s->groups; group != NULL; group = group->by_name.next)
        count += strcmp(group->workspace, request->workspace) == 0;
    if (count >= GROUPS_MAX)
        return error_set(err, ERROR_LIMIT_EXCEEDED, "the workspace has %d groups already",
                         GROUPS_MAX);
    if (request->count > GROUP_SANDBOXES_MAX)
        return error_set(err, ERROR_INVALID_ARGUMENT, "a group has at most %d sandboxes",
                         GROUP_SANDBOXES_MAX);
    return 0;
}

int group_check_spec(struct sandboxes *s, const struct group_create *request, struct arena *arena,
                     struct error *err)
{
    struct store_sandbox ignored;
    if (strlen(request->spec) > GROUP_SPEC_MAX)
        return error_set(err, ERROR_PAYLOAD_TOO_LARGE, "spec takes more than %d bytes",
                         GROUP_SPEC_MAX);
    return sandbox_create_row(s, request->plain, arena, &ignored, err);
}

static int about(const struct group_create *request, size_t index, struct error *err)
{
    const char *name = request->sandboxes[index].name;
    if (err->code == ERROR_INSUFFICIENT_RESOURCES && index > 0)
        error_prefix(err, "with the %zu before it", index);
    return error_prefix(err, "sandboxes[%zu]%s%s", index, name == NULL ? "" : " ",
                        name == NULL ? "" : name);
}

static int check_all(struct sandboxes *s, const struct group_create *request, struct arena *arena,
                     struct store_sandbox *rows, struct error *err)
{
    for (size_t i = 0; i < request->count; i++) {
        if (sandbox_create_row(s, &request->sandboxes[i], arena, &rows[i], err) < 0)
            return about(request, i, err);
        rows[i].workspace = request->workspace;
    }
    return 0;
}

static void forget(struct group *group, struct sandbox **sandboxes, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        sandbox_remove(sandboxes[i]);
        sandbox_drop(sandboxes[i]);
    }
    group_remove(group);
}

/* A place for each, or for none. Nothing waits. */
static struct group *admit_all(struct sandboxes *s, const struct group_create *request,
                               const char *name, struct store_sandbox *rows,
                               struct sandbox **sandboxes, struct error *err)
{
    char id[SANDBOX_ID_LEN + 1];
    int64_t now = time_now_ms();
    random_id(id, SANDBOX_ID_LEN);
    const struct store_group row = {.id = id,
                                    .workspace = request->workspace,
                                    .name = name,
                                    .spec = request->spec,
                                    .created_ms = now,
                                    .updated_ms = now,
                                    .created_by = request->actor,
                                    .updated_by = request->actor};
    struct group *group = group_new(s, &row, err);
    if (group == NULL)
        return NULL;
    for (size_t i = 0; i < request->count; i++) {
        sandboxes[i] = sandbox_admit(s, group, &rows[i], &sandbox_created, err);
        if (sandboxes[i] == NULL) {
            about(request, i, err);
            forget(group, sandboxes, i);
            return NULL;
        }
    }
    return group;
}

/* They are made while they are being recorded, as one sandbox is. */
static int record_all(struct group *group, struct sandbox **sandboxes, size_t count,
                      struct arena *arena, struct error *err)
{
    struct store_group row;
    struct store_sandbox *rows = arena_alloc(arena, (count + 1) * sizeof(*rows));
    struct store_event *events = arena_alloc(arena, (count + 1) * sizeof(*events));
    group_row(group, arena, &row);
    for (size_t i = 0; i < count; i++) {
        sandbox_row(sandboxes[i], arena, &rows[i], &events[i]);
        sandbox_launch(sandboxes[i]);
    }
    return store_add_group(group->owner->store, &row, rows, events, count, err);
}

static int make(struct sandboxes *s, const struct group_create *request, const char *name,
                struct store_sandbox *rows, struct arena *arena, struct group_info *ret_info,
                struct error *err)
{
    struct sandbox **sandboxes = arena_alloc(arena, (request->count + 1) * sizeof(*sandboxes));
    _cleanup_group_ struct group *group = admit_all(s, request, name, rows, sandboxes, err);
    if (group == NULL)
        return -1;
    group_hold(group);
    group_info(group, arena, ret_info);
    int rc = record_all(group, sandboxes, request->count, arena, err);
    if (rc < 0) {
        group->ending = true;
        group_drive_end(group);
    }
    for (size_t i = 0; i < request->count; i++)
        sandbox_drop(sandboxes[i]);
    return rc;
}

int groups_create(struct sandboxes *s, const struct group_create *request, struct arena *arena,
                  struct group_info *ret_info, struct error *err)
{
    char made_up[NAME_MAX_LEN + 1];
    const char *name = request->name;
    struct store_sandbox *rows = arena_alloc(arena, (request->count + 1) * sizeof(*rows));
    if (s->closing)
        return error_set(err, ERROR_UNAVAILABLE, "the server is shutting down");
    if (name == NULL) {
        random_name(made_up);
        name = made_up;
    }
    if (name_check(name, err) < 0 || check_count(s, request, err) < 0 ||
        group_check_spec(s, request, arena, err) < 0 ||
        check_all(s, request, arena, rows, err) < 0 ||
        wait_for_name(s, request->workspace, name, err) < 0)
        return -1;
    return make(s, request, name, rows, arena, ret_info, err);
}
