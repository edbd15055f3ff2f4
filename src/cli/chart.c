/* SPDX-License-Identifier: Apache-2.0 */

/* Lines of blocks: one eighth of the height of a sign is one step. */

#include "cli/chart.h"

#include <math.h>

static const char *const blocks[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};

enum { STEPS = sizeof(blocks) / sizeof(blocks[0]) };

static double average(const double *figures, size_t count)
{
    double sum = 0;
    size_t known = 0;
    for (size_t i = 0; i < count; i++)
        if (!isnan(figures[i])) {
            sum += figures[i];
            known++;
        }
    return known == 0 ? NAN : sum / (double)known;
}

static double largest(const double *figures, size_t count)
{
    double top = 0;
    for (size_t i = 0; i < count; i++)
        if (figures[i] > top)
            top = figures[i];
    return top;
}

static const char *block_of(double figure, double top)
{
    if (isnan(figure))
        return " ";
    if (top <= 0 || figure <= 0)
        return blocks[0];
    if (figure >= top)
        return blocks[STEPS - 1];
    return blocks[(size_t)(figure / top * STEPS)];
}

void chart_line(struct buf *out, const double *figures, size_t count, size_t width, double top)
{
    if (width > count)
        width = count;
    if (top <= 0)
        top = largest(figures, count);
    for (size_t i = 0; i < width; i++) {
        size_t from = i * count / width, to = (i + 1) * count / width;
        buf_adds(out, block_of(average(figures + from, to - from), top));
    }
}
