/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The warden's mount namespace of its own, and what is mounted only there: a small tmpfs with the
 * template of every sandbox's /dev, and every sandbox's /sys. It goes with the warden, however that
 * ends.
 */

#include <stdbool.h>

#include "base/error.h"

enum { STAGE_SLOTS = 4 };

struct stage {
    int outside; /* the machine's mount namespace */
    int fd;      /* the tmpfs */
    int network; /* what /sys shows of networks, for as long as it is open: an empty one */
    /* Kernels before 6.15 take only attached mounts as overlay layers; found out at first use. */
    bool attach_layers;
};

/* data: the data folder; path: an empty folder to mount on. Directory fds opened before are of the
 * old namespace: parts of them cannot be cloned, so open what is to be cloned afterwards. */
int stage_enter(struct stage *stage, const char *data, const char *path, struct error *err);

/* Goes back to the machine's namespace; the stage vanishes. */
int stage_leave(struct stage *stage, struct error *err);

/* For kernels that need it: mounts a detached tree on a slot of the stage, and off again. */
int stage_attach(const struct stage *stage, int slot, int tree, struct error *err);
void stage_detach(const struct stage *stage, int slot);
