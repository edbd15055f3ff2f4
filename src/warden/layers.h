/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The file systems of one sandbox, mounted nowhere yet: two overlays (/ and /usr) over the image
 * and the sandbox's writable layer, and /dev. All of them show ids in the sandbox's range while
 * the disk holds canonical ones. /sys, the fourth, belongs to nobody inside.
 */

#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"
#include "warden/image.h"
#include "warden/stage.h"

struct layers {
    int root;
    int usr;
    int dev;
    int sys;
};

#define LAYERS_INIT                                                                                \
    {                                                                                              \
        .root = -1, .usr = -1, .dev = -1, .sys = -1                                                \
    }

struct layers_request {
    const struct image *image;
    int volume;     /* folder of the writable layers */
    const char *id; /* its name there */
    int userns;     /* whose ids to show */
    uid_t base;     /* the sandbox's root, outside */
    bool read_only;
};

int layers_make(struct stage *stage, const struct layers_request *request,
                struct layers *ret_layers, struct error *err);
void layers_release(struct layers *layers);
