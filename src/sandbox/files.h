/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Files of a sandbox. On coroutines; waits for a sandbox that is being made, as in processes.h.
 * Paths are absolute and normalized (path_normalize()).
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/arena.h"
#include "base/error.h"
#include "sandbox/sandbox.h"
#include "wire/messages.h"

int sandbox_file_stat(struct sandboxes *s, const char *workspace, const char *name,
                      const char *path, struct arena *arena, struct file_entry *ret_entry,
                      struct error *err);
/* The same with a choice of what is looked at, and how (wire/messages.h). */
int sandbox_file_look(struct sandboxes *s, const char *workspace, const char *name,
                      const struct file_ref *request, struct arena *arena,
                      struct file_entry *ret_entry, struct error *err);
/* The directory itself, and what is in it, sorted by name (entry.path is the name alone). */
int sandbox_file_list(struct sandboxes *s, const char *workspace, const char *name,
                      const char *path, struct arena *arena, struct file_entry *ret_dir,
                      struct file_entry **ret_items, size_t *ret_count, struct error *err);
int sandbox_file_list_of(struct sandboxes *s, const char *workspace, const char *name,
                         const struct file_ref *request, struct arena *arena,
                         struct file_entry *ret_dir, struct file_entry **ret_items,
                         size_t *ret_count, struct error *err);
int sandbox_file_mkdir(struct sandboxes *s, const char *workspace, const char *name,
                       const char *path, uint64_t mode, struct arena *arena,
                       struct file_entry *ret_entry, struct error *err);
int sandbox_file_make_dir(struct sandboxes *s, const char *workspace, const char *name,
                          const struct file_mkdir *request, struct arena *arena,
                          struct file_entry *ret_entry, struct error *err);
/* As rename(2), with the parents made; *ret_entry is what it is now. */
int sandbox_file_move(struct sandboxes *s, const char *workspace, const char *name,
                      const struct file_move *request, struct arena *arena,
                      struct file_entry *ret_entry, struct error *err);
int sandbox_file_remove(struct sandboxes *s, const char *workspace, const char *name,
                        const char *path, bool recursive, struct error *err);
/* The same, and says what it was: a link is a link, wherever it led. */
int sandbox_file_remove_entry(struct sandboxes *s, const char *workspace, const char *name,
                              const char *path, bool recursive, struct arena *arena,
                              struct file_entry *ret_entry, struct error *err);

/* A transfer under way, on a connection of its own. */
struct file_transfer;

/*
 * Reading: begin gives the entry (a directory is IS_A_DIRECTORY), then next() says how many bytes
 * come (0: the end), which are taken from file_transfer_fd() (http_reply_pump()) or with
 * file_transfer_take(); then next() again.
 */
int file_read_begin(struct sandboxes *s, const char *workspace, const char *name, const char *path,
                    uint64_t offset, uint64_t length, struct arena *arena,
                    struct file_entry *ret_entry, struct file_transfer **ret_transfer,
                    struct error *err);
int file_read_next(struct file_transfer *t, size_t *ret_len, struct error *err);
int file_transfer_take(struct file_transfer *t, void *to, size_t len, struct error *err);
int file_transfer_fd(const struct file_transfer *t);

/*
 * Writing: begin, then chunk(len) announces len bytes (at most WIRE_DATA_CHUNK) that are then put
 * into file_transfer_fd() (http_body_pump()) or with file_transfer_put(); commit makes the file
 * appear. Ending the transfer before commit leaves things as they were.
 */
int file_write_begin(struct sandboxes *s, const char *workspace, const char *name, const char *path,
                     uint64_t mode, struct file_transfer **ret_transfer, struct error *err);
/* The same with an owner and attributes. */
int file_write_open(struct sandboxes *s, const char *workspace, const char *name,
                    const struct file_write *request, struct file_transfer **ret_transfer,
                    struct error *err);
int file_write_chunk(struct file_transfer *t, size_t len, struct error *err);
int file_transfer_put(struct file_transfer *t, const void *from, size_t len, struct error *err);
int file_write_commit(struct file_transfer *t, struct arena *arena, struct file_entry *ret_entry,
                      struct error *err);

/* Ends it, whatever its state. NULL is fine. */
void file_transfer_end(struct file_transfer *t);
