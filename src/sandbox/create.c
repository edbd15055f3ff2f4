/* SPDX-License-Identifier: Apache-2.0 */

/* New sandboxes: what is asked for is checked, given a name and an id, and recorded; making it is
 * the driver's business (lifecycle.c). */

#include "sandbox/create.h"

#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/limits.h"
#include "base/names.h"
#include "base/timetext.h"
#include "image/image.h"
#include "loop/co.h"
#include "sandbox/metadata.h"

enum { NAME_TRIES = 20, DELETE_WAIT_MS = 30 * 1000 };

static void pick_name(struct sandboxes *s, const char *workspace, char name[NAME_MAX_LEN + 1])
{
    for (int i = 0; i < NAME_TRIES; i++) {
        random_name(name);
        if (sandbox_find(s, workspace, name, NULL) == NULL)
            return;
    }
    random_id(name, 24);
}

/* The name of a sandbox that is being deleted is free in a moment: wait for it. */
static int wait_for_name(struct sandboxes *s, const char *workspace, const char *name,
                         struct error *err)
{
    for (;;) {
        _cleanup_sandbox_ struct sandbox *sb = sandbox_find(s, workspace, name, NULL);
        if (sb == NULL)
            return 0;
        sandbox_hold(sb);
        if (sb->status != SANDBOX_DELETING)
            return error_set(err, ERROR_ALREADY_EXISTS, "a sandbox named \"%s\" exists already",
                             name);
        if (co_cond_wait(s->loop, &sb->changed, DELETE_WAIT_MS, err) < 0)
            return -1;
    }
}

int sandbox_check_external(struct sandboxes *s, const char *workspace, const char *external_id,
                           const struct sandbox *own, struct error *err)
{
    if (external_id == NULL || external_id[0] == '\0')
        return 0;
    const struct sandbox *other = sandbox_find_external(s, workspace, external_id);
    if (other == NULL || other == own)
        return 0;
    return error_set(err, ERROR_ALREADY_EXISTS, "sandbox \"%s\" has the externalId \"%s\" already",
                     other->name, external_id);
}

/* Two sandboxes never have the same time of birth, so that their order, and a place in it, can be
 * named by it; not even when the clock is set back. */
static int64_t birth_time(const struct sandboxes *s)
{
    int64_t now = time_now_ms();
    return now > s->last_created_ms ? now : s->last_created_ms + 1;
}

static enum sandbox_status first_status(const struct store_sandbox *row)
{
    return row->enabled || row->clone_of != NULL ? SANDBOX_CREATING : SANDBOX_STOPPED;
}

/* Nothing waits from the check of the external id to the end. */
static struct sandbox *insert(struct sandboxes *s, struct store_sandbox *row, struct error *err)
{
    if (sandbox_check_external(s, row->workspace, row->external_id, NULL, err) < 0)
        return NULL;
    row->created_ms = row->updated_ms = birth_time(s);
    row->status = sandbox_status_text(first_status(row));
    struct sandbox *sb = sandbox_new(s, row, err);
    if (sb != NULL && sandbox_insert(sb, err) < 0) {
        sandbox_drop(sb);
        return NULL;
    }
    return sb;
}

int sandbox_add(struct sandboxes *s, struct store_sandbox *row, const struct first_event *event,
                struct arena *arena, struct sandbox_info *ret_info, struct error *err)
{
    char id[SANDBOX_ID_LEN + 1];
    char name[NAME_MAX_LEN + 1];
    if (s->closing)
        return error_set(err, ERROR_UNAVAILABLE, "the server is shutting down");
    if (row->name == NULL) {
        pick_name(s, row->workspace, name);
    } else {
        if (name_check(row->name, err) < 0 || wait_for_name(s, row->workspace, row->name, err) < 0)
            return -1;
        snprintf(name, sizeof(name), "%s", row->name);
    }
    random_id(id, SANDBOX_ID_LEN);
    row->id = id;
    row->name = name;
    _cleanup_sandbox_ struct sandbox *sb = insert(s, row, err);
    if (sb == NULL)
        return -1;
    sandbox_add_event(sb, event->type, "SUCCESS", event->message);
    sandbox_info(sb, arena, ret_info);

    /* It is made while it is being recorded. Should the record fail, or this process die before it
     * is there, nobody was told of the sandbox and it is removed again. */
    sb->goal = row->enabled ? GOAL_RUNNING : GOAL_STOPPED;
    if (sb->status == SANDBOX_CREATING)
        sandbox_drive(sb);
    if (sandbox_save(sb, true, err) < 0) {
        sb->goal = GOAL_DELETED;
        sandbox_drive(sb);
        return -1;
    }
    return 0;
}

static int check_request(const struct sandbox_create *request, struct arena *arena,
                         struct sandbox_resources *resources, struct trust_options *ret_security,
                         struct error *err)
{
    const char *image;
    struct spec_limits limits;
    if ((request->name != NULL && name_check(request->name, err) < 0) ||
        image_resolve(request->image, &image, err) < 0 ||
        trust_resolve(&request->security, NULL, ret_security, err) < 0)
        return -1;
    if (resources->memory == NULL)
        resources->memory = trust_memory(ret_security, arena);
    if (resources->cpu == NULL)
        resources->cpu = trust_cpu(ret_security, arena);
    spec_defaults(resources);
    if (spec_limits(resources, &limits, err) < 0 ||
        trust_check_limits(&request->security, limits.memory_bytes, limits.cpu_millis, ret_security,
                           err) < 0)
        return -1;
    return spec_check_env(request->env, err) < 0 ? -1 : metadata_check(&request->metadata, err);
}

int sandboxes_create(struct sandboxes *s, const struct sandbox_create *request, struct arena *arena,
                     struct sandbox_info *ret_info, struct error *err)
{
    static const struct first_event event = {"CREATE", "Sandbox created successfully"};
    struct sandbox_resources resources = request->resources;
    struct trust_options security;
    if (check_request(request, arena, &resources, &security, err) < 0)
        return -1;
    struct store_sandbox row = {
        .workspace = request->workspace,
        .name = request->name,
        .image = request->image == NULL || request->image[0] == '\0' ? "host" : request->image,
        .cpu = resources.cpu,
        .memory = resources.memory,
        .disk = resources.disk,
        .env = request->env,
        .enabled = request->enabled,
        .created_by = request->actor,
        .updated_by = request->actor,
        .labels = request->metadata.labels,
        .external_id = request->metadata.external_id,
        .display_name = request->metadata.display_name,
        .blaxel_spec = request->metadata.blaxel_spec,
        .trust_level = trust_level_text(security.level),
        .security = trust_text(&security, arena),
    };
    return sandbox_add(s, &row, &event, arena, ret_info, err);
}
