/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Image references: from the names that clients send to an image that runs here. For now one image
 * exists, `host`; a table of aliases maps the names that clients of other products send by habit.
 */

#include "base/error.h"

/* The warden's name for a reference; NULL or "" is the default image. IMAGE_NOT_FOUND says which
 * there are. The result is a literal. */
int image_resolve(const char *reference, const char **ret_image, struct error *err);
