/* SPDX-License-Identifier: Apache-2.0 */

/* One small write per point: each goes to the slot that its time gives it. */

#include "sandbox/metrics_file.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/layout.h"
#include "sandbox/id_files.h"

int metrics_dir_open(int data_dir_fd, int *ret_fd, struct error *err)
{
    return id_folder_open(data_dir_fd, LAYOUT_METRICS, ret_fd, err);
}

static int write_at(int fd, const void *data, size_t len, off_t offset, struct error *err)
{
    return id_file_write_at(fd, data, len, offset, "metrics", err);
}

/* Makes the file one of ours, if it is not: a new one has holes where its slots will be. */
static int prepare(int fd, uint32_t fine_width, struct error *err)
{
    enum { HEADER = offsetof(struct series_image, points) };
    struct series_image head;
    ssize_t n = pread(fd, &head, HEADER, 0);
    bool ours = n == HEADER;
    if (ours && head.fine_width == fine_width && series_image_check(&head, fine_width))
        return 0;
    _cleanup_free_ struct series_image *image = malloc(sizeof(*image));
    if (image == NULL)
        return error_sys(err, "writing metrics");
    ours = ours && pread(fd, image, sizeof(*image), 0) == sizeof(*image) &&
           series_image_check(image, fine_width);
    if (ours) /* its samples came at other intervals: the fine ring begins anew */
        return write_at(fd, image, HEADER + SERIES_FINE_SLOTS * sizeof(image->points[0]), 0, err);
    series_image_init(image, fine_width);
    if (ftruncate(fd, 0) < 0 || ftruncate(fd, sizeof(*image)) < 0)
        return error_sys(err, "writing metrics");
    return write_at(fd, image, HEADER, 0, err);
}

int metrics_file_write(int dir_fd, uint32_t fine_width, const struct metrics_write *write,
                       struct error *err)
{
    const struct series series = {.fine_width = fine_width};
    _cleanup_fd_ int fd =
        openat(dir_fd, write->id, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return error_sys(err, "opening the metrics of %s", write->id);
    if (prepare(fd, fine_width, err) < 0)
        return -1;
    for (size_t i = 0; i < write->count; i++) {
        const struct series_place *place = &write->places[i];
        size_t slot = series_slot(&series, place->tier, place->point.time);
        off_t offset = (off_t)(offsetof(struct series_image, points) + slot * sizeof(place->point));
        if (write_at(fd, &place->point, sizeof(place->point), offset, err) < 0)
            return -1;
    }
    return 0;
}

void metrics_file_read(int dir_fd, uint32_t fine_width, const char *id,
                       struct series_image *ret_image)
{
    _cleanup_fd_ int fd = openat(dir_fd, id, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 || read(fd, ret_image, sizeof(*ret_image)) != sizeof(*ret_image) ||
        !series_image_check(ret_image, fine_width))
        series_image_init(ret_image, fine_width);
}

void metrics_file_remove(int dir_fd, const char *id)
{
    unlinkat(dir_fd, id, 0);
}

void metrics_dir_sweep(int dir_fd, bool (*keep)(void *ctx, const char *id), void *ctx)
{
    id_folder_sweep(dir_fd, keep, ctx);
}
