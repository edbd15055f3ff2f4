/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A file that comes as multipart/form-data: a part "file" with the bytes, and beside it
 * "permissions", in octal. Other parts are passed over. Answers the exchange. */

#include "api/v0/filesystem.h"

int box_file_receive_form(struct http_exchange *x, const struct file_place *place,
                          struct error *err);
