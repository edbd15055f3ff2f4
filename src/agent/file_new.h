/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A file that is being made: content without a name, then a name for it. Until it has its name
 * nobody sees it, and the kernel removes it when the worker ends, however it ends.
 */

#include <stdbool.h>
#include <sys/stat.h>

#include "agent/file_path.h"
#include "agent/file_worker.h"

/* Where the file at `path` really is: links at its end are followed, as open() would, also to
 * what does not exist yet. Opens no directory and makes none: `dir` may be missing still, and then
 * place->dir_fd is -1. */
int new_file_place(const char *path, struct path_place *ret_place, struct error *err);

/* What is at `place` (dir_fd must be open): *ret_exists and *ret_st. IS_A_DIRECTORY, NOT_A_FILE for
 * what cannot be replaced. */
int new_file_look(const struct path_place *place, const char *path, bool *ret_exists,
                  struct stat *ret_st, struct error *err);

/* Opens content without a name on the file system of dir_fd (O_TMPFILE). Sets errno alone. */
int new_file_unnamed(int dir_fd);

/* Takes FILE_DATA frames into fd up to FILE_END, or (ret_next not NULL) up to any other frame,
 * whose header is returned there. */
int new_file_receive(struct file_worker *worker, int fd, const char *path,
                     struct frame_header *ret_next, struct error *err);

/* Mode as asked for, else as the file in its place (`old`, or NULL) has it, with its owner. */
int new_file_attributes(int fd, uint64_t mode, const struct stat *old, const char *path,
                        struct error *err);

/* A name for content without one. EEXIST when it is taken. Sets errno alone. */
int new_file_link(int fd, int dir_fd, const char *name);

/* ".cella-" and random digits. */
int new_file_hidden_name(char name[PATH_NAME_SIZE], struct error *err);
bool new_file_is_hidden(const char *name);

/* Gives the content at fd the name, replacing what has it. */
int new_file_replace(int fd, int dir_fd, const char *name, const char *path, struct error *err);

int write_whole(int fd, const void *data, size_t len, const char *path, struct error *err);
