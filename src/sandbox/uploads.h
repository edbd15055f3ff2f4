/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Uploads in parts: started, filled by parts in any order (several at a time; the same number again
 * replaces), then completed or aborted. All of it lies inside the sandbox, on its quota: an upload
 * goes on when the server was restarted, and is dropped when the sandbox stops or no part came for
 * UPLOAD_IDLE_S. On coroutines, and with paths, as in files.h.
 *
 * UPLOAD_NOT_FOUND for an id that is not (or no longer) known; LIMIT_EXCEEDED past UPLOADS_MAX at a
 * time; CONFLICT when an upload is completed while one of its parts is coming in.
 */

#include "sandbox/files.h"

/* mode: FILE_MODE_DEFAULT or 0…07777. */
int sandbox_upload_start(struct sandboxes *s, const char *workspace, const char *name,
                         const char *path, uint64_t mode, struct arena *arena,
                         struct upload_about *ret_upload, struct error *err);

/* A part: begin, then chunks as of file_write_begin(), then commit. number: 1…UPLOAD_PARTS_MAX. */
int upload_part_begin(struct sandboxes *s, const char *workspace, const char *name, const char *id,
                      uint64_t number, struct file_transfer **ret_transfer, struct error *err);
int upload_part_commit(struct file_transfer *t, struct arena *arena,
                       struct upload_part_about *ret_part, struct error *err);

/* parts: a list of "NUMBER" or "NUMBER:ETAG", which must be there; empty: all that are there, by
 * number. The file appears whole, or the upload stays as it is. */
int sandbox_upload_complete(struct sandboxes *s, const char *workspace, const char *name,
                            const char *id, struct slice parts, struct arena *arena,
                            struct file_entry *ret_entry, struct error *err);
int sandbox_upload_abort(struct sandboxes *s, const char *workspace, const char *name,
                         const char *id, struct error *err);

int sandbox_upload_parts(struct sandboxes *s, const char *workspace, const char *name,
                         const char *id, struct arena *arena, struct upload_about *ret_upload,
                         struct upload_part_about **ret_parts, size_t *ret_count,
                         struct error *err);
int sandbox_upload_list(struct sandboxes *s, const char *workspace, const char *name,
                        struct arena *arena, struct upload_about **ret_uploads, size_t *ret_count,
                        struct error *err);
