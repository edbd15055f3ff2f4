/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A request's body as multipart/form-data, part by part, in constant memory whatever the parts
 * weigh. It works with Content-Length and with chunks alike.
 *
 *     multipart_open(x, &form, err);
 *     while ((rc = multipart_next(form, &part, err)) > 0)
 *         while ((n = multipart_read(form, to, sizeof(to), err)) > 0) …
 *
 * Limits: FORM_PARTS_MAX parts with FORM_FIELDS_MAX bytes of header each.
 */

#include <sys/types.h>

#include "base/error.h"
#include "base/slice.h"
#include "http/form.h"
#include "http/server.h"

struct multipart; /* lives in the exchange's arena */

/* UNSUPPORTED_MEDIA_TYPE, INVALID_MULTIPART. Nothing is read yet. */
int multipart_open(struct http_exchange *x, struct multipart **ret_form, struct error *err);

/* The next part: 1, or 0 at the form's end. What was not read of the one before is dropped. The
 * part's strings live as long as the exchange. */
int multipart_next(struct multipart *form, struct form_part *ret_part, struct error *err);

/* Some of the present part's content; 0 at its end. */
ssize_t multipart_read(struct multipart *form, void *to, size_t len, struct error *err);
/* All of it, NUL-terminated, in the arena; PAYLOAD_TOO_LARGE (naming max) over max. */
int multipart_read_all(struct multipart *form, size_t max, struct slice *ret_content,
                       struct error *err);
