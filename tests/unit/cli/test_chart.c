/* SPDX-License-Identifier: Apache-2.0 */

#include "cli/chart.h"

#include <math.h>

#include "cmocka_all.h"

static void lines(void **state)
{
    static const struct {
        double figures[8];
        size_t count, width;
        double top;
        const char *line;
    } rows[] = {
        {{0, 1, 2, 3, 4, 5, 6, 7}, 8, 8, 8, "▁▂▃▄▅▆▇█"},
        {{0, 1, 2, 3, 4, 5, 6, 7}, 8, 4, 8, "▁▃▅▇"}, /* two in one */
        {{5, 5, 5}, 3, 3, 0, "███"},                 /* as high as the highest */
        {{0, 0, 0}, 3, 3, 0, "▁▁▁"},
        {{NAN, 1, NAN, 1}, 4, 4, 0, " █ █"},
        {{NAN, 1, NAN, NAN}, 4, 2, 0, "█ "},
        {{9, -1}, 2, 2, 4, "█▁"}, /* out of bounds */
        {{1, 2}, 2, 100, 2, "▅█"},
        {{1}, 1, 0, 0, ""},
        {{1}, 0, 10, 0, ""},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct buf out = BUF_INIT(1000);
        chart_line(&out, rows[i].figures, rows[i].count, rows[i].width, rows[i].top);
        assert_string_equal(out.data, rows[i].line);
        buf_release(&out);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
