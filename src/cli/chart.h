/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A row of figures as a line of blocks, for terminals that show them: ▁▂▅█. */

#include <stddef.h>

#include "base/buf.h"

/*
 * Appends `width` signs for `count` figures (NAN: none there), the first at the left: each the
 * average of its share of them, as high as it is to `top` (0: the largest there is). Where there
 * are none a blank stands. With fewer figures than signs, as many signs as figures.
 */
void chart_line(struct buf *out, const double *figures, size_t count, size_t width, double top);
