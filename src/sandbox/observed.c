/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What sandboxes, pools and their machine come to. A scrape walks the list in memory once; what
 * each sandbox uses is the sampler's last word (metrics.c), so that a thousand of them cost no
 * system call here. No name of a sandbox, group or workspace is told: there can be any number.
 */

#include "sandbox/observed.h"

#include <math.h>

#include "base/cleanup.h"
#include "sandbox/pools.h"
#include "sandbox/state.h"

struct sums {
    uint64_t by_status[SANDBOX_STATUS_COUNT];
    double cpu, memory, disk, tasks, executions;
};

static void add_sandbox(struct sums *sums, const struct sandbox *sb)
{
    const struct sandbox_load load = sandbox_load(sb);
    sums->by_status[sb->status]++;
    sums->cpu += isnan(load.cpu) ? 0 : load.cpu;
    sums->memory += isnan(load.memory) ? 0 : load.memory;
    sums->disk += isnan(load.disk) ? 0 : load.disk;
    sums->tasks += (double)load.tasks;
    sums->executions += (double)sb->tally.commands;
}

static void tell_sandboxes(struct sandboxes *s, struct meter_sink *sink)
{
    struct sums sums = {0};
    for (const struct sandbox *sb = s->ids; sb != NULL; sb = sb->by_id.next)
        add_sandbox(&sums, sb);
    sink->family(sink, &(struct meter_family){"cella_sandboxes", "Sandboxes, by their status.",
                                              METER_TYPE_GAUGE});
    for (int i = 0; i < SANDBOX_STATUS_COUNT; i++) {
        const struct meter_label label = {"status", sandbox_status_text((enum sandbox_status)i)};
        sink->number(sink, &label, 1, (double)sums.by_status[i]);
    }
    meter_gauge(sink, "cella_sandboxes_active", "Sandboxes that run.",
                (double)sums.by_status[SANDBOX_RUNNING]);
    meter_gauge(sink, "cella_sandboxes_cpu_cores",
                "Cores that running sandboxes use together, when they were last looked at.",
                sums.cpu);
    meter_gauge(sink, "cella_sandboxes_memory_bytes", "Memory of running sandboxes, likewise.",
                sums.memory);
    meter_gauge(sink, "cella_sandboxes_disk_bytes", "Disk of running sandboxes, likewise.",
                sums.disk);
    meter_gauge(sink, "cella_sandboxes_tasks", "Processes and threads in them, likewise.",
                sums.tasks);
}

static void tell_disk(const struct machine_words *words, struct meter_sink *sink)
{
    meter_gauge(sink, "cella_data_disk_free_bytes",
                "What is free on the disk of the data folder, likewise.",
                (double)words->disk_below);
    meter_gauge(sink, "cella_data_disk_reserve_bytes",
                "What of it the sandboxes' volume leaves free.", (double)words->disk_reserve);
    meter_gauge(sink, "cella_volume_size_bytes",
                "Size of the sandboxes' volume, likewise; 0 where they have none.",
                (double)words->volume_size);
    meter_gauge(sink, "cella_volume_read_only",
                "1 when sandboxes' files cannot be written, 0 otherwise.",
                words->flags & MACHINE_DISK_READ_ONLY ? 1 : 0);
    meter_gauge(sink, "cella_volume_sparse",
                "1 when the volume's file is not allocated in full, so that a full disk means "
                "write errors; 0 otherwise.",
                words->flags & MACHINE_SPARSE_VOLUME ? 1 : 0);
}

static void tell_capacity(const struct sandboxes *s, struct meter_sink *sink)
{
    static const struct {
        enum resource resource;
        const char *name;
        double unit;
    } rows[] = {{RESOURCE_CPU, "cpu_cores", 1000},
                {RESOURCE_MEMORY, "memory_bytes", 1},
                {RESOURCE_DISK, "disk_bytes", 1},
                {RESOURCE_PIDS, "tasks", 1}};
    sink->family(sink, &(struct meter_family){"cella_machine_capacity",
                                              "What the machine has, by resource and unit.",
                                              METER_TYPE_GAUGE});
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        sink->number(sink, &(struct meter_label){"resource", rows[i].name}, 1,
                     (double)s->admission.machine.total[rows[i].resource] / rows[i].unit);
    sink->family(sink,
                 &(struct meter_family){"cella_machine_promised",
                                        "What of it is promised to sandboxes.", METER_TYPE_GAUGE});
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        sink->number(sink, &(struct meter_label){"resource", rows[i].name}, 1,
                     (double)s->admission.promised[rows[i].resource] / rows[i].unit);
    meter_gauge(sink, "cella_machine_disk_free_bytes",
                "What sandboxes can still write, when it was last looked at.",
                (double)s->admission.disk_free);
    tell_disk(&s->words, sink);
}

/* --- pools: POOLS_MAX of them, named by the operator --- */

struct pool_row {
    const char *name, *help;
    enum meter_type type;
    double (*value)(const struct pool_info *info);
};

#define VALUE(field)                                                                               \
    static double pool_##field(const struct pool_info *info)                                       \
    {                                                                                              \
        return (double)info->field;                                                                \
    }
VALUE(size)
VALUE(ready)
VALUE(making)
VALUE(claimed)
VALUE(misses)
VALUE(refills)
VALUE(failures)
#undef VALUE

static const struct pool_row pool_rows[] = {
    {"cella_pool_size", "Spare sandboxes that are to be kept ready.", METER_TYPE_GAUGE, pool_size},
    {"cella_pool_ready", "Spare sandboxes that are ready.", METER_TYPE_GAUGE, pool_ready},
    {"cella_pool_making", "Spare sandboxes in the making.", METER_TYPE_GAUGE, pool_making},
    {"cella_pool_claimed_total", "Creates that took a spare.", METER_TYPE_COUNTER, pool_claimed},
    {"cella_pool_misses_total", "Creates that found the pool empty.", METER_TYPE_COUNTER,
     pool_misses},
    {"cella_pool_refills_total", "Spares made.", METER_TYPE_COUNTER, pool_refills},
    {"cella_pool_failures_total", "Spares that could not be made.", METER_TYPE_COUNTER,
     pool_failures},
};

static void tell_pools(struct sandboxes *s, struct meter_sink *sink)
{
    struct arena *arena = arena_new();
    struct pool_info *items;
    size_t count;
    pools_list(s, arena, &items, &count);
    for (size_t row = 0; row < ARRAY_LEN(pool_rows); row++) {
        const struct pool_row *r = &pool_rows[row];
        sink->family(sink, &(struct meter_family){r->name, r->help, r->type});
        for (size_t i = 0; i < count; i++)
            sink->number(sink, &(struct meter_label){"pool", items[i].name}, 1,
                         r->value(&items[i]));
    }
    arena_free(arena);
}

void sandboxes_tell(struct sandboxes *s, struct meter_sink *sink)
{
    capacity_keep_fresh(s); /* for the next time */
    tell_sandboxes(s, sink);
    tell_capacity(s, sink);
    tell_pools(s, sink);
}

/* --- commands --- */

void execution_ended(struct loop *loop, const struct agent_process *process)
{
    struct meters *meters = loop_meters(loop);
    switch (process->state) {
    case PROCESS_TIMED_OUT:
        meter_count(meters, METER_COMMAND_TIMED_OUT);
        meter_count(meters, METER_TIMEOUT_EXECUTION);
        break;
    case PROCESS_MEMORY_LIMIT:
    case PROCESS_PROCESS_LIMIT:
    case PROCESS_OUTPUT_LIMIT:
        meter_count(meters, METER_COMMAND_LIMIT);
        break;
    default:
        meter_count(meters, process->exit_code == 0 ? METER_COMMAND_OK : METER_COMMAND_FAILED);
        break;
    }
    if (process->ended_ms >= process->started_ms)
        meter_observe(meters, METER_EXECUTE_COMMAND,
                      (double)(process->ended_ms - process->started_ms) / 1e3);
}

void execution_failed(struct loop *loop, const struct error *why)
{
    if (why->code != ERROR_WAIT_TIMEOUT && why->code != ERROR_CANCELLED)
        meter_count(loop_meters(loop), METER_COMMAND_ERROR);
}
