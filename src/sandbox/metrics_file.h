/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The rings of sandboxes on disk: a file each in db/metrics, of a fixed size. Calls block, so they
 * are made on a worker thread. What was written survives the death of this process; a power cut may
 * cost the last minutes.
 */

#include <stddef.h>

#include "base/error.h"
#include "base/limits.h"
#include "sandbox/series.h"

struct metrics_write {
    char id[33];
    size_t count;
    struct series_place places[SERIES_PENDING_MAX + SERIES_TIERS];
};

/* Opens the folder, which is made if need be. */
int metrics_dir_open(int data_dir_fd, int *ret_fd, struct error *err);

int metrics_file_write(int dir_fd, uint32_t fine_width, const struct metrics_write *write,
                       struct error *err);
/* An empty image when there is no file, or none that can be used. */
void metrics_file_read(int dir_fd, uint32_t fine_width, const char *id,
                       struct series_image *ret_image);
void metrics_file_remove(int dir_fd, const char *id);

/* Removes the files for which keep() says no. */
void metrics_dir_sweep(int dir_fd, bool (*keep)(void *ctx, const char *id), void *ctx);
