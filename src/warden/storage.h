/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Where the sandboxes' writable layers live: DIR/volume/<id>, with root/{upper,work} and
 * usr/{upper,work} in it, so that one snapshot clones a sandbox. Two backends:
 *
 *   btrfs   a subvolume per sandbox with a hard quota; removal takes no longer for big ones.
 *           On the data folder's own file system if that is btrfs, else in a sparse loop file
 *   plain   directories; the quota is not enforced, removal walks the tree
 *
 * Files of a sandbox keep their setuid bits with real root's id on disk. So the folder is closed
 * to everybody else, and a volume of our own is mounted nosuid, nodev and noexec.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

enum storage_kind { STORAGE_AUTO, STORAGE_BTRFS, STORAGE_PLAIN };

struct storage;

struct storage_backend {
    const char *name;
    int (*create)(const struct storage *storage, const char *id, bool *ret_fresh,
                  struct error *err);
    int (*limit)(const struct storage *storage, const char *id, uint64_t bytes, struct error *err);
    /* Ends the life of the entry; may take long when `slow`. */
    int (*destroy)(const struct storage *storage, const char *name, struct error *err);
    /* Bytes that the layer takes, what is not on the disk yet included. NULL: nobody keeps count,
     * and only a walk over its files would tell (storage_measure()). */
    int (*usage)(const struct storage *storage, const char *id, uint64_t *ret_bytes,
                 struct error *err);
    bool slow;
};

struct storage {
    const struct storage_backend *backend;
    const char *data;     /* the data folder's real path; borrowed */
    int fd;               /* DIR/volume; -1 until storage_open() */
    bool mounted;         /* a loop volume of ours is on it */
    bool quota_off;       /* the file system has none */
    char description[96]; /* for people: "btrfs loop volume, simple quota" */
    char qgroups[80];     /* btrfs: where the kernel shows quota groups; "": nowhere */
};

extern const struct storage_backend storage_btrfs, storage_plain;

/* Turns quotas on, and says in the description what came of it. */
void storage_btrfs_enable_quota(struct storage *storage);

bool storage_kind_parse(const char *name, enum storage_kind *ret_kind);

/* Chooses the backend and mounts the volume if there is to be one (a warden that was killed may
 * have left it mounted: then that one is used). Runs in the machine's mount namespace. */
int storage_mount(struct storage *storage, const char *data, enum storage_kind kind,
                  uint64_t volume_size, struct error *err);

/* Opens it, in the mount namespace that the warden stays in, and removes leftovers. */
int storage_open(struct storage *storage, struct error *err);
void storage_close(struct storage *storage);

/* Unmounts the volume, in the machine's mount namespace. Waits for file systems of sandboxes that
 * have just ended to let go of it. */
int storage_unmount(const struct storage *storage, struct error *err);

/* Makes the sandbox's layer, or finds it (then *ret_fresh is false), and sets its quota. */
int storage_create(const struct storage *storage, const char *id, uint64_t quota, bool *ret_fresh,
                   struct error *err);
bool storage_exists(const struct storage *storage, const char *id);

/* Takes the layer out of sight under another name, at once and for good: storage_open() of a
 * later warden finishes what storage_destroy() could not. */
int storage_detach(const struct storage *storage, const char *id, struct error *err);
int storage_destroy(const struct storage *storage, const char *id, struct error *err);

/* What a layer takes, at once; false when nobody keeps count. */
bool storage_usage(const struct storage *storage, const char *id, uint64_t *ret_bytes);
/* The same by walking over it, which takes as long as it has files: for a child. */
uint64_t storage_measure(const struct storage *storage, const char *id);

typedef int (*storage_fn)(const char *id, void *arg);
int storage_each(const struct storage *storage, storage_fn fn, void *arg, struct error *err);
