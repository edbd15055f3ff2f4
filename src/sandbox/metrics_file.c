/* SPDX-License-Identifier: Apache-2.0 */

/* One small write per point: each goes to the slot that its time gives it. */

#include "sandbox/metrics_file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/layout.h"

int metrics_dir_open(int data_dir_fd, int *ret_fd, struct error *err)
{
    if (mkdirat(data_dir_fd, LAYOUT_METRICS, 0700) < 0 && errno != EEXIST)
        return error_sys(err, "making %s", LAYOUT_METRICS);
    int fd = openat(data_dir_fd, LAYOUT_METRICS, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return error_sys(err, "opening %s", LAYOUT_METRICS);
    *ret_fd = fd;
    return 0;
}

static int write_at(int fd, const void *data, size_t len, off_t offset, struct error *err)
{
    ssize_t n = pwrite(fd, data, len, offset);
    if (n < 0)
        return error_sys(err, "writing metrics");
    return n == (ssize_t)len ? 0 : error_set(err, ERROR_INTERNAL, "writing metrics: cut short");
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
    int fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    _cleanup_dir_ DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    if (dir == NULL && fd >= 0)
        close(fd);
    const struct dirent *entry;
    while (dir != NULL && (entry = readdir(dir)) != NULL)
        if (entry->d_name[0] != '.' && !keep(ctx, entry->d_name))
            metrics_file_remove(dir_fd, entry->d_name);
}
