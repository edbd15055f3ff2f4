/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Templates: what E2B's clients call an image. */

#include "base/arena.h"

/* The image (image/image.h) that a template's name stands for: "base", with a tag behind it
 * ("base:default"), with a team before it ("team/base"). NULL: none; it may be a snapshot's. */
const char *e2b_template_image(struct arena *arena, const char *template_id);
