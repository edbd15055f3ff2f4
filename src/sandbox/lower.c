/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Lowering by itself: a measurement comes in, and when five of them say so the sandbox is updated
 * as if somebody had asked for it, with an event that says what was lowered. The sampler does not
 * wait for it.
 */

#include "sandbox/sandbox.h"

#include <stdlib.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "loop/co.h"
#include "sandbox/metrics.h"
#include "sandbox/spec.h"
#include "sandbox/state.h"

static const char actor[] = "auto-lower";

static const char *describe(const struct spec_limits *before, const struct spec_limits *after,
                            struct sandbox_resources *resources, struct arena *arena)
{
    const char *text = "Limits lowered automatically:";
    for (int i = 0; i <= (int)RESOURCE_DISK; i++) {
        char from[AMOUNT_TEXT_SIZE], to[AMOUNT_TEXT_SIZE];
        if (before->of[i] == after->of[i])
            continue;
        admission_amount((enum resource)i, before->of[i], from);
        admission_amount((enum resource)i, after->of[i], to);
        text = arena_printf(arena, "%s%s %s from %s to %s", text,
                            resources_given(resources) ? "," : "", resource_name((enum resource)i),
                            from, to);
        resources->of[i] = spec_text((enum resource)i, after->of[i], arena);
    }
    return text;
}

static int lower(struct sandbox *sb, struct arena *arena, struct error *err)
{
    struct spec_limits wanted;
    struct sandbox_info info;
    struct sandbox_update update = {.workspace = sb->workspace, .name = sb->id, .actor = actor};
    if (sb->lower == NULL || !auto_lower_wants(sb->lower, &sb->limits, &wanted))
        return 0;
    update.resized = describe(&sb->limits, &wanted, &update.resources, arena);
    return sandboxes_update(sb->owner, &update, arena, &info, err);
}

static void lower_run(void *arg)
{
    struct sandbox *sb = arg;
    struct sandboxes *s = sb->owner;
    struct error err;
    struct arena *arena = arena_new();
    if (!sb->gone && lower(sb, arena, &err) < 0)
        log_debug("sandbox %s: lowering its limits: %s", sb->id, err.message);
    arena_free(arena);
    if (sb->lower != NULL) { /* what was measured under the old limits has been heard */
        sb->lower->busy = false;
        sb->lower->count = 0;
    }
    sandbox_drop(sb);
    if (--s->drivers == 0)
        co_cond_wake_all(&s->idle);
}

void sandbox_measured(struct sandbox *sb)
{
    struct error err;
    struct spec_limits wanted;
    struct sandbox_load load = sandbox_load(sb);
    if (sb->lower == NULL || sb->owner->closing || load.time_ms == 0)
        return;
    auto_lower_push(sb->lower, load.cpu * 1000, load.memory, load.disk);
    if (sb->lower->busy || !auto_lower_wants(sb->lower, &sb->limits, &wanted))
        return;
    sb->lower->busy = true;
    sandbox_hold(sb);
    sb->owner->drivers++;
    if (co_spawn(sb->owner->loop, lower_run, sb, NULL, &err) < 0) {
        sb->lower->busy = false;
        sb->owner->drivers--;
        sandbox_drop(sb);
    }
}

int sandbox_set_auto_lower(struct sandbox *sb, struct slice list, struct error *err)
{
    struct auto_lower *lower_state = NULL;
    char *kept = NULL;
    if (list.len > 0) {
        lower_state = calloc(1, sizeof(*lower_state));
        kept = malloc(list.len);
        if (lower_state == NULL || kept == NULL) {
            free(lower_state);
            free(kept);
            return error_sys(err, "allocating");
        }
        if (auto_lower_parse(list, lower_state, err) < 0) {
            free(lower_state);
            free(kept);
            return -1;
        }
        memcpy(kept, list.data, list.len);
    }
    free(sb->lower);
    free(sb->auto_lower);
    sb->lower = lower_state;
    sb->auto_lower = kept;
    sb->auto_lower_len = list.len;
    return 0;
}
