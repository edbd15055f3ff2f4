/* SPDX-License-Identifier: Apache-2.0 */

/* Months of samples by a clock of our own, through the rings and back. */

#include "sandbox/series.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>

enum { WIDTH = 10, HOUR = 3600, DAY = 24 * HOUR, MIB = 1 << 20 };

static const int64_t begin = 1700000000 / (15 * 60) * (15 * 60); /* of a quarter of an hour */

struct history {
    struct series series;
    struct series_image image;
};

static struct history h;                  /* too large for the stack */
static struct series_value values[12000]; /* more than any of the questions below gives */

static int setup(void **state)
{
    series_init(&h.series, WIDTH);
    series_image_init(&h.image, WIDTH);
    return 0;
}

/* What the files do with it. */
static void write_down(void)
{
    struct series_place places[SERIES_PENDING_MAX + SERIES_TIERS];
    size_t count = series_unwritten(&h.series, places);
    for (size_t i = 0; i < count; i++) {
        size_t slot = series_slot(&h.series, places[i].tier, places[i].point.time);
        assert_true(slot < SERIES_SLOTS);
        h.image.points[slot] = places[i].point;
    }
    series_written(&h.series);
}

static void sample(int64_t time, double cores, uint64_t memory, uint64_t disk)
{
    const struct series_sample s = {
        .time_ms = time * 1000 + 123,
        .has_cpu = !isnan(cores),
        .has_memory = true,
        .has_disk = true,
        .cpu_usec = isnan(cores) ? 0 : (uint64_t)(cores * WIDTH * 1e6),
        .cpu_elapsed_usec = WIDTH * 1000000,
        .memory_bytes = memory,
        .disk_bytes = disk,
    };
    series_add(&h.series, &s);
    if (h.series.pending_count >= SERIES_FLUSH_AT)
        write_down();
}

static void run(int64_t from, int64_t to, double cores, uint64_t memory, uint64_t disk)
{
    for (int64_t t = from; t < to; t += WIDTH)
        sample(t, cores, memory, disk);
}

static size_t query(int64_t now, uint32_t period, uint32_t resolution)
{
    size_t count = series_query(&h.image, &h.series, now, period, resolution, values);
    assert_true(count <= period / resolution + 1);
    for (size_t i = 0; i < count; i++) {
        assert_true(values[i].time % resolution == 0);
        assert_true(values[i].time <= now);
        assert_true(values[i].time > now - (int64_t)period - (int64_t)resolution);
        assert_true(i == 0 || values[i].time > values[i - 1].time);
    }
    return count;
}

static bool near(double a, double b)
{
    return fabs(a - b) <= fabs(b) * 0.01 + 1e-4;
}

static void months_in_bounded_space(void **state)
{
    const int64_t end = begin + 90 * (int64_t)DAY;
    run(begin, end, 0.25, 100 * MIB, 1000 * (uint64_t)MIB);
    assert_true(sizeof(h.series) < 1024);
    assert_true(sizeof(h.image) < 80 * 1024);

    assert_int_equal(query(end - 1, HOUR, WIDTH), 360);
    assert_int_equal(query(end - 1, HOUR, 60), 60);
    assert_int_equal(query(end - 1, DAY, 60), 24 * 60);
    assert_int_equal(query(end - 1, 7 * DAY, 15 * 60), 7 * 24 * 4);
    assert_int_equal(query(end - 1, 7 * DAY, HOUR), 7 * 24);
    for (size_t i = 0; i < 7 * 24; i++) {
        assert_true(near(values[i].cpu, 0.25));
        assert_true(near(values[i].memory, 100 * MIB));
        assert_true(near(values[i].disk, 1000.0 * MIB));
    }
}

/* A resolution that is finer than what is kept gets what is kept. */
static void finer_than_there_is(void **state)
{
    const int64_t end = begin + 8 * (int64_t)DAY;
    run(begin, end, 0.25, 100 * MIB, MIB);
    size_t count = query(end - 1, 2 * HOUR, WIDTH);
    assert_in_range(count, 360 + 60 - 10, 360 + 60 + 10);
    assert_int_equal(values[1].time - values[0].time, 60);
    assert_int_equal(values[count - 1].time - values[count - 2].time, WIDTH);
    count = query(end - 1, 7 * DAY, 60);
    assert_in_range(count, 24 * 60 + 6 * 24 * 4 - 20, 24 * 60 + 6 * 24 * 4 + 20);
    assert_int_equal(values[1].time - values[0].time, 15 * 60);
}

static void averages(void **state)
{
    /* Half an hour of each. */
    run(begin, begin + HOUR / 2, 0.0, 100 * MIB, 1 * MIB);
    run(begin + HOUR / 2, begin + HOUR, 1.0, 300 * MIB, 9 * MIB);
    assert_int_equal(query(begin + HOUR - 1, HOUR, HOUR), 1);
    assert_true(near(values[0].cpu, 0.5));
    assert_true(near(values[0].memory, 200 * MIB));
    assert_true(near(values[0].disk, 9 * MIB)); /* disk is as it was last */
    assert_int_equal(query(begin + HOUR - 1, HOUR, 15 * 60), 4);
    assert_true(near(values[1].cpu, 0.0));
    assert_true(near(values[2].cpu, 1.0));
}

static void gaps_stay_gaps(void **state)
{
    run(begin, begin + 600, 0.5, MIB, MIB);
    run(begin + 1800, begin + 2400, 0.5, MIB, MIB);
    assert_int_equal(query(begin + 2399, HOUR, 60), 20);
    assert_int_equal(values[9].time, begin + 540);
    assert_int_equal(values[10].time, begin + 1800);
    /* Nothing before it was made, however coarse the slot that it was made in. */
    series_init(&h.series, WIDTH);
    series_image_init(&h.image, WIDTH);
    run(begin + 610, begin + 700, 0.5, MIB, MIB);
    assert_int_equal(query(begin + 699, HOUR, WIDTH), 9);
    assert_int_equal(values[0].time, begin + 610);
    assert_int_equal(query(begin + 699, HOUR, 60), 2);
    assert_int_equal(values[0].time, begin + 600);
}

static void newest_sample_counts_at_once(void **state)
{
    sample(begin, 0.75, 5 * MIB, 7 * MIB);
    for (uint32_t resolution = 1; resolution <= HOUR; resolution *= 60) {
        assert_int_equal(query(begin, HOUR, resolution), 1);
        assert_true(near(values[0].cpu, 0.75));
        assert_true(near(values[0].memory, 5 * MIB));
        assert_true(near(values[0].disk, 7 * MIB));
    }
}

static void unknown_figures(void **state)
{
    const struct series_sample memory_only = {
        .time_ms = begin * 1000, .has_memory = true, .memory_bytes = 4096};
    series_add(&h.series, &memory_only);
    write_down();
    assert_int_equal(query(begin, 60, 60), 1);
    assert_true(isnan(values[0].cpu));
    assert_true(isnan(values[0].disk));
    assert_true(near(values[0].memory, 4096));
}

/* Another process goes on with the image that the first one left. */
static void goes_on_after_a_restart(void **state)
{
    run(begin, begin + HOUR, 0.25, MIB, MIB);
    write_down();
    series_init(&h.series, WIDTH);
    assert_int_equal(query(begin + HOUR, 2 * HOUR, 60), 60);
    run(begin + HOUR, begin + 2 * HOUR, 0.75, MIB, MIB);
    assert_int_equal(query(begin + 2 * HOUR - 1, 2 * HOUR, 60), 120);
    assert_true(near(values[0].cpu, 0.25));
    assert_true(near(values[119].cpu, 0.75));
}

static void another_interval(void **state)
{
    run(begin, begin + HOUR, 0.25, MIB, MIB);
    write_down();
    assert_true(series_image_check(&h.image, 30));
    series_init(&h.series, 30);
    assert_int_equal(query(begin + HOUR - 1, HOUR, 60), 60); /* minutes are still there */
    assert_int_equal(query(begin + HOUR - 1, HOUR, 30), 60); /* also where finer ones were */
    memset(&h.image, 'x', sizeof(h.image));
    assert_false(series_image_check(&h.image, WIDTH));
}

static void damaged_slots_are_ignored(void **state)
{
    uint32_t noise = 12345;
    run(begin, begin + HOUR, 0.25, MIB, MIB);
    write_down();
    for (size_t i = 0; i < SERIES_SLOTS; i++) {
        if (h.image.points[i].time != 0)
            continue;
        noise = noise * 1664525 + 1013904223;
        h.image.points[i] = (struct series_point){noise | 1, noise, noise, noise, {0}};
    }
    assert_int_equal(query(begin + HOUR - 1, HOUR, 60), 60);
    for (size_t i = 0; i < 60; i++)
        assert_true(near(values[i].cpu, 0.25));
}

static void clock_set_back(void **state)
{
    run(begin + HOUR, begin + HOUR + 600, 0.25, MIB, MIB);
    run(begin, begin + 600, 0.5, MIB, MIB);
    size_t count = query(begin + 599, HOUR, 60);
    assert_int_equal(count, 10); /* what lies ahead of now is not shown */
    assert_true(near(values[0].cpu, 0.5));
}

/* With nobody who writes them down, what is kept in memory does not grow. */
static void nobody_writes(void **state)
{
    for (int64_t t = begin; t < begin + DAY; t += WIDTH) {
        const struct series_sample s = {.time_ms = t * 1000, .has_memory = true, .memory_bytes = 1};
        series_add(&h.series, &s);
        assert_true(h.series.pending_count <= SERIES_PENDING_MAX);
    }
    assert_true(query(begin + DAY - 1, DAY, WIDTH) > 0);
}

/* Measured once a minute, shown as if every ten seconds. */
static void quiet_ones_have_no_gaps(void **state)
{
    run(begin, begin + 60, 0.5, MIB, MIB);
    const struct series_sample late = {.time_ms = (begin + 110) * 1000 + 123,
                                       .has_cpu = true,
                                       .has_memory = true,
                                       .cpu_usec = 600000,
                                       .cpu_elapsed_usec = 60000000,
                                       .memory_bytes = 2 * MIB};
    series_add_since(&h.series, (begin + 50) * 1000 + 123, &late);
    assert_int_equal(query(begin + 119, 120, WIDTH), 12);
    for (int i = 0; i < 12; i++) {
        assert_true(near(values[i].cpu, i < 6 ? 0.5 : 0.01));
        assert_true(near(values[i].memory, i < 6 ? MIB : 2 * MIB));
    }
    /* Nobody knows about an hour. */
    const struct series_sample later = {.time_ms = (begin + HOUR) * 1000, .has_memory = true};
    series_add_since(&h.series, late.time_ms, &later);
    assert_int_equal(query(begin + HOUR, HOUR, WIDTH), 13 - 1);
}

static void huge_figures(void **state)
{
    sample(begin, 100000.0, UINT64_MAX / 2, UINT64_MAX / 2);
    assert_int_equal(query(begin, 60, 60), 1);
    assert_false(isnan(values[0].cpu) || isnan(values[0].memory) || isnan(values[0].disk));
}

/* Of a network: what passed by, per second, and nothing of what has none. */
static void flows(void **state)
{
    struct series_sample s = {.time_ms = begin * 1000,
                              .has_flows = true,
                              .flows = {1000, 500, 10, 5},
                              .flows_elapsed_usec = WIDTH * 1000000};
    series_add(&h.series, &s);
    s.time_ms += WIDTH * 1000;
    s.flows[SERIES_IN_BYTES] = 3000;
    series_add(&h.series, &s);
    write_down();
    assert_int_equal(query(begin + WIDTH, 60, WIDTH), 2);
    assert_true(fabs(values[0].flows[SERIES_IN_BYTES] - 100) < 0.01);
    assert_true(fabs(values[1].flows[SERIES_IN_BYTES] - 300) < 0.01);
    assert_true(fabs(values[1].flows[SERIES_OUT_PACKETS] - 0.5) < 0.01);
    assert_true(isnan(values[0].cpu));
    assert_int_equal(query(begin + WIDTH, 60, 60), 1);
    assert_true(fabs(values[0].flows[SERIES_IN_BYTES] - 200) < 0.01);
    sample(begin + 2 * WIDTH, 0.5, MIB, MIB);
    assert_int_equal(query(begin + 2 * WIDTH, 60, WIDTH), 3);
    assert_true(isnan(values[2].flows[SERIES_IN_BYTES]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(months_in_bounded_space, setup),
        cmocka_unit_test_setup(flows, setup),
        cmocka_unit_test_setup(finer_than_there_is, setup),
        cmocka_unit_test_setup(averages, setup),
        cmocka_unit_test_setup(gaps_stay_gaps, setup),
        cmocka_unit_test_setup(newest_sample_counts_at_once, setup),
        cmocka_unit_test_setup(unknown_figures, setup),
        cmocka_unit_test_setup(goes_on_after_a_restart, setup),
        cmocka_unit_test_setup(another_interval, setup),
        cmocka_unit_test_setup(damaged_slots_are_ignored, setup),
        cmocka_unit_test_setup(clock_set_back, setup),
        cmocka_unit_test_setup(nobody_writes, setup),
        cmocka_unit_test_setup(quiet_ones_have_no_gaps, setup),
        cmocka_unit_test_setup(huge_figures, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
