/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The folder of an audit log: files that are named after the number of their first line,
 * audit-00000000000000000001.jsonl, so that their order is that of their names, the last one is the
 * one that is written to, and a rotation renames nothing. And the head, in another place than the
 * folder: number and hash of the newest line.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "audit/chain.h"
#include "base/error.h"

enum { AUDIT_FILE_NAME_SIZE = 40, AUDIT_FILES_MAX = 10000 };

struct audit_file {
    uint64_t first; /* the number in its name */
    uint64_t bytes;
    int64_t changed_ms;
};

struct audit_files {
    struct audit_file *items; /* by number */
    size_t count;
};

/* Files whose names are not of that form are not looked at. */
int audit_files_list(int dir_fd, struct audit_files *ret_files, struct error *err);
void audit_files_release(struct audit_files *files);
void audit_file_name(uint64_t first, char out[AUDIT_FILE_NAME_SIZE]);
/* Files of lines that outlived theirs, kept-00000000000000000001.jsonl, named after the file that
 * they come from. */
int audit_kept_list(int dir_fd, struct audit_files *ret_files, struct error *err);
void audit_kept_name(uint64_t first, char out[AUDIT_FILE_NAME_SIZE]);
int audit_kept_open(int dir_fd, uint64_t first, int *ret_fd, struct error *err);
/* For reading; -1 with FILE_NOT_FOUND when it was removed meanwhile. */
int audit_file_open(int dir_fd, uint64_t first, int *ret_fd, struct error *err);

struct audit_head {
    uint64_t seq; /* 0: there is none */
    unsigned char hash[AUDIT_HASH_SIZE];
};

enum { AUDIT_HEAD_SIZE = 96 }; /* bytes of the file, always */
/* There is one, of 0, before there is a line. FILE_NOT_FOUND: the file is empty, so no log was ever
 * begun, or somebody took the head away; CONFLICT: it holds something else. */
int audit_head_read(int fd, struct audit_head *ret_head, struct error *err);
int audit_head_write(int fd, const struct audit_head *head, struct error *err);
