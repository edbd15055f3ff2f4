/* SPDX-License-Identifier: Apache-2.0 */

/*
 * How large a history may be. It counts towards its sandbox's disk limit: what the limit leaves
 * beside the files in the sandbox's layer is the bound of its repository, and the workspace's quota
 * for histories bounds all of them together. git is stopped by the kernel (RLIMIT_FSIZE) before it
 * writes a pack that is larger than the room that is left. Files that grow later make the bound
 * smaller; the repository is then packed and loses its older half until it fits.
 */

#include <math.h>

#include "base/limits.h"
#include "base/log.h"
#include "loop/co.h"
#include "sandbox/history_pack.h"
#include "sandbox/history_state.h"

enum {
    COMMIT_MIN = 64 * 1024,    /* bytes that a small commit takes, with its index */
    FIRST_BYTES = 1024 * 1024, /* that a sandbox's history may have even if its disk is full */
};

/* ---- what is in use ---- */

void history_count(struct sandbox *sb, uint64_t bytes)
{
    struct tenant *tenant = sb->promise.tenant;
    if (tenant != NULL)
        tenant->history_bytes += bytes - sb->history_bytes; /* modulo 2^64: it may be less */
    sb->history_bytes = bytes;
    sb->history_counted = true;
}

struct measuring {
    int histories_fd;
    const char *id;
    uint64_t bytes;
};

static void measure_on_worker(void *arg)
{
    struct measuring *m = arg;
    m->bytes = history_folder_bytes(m->histories_fd, m->id);
}

void history_measure(struct sandbox *sb)
{
    struct histories *all = sb->owner->histories;
    struct measuring m = {all->dir_fd, sb->id, 0};
    workers_run(all->git.workers, measure_on_worker, &m);
    if (!sb->gone)
        history_count(sb, m.bytes);
}

static struct sandbox *next_uncounted(const struct sandboxes *s, struct sandbox *after)
{
    struct sandbox *sb = after == NULL || after->gone ? s->ids : after->by_id.next;
    while (sb != NULL && sb->history_counted)
        sb = sb->by_id.next;
    return sb;
}

/* Those that were there when the server started, one after the other, beside everything else. */
static void measure_all(void *arg)
{
    struct sandboxes *s = arg;
    struct sandbox *sb = NULL, *next;
    while (!s->closing && (next = next_uncounted(s, sb)) != NULL) {
        sandbox_hold(next);
        if (sb != NULL)
            sandbox_drop(sb);
        sb = next;
        history_measure(sb);
    }
    if (sb != NULL)
        sandbox_drop(sb);
    if (--s->drivers == 0)
        co_cond_wake_all(&s->idle);
}

void history_measure_all(struct sandboxes *s)
{
    struct error err = {0};
    s->drivers++;
    if (co_spawn(s->loop, measure_all, s, NULL, &err) == 0)
        return;
    s->drivers--;
    log_warn("history: %s", err.message);
}

/* ---- what may be ---- */

/* A sample that is a while old says enough where there is plenty of room. */
static uint64_t layer_bytes(struct sandbox *sb, bool fresh)
{
    bool ignored;
    if (fresh && sb->status == SANDBOX_RUNNING)
        (void)metrics_look(sb, &ignored, NULL);
    double disk = sandbox_load(sb).disk;
    return isnan(disk) ? 0 : (uint64_t)disk;
}

uint64_t history_bound(const struct sandbox *sb)
{
    uint64_t most = sb->owner->histories->repository_max, limit = sb->limits.disk_bytes;
    double disk = sandbox_load(sb).disk;
    uint64_t layer = isnan(disk) ? 0 : (uint64_t)disk;
    uint64_t left = limit > layer + FIRST_BYTES ? limit - layer : FIRST_BYTES;
    return left < most ? left : most;
}

static int no_room_on_disk(const struct sandbox *sb, uint64_t layer, struct error *err)
{
    char limit[QUOTA_TEXT_SIZE], files[QUOTA_TEXT_SIZE], history[QUOTA_TEXT_SIZE];
    quota_amount(QUOTA_UNIT_BYTES, sb->limits.disk_bytes, limit);
    quota_amount(QUOTA_UNIT_BYTES, layer, files);
    quota_amount(QUOTA_UNIT_BYTES, sb->history_bytes, history);
    return error_set(err, ERROR_QUOTA_EXCEEDED,
                     "the history has no room left in the sandbox's disk limit of %s: its files "
                     "take %s, its history %s. Delete files, or give it more disk",
                     limit, files, history);
}

/* What is left for one more commit; one that was packed may be replaced by a newer one. */
static int room_on_disk(struct sandbox *sb, uint64_t *ret_room, struct error *err)
{
    const struct sandbox_history *h = sb->history;
    uint64_t limit = sb->limits.disk_bytes, bound = history_bound(sb);
    if (sb->history_bytes + limit / 8 > bound) {
        (void)layer_bytes(sb, true);
        bound = history_bound(sb);
    }
    uint64_t room = bound > sb->history_bytes ? bound - sb->history_bytes : 0;
    bool just_packed = h->packed_bytes > 0 && h->bytes <= h->packed_bytes + bound / 8;
    if (room < COMMIT_MIN && just_packed)
        room = bound; /* what packing left: the next commit makes it go */
    if (room < COMMIT_MIN) {
        history_repack_if_due(sb);
        return no_room_on_disk(sb, layer_bytes(sb, false), err);
    }
    *ret_room = room;
    return 0;
}

int history_room(struct sandbox *sb, uint64_t *ret_room, struct error *err)
{
    const struct tenants *tenants = &sb->owner->admission.tenants;
    const struct tenant *tenant = sb->promise.tenant;
    uint64_t room = 0;
    if (room_on_disk(sb, &room, err) < 0)
        return -1;
    uint64_t quota = tenant == NULL ? 0 : tenant_quotas(tenants, tenant->name)->of[QUOTA_HISTORY];
    if (quota > 0) {
        if (tenant_check(tenants, tenant, QUOTA_HISTORY, COMMIT_MIN, err) < 0) {
            if (err != NULL)
                err->code = ERROR_QUOTA_EXCEEDED;
            return -1;
        }
        uint64_t left = quota - tenant->history_bytes;
        room = room < left ? room : left;
    }
    *ret_room = room;
    return 0;
}
