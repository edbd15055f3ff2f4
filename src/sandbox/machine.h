/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What the machine has to give, of each resource, and where the figure comes from. Cores, memory
 * and process ids are asked of the kernel, the disk of the warden, which knows what lies below its
 * volume; how much a disk, a network or the memory bus can move in a second nobody can say without
 * trying, so that is assumed unless the operator says it (--capacity).
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "sandbox/resources.h"

enum capacity_source { CAPACITY_DETECTED, CAPACITY_ASSUMED, CAPACITY_CONFIGURED };

struct machine {
    uint64_t total[RESOURCE_COUNT]; /* in the units of struct spec_limits */
    enum capacity_source source[RESOURCE_COUNT];
    uint64_t disk_most; /* the largest total of the disk since the start: others use it, too */
};

const char *capacity_source_text(enum capacity_source source); /* "detected", … */

/* data_dir_fd: the disk is its file system's until the warden has said more. */
void machine_detect(struct machine *machine, int data_dir_fd);

/* The disk, as the warden sees it; a configured figure stays. */
void machine_set_disk(struct machine *machine, uint64_t bytes);

/*
 * "cpu=4,memory=8Gi,networkIn=125M": quantities as in a sandbox's resources, no shares. Nothing
 * changes on failure: INVALID_ARGUMENT, INVALID_QUANTITY.
 */
int machine_configure(struct machine *machine, const char *text, struct error *err);
