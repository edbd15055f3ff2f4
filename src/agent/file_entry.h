/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* struct stat to FILE_ENTRY. */

#include <sys/stat.h>

#include "agent/file_worker.h"
#include "agent/users.h"

/* What one request remembers of names. */
struct entry_names {
    struct id_names users;
    struct id_names groups;
};

#define ENTRY_NAMES_INIT                                                                           \
    {                                                                                              \
        .users = {.file = "/etc/passwd"}, .groups = {.file = "/etc/group" }                        \
    }

/* Queues a FILE_ENTRY. target may be NULL. */
int file_answer_entry(struct file_worker *worker, uint32_t id, const char *path,
                      const struct stat *st, const char *target, struct entry_names *names,
                      struct error *err);
/* The same for the directory that a list begins with; sorted: what follows is in order. */
int file_answer_directory(struct file_worker *worker, uint32_t id, const char *path,
                          const struct stat *st, bool sorted, struct entry_names *names,
                          struct error *err);
/* The same with where a link leads, and with the extended attributes that begin with the prefix
 * (NULL: none). `name` is in the directory fd; "": fd itself. */
int file_answer_whole(struct file_worker *worker, uint32_t id, const char *path, int fd,
                      const char *name, const struct stat *st, const char *prefix,
                      struct entry_names *names, struct error *err);

/* The same with what fd (O_PATH will do) is at. */
int file_answer_fd(struct file_worker *worker, uint32_t id, const char *path, int fd,
                   struct error *err);
