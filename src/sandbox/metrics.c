/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The sampler: one coroutine that goes round the running sandboxes, a few in one question to the
 * provider, each when its time has come. So a thousand sandboxes cost a question every 150 ms or so
 * and never hold anybody up. Those that nobody uses and that use nothing are asked about more
 * rarely: thousands that are left around would otherwise cost half a core. What it learns goes into
 * each sandbox's series; a worker thread writes that to files, some minutes' worth of many at once.
 */

#include "sandbox/metrics.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/timetext.h"
#include "loop/co.h"
#include "loop/work.h"
#include "sandbox/metrics_file.h"
#include "sandbox/state.h"

enum {
    FIRST_SAMPLE_MS = 500,  /* after a start */
    FRESH_MS = 1000,        /* a sample younger than this is not taken again for a reader */
    QUIET_FACTOR = 6,       /* times rarer, for sandboxes that were not used for … */
    QUIET_AFTER = 2,        /* … intervals */
    FLUSH_EVERY_MS = 1000,  /* looking at all of them takes a while */
    LOOK_EVERY_MS = 50,     /* … so those that are due together are sampled together */
    ROUND_MAX = 256,        /* sandboxes in one look */
    WRITE_BATCH = 16,       /* sandboxes per turn of the worker */
    WARN_EVERY_MS = 600000, /* about files that cannot be written */
};

/* What is known of one sandbox; made with its first sample. */
struct usage {
    struct series series;
    bool unsaved;        /* the series has something that no file has */
    bool forgotten;      /* its file is being removed */
    bool has_cpu_before; /* the counter at an earlier moment */
    uint64_t cpu_usec, cpu_time_usec;
    bool has_oom_before;
    uint64_t oom_kills;
    int64_t due_ms;     /* of the next sample, by the loop's clock */
    int64_t sampled_ms; /* of the last; 0: none since it runs */
    int64_t time_ms;    /* the same as Unix time */
    double cpu, memory, disk;
    uint64_t tasks;
    bool has_network_before; /* `network` is of an earlier moment, which was … */
    uint64_t network_time_usec;
    struct network_usage network;
};

struct sampler {
    struct sandboxes *sandboxes;
    uint32_t interval_s;
    int dir_fd; /* -1: history is not kept */
    struct workers *workers;
    struct co *co; /* NULL: not running */
    bool stopping;
    struct co_cond wake, ended;
    int64_t warned_ms;
    int64_t flushed_ms;
    int64_t next_ms;                  /* when it looks again for those that are due */
    struct sandbox *round[ROUND_MAX]; /* those that are, held */
    size_t round_count;
};

static uint64_t monotonic_usec(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

static bool is_running(const struct sandbox *sb)
{
    return sb->status == SANDBOX_RUNNING && sb->up && !sb->gone;
}

static struct usage *usage_of(struct sandbox *sb)
{
    if (sb->usage == NULL) {
        sb->usage = calloc(1, sizeof(*sb->usage));
        if (sb->usage == NULL)
            abort();
        series_init(&sb->usage->series, sb->owner->sampler->interval_s);
        sb->usage->cpu = sb->usage->memory = sb->usage->disk = NAN;
    }
    return sb->usage;
}

/* --- a sample --- */

static void note_oom(struct sandbox *sb, uint64_t kills)
{
    struct usage *u = sb->usage;
    if (kills > u->oom_kills && u->has_oom_before)
        sandbox_note(
            sb, SANDBOX_LOG_WARN, "Out of memory: the limit of %s ended %" PRIu64 " process%s",
            sb->resources.memory, kills - u->oom_kills, kills - u->oom_kills == 1 ? "" : "es");
    u->has_oom_before = true;
    u->oom_kills = kills;
}

static void take_cpu(struct usage *u, const struct warden_sample *sample,
                     struct series_sample *into)
{
    bool comparable = u->has_cpu_before && sample->cpu_usec >= u->cpu_usec &&
                      sample->time_usec > u->cpu_time_usec;
    if (comparable) {
        into->has_cpu = true;
        into->cpu_usec = sample->cpu_usec - u->cpu_usec;
        into->cpu_elapsed_usec = sample->time_usec - u->cpu_time_usec;
        u->cpu = (double)into->cpu_usec / (double)into->cpu_elapsed_usec;
    }
    u->has_cpu_before = true;
    u->cpu_usec = sample->cpu_usec;
    u->cpu_time_usec = sample->time_usec;
}

static void take_network(struct usage *u, const struct warden_sample *sample,
                         struct series_sample *into)
{
    struct network_usage now = {.known = (sample->known & SAMPLE_NETWORK) != 0,
                                .in_bytes = sample->network_in_bytes,
                                .out_bytes = sample->network_out_bytes,
                                .in_packets = sample->network_in_packets,
                                .out_packets = sample->network_out_packets,
                                .in_rate = NAN,
                                .out_rate = NAN};
    const struct network_usage *before = &u->network;
    if (now.known && u->has_network_before && now.in_bytes >= before->in_bytes &&
        now.out_bytes >= before->out_bytes && now.in_packets >= before->in_packets &&
        now.out_packets >= before->out_packets && sample->time_usec > u->network_time_usec) {
        into->has_flows = true;
        into->flows[SERIES_IN_BYTES] = now.in_bytes - before->in_bytes;
        into->flows[SERIES_OUT_BYTES] = now.out_bytes - before->out_bytes;
        into->flows[SERIES_IN_PACKETS] = now.in_packets - before->in_packets;
        into->flows[SERIES_OUT_PACKETS] = now.out_packets - before->out_packets;
        into->flows_elapsed_usec = sample->time_usec - u->network_time_usec;
        now.in_rate = (double)into->flows[SERIES_IN_BYTES] * 1e6 / (double)into->flows_elapsed_usec;
        now.out_rate =
            (double)into->flows[SERIES_OUT_BYTES] * 1e6 / (double)into->flows_elapsed_usec;
    }
    u->has_network_before = now.known;
    u->network_time_usec = sample->time_usec;
    u->network = now;
}

static void take_sample(struct sandbox *sb, const struct warden_sample *sample)
{
    struct usage *u = usage_of(sb);
    if (u->has_cpu_before && sample->time_usec < u->cpu_time_usec)
        return; /* two were under way, and the later one came first */
    struct series_sample into = {
        .time_ms = time_now_ms(),
        .has_memory = sample->known & SAMPLE_MEMORY,
        .has_disk = sample->known & SAMPLE_DISK,
        .memory_bytes = sample->memory_bytes,
        .disk_bytes = sample->disk_bytes,
    };
    if (sample->known & SAMPLE_CPU)
        take_cpu(u, sample, &into);
    if (into.has_cpu &&
        !lifespan_is_noise(into.cpu_usec, into.cpu_elapsed_usec, sb->limits.cpu_millis))
        sandbox_used(sb);
    u->memory = into.has_memory ? (double)into.memory_bytes : NAN;
    u->disk = into.has_disk ? (double)into.disk_bytes : NAN;
    u->tasks = sample->tasks;
    take_network(u, sample, &into);
    note_oom(sb, sample->oom_kills);
    if (u->sampled_ms != 0)
        series_add_since(&u->series, u->time_ms, &into);
    else
        series_add(&u->series, &into);
    u->sampled_ms = loop_now(sb->owner->loop);
    u->time_ms = into.time_ms;
    u->unsaved = true;
    sandbox_measured(sb);
}

struct batch {
    struct sandbox *items[STATS_IDS_MAX]; /* held */
    size_t count;
};

static void batch_add(struct batch *batch, struct sandbox *sb)
{
    sandbox_hold(sb);
    batch->items[batch->count++] = sb;
}

static int batch_sample(void *ctx, const struct warden_sample *sample, struct error *err)
{
    struct batch *batch = ctx;
    for (size_t i = 0; i < batch->count; i++)
        if (strcmp(batch->items[i]->id, sample->id) == 0 && is_running(batch->items[i]))
            take_sample(batch->items[i], sample);
    return 0;
}

/* Asks for all of a batch, saves what there is to say about them, and lets go of them. */
static int batch_run(struct sandboxes *s, struct batch *batch, struct error *err)
{
    char ids[STATS_IDS_MAX * 33];
    size_t len = 0;
    for (size_t i = 0; i < batch->count; i++) {
        size_t size = strlen(batch->items[i]->id) + 1;
        memcpy(ids + len, batch->items[i]->id, size);
        len += size;
    }
    int rc = batch->count == 0 ? 0
                               : s->provider->ops->stats(s->provider, (struct slice){ids, len},
                                                         batch_sample, batch, err);
    for (size_t i = 0; i < batch->count; i++) {
        sandbox_save_notes(batch->items[i]);
        tally_save(batch->items[i]);
        sandbox_life_save(batch->items[i]);
        sandbox_drop(batch->items[i]);
    }
    batch->count = 0;
    return rc;
}

/* --- files --- */

struct write_job {
    int dir_fd;
    uint32_t fine_width;
    size_t count;
    struct metrics_write writes[WRITE_BATCH];
    struct error error; /* of the first that failed */
};

static void write_files(void *arg)
{
    struct write_job *job = arg;
    struct error err;
    for (size_t i = 0; i < job->count; i++)
        if (metrics_file_write(job->dir_fd, job->fine_width, &job->writes[i], &err) < 0 &&
            job->error.code == ERROR_NONE)
            job->error = err;
}

static bool is_worth_writing(const struct sandbox *sb, bool all)
{
    const struct usage *u = sb->usage;
    return u != NULL && u->unsaved && !u->forgotten && !sb->gone &&
           (all || !is_running(sb) || u->series.pending_count >= SERIES_FLUSH_AT);
}

/* Takes what a series holds; should the write fail, that much of its history is missing. */
static void take_unwritten(struct sandbox *sb, struct metrics_write *write)
{
    memcpy(write->id, sb->id, strnlen(sb->id, sizeof(write->id) - 1) + 1);
    write->count = series_unwritten(&sb->usage->series, write->places);
    series_written(&sb->usage->series);
    sb->usage->unsaved = false;
}

static size_t collect_writes(struct sandboxes *s, bool all, struct write_job *job)
{
    for (struct sandbox *sb = s->ids; sb != NULL && job->count < WRITE_BATCH; sb = sb->by_id.next) {
        if (!is_worth_writing(sb, all))
            continue;
        take_unwritten(sb, &job->writes[job->count++]);
    }
    return job->count;
}

static void flush(struct sampler *m, bool all)
{
    while (m->dir_fd >= 0) {
        struct write_job job = {.dir_fd = m->dir_fd, .fine_width = m->interval_s};
        if (collect_writes(m->sandboxes, all, &job) == 0)
            return;
        workers_run(m->workers, write_files, &job);
        int64_t now = loop_now(m->sandboxes->loop);
        if (job.error.code != ERROR_NONE && now >= m->warned_ms) {
            log_warn("metrics are not kept: %s", job.error.message);
            m->warned_ms = now + WARN_EVERY_MS;
        }
    }
}

struct file_job {
    int dir_fd;
    uint32_t fine_width;
    const char *id;
    const struct metrics_write *write; /* first; NULL: nothing to write */
    struct series_image *image;
};

/* What somebody is shown is on record first. */
static void read_file(void *arg)
{
    struct file_job *job = arg;
    if (job->write != NULL)
        metrics_file_write(job->dir_fd, job->fine_width, job->write, NULL);
    metrics_file_read(job->dir_fd, job->fine_width, job->id, job->image);
}

static void remove_file(void *arg)
{
    const struct file_job *job = arg;
    metrics_file_remove(job->dir_fd, job->id);
}

void metrics_forget(struct sandbox *sb)
{
    struct sampler *m = sb->owner->sampler;
    struct file_job job = {.dir_fd = m->dir_fd, .id = sb->id};
    if (sb->usage != NULL)
        sb->usage->forgotten = true;
    if (m->dir_fd >= 0)
        workers_run(m->workers, remove_file, &job);
}

/* --- the round --- */

void metrics_started(struct sandbox *sb)
{
    struct usage *u = usage_of(sb);
    int64_t now = loop_now(sb->owner->loop);
    sb->agents++;
    u->has_cpu_before = true; /* its counters begin at zero, now */
    u->cpu_usec = 0;
    u->cpu_time_usec = monotonic_usec();
    u->has_network_before = true;
    u->network_time_usec = u->cpu_time_usec;
    u->network = (struct network_usage){.known = false};
    u->has_oom_before = true;
    u->oom_kills = 0;
    u->sampled_ms = 0;
    u->due_ms = now + FIRST_SAMPLE_MS;
    if (u->due_ms < sb->owner->sampler->next_ms)
        co_cond_wake_all(&sb->owner->sampler->wake);
}

static bool is_quiet(const struct sampler *m, const struct sandbox *sb, int64_t now)
{
    return sb->lower == NULL && sb->usage->sampled_ms != 0 && !sandbox_is_busy(sb) &&
           now - sb->life.active_ms > (int64_t)m->interval_s * 1000 * QUIET_AFTER;
}

/* Takes those that are due into the round, and says when to look again: the next of the others may
 * be due, or a quiet one have been used. */
static int64_t collect_due(struct sampler *m)
{
    const int64_t interval = (int64_t)m->interval_s * 1000;
    int64_t now = loop_now(m->sandboxes->loop), next = INT64_MAX;
    for (struct sandbox *sb = m->sandboxes->ids; sb != NULL; sb = sb->by_id.next) {
        if (!is_running(sb))
            continue;
        struct usage *u = usage_of(sb);
        int64_t due = u->due_ms + (is_quiet(m, sb, now) ? interval * (QUIET_FACTOR - 1) : 0);
        if (due <= now && m->round_count < ROUND_MAX) {
            due = u->due_ms = now + interval;
            sandbox_hold(sb);
            m->round[m->round_count++] = sb;
        }
        if (due < next)
            next = due;
    }
    return next == INT64_MAX || next < now + interval ? next : now + interval;
}

static bool flush_at_times(struct sampler *m)
{
    if (loop_now(m->sandboxes->loop) - m->flushed_ms < FLUSH_EVERY_MS)
        return false;
    flush(m, false);
    m->flushed_ms = loop_now(m->sandboxes->loop);
    return true;
}

/* -1: for as long as nothing starts. */
static int64_t wait_ms(const struct sampler *m, bool flushed)
{
    int64_t now = loop_now(m->sandboxes->loop), until = m->next_ms;
    if (!flushed && m->flushed_ms + FLUSH_EVERY_MS < until)
        until = m->flushed_ms + FLUSH_EVERY_MS;
    if (until == INT64_MAX)
        return -1;
    return until > now + LOOK_EVERY_MS ? until - now : LOOK_EVERY_MS;
}

static void run_round(struct sampler *m)
{
    struct error err;
    while (m->round_count > 0 && !m->stopping) {
        struct batch batch = {.count = 0};
        while (m->round_count > 0 && batch.count < STATS_IDS_MAX)
            batch.items[batch.count++] = m->round[--m->round_count];
        if (batch_run(m->sandboxes, &batch, &err) < 0)
            log_debug("sampling: %s", err.message);
    }
}

static void sampler_run(void *arg)
{
    struct sampler *m = arg;
    struct sandboxes *s = m->sandboxes;
    struct error err;
    while (!m->stopping) {
        bool flushed = flush_at_times(m);
        m->next_ms = collect_due(m);
        if (m->round_count == 0) /* nothing can have happened since we looked */
            co_cond_wait(s->loop, &m->wake, wait_ms(m, flushed), &err);
        run_round(m);
    }
    while (m->round_count > 0)
        sandbox_drop(m->round[--m->round_count]);
    m->co = NULL;
    co_cond_wake_all(&m->ended);
}

/* --- life --- */

int metrics_new(struct sandboxes *s, int data_dir_fd, struct error *err)
{
    struct error why;
    struct sampler *m = calloc(1, sizeof(*m));
    if (m == NULL)
        return error_sys(err, "allocating");
    *m = (struct sampler){.sandboxes = s, .interval_s = METRICS_INTERVAL_DEFAULT_S, .dir_fd = -1};
    m->workers = workers_new(s->loop, 1, err);
    if (m->workers == NULL) {
        free(m);
        return -1;
    }
    if (metrics_dir_open(data_dir_fd, &m->dir_fd, &why) < 0)
        log_warn("metrics are not kept: %s", why.message);
    s->sampler = m;
    return 0;
}

void sandboxes_set_metrics_interval(struct sandboxes *s, unsigned seconds)
{
    if (seconds >= 1 && seconds <= METRICS_INTERVAL_MAX_S)
        s->sampler->interval_s = seconds;
}

static bool is_known(void *ctx, const char *id)
{
    struct sandboxes *s = ctx;
    struct sandbox *sb;
    HASH_FIND(by_id, s->ids, id, strlen(id), sb);
    return sb != NULL;
}

int metrics_start(struct sandboxes *s, struct error *err)
{
    if (s->sampler->dir_fd >= 0)
        metrics_dir_sweep(s->sampler->dir_fd, is_known, s);
    return co_spawn(s->loop, sampler_run, s->sampler, &s->sampler->co, err);
}

void metrics_stop(struct sandboxes *s)
{
    struct sampler *m = s->sampler;
    struct error err;
    m->stopping = true;
    co_cond_wake_all(&m->wake);
    if (m->co != NULL)
        co_cancel(m->co);
    while (m->co != NULL)
        if (co_cond_wait(s->loop, &m->ended, -1, &err) < 0)
            break;
    flush(m, true);
}

void metrics_free(struct sandboxes *s)
{
    if (s->sampler == NULL)
        return;
    workers_free(s->sampler->workers);
    cleanup_fd(&s->sampler->dir_fd);
    free(s->sampler);
    s->sampler = NULL;
}

/* --- readers --- */

static bool is_stale(const struct sandbox *sb)
{
    return is_running(sb) && (sb->usage == NULL || sb->usage->sampled_ms == 0 ||
                              loop_now(sb->owner->loop) - sb->usage->sampled_ms >= FRESH_MS);
}

int metrics_look(struct sandbox *sb, bool *ret_known, struct error *err)
{
    struct batch batch = {.count = 0};
    bool known = sb->usage != NULL && sb->usage->has_cpu_before;
    if (is_stale(sb)) {
        batch_add(&batch, sb);
        if (batch_run(sb->owner, &batch, err) < 0)
            return -1;
        known = known && !is_stale(sb); /* one that does not come says nothing */
    }
    *ret_known = known;
    return 0;
}

uint64_t sandbox_memory_kills(struct sandboxes *s, const char *workspace, const char *name,
                              bool now)
{
    struct batch batch = {.count = 0};
    struct sandbox *sb = sandbox_find(s, workspace, name, NULL);
    uint64_t kills = 0;
    if (sb == NULL || !is_running(sb))
        return 0;
    sandbox_hold(sb);
    if (now || sb->usage == NULL || !sb->usage->has_oom_before) {
        batch_add(&batch, sb);
        (void)batch_run(s, &batch, NULL);
    }
    if (sb->usage != NULL)
        kills = sb->usage->oom_kills;
    sandbox_drop(sb);
    return kills;
}

unsigned metrics_interval(const struct sandboxes *s)
{
    return s->sampler->interval_s;
}

/* Everything up to now. */
static void read_history(struct sandbox *sb, struct series_image *ret_image)
{
    struct sampler *m = sb->owner->sampler;
    struct metrics_write write = {.count = 0};
    struct file_job job = {
        .dir_fd = m->dir_fd, .fine_width = m->interval_s, .id = sb->id, .image = ret_image};
    if (m->dir_fd < 0) {
        series_image_init(ret_image, m->interval_s);
        return;
    }
    if (is_worth_writing(sb, true)) {
        take_unwritten(sb, &write);
        job.write = &write;
    }
    workers_run(m->workers, read_file, &job);
}

/* Who asks for figures does not use the sandbox. */
static void drop_sandbox(struct sandbox **sb)
{
    if (*sb != NULL)
        sandbox_drop(*sb);
}

int sandbox_metrics(struct sandboxes *s, const char *workspace, const char *name, uint32_t period,
                    uint32_t resolution, struct arena *arena, struct series_value **ret_values,
                    size_t *ret_count, struct error *err)
{
    struct error why;
    if (period / resolution > METRICS_POINTS_MAX)
        return error_set(err, ERROR_INVALID_ARGUMENT,
                         "%" PRIu32 " points are more than %d: choose a coarser resolution or a "
                         "shorter period",
                         period / resolution, METRICS_POINTS_MAX);
    _cleanup_(drop_sandbox) struct sandbox *sb = sandbox_find(s, workspace, name, err);
    if (sb == NULL)
        return -1;
    sandbox_hold(sb);
    struct batch batch = {.count = 0};
    if (is_stale(sb))
        batch_add(&batch, sb);
    if (batch_run(s, &batch, &why) < 0) /* what is known already is worth having */
        log_debug("sampling %s: %s", sb->id, why.message);

    _cleanup_free_ struct series_image *image = malloc(sizeof(*image));
    if (image == NULL)
        return error_sys(err, "reading metrics");
    read_history(sb, image);
    *ret_values = arena_alloc(arena, (period / resolution + 1) * sizeof(**ret_values));
    *ret_count = series_query(image, sb->usage == NULL ? NULL : &sb->usage->series,
                              time_now_ms() / 1000, period, resolution, *ret_values);
    return 0;
}

struct sandbox_load sandbox_load(const struct sandbox *sb)
{
    const struct usage *u = sb->usage;
    if (!is_running(sb) || u == NULL || u->sampled_ms == 0)
        return (struct sandbox_load){.cpu = NAN, .memory = NAN, .disk = NAN};
    return (struct sandbox_load){.time_ms = u->time_ms,
                                 .cpu = u->cpu,
                                 .memory = u->memory,
                                 .disk = u->disk,
                                 .tasks = u->tasks};
}

static void describe(const struct sandbox *sb, struct arena *arena, struct sandbox_usage *to)
{
    const struct sandbox_load load = sandbox_load(sb);
    *to = (struct sandbox_usage){
        .id = arena_strdup(arena, sb->id),
        .name = arena_strdup(arena, sb->name),
        .group = sb->group == NULL ? NULL : arena_strdup(arena, sb->group->name),
        .status = sb->status,
        .time_ms = load.time_ms,
        .cpu = load.cpu,
        .memory = load.memory,
        .disk = load.disk,
        .tasks = load.tasks,
        .limits = sb->limits,
    };
    if (load.time_ms != 0)
        to->network = sb->usage->network;
    tally_info(sb, &to->tally);
    if (sb->promise.kind == PROMISE_ALL)
        to->allocated = sb->promise.limits;
    else if (sb->promise.kind == PROMISE_DISK)
        to->allocated.disk_bytes = sb->promise.limits.disk_bytes;
}

static bool is_in(const struct sandbox *sb, const char *workspace, const char *group)
{
    return strcmp(sb->workspace, workspace) == 0 &&
           (group == NULL || (sb->group != NULL && strcmp(sb->group->name, group) == 0));
}

int sandboxes_usage(struct sandboxes *s, const char *workspace, const char *group, size_t limit,
                    size_t offset, struct arena *arena, struct sandbox_usage **ret_items,
                    size_t *ret_count, size_t *ret_total, struct error *err)
{
    struct error why;
    size_t most = HASH_CNT(by_id, s->ids), total = 0, count = 0;
    struct sandbox **chosen = arena_alloc(arena, (most + 1) * sizeof(*chosen));
    for (struct sandbox *sb = s->ids; sb != NULL; sb = sb->by_id.next)
        if (is_in(sb, workspace, group) && total++ >= offset && count < limit) {
            sandbox_hold(sb);
            chosen[count++] = sb;
        }
    struct batch batch = {.count = 0};
    for (size_t i = 0; i < count; i++) {
        if (is_stale(chosen[i]))
            batch_add(&batch, chosen[i]);
        if ((batch.count == STATS_IDS_MAX || i + 1 == count) && batch_run(s, &batch, &why) < 0)
            log_debug("sampling: %s", why.message);
    }
    *ret_items = arena_alloc(arena, (count + 1) * sizeof(**ret_items));
    for (size_t i = 0; i < count; i++) {
        describe(chosen[i], arena, &(*ret_items)[i]);
        sandbox_drop(chosen[i]);
    }
    *ret_count = count;
    *ret_total = total;
    return 0;
}
