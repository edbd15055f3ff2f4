/* SPDX-License-Identifier: Apache-2.0 */

/* Averaging in, averaging out. Months of samples go through a few hundred bytes here. */

#include "sandbox/series.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

static const char image_magic[8] = "cellaM2";

enum { USEC_PER_S = 1000000 };

static const struct {
    uint32_t width; /* s; 0: as often as samples are taken */
    uint32_t slots;
    uint32_t first; /* index in the image */
} tiers[SERIES_TIERS] = {
    [SERIES_FINE] = {0, SERIES_FINE_SLOTS, 0},
    [SERIES_MINUTES] = {60, SERIES_MINUTE_SLOTS, SERIES_FINE_SLOTS},
    [SERIES_QUARTERS] = {15 * 60, SERIES_QUARTER_SLOTS, SERIES_FINE_SLOTS + SERIES_MINUTE_SLOTS},
};

static uint32_t width_of(uint32_t fine_width, int tier)
{
    return tier == SERIES_FINE ? fine_width : tiers[tier].width;
}

void series_init(struct series *series, uint32_t fine_width)
{
    *series = (struct series){.fine_width = fine_width};
}

/* --- in --- */

static uint32_t in_units(uint64_t bytes)
{
    uint64_t units = (bytes + SERIES_UNIT / 2) / SERIES_UNIT;
    return units < SERIES_NONE ? (uint32_t)units : SERIES_NONE - 1;
}

static struct series_point point_of(const struct series_sum *sum)
{
    struct series_point point = {sum->time, SERIES_NONE, SERIES_NONE, sum->disk, {0}};
    if (sum->cpu_elapsed_usec > 0) {
        double cores = (double)sum->cpu_usec / (double)sum->cpu_elapsed_usec * SERIES_CPU_UNIT;
        point.cpu = cores < SERIES_NONE ? (uint32_t)(cores + 0.5) : SERIES_NONE - 1;
    }
    if (sum->memory_samples > 0)
        point.memory = (uint32_t)(sum->memory_units / sum->memory_samples);
    for (int i = 0; i < SERIES_FLOWS; i++)
        point.flows[i] =
            sum->flows_elapsed_usec == 0
                ? -1
                : (float)((double)sum->flows[i] * USEC_PER_S / (double)sum->flows_elapsed_usec);
    return point;
}

/* With nobody to write them, the oldest give way. */
static void push_pending(struct series *series, int tier, struct series_point point)
{
    if (series->pending_count == SERIES_PENDING_MAX) {
        memmove(series->pending, series->pending + 1,
                (SERIES_PENDING_MAX - 1) * sizeof(series->pending[0]));
        series->pending_count--;
    }
    series->pending[series->pending_count++] = (struct series_place){(uint8_t)tier, point};
}

static void add_to_sum(struct series_sum *sum, const struct series_sample *sample)
{
    if (sample->has_cpu) {
        sum->cpu_usec += sample->cpu_usec;
        sum->cpu_elapsed_usec += sample->cpu_elapsed_usec;
    }
    if (sample->has_memory) {
        sum->memory_units += in_units(sample->memory_bytes);
        sum->memory_samples++;
    }
    if (sample->has_disk)
        sum->disk = in_units(sample->disk_bytes);
    if (sample->has_flows) {
        for (int i = 0; i < SERIES_FLOWS; i++)
            sum->flows[i] += sample->flows[i];
        sum->flows_elapsed_usec += sample->flows_elapsed_usec;
    }
}

void series_add(struct series *series, const struct series_sample *sample)
{
    uint32_t now = (uint32_t)(sample->time_ms / 1000);
    for (int tier = 0; tier < SERIES_TIERS; tier++) {
        struct series_sum *sum = &series->sums[tier];
        uint32_t time = now - now % width_of(series->fine_width, tier);
        if (sum->time != time) { /* later, or the clock was set back */
            if (sum->time != 0)
                push_pending(series, tier, point_of(sum));
            *sum = (struct series_sum){.time = time, .disk = SERIES_NONE};
        }
        add_to_sum(sum, sample);
    }
}

void series_add_since(struct series *series, int64_t before_ms, const struct series_sample *sample)
{
    const int64_t width_ms = (int64_t)series->fine_width * 1000;
    int64_t steps = (sample->time_ms - before_ms + width_ms / 2) / width_ms;
    struct series_sample part = *sample;
    if (steps < 2 || steps > SERIES_FILL_MAX) {
        series_add(series, sample);
        return;
    }
    part.cpu_usec /= (uint64_t)steps;
    part.cpu_elapsed_usec /= (uint64_t)steps;
    part.flows_elapsed_usec /= (uint64_t)steps;
    for (int i = 0; i < SERIES_FLOWS; i++)
        part.flows[i] /= (uint64_t)steps;
    for (int64_t i = 1; i <= steps; i++) {
        part.time_ms = i == steps ? sample->time_ms : before_ms + i * width_ms;
        series_add(series, &part);
    }
}

/* --- the image --- */

void series_image_init(struct series_image *image, uint32_t fine_width)
{
    memset(image, 0, sizeof(*image));
    memcpy(image->magic, image_magic, sizeof(image_magic));
    image->fine_width = fine_width;
}

bool series_image_check(struct series_image *image, uint32_t fine_width)
{
    if (memcmp(image->magic, image_magic, sizeof(image_magic)) != 0)
        return false;
    if (image->fine_width != fine_width) {
        memset(image->points, 0, SERIES_FINE_SLOTS * sizeof(image->points[0]));
        image->fine_width = fine_width;
    }
    return true;
}

static size_t slot_of(uint32_t fine_width, int tier, uint32_t time)
{
    return tiers[tier].first + time / width_of(fine_width, tier) % tiers[tier].slots;
}

size_t series_slot(const struct series *series, enum series_tier tier, uint32_t time)
{
    return slot_of(series->fine_width, tier, time);
}

size_t series_unwritten(const struct series *series,
                        struct series_place out[SERIES_PENDING_MAX + SERIES_TIERS])
{
    size_t count = series->pending_count;
    memcpy(out, series->pending, count * sizeof(out[0]));
    for (int tier = 0; tier < SERIES_TIERS; tier++)
        if (series->sums[tier].time != 0)
            out[count++] = (struct series_place){(uint8_t)tier, point_of(&series->sums[tier])};
    return count;
}

void series_written(struct series *series)
{
    series->pending_count = 0;
}

/* --- out --- */

struct bucket {
    double cpu, memory;
    double flows[SERIES_FLOWS];
    uint32_t cpu_points, memory_points, flow_points;
    uint32_t disk, disk_time;
    bool touched, closed; /* by this tier; by one before it */
};

struct query {
    int64_t first; /* beginning of the first interval */
    int64_t now;
    uint32_t resolution;
    size_t count;
    struct bucket *buckets;
};

static void take_point(struct query *q, const struct series_point *point)
{
    if (point->time == 0 || (int64_t)point->time > q->now || (int64_t)point->time < q->first)
        return;
    size_t at = (size_t)((int64_t)point->time - q->first) / q->resolution;
    if (at >= q->count || q->buckets[at].closed)
        return;
    struct bucket *bucket = &q->buckets[at];
    bucket->touched = true;
    if (point->cpu != SERIES_NONE) {
        bucket->cpu += point->cpu;
        bucket->cpu_points++;
    }
    if (point->memory != SERIES_NONE) {
        bucket->memory += point->memory;
        bucket->memory_points++;
    }
    if (point->flows[0] >= 0) {
        for (int i = 0; i < SERIES_FLOWS; i++)
            bucket->flows[i] += point->flows[i];
        bucket->flow_points++;
    }
    if (point->disk != SERIES_NONE && point->time >= bucket->disk_time) {
        bucket->disk = point->disk;
        bucket->disk_time = point->time;
    }
}

/* Whether a point of a coarser tier than the best one says something new. Where finer ones are
 * kept, it does so only if there is none in its whole slot: otherwise a sandbox would have figures
 * from the beginning of a slot in which it was made at the end. */
static bool is_needed(const struct query *q, const struct series_point *point, uint32_t width,
                      int64_t finer_from)
{
    if ((int64_t)point->time < finer_from)
        return true;
    for (int64_t at = point->time; at < (int64_t)point->time + width; at += q->resolution) {
        int64_t i = (at - q->first) / q->resolution;
        if (at >= q->first && i < (int64_t)q->count && q->buckets[i].closed)
            return false;
    }
    return true;
}

struct tier_view {
    const struct series_image *image;
    const struct series_place *live; /* newer than the image */
    size_t live_count;
    int tier;
    int64_t finer_from; /* INT64_MAX: nothing finer was taken */
};

static void take_if_needed(struct query *q, const struct tier_view *view,
                           const struct series_point *point)
{
    uint32_t width = width_of(view->image->fine_width, view->tier);
    if (view->finer_from == INT64_MAX || is_needed(q, point, width, view->finer_from))
        take_point(q, point);
}

/* Slots of the image, then what is newer: a slot that is in both is taken from the latter. */
static void take_tier(struct query *q, const struct tier_view *view)
{
    uint32_t fine_width = view->image->fine_width;
    size_t first = tiers[view->tier].first;
    for (size_t i = first; i < first + tiers[view->tier].slots; i++) {
        const struct series_point *point = &view->image->points[i];
        bool skip = point->time == 0 || slot_of(fine_width, view->tier, point->time) != i ||
                    point->time % width_of(fine_width, view->tier) != 0;
        for (size_t k = 0; k < view->live_count && !skip; k++)
            skip = view->live[k].tier == view->tier && view->live[k].point.time == point->time;
        if (!skip)
            take_if_needed(q, view, point);
    }
    for (size_t k = 0; k < view->live_count; k++)
        if (view->live[k].tier == view->tier)
            take_if_needed(q, view, &view->live[k].point);
    for (size_t i = 0; i < q->count; i++)
        q->buckets[i].closed = q->buckets[i].touched;
}

/* First the tier that fits the resolution best, then the coarser ones, which reach further back. */
static void take_all(struct query *q, struct tier_view *view)
{
    int tier = SERIES_FINE;
    while (tier + 1 < SERIES_TIERS && tiers[tier + 1].width <= q->resolution)
        tier++;
    view->finer_from = INT64_MAX;
    for (; tier < SERIES_TIERS; tier++) {
        view->tier = tier;
        take_tier(q, view);
        uint32_t width = width_of(view->image->fine_width, tier);
        view->finer_from = q->now - (int64_t)width * tiers[tier].slots;
    }
}

static struct series_value value_of(const struct bucket *bucket, int64_t time)
{
    struct series_value value = {time, NAN, NAN, NAN, {0}};
    for (int i = 0; i < SERIES_FLOWS; i++)
        value.flows[i] = bucket->flow_points > 0 ? bucket->flows[i] / bucket->flow_points : NAN;
    if (bucket->cpu_points > 0)
        value.cpu = bucket->cpu / bucket->cpu_points / SERIES_CPU_UNIT;
    if (bucket->memory_points > 0)
        value.memory =
            (double)(uint64_t)(bucket->memory / bucket->memory_points + 0.5) * SERIES_UNIT;
    if (bucket->disk_time != 0)
        value.disk = (double)bucket->disk * SERIES_UNIT;
    return value;
}

size_t series_query(const struct series_image *image, const struct series *series, int64_t now,
                    uint32_t period, uint32_t resolution, struct series_value *out)
{
    struct series_place live[SERIES_PENDING_MAX + SERIES_TIERS];
    size_t live_count = series == NULL ? 0 : series_unwritten(series, live), found = 0;
    size_t count = period / resolution > 0 ? period / resolution : 1;
    _cleanup_free_ struct bucket *buckets = calloc(count, sizeof(*buckets));
    if (buckets == NULL)
        abort(); /* limited by the caller */
    struct query q = {
        .first = now - now % resolution - (int64_t)(count - 1) * resolution,
        .now = now,
        .resolution = resolution,
        .count = count,
        .buckets = buckets,
    };
    struct tier_view view = {.image = image, .live = live, .live_count = live_count};
    take_all(&q, &view);
    for (size_t i = 0; i < count; i++)
        if (buckets[i].touched)
            out[found++] = value_of(&buckets[i], q.first + (int64_t)(i * resolution));
    return found;
}
