/* SPDX-License-Identifier: Apache-2.0 */

/* How large the volume should be, and when to look again. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "warden/volume_plan.h"

#define MIB (UINT64_C(1) << 20)
#define GIB (UINT64_C(1) << 30)

static void reserves(void **state)
{
    struct volume_reserve reserve;
    static const char *const wrong[] = {"",     "%",   "-1", "5 %",
                                        "100%", "5%%", "1G", "99999999999999999999"};
    assert_true(volume_reserve_parse("5%", &reserve));
    assert_true(volume_reserve_of(&reserve, 1000 * MIB) == 50 * MIB);
    assert_true(volume_reserve_parse("1048576", &reserve));
    assert_true(volume_reserve_of(&reserve, 200 * GIB) == MIB);
    assert_true(volume_reserve_parse("0", &reserve) && volume_reserve_of(&reserve, GIB) == 0);
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++)
        assert_false(volume_reserve_parse(wrong[i], &reserve));
}

static void sizes(void **state)
{
    static const struct {
        const char *what;
        uint64_t size, max, free, disk_free, reserve, wanted; /* MiB */
    } rows[] = {
        {"a new one takes half of a small disk", 256, 0, 240, 2048, 48, 256 + 1120 - 240},
        {"and 4 GiB of a large one", 256, 0, 240, 100 << 10, 5 << 10, 256 + 4096 - 240},
        {"but no more than its maximum", 256, 1024, 240, 100 << 10, 5 << 10, 1024},
        {"nothing of a full disk", 256, 0, 100, 10, 50, 256},
        {"nothing of the reserve", 256, 0, 100, 60, 50, 256},
        {"what there is above it", 256, 0, 100, 150, 50, 356},
        {"it is large enough", 4096, 0, 2000, 2048, 48, 4096},
        {"a little less free is no reason", 4096, 0, 1600, 2048, 48, 4096},
        {"much unused space is given back", 50 << 10, 0, 40 << 10, 100 << 10, 5 << 10,
         (50 << 10) - ((40 << 10) - (4 << 10) - 512)},
        {"the reserve comes before unused space", 4096, 0, 3000, 0, 5 << 10, 4096 - (3000 - 512)},
        {"of which a little stays", 4096, 0, 1000, 0, 5 << 10, 4096},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const struct volume_state volume = {.size = rows[i].size * MIB,
                                            .max = rows[i].max * MIB,
                                            .free = rows[i].free * MIB,
                                            .unallocated = 100 * MIB,
                                            .disk_free = rows[i].disk_free * MIB,
                                            .reserve = rows[i].reserve * MIB};
        uint64_t wanted = volume_wanted_size(&volume);
        if (wanted != rows[i].wanted * MIB)
            fail_msg("%s: %llu MiB", rows[i].what, (unsigned long long)(wanted / MIB));
    }
}

static void first_sizes(void **state)
{
    assert_true(volume_first_size(100 * GIB, 0) == GIB);
    assert_true(volume_first_size(100 * GIB, 512 * MIB) == 512 * MIB);
    assert_true(volume_first_size(4 * GIB, 0) == 512 * MIB);
    assert_true(volume_first_size(MIB, 0) == 256 * MIB);
}

static void a_read_only_one_stays(void **state)
{
    const struct volume_state volume = {
        .size = GIB, .free = MIB, .disk_free = 100 * GIB, .read_only = true};
    assert_true(volume_wanted_size(&volume) == GIB);
}

/* Full of data, it could take no more files. */
static void room_for_metadata(void **state)
{
    struct volume_state volume = {.size = 20 * GIB, .free = 6 * GIB, .disk_free = 100 * GIB};
    assert_true(volume_wanted_size(&volume) == 20 * GIB + 256 * MIB);
    volume.unallocated = GIB;
    assert_true(volume_wanted_size(&volume) == 20 * GIB);
}

static void looks(void **state)
{
    struct volume_state volume = {.size = GIB, .free = GIB, .disk_free = 100 * GIB};
    assert_int_equal(volume_look_after_ms(&volume), 500);
    volume.free = 10 * GIB;
    assert_int_equal(volume_look_after_ms(&volume), 2000);
    volume.free = 0;
    assert_int_equal(volume_look_after_ms(&volume), 100);
    volume.disk_free = 0; /* nothing can be done about it */
    assert_int_equal(volume_look_after_ms(&volume), 2000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reserves),          cmocka_unit_test(sizes),
        cmocka_unit_test(first_sizes),       cmocka_unit_test(a_read_only_one_stays),
        cmocka_unit_test(room_for_metadata), cmocka_unit_test(looks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
