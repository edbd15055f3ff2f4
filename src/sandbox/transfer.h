/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A connection to one of a sandbox's file workers, shared by the files of this folder that speak
 * on it. Whatever comes back is a stranger's: checked by schema, bounded by who reads it. */

#include "sandbox/files.h"
#include "wire/messages.h"

int transfer_open(struct sandboxes *s, const char *workspace, const char *name,
                  struct file_transfer **ret_transfer, struct error *err);

static inline void cleanup_transfer(struct file_transfer **t)
{
    file_transfer_end(*t);
}
#define _cleanup_transfer_ __attribute__((cleanup(cleanup_transfer)))

int transfer_send(struct file_transfer *t, const struct wire_schema *schema, const void *msg,
                  struct error *err);

/*
 * The next of many frames, read ahead; the payload is valid until the next call. A WIRE_ERROR
 * becomes *err. TIMEOUT when nothing came for timeout_ms (0: the usual patience): it may be called
 * again then. Not before file_transfer_fd(), which knows nothing of bytes read ahead.
 */
int transfer_next(struct file_transfer *t, int64_t timeout_ms, struct frame_header *ret_header,
                  struct slice *ret_payload, struct error *err);

/* The next frame, which must be of the given schema, in the arena. Reads no byte more. */
int transfer_answer(struct file_transfer *t, const struct wire_schema *schema, struct arena *arena,
                    void *ret_msg, struct error *err);

/* A WIRE_OK that a descriptor comes with, and nothing else: what one that has none says instead is
 * not read, so the connection ends here. *ret_fd can be anything. */
int transfer_ask_fd(struct file_transfer *t, const struct wire_schema *schema, int *ret_fd,
                    struct error *err);

/* UNAVAILABLE: the sandbox sent something that makes no sense here. */
int transfer_unexpected(uint16_t type, struct error *err);

/* One request with one answer, on a connection of its own. */
int transfer_ask(struct sandboxes *s, const char *workspace, const char *name,
                 const struct wire_schema *schema, const void *msg,
                 const struct wire_schema *answer, struct arena *arena, void *ret_msg,
                 struct error *err);

/* Counts what is read ahead as held by the request whose arena this is. The transfer ends before
 * the request does. */
void transfer_charge(struct file_transfer *t, const struct arena *arena);

/* FILE_ENTRY frames up to one of another type, whose payload is returned. In the arena;
 * LIMIT_EXCEEDED past `max` of them or TRANSFER_ENTRIES_BYTES. */
enum { TRANSFER_ENTRIES_BYTES = 48 << 20 };
int transfer_entries(struct file_transfer *t, size_t max, struct arena *arena,
                     struct file_entry **ret_items, size_t *ret_count,
                     struct frame_header *ret_last, struct slice *ret_payload, struct error *err);
