/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Taking a spare sandbox. Whether one fits is not decided by a list of fields that somebody would
 * have to keep up to date: the plans that the warden would get for both are laid side by side, with
 * what a claim changes taken out, and have to be the same to the byte. So a new option of a sandbox
 * makes pools fit less, never wrongly.
 */

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "loop/co.h"
#include "sandbox/pool_state.h"

enum { KEY_MAX = 4096, QUIET_MS = 20 };

char *pool_key(const struct sandbox *sb, size_t *ret_len, struct error *err)
{
    struct plan plan;
    struct buf key = BUF_INIT(KEY_MAX);
    if (sandbox_plan(sb, &plan, err) < 0)
        return NULL;
    plan.id = plan.hostname = "";
    plan.memory_bytes = plan.cpu_millis = plan.pids_max = plan.disk_bytes = 0;
    plan.network = plan.network != PLAN_NETWORK_NONE ? PLAN_NETWORK_ALLOWLIST : PLAN_NETWORK_NONE;
    plan.network_flags = plan.network_in_bytes = plan.network_out_bytes = 0;
    plan.network_rules = (struct slice){0};
    wire_encode(&key, &warden_start_schema, 0, &plan);
    if (buf_check(&key, "the plan of a sandbox", err) < 0) {
        buf_release(&key);
        return NULL;
    }
    *ret_len = key.len;
    return buf_steal(&key);
}

static struct pool *find_pool(const struct sandbox *sb)
{
    struct pool *pool = NULL;
    struct error err;
    size_t len;
    if (sb->owner->pools->keys == NULL)
        return NULL;
    _cleanup_free_ char *key = pool_key(sb, &len, &err);
    if (key != NULL)
        HASH_FIND(by_key, sb->owner->pools->keys, key, len, pool);
    return pool;
}

struct spare *pools_take(struct sandbox *sb)
{
    struct sandboxes *s = sb->owner;
    struct pool *pool = find_pool(sb);
    if (pool == NULL || s->pools->stopping)
        return NULL;
    struct spare *spare = pool_pop(pool);
    if (spare == NULL) {
        pool->misses++;
        return NULL;
    }
    memcpy(sb->id, spare->id, sizeof(spare->id));
    sandbox_network_at(sb, spare->address, spare->address6);
    sb->unclaimed = true;
    sb->agent_checked = true; /* this server has started it */
    sb->limits_stay = memcmp(&sb->limits, &pool->model->limits, sizeof(sb->limits)) == 0;
    admission_release(&s->admission, &spare->promise); /* the sandbox has one of its own */
    return spare;
}

void pools_settle(struct sandbox *sb, struct spare *spare, bool taken)
{
    struct sandboxes *s = sb->owner;
    if (spare == NULL)
        return;
    struct pool *pool = spare->pool;
    if (!taken) {
        sb->unclaimed = false;
        admission_count(&s->admission, &spare->promise, PROMISE_ALL, &pool->model->limits);
        pool_push(pool, spare);
        return;
    }
    pool->claimed++;
    spare_free(spare);
    int64_t now = loop_now(s->loop);
    if (s->pools->quiet_until_ms <= now) /* not put off for ever by one claim after the other */
        s->pools->quiet_until_ms = now + QUIET_MS;
    pools_wake(s);
}

void pools_abandon(struct sandbox *sb)
{
    struct pools *pools = sb->owner->pools;
    if (!sb->unclaimed || pools == NULL || !pools->running)
        return;
    sb->unclaimed = false;
    struct spare *spare = calloc(1, sizeof(*spare));
    if (spare == NULL)
        abort();
    memcpy(spare->id, sb->id, strnlen(sb->id, sizeof(spare->id) - 1));
    spare->pools = pools;
    HASH_ADD_STR(pools->spares, id, spare);
    spare_retire(spare);
}

int sandbox_claim(struct sandbox *sb, struct error *err)
{
    struct provider *p = sb->owner->provider;
    struct plan plan;
    struct egress_telling telling;
    if (sandbox_plan(sb, &plan, err) < 0)
        return -1;
    plan.spare = sb->limits_stay;
    sandbox_agent_expect(sb); /* they have time for us while the warden is at work */
    egress_tell_ahead(sb, &telling);
    int r = p->ops->claim(p, &plan, err);
    egress_told(&telling);
    if (r < 0)
        return -1;
    if (sb->exited)
        return error_set(err, ERROR_NOT_RUNNING, "it ended right after its claim");
    sb->unclaimed = false;
    return 0;
}

int sandboxes_release(struct sandboxes *s, const char *workspace, const char *name,
                      const char *actor, struct arena *arena, struct sandbox_info *ret_info,
                      struct error *err)
{
    if (sandboxes_delete(s, workspace, name, actor, arena, ret_info, err) < 0)
        return -1;
    const struct sandbox *sb = sandbox_find(s, workspace, ret_info->id, NULL);
    struct pool *pool = sb == NULL ? NULL : find_pool(sb);
    if (pool != NULL)
        pool->returned++;
    pools_wake(s);
    return 0;
}
