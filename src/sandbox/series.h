/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The history of one sandbox's figures, in bounded space: three rings of averages, each coarser and
 * longer than the one before.
 *
 *   fine     as often as samples are taken, SERIES_FINE_SLOTS of them (an hour of 10 s)
 *   minutes  24 hours
 *   quarters of an hour: 7 days
 *
 * A slot's place in its ring follows from its time alone, and each slot holds its time, so that the
 * rings need no head, can be written piece by piece, and what is too old or was damaged is seen by
 * looking at it. `struct series_image` is all of it, as it is kept in a file; `struct series` is
 * the little that has to be in memory while the sandbox runs: what is being averaged, and what has
 * not been put into the image yet.
 *
 * Nothing here knows files or clocks.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum series_tier { SERIES_FINE, SERIES_MINUTES, SERIES_QUARTERS, SERIES_TIERS };

enum {
    SERIES_FINE_SLOTS = 360,
    SERIES_MINUTE_SLOTS = 24 * 60,
    SERIES_QUARTER_SLOTS = 7 * 24 * 4,
    SERIES_SLOTS = SERIES_FINE_SLOTS + SERIES_MINUTE_SLOTS + SERIES_QUARTER_SLOTS,
    SERIES_KEPT_S = SERIES_QUARTER_SLOTS * 15 * 60,
    SERIES_PENDING_MAX = 16,
    SERIES_FILL_MAX = 6,
    SERIES_FLUSH_AT = 6, /* pending points that make writing worth while */
};

/* What goes over a network: bytes and packets, into the sandbox and out of it. */
enum series_flow {
    SERIES_IN_BYTES,
    SERIES_OUT_BYTES,
    SERIES_IN_PACKETS,
    SERIES_OUT_PACKETS,
    SERIES_FLOWS
};

/* One averaged figure of each kind. 32 bytes, in the order of this machine. */
struct series_point {
    uint32_t time;   /* Unix time of the slot's beginning, in seconds; 0: nothing here */
    uint32_t cpu;    /* in 1/10000 of a core */
    uint32_t memory; /* in SERIES_UNIT bytes, as all sizes */
    uint32_t disk;
    float flows[SERIES_FLOWS]; /* per second; negative: not known */
};
enum { SERIES_CPU_UNIT = 10000, SERIES_UNIT = 4096 };
#define SERIES_NONE UINT32_MAX /* a figure that is not known */

struct series_image {
    char magic[8]; /* also the version */
    uint32_t fine_width;
    uint32_t reserved[13];
    struct series_point points[SERIES_SLOTS];
};

/* What was measured at a moment. cpu and flows are what was used since the last measurement. */
struct series_sample {
    int64_t time_ms;
    bool has_cpu, has_memory, has_disk, has_flows;
    uint64_t cpu_usec, cpu_elapsed_usec;
    uint64_t memory_bytes, disk_bytes;
    uint64_t flows[SERIES_FLOWS], flows_elapsed_usec;
};

/* A slot that is being averaged. */
struct series_sum {
    uint32_t time; /* 0: none */
    uint32_t memory_samples;
    uint64_t cpu_usec, cpu_elapsed_usec;
    uint64_t memory_units;
    uint64_t flows[SERIES_FLOWS], flows_elapsed_usec;
    uint32_t disk; /* the last one: it does not change back and forth */
};

struct series_place {
    uint8_t tier;
    struct series_point point;
};

struct series {
    uint32_t fine_width; /* s */
    struct series_sum sums[SERIES_TIERS];
    struct series_place pending[SERIES_PENDING_MAX]; /* oldest first */
    unsigned pending_count;
};

/* fine_width: seconds between samples, 1…60. */
void series_init(struct series *series, uint32_t fine_width);
void series_add(struct series *series, const struct series_sample *sample);
/* The same, as if it had been measured every fine_width since the last sample, of before_ms: for
 * one that was left alone because nothing happened in it. Longer gaps than of SERIES_FILL_MAX
 * samples stay what they are. */
void series_add_since(struct series *series, int64_t before_ms, const struct series_sample *sample);

/* An image that holds nothing. */
void series_image_init(struct series_image *image, uint32_t fine_width);
/* Whether the bytes are an image of this version. Its fine ring is emptied when that is of another
 * width. */
bool series_image_check(struct series_image *image, uint32_t fine_width);

/* Index in image->points of the slot that a point of this tier goes to. */
size_t series_slot(const struct series *series, enum series_tier tier, uint32_t time);

/*
 * Everything that is not in the image yet, unfinished slots too: at most SERIES_PENDING_MAX +
 * SERIES_TIERS places. series_written() then forgets what is finished.
 */
size_t series_unwritten(const struct series *series,
                        struct series_place out[SERIES_PENDING_MAX + SERIES_TIERS]);
void series_written(struct series *series);

/* The figures of an interval. NAN: not known. */
struct series_value {
    int64_t time; /* Unix time of its beginning, in seconds: a multiple of the resolution */
    double cpu;   /* cores */
    double memory, disk;
    double flows[SERIES_FLOWS]; /* per second */
};

/*
 * Averages over intervals of `resolution` seconds, oldest first, up to and including the one that
 * holds now: as many as `period` has room for, less those without any figure. The image is used as
 * it is, with the series (NULL: none) on top. out: room for period / resolution + 1.
 */
size_t series_query(const struct series_image *image, const struct series *series, int64_t now,
                    uint32_t period, uint32_t resolution, struct series_value *out);
