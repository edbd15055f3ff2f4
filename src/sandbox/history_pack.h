/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The packs of a history's repository. Each commit adds one, and when they are many they are made
 * one, which takes git long in a large one: so that is done beside commits. First all that the
 * newest commit needs is packed again, which changes nothing for anybody, then, with the repository
 * for oneself and for a moment only, the packs that were there before go. git writes no object
 * twice: a commit that was made meanwhile may rely on one that was in an old pack and that nobody
 * had needed any more; so what such commits need is packed once more before.
 *
 * A crash in between leaves packs that say the same twice, and they are made one the next time.
 */

#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"
#include "sandbox/history_repo.h"

struct packing {                  /* start from PACKING_INIT; packing_release() it */
    char head[GIT_NAME_SIZE];     /* that all was packed of */
    char packs[2][GIT_NAME_SIZE]; /* what was made */
    struct buf before;            /* names of the packs that were there: a list of strings */
};

enum { PACKING_NAMES_MAX = 1 << 20 };
#define PACKING_INIT                                                                               \
    {                                                                                              \
        .before = BUF_INIT(PACKING_NAMES_MAX)                                                      \
    }

void packing_release(struct packing *packing);
#define _cleanup_packing_ __attribute__((cleanup(packing_release)))

/* Beside commits: all in a new pack. */
int repository_pack(struct repository *r, struct packing *packing, struct error *err);
/* Alone: the old ones go. r->head is up to date afterwards. */
int repository_pack_end(struct repository *r, struct packing *packing, struct error *err);
/* Both, by somebody who is alone. */
int repository_repack(struct repository *r, struct error *err);

/* How many there are; their bytes are added to *bytes. On a worker thread. */
unsigned packs_count(int repository_fd, uint64_t *bytes);
/* Bytes of all of them. */
uint64_t repository_size(struct repository *r);
/* Forgets the older half of its commits; the next packing has them gone. 0: there is only one.
 * Alone. */
int repository_forget_half(struct repository *r, struct error *err);
