/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What the handlers of /filesystem/{path} share. */

#include "api/api.h"
#include "sandbox/files.h"

/* Which file of which sandbox. */
struct file_place {
    struct sandboxes *sandboxes;
    const char *workspace;
    const char *sandbox;
    const char *path; /* absolute and normalized */
};

static inline void cleanup_file_transfer(struct file_transfer **t)
{
    file_transfer_end(*t);
}

/* The file's bytes as the answer, and the request's body as the file, in constant memory. */
int file_send_raw(struct http_exchange *x, const struct file_place *place, struct error *err);
int file_receive_raw(struct http_exchange *x, const struct file_place *place, struct error *err);

/* {"path", "message"} */
int file_reply_message(struct http_exchange *x, const struct file_place *place, const char *message,
                       struct error *err);
