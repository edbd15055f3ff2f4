/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What the handlers of /{workspace}/sandboxes/{name}/… share. */

#include "api/call.h"
#include "api/v0/filesystem.h"
#include "http/router.h"

enum box_path_kind {
    BOX_PATH_ANY,      /* by the rules below */
    BOX_PATH_ABSOLUTE, /* always counted from / */
};

/*
 * The file that the route's {path*} names. Blaxel's clients write an absolute path as
 * %2Ftmp%2Fa or as //tmp/a. A path that does neither is relative to the working directory; but one
 * with an encoded slash anywhere (a%2Fb) is absolute, because that is how those clients' libraries
 * send an absolute path that lost its first slash. ~ is the home of root. Nothing at all is /.
 * INVALID_PATH.
 */
int box_place(struct http_exchange *x, const struct route_params *params,
              const struct api_call *call, enum box_path_kind kind, struct file_place *ret_place,
              struct error *err);

/* The rules alone. `raw` is the path as it was sent, `path` the same decoded; out holds
 * PATH_BYTES_MAX + 1 bytes. */
int box_path(struct slice raw, struct slice path, enum box_path_kind kind, char *out,
             struct error *err);
