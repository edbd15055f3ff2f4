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

static uint64_t layer_bytes(const struct sandbox *sb)
{
    double disk = sandbox_load(sb).disk;
    return isnan(disk) ? 0 : (uint64_t)disk;
}

/* What the disk limit leaves beside the files, as of the last sample. */
static uint64_t disk_left(const struct sandbox *sb)
{
    uint64_t limit = sb->limits.disk_bytes, layer = layer_bytes(sb);
    return limit > layer + FIRST_BYTES ? limit - layer : FIRST_BYTES;
}

uint64_t history_bound(const struct sandbox *sb)
{
    uint64_t most = sb->owner->histories->repository_max, left = disk_left(sb);
    return left < most ? left : most;
}

static int no_room_on_disk(const struct sandbox *sb, struct error *err)
{
    char limit[QUOTA_TEXT_SIZE], files[QUOTA_TEXT_SIZE], history[QUOTA_TEXT_SIZE];
    quota_amount(QUOTA_UNIT_BYTES, sb->limits.disk_bytes, limit);
    quota_amount(QUOTA_UNIT_BYTES, layer_bytes(sb), files);
    quota_amount(QUOTA_UNIT_BYTES, sb->history_bytes, history);
    return error_set(err, ERROR_QUOTA_EXCEEDED,
                     "the history has no room left in the sandbox's disk limit of %s: its files "
                     "take %s, its history %s. Delete files, or give it more disk",
                     limit, files, history);
}

void history_squeeze(struct sandbox *sb)
{
    sb->history->squeeze = sb->history_bytes > history_bound(sb) / 4;
    history_repack_if_due(sb);
}

/* One commit may be larger than all that may be kept: what helps then is the next one. */
static bool is_just_packed(const struct sandbox_history *h, uint64_t bound)
{
    return h->packed_bytes > 0 && h->bytes <= h->packed_bytes + bound / 8;
}

/* What the disk limit leaves for one more commit. An old sample says enough where there is plenty
 * of room. */
static int room_on_disk(struct sandbox *sb, uint64_t *ret_room, struct error *err)
{
    bool ignored;
    if (sb->history_bytes + sb->limits.disk_bytes / 8 > disk_left(sb) &&
        sb->status == SANDBOX_RUNNING)
        (void)metrics_look(sb, &ignored, NULL);
    uint64_t left = disk_left(sb);
    uint64_t room = left > sb->history_bytes ? left - sb->history_bytes : 0;
    if (room < COMMIT_MIN && is_just_packed(sb->history, left))
        room = left; /* what packing left: the next commit makes it go */
    if (room < COMMIT_MIN) {
        history_squeeze(sb);
        return no_room_on_disk(sb, err);
    }
    *ret_room = room;
    return 0;
}

/* The server's own bound is passed by as much again, until the repository has been packed. */
static int room_in_size(struct sandbox *sb, uint64_t *ret_room, struct error *err)
{
    const struct sandbox_history *h = sb->history;
    uint64_t most = sb->owner->histories->repository_max;
    *ret_room = 2 * most;
    if (h->bytes <= 2 * most || is_just_packed(h, most))
        return 0;
    history_repack_if_due(sb);
    return error_set(err, ERROR_LIMIT_EXCEEDED,
                     "the history is too large: it goes on when it has been packed");
}

int history_room(struct sandbox *sb, uint64_t *ret_room, struct error *err)
{
    const struct tenants *tenants = &sb->owner->admission.tenants;
    const struct tenant *tenant = sb->promise.tenant;
    uint64_t room = 0, size = 0;
    if (room_in_size(sb, &size, err) < 0 || room_on_disk(sb, &room, err) < 0)
        return -1;
    room = room < size ? room : size;
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
