/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Whole files into a sandbox: a request's body, or a part of a form. */

#include "api/connect/box.h"
#include "http/multipart.h"

/*
 * given: where it goes, as connect_path() takes it; *ret_path is the whole path. attributes: a list
 * of "name=value", which the file gets. The file is there when all of it has come, or not at all.
 * INVALID_ARGUMENT without a path; UNSUPPORTED_MEDIA_TYPE for a body that is encoded in another way
 * than gzip.
 */
int connect_receive_raw(struct http_exchange *x, const struct connect_box *box,
                        struct slice attributes, const char *given, const char **ret_path,
                        struct error *err);
int connect_receive_part(struct http_exchange *x, const struct connect_box *box,
                         struct slice attributes, struct multipart *form, const char *given,
                         const char **ret_path, struct error *err);
