/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Images in the warden's own store (DIR/images). A plan names one by its id; there is no way to
 * name a path.
 *
 * `host` is the machine's own /usr with a fresh root around it. It is made when the warden starts
 * and made again when the machine's packages have changed, as another generation next to the old
 * one, which sandboxes that run may still stand on.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"

#define IMAGE_HOST "host"

struct image {
    int root; /* lower layer of / */
    int usr;  /* lowest layer of /usr */
    int mask; /* layer above it, hiding what is not everybody's */
};

/* Makes or finds the current generation of `host` in DIR/images (as store_fd) and opens it. Older
 * generations are removed if nothing runs on them (`sole`). */
int image_host_open(struct image *image, int store_fd, bool sole, struct error *err);
void image_close(struct image *image);

/* For the parts of image_host. */

/* image_skel.c: the fresh root. */
int image_skel_make(int target_fd, struct error *err);
extern const char *const image_skel_patterns[]; /* of /etc; NULL at the end */

/* image_mask.c: `hidden` are paths below /usr, each with its NUL. */
#define IMAGE_HIDDEN_MAX ((size_t)32 << 20)
int image_mask_find(int usr_fd, struct buf *hidden, struct error *err);
int image_mask_make(int usr_fd, int mask_fd, const struct buf *hidden, struct error *err);

/* image_cache.c: the hidden paths of a machine in the state that `stamp` names, shared by all
 * servers of the machine. Loading says whether there were any, and leaves `hidden` empty if not;
 * without a place to save to, nothing is saved. */
bool image_cache_load(const char *folder, uint64_t stamp, struct buf *hidden);
void image_cache_save(const char *folder, uint64_t stamp, const struct buf *hidden);
#define IMAGE_CACHE_DIR "/var/cache/cella"
