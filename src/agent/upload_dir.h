/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The directory of one upload (uploads.h), for the verbs that work on it. */

#include "agent/file_worker.h"
#include "agent/md5.h"
#include "base/limits.h"

enum { UPLOAD_ID_LEN = 16, UPLOAD_PART_NAME_SIZE = 7 };

struct upload_meta {
    char text[2 * PATH_BYTES_MAX];
    struct upload_about about; /* strings point into text */
};

struct upload_part_info {
    uint64_t number;
    uint64_t size;
    char etag[MD5_TEXT_SIZE];
};

/* UPLOAD_NOT_FOUND. lock: LOCK_SH, LOCK_EX or 0; CONFLICT when it is not to be had at once. */
int upload_open(const char *state_dir, const char *id, int lock, int *ret_fd, struct error *err);
int upload_read_meta(int fd, const char *id, struct upload_meta *ret_meta, struct error *err);
void upload_drop(const char *state_dir, const char *id, int fd);

void upload_part_name(uint64_t number, char name[UPLOAD_PART_NAME_SIZE]);
/* -1 when there is no such part. */
int upload_part_look(int fd, const char *name, struct upload_part_info *ret_info);

/* The numbers of its parts, in order, to be freed. */
int upload_parts_find(int fd, uint64_t **ret_numbers, size_t *ret_count, struct error *err);
