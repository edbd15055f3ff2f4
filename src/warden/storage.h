/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Where the sandboxes' writable layers live: DIR/volume/<id>, with root/{upper,work} and
 * usr/{upper,work} in it, so that one snapshot clones a sandbox. Two backends:
 *
 *   btrfs   a subvolume per sandbox with a hard quota; removal takes no longer for big ones.
 *           On the data folder's own file system if that is btrfs, else in a loop file
 *   plain   directories; the quota is not enforced, removal and copies walk the tree
 *
 * What a copy began with counts as used by it, for as long as it lives ("inherited": written down
 * on the layer, since simple quotas charge an extent to whoever wrote it first). So a copy never
 * holds more than its quota, however many copies of copies there are; the price is that removing
 * what it began with gives nothing back.
 *
 * Files of a sandbox keep their setuid bits with real root's id on disk. So the folder is closed
 * to everybody else, and a volume of our own is mounted nosuid, nodev and noexec.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

enum storage_kind { STORAGE_AUTO, STORAGE_BTRFS, STORAGE_PLAIN };

struct storage;

/* Lets whoever copies be stopped between two files. */
struct copy_watch {
    bool (*stop)(void *arg);
    void *arg;
};

struct storage_backend {
    const char *name;
    int (*create)(const struct storage *storage, const char *id, bool *ret_fresh,
                  struct error *err);
    int (*limit)(const struct storage *storage, int dirfd, const char *name, uint64_t bytes,
                 struct error *err);
    /* Ends the life of the entry; may take long when `slow`. */
    int (*destroy)(const struct storage *storage, int dirfd, const char *name, struct error *err);
    /* Bytes that the layer is charged with, what is not on the disk yet included, what it inherited
     * not. NULL: nobody keeps count, and only a walk over its files would tell. */
    int (*usage)(const struct storage *storage, const char *id, uint64_t *ret_bytes,
                 struct error *err);
    /* Gets what is dirty in the layer to disk, so that a copy right afterwards has little to wait
     * for. NULL: a copy does not wait for it. `scratch` is a directory to make things in. */
    int (*settle)(const struct storage *storage, const char *id, int scratch, struct error *err);
    int (*copy)(const struct storage *storage, const char *id, int dirfd, const char *name,
                const struct copy_watch *watch, struct error *err);
    bool slow;
};

struct storage {
    const struct storage_backend *backend;
    const char *data;     /* the data folder's real path; borrowed */
    int fd;               /* DIR/volume; -1 until storage_open() */
    bool mounted;         /* a loop volume of ours is on it */
    bool sparse;          /* its file is not allocated in full: a full disk means write errors */
    bool quota_off;       /* the file system has none */
    bool quota_simple;    /* extents are charged to who wrote them, not to who holds them */
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
                  uint64_t volume_max, struct error *err);

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

/* RESOURCE_IN_USE when the layer holds more than this already. Walks the tree when `slow`. A layer
 * that is not there fits. */
int storage_fits(const struct storage *storage, const char *id, uint64_t quota, struct error *err);
/* Another quota for a layer, if it is there. */
int storage_limit(const struct storage *storage, const char *id, uint64_t quota, struct error *err);

typedef int (*storage_fn)(const char *id, void *arg);
int storage_each(const struct storage *storage, storage_fn fn, void *arg, struct error *err);

/*
 * ---- copies (storage_clone.c) ----
 *
 * A copy is made below DIR/volume/.clones/<id> and renamed to its place when it is whole: what a
 * crash leaves there belongs to nobody. begin, settle, copy and finish are for a child that has
 * time; commit and abandon are quick.
 */
#define STORAGE_CLONES  ".clones"
#define STORAGE_DELETED ".del" /* behind the id of a layer that is to go */

struct clone_place {
    int lock; /* held while the copy is made: a new warden waits for it */
    int fd;   /* .clones/<id> */
};
#define CLONE_PLACE_INIT                                                                           \
    {                                                                                              \
        .lock = -1, .fd = -1                                                                       \
    }

/* Takes the place of the copy, and removes what an earlier try left there. CANCELLED when `watch`
 * (NULL: none) says to stop: then the place is left alone. */
int storage_clone_begin(const struct storage *storage, const char *id,
                        const struct copy_watch *watch, struct clone_place *ret_place,
                        struct error *err);
int storage_clone_settle(const struct storage *storage, const char *source,
                         const struct clone_place *place, struct error *err);
int storage_clone_copy(const struct storage *storage, const char *source,
                       const struct clone_place *place, const struct copy_watch *watch,
                       struct error *err);
/* Makes a layer of its own of the copy: its quota (RESOURCE_IN_USE), its hostname, and no leftovers
 * of the mounts that the source had. */
int storage_clone_finish(const struct storage *storage, const char *source,
                         const struct clone_place *place, uint64_t quota, const char *hostname,
                         struct error *err);
/* Removes what is there of a copy. */
int storage_clone_discard(const struct storage *storage, const char *id, struct error *err);
void storage_clone_release(struct clone_place *place);

/* The copy is the layer of `id` from now on. */
int storage_clone_commit(const struct storage *storage, const char *id, struct error *err);
/* Gives up a copy whose child was killed: what there is of it is gone or, when `slow`, waits for
 * storage_destroy(). */
void storage_clone_abandon(const struct storage *storage, const char *id);

/* Removes the folder of copies if it is empty. Only while none is being made. */
void storage_clone_tidy(const struct storage *storage);

/* Removes what earlier wardens left, once their children are gone. */
int storage_clone_sweep(const struct storage *storage, struct error *err);
