/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Two sandboxes with the same ids could signal each other's processes and read each other's files
 * if anything else failed. So the ranges are kept apart for the whole machine, by links that the
 * kernel makes atomically and that vanish with a reboot, like the sandboxes themselves.
 */

#include "warden/ids.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "warden/files.h"
#include "warden/plan.h"

enum { TARGET_MAX = PATH_MAX + PLAN_ID_MAX + 2, REGISTRY_TRIES = 1000 };

bool ids_parse(const char *target, size_t *ret_data_len, const char **ret_id)
{
    const char *colon = strrchr(target, ':');
    if (target[0] != '/' || colon == NULL || !plan_id_valid(colon + 1))
        return false;
    *ret_data_len = (size_t)(colon - target);
    *ret_id = colon + 1;
    return true;
}

void ids_init(struct ids *ids, const char *data, const char *instance)
{
    uint32_t hash = 2166136261u; /* FNV-1a */
    for (const char *c = instance; *c != '\0'; c++)
        hash = (hash ^ (unsigned char)*c) * 16777619u;
    *ids = (struct ids){.dir = IDS_DIR, .data = data, .cursor = (int)(hash % ID_SLOTS)};
}

static void parent_of(const char *path, char out[PATH_MAX])
{
    snprintf(out, PATH_MAX, "%s", path);
    char *slash = strrchr(out, '/');
    if (slash != NULL)
        *slash = '\0';
}

/* Other servers tidy the folders away when they were the last to use them, also between two of
 * these calls. Whoever does that ends, so it does not happen for ever. */
static int open_registry(const struct ids *ids, int *ret_fd, struct error *err)
{
    char parent[PATH_MAX];
    struct error failure;
    parent_of(ids->dir, parent);
    for (int i = 0; i < REGISTRY_TRIES; i++) {
        if (dir_make_at(AT_FDCWD, parent, 0755, &failure) == 0 &&
            dir_make_at(AT_FDCWD, ids->dir, 0755, &failure) == 0 &&
            dir_open_at(AT_FDCWD, ids->dir, ret_fd, &failure) == 0)
            return 0;
        if (failure.sys != ENOENT)
            break;
    }
    *err = failure;
    return -1;
}

static bool read_target(int dirfd, const char *name, char target[TARGET_MAX])
{
    ssize_t len = readlinkat(dirfd, name, target, TARGET_MAX - 1);
    if (len < 0)
        return false;
    target[len] = '\0';
    return true;
}

/* Whether the holder's data folder is gone, so that nobody will ever give the slot back. */
static bool is_abandoned(const char *target)
{
    size_t len;
    const char *id;
    char data[PATH_MAX];
    struct stat st;
    if (!ids_parse(target, &len, &id) || len >= sizeof(data))
        return false;
    memcpy(data, target, len);
    data[len] = '\0';
    return stat(data, &st) < 0 && errno == ENOENT;
}

/* Looking and unlinking are two steps; the lock keeps another warden from coming in between. */
static bool reclaim(int dirfd, const char *name)
{
    char target[TARGET_MAX];
    if (!read_target(dirfd, name, target) || !is_abandoned(target) || flock(dirfd, LOCK_EX) < 0)
        return false;
    bool done =
        read_target(dirfd, name, target) && is_abandoned(target) && unlinkat(dirfd, name, 0) == 0;
    flock(dirfd, LOCK_UN);
    return done;
}

/* Takes the slot unless it is somebody's. The registry may have to be opened anew for it. */
static int take_slot(const struct ids *ids, int *dirfd, const char *target, int slot,
                     bool *ret_taken, struct error *err)
{
    char name[16];
    snprintf(name, sizeof(name), "%d", slot);
    for (int i = 0; i < REGISTRY_TRIES; i++) {
        *ret_taken = symlinkat(target, *dirfd, name) == 0;
        if (*ret_taken)
            return 0;
        if (errno == EEXIST) {
            if (!reclaim(*dirfd, name))
                return 0;
            continue;
        }
        if (errno != ENOENT)
            break;
        close(*dirfd);
        *dirfd = -1;
        if (open_registry(ids, dirfd, err) < 0)
            return -1;
    }
    return error_sys(err, "taking an id range");
}

int ids_take(struct ids *ids, const char *id, int *ret_slot, struct error *err)
{
    char target[TARGET_MAX];
    if (snprintf(target, sizeof(target), "%s:%s", ids->data, id) >= (int)sizeof(target))
        return error_set(err, ERROR_INVALID_PATH, "the data folder's path is too long");
    _cleanup_fd_ int dirfd = -1;
    if (open_registry(ids, &dirfd, err) < 0)
        return -1;
    for (int i = 0; i < ID_SLOTS; i++) {
        int slot = (ids->cursor + i) % ID_SLOTS;
        bool taken;
        if (take_slot(ids, &dirfd, target, slot, &taken, err) < 0)
            return -1;
        if (taken) {
            ids->cursor = (slot + 1) % ID_SLOTS;
            *ret_slot = slot;
            return 0;
        }
    }
    return error_set(err, ERROR_LIMIT_EXCEEDED, "all %d id ranges of this machine are taken",
                     ID_SLOTS);
}

struct walk {
    const char *data;
    ids_fn fn;
    void *arg;
};

static int visit(int dirfd, const char *name, void *arg)
{
    const struct walk *walk = arg;
    char target[TARGET_MAX], *end;
    size_t len;
    const char *id;
    long slot = strtol(name, &end, 10);
    if (*end != '\0' || slot < 0 || slot >= ID_SLOTS || !read_target(dirfd, name, target) ||
        !ids_parse(target, &len, &id))
        return 0;
    if (len != strlen(walk->data) || strncmp(target, walk->data, len) != 0)
        return 0;
    return walk->fn((int)slot, id, walk->arg);
}

int ids_each(const struct ids *ids, ids_fn fn, void *arg, struct error *err)
{
    struct walk walk = {.data = ids->data, .fn = fn, .arg = arg};
    return dir_each(AT_FDCWD, ids->dir, visit, &walk, err);
}

void ids_give(const struct ids *ids, const char *id, int slot)
{
    char path[PATH_MAX], target[TARGET_MAX];
    size_t len;
    const char *holder;
    snprintf(path, sizeof(path), "%s/%d", ids->dir, slot);
    if (!read_target(AT_FDCWD, path, target) || !ids_parse(target, &len, &holder))
        return;
    if (len == strlen(ids->data) && strncmp(target, ids->data, len) == 0 && strcmp(holder, id) == 0)
        unlink(path);
}

void ids_tidy(const struct ids *ids)
{
    char parent[PATH_MAX];
    parent_of(ids->dir, parent);
    if (rmdir(ids->dir) == 0)
        rmdir(parent);
}
