/* SPDX-License-Identifier: Apache-2.0 */

/* The head, with the last number in it, is written before the slots: a number that was given out is
 * not given out again, whenever somebody is killed. */

#include "sandbox/network_log_file.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/layout.h"
#include "sandbox/id_files.h"

#define POSITION ".position"

struct head {
    char magic[8]; /* also the version */
    uint64_t last;
    uint64_t reserved[6];
};
_Static_assert(sizeof(struct head) == 64, "a file's bytes");

static const char head_magic[8] = {'c', 'e', 'l', 'n', 'e', 't', '0', '1'};

int network_log_dir_open(int data_dir_fd, int *ret_fd, struct error *err)
{
    return id_folder_open(data_dir_fd, LAYOUT_NETWORK_LOGS, ret_fd, err);
}

static uint32_t check_of(const struct network_log_record *record)
{
    const unsigned char *bytes = (const unsigned char *)record;
    uint32_t hash = 2166136261u; /* FNV-1a */
    for (size_t i = sizeof(record->check); i < sizeof(*record); i++)
        hash = (hash ^ bytes[i]) * 16777619u;
    return hash;
}

static int write_at(int fd, const void *data, size_t len, off_t offset, struct error *err)
{
    return id_file_write_at(fd, data, len, offset, "a network's log", err);
}

static bool read_head(int fd, struct head *ret_head)
{
    return pread(fd, ret_head, sizeof(*ret_head), 0) == sizeof(*ret_head) &&
           memcmp(ret_head->magic, head_magic, sizeof(head_magic)) == 0;
}

/* Makes the file one of ours, if it is not, with at least this as its last number. */
static int write_head(int fd, uint64_t last, struct error *err)
{
    struct head head;
    if (!read_head(fd, &head)) {
        head = (struct head){.last = 0};
        memcpy(head.magic, head_magic, sizeof(head_magic));
        if (ftruncate(fd, 0) < 0)
            return error_sys(err, "writing a network's log");
    } else if (head.last >= last) {
        return 0;
    }
    head.last = last;
    return write_at(fd, &head, sizeof(head), 0, err);
}

int network_log_file_write(int dir_fd, const char *id, struct network_log_record *records,
                           size_t count, struct error *err)
{
    uint64_t last = 0;
    _cleanup_fd_ int fd = openat(dir_fd, id, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return error_sys(err, "opening the network's log of %s", id);
    for (size_t i = 0; i < count; i++)
        last = records[i].sequence > last ? records[i].sequence : last;
    if (write_head(fd, last, err) < 0)
        return -1;
    for (size_t i = 0; i < count; i++) {
        off_t slot = (off_t)(records[i].sequence % EGRESS_LOG_MAX);
        records[i].check = check_of(&records[i]);
        if (write_at(fd, &records[i], sizeof(records[i]),
                     (off_t)sizeof(struct head) + slot * (off_t)sizeof(records[i]), err) < 0)
            return -1;
    }
    return 0;
}

/* What was written whole, and where it belongs. Its texts end. */
static bool is_good(const struct network_log_record *record, size_t slot)
{
    return record->sequence != 0 && record->sequence % EGRESS_LOG_MAX == slot &&
           record->check == check_of(record) &&
           record->address[sizeof(record->address) - 1] == '\0' &&
           record->detail[sizeof(record->detail) - 1] == '\0' &&
           record->name[sizeof(record->name) - 1] == '\0';
}

static int by_sequence(const void *a, const void *b)
{
    const struct network_log_record *x = a, *y = b;
    return (x->sequence > y->sequence) - (x->sequence < y->sequence);
}

size_t network_log_file_read(int dir_fd, const char *id,
                             struct network_log_record out[EGRESS_LOG_MAX])
{
    struct head head;
    size_t count = 0;
    _cleanup_fd_ int fd = openat(dir_fd, id, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 || !read_head(fd, &head))
        return 0;
    ssize_t n = pread(fd, out, EGRESS_LOG_MAX * sizeof(*out), sizeof(head));
    size_t slots = n < 0 ? 0 : (size_t)n / sizeof(*out);
    for (size_t i = 0; i < slots; i++)
        if (is_good(&out[i], i)) {
            struct network_log_record record = out[i];
            out[count++] = record;
        }
    qsort(out, count, sizeof(*out), by_sequence);
    return count;
}

uint64_t network_log_file_last(int dir_fd, const char *id)
{
    struct head head;
    _cleanup_fd_ int fd = openat(dir_fd, id, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    return fd >= 0 && read_head(fd, &head) ? head.last : 0;
}

void network_log_file_remove(int dir_fd, const char *id)
{
    unlinkat(dir_fd, id, 0);
}

void network_log_dir_sweep(int dir_fd, bool (*each)(void *ctx, const char *id), void *ctx)
{
    id_folder_sweep(dir_fd, each, ctx);
}

struct network_log_position network_log_position_read(int dir_fd)
{
    struct network_log_position position;
    _cleanup_fd_ int fd = openat(dir_fd, POSITION, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 || pread(fd, &position, sizeof(position), 0) != sizeof(position))
        return (struct network_log_position){0};
    return position;
}

int network_log_position_write(int dir_fd, const struct network_log_position *position,
                               struct error *err)
{
    _cleanup_fd_ int fd = openat(dir_fd, POSITION, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return error_sys(err, "opening how far networks' logs are kept");
    return write_at(fd, position, sizeof(*position), 0, err);
}
