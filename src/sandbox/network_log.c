/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The collector asks the egress process for what was changed since the last time, and asks again
 * once that is in the files: so nothing is lost when this process is killed, and when the egress
 * process is, no more than a fraction of a second. A disk that is slow or full makes it ask more
 * rarely, and hurts nobody else.
 *
 * Numbers go on over the life of an egress process: the next one is told where to begin, with a
 * gap that is wider than what may have been lost, and that does not change the place in the file.
 */

#include "sandbox/network_log.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/limits.h"
#include "base/log.h"
#include "loop/net.h"
#include "loop/work.h"
#include "sandbox/network_log_file.h"
#include "sandbox/state.h"

enum {
    CONNECT_MS = 5000,
    RETRY_MS = 500,
    CALL_MS = 20 * 1000,
    WAIT_MS = 5 * 1000, /* for an egress process that is being restarted */
    PAUSE_MS = 200,     /* between two pulls: many events become one write, and no answer is
                           followed by a pull at once, however quickly it came */
    LOOK_MS = 1000,     /* for a follower, should nobody wake it */
    WARN_EVERY_MS = 600 * 1000,
    NUMBERS_LEFT_OUT = 2 * EGRESS_LOG_MAX,
};

struct network_logs {
    int dir_fd; /* -1: they are not kept */
    struct workers *workers;
    struct co *collector; /* NULL: not running */
    int64_t warned_ms;
};

/* ---- from and to what is kept ---- */

static void set_text(char *to, size_t size, const char *from)
{
    snprintf(to, size, "%s", from == NULL ? "" : from);
}

static void record_of(const struct egress_log_entry *entry, struct network_log_record *record)
{
    memset(record, 0, sizeof(*record));
    record->sequence = entry->sequence;
    record->first_ms = entry->first_ms;
    record->last_ms = entry->last_ms;
    record->bytes_in = entry->bytes_in;
    record->bytes_out = entry->bytes_out;
    record->count = entry->count;
    record->port = (uint16_t)entry->port;
    record->type = (uint16_t)entry->type;
    record->kind = (uint8_t)entry->kind;
    record->verdict = (uint8_t)entry->verdict;
    record->protocol = (uint8_t)entry->protocol;
    record->open = entry->open != 0;
    set_text(record->address, sizeof(record->address), entry->address);
    set_text(record->detail, sizeof(record->detail), entry->detail);
    set_text(record->name, sizeof(record->name), entry->name);
}

static const char *text_of(struct arena *arena, const char *text)
{
    return text[0] == '\0' ? NULL : arena_strdup(arena, text);
}

/* What was open then is not any more, or somebody who knows better says so. */
static struct egress_log_entry entry_of(struct arena *arena,
                                        const struct network_log_record *record)
{
    return (struct egress_log_entry){
        .sequence = record->sequence,
        .first_ms = record->first_ms,
        .last_ms = record->last_ms,
        .kind = record->kind,
        .verdict = record->verdict,
        .name = text_of(arena, record->name),
        .address = text_of(arena, record->address),
        .port = record->port,
        .type = record->type,
        .protocol = record->protocol,
        .bytes_in = record->bytes_in,
        .bytes_out = record->bytes_out,
        .count = record->count,
        .detail = text_of(arena, record->detail),
    };
}

/* ---- collecting ---- */

struct write_job {
    int dir_fd;
    struct collected {
        char id[33];
        struct network_log_record record;
    } items[EGRESS_LOG_PULL_MAX];
    size_t count;
    struct network_log_position position;
    struct error error; /* of the first that failed */
};

static int by_sandbox(const void *a, const void *b)
{
    return strcmp(((const struct collected *)a)->id, ((const struct collected *)b)->id);
}

/* A file is opened once for all that goes into it. Where the entries are, the position follows. */
static void write_files(void *arg)
{
    struct write_job *job = arg;
    struct error err;
    struct network_log_record records[16];
    qsort(job->items, job->count, sizeof(job->items[0]), by_sandbox);
    for (size_t at = 0, n; at < job->count; at += n) {
        for (n = 0; at + n < job->count && n < ARRAY_LEN(records) &&
                    by_sandbox(&job->items[at], &job->items[at + n]) == 0;
             n++)
            records[n] = job->items[at + n].record;
        if (network_log_file_write(job->dir_fd, job->items[at].id, records, n, &err) < 0 &&
            job->error.code == ERROR_NONE)
            job->error = err;
    }
    if (network_log_position_write(job->dir_fd, &job->position, &err) < 0 &&
        job->error.code == ERROR_NONE)
        job->error = err;
}

struct collection {
    struct sandboxes *sandboxes;
    struct write_job *job;
};

static int collect(void *ctx, const void *item, struct error *err)
{
    struct collection *collection = ctx;
    struct write_job *job = collection->job;
    const struct egress_log_entry *entry = item;
    struct sandbox *sb = NULL;
    job->position.change = entry->change;
    if (entry->id != NULL)
        HASH_FIND(by_id, collection->sandboxes->ids, entry->id, strlen(entry->id), sb);
    if (sb == NULL || sb->gone || sb->network_log.forgotten || job->count == EGRESS_LOG_PULL_MAX)
        return 0;
    if (entry->sequence > sb->network_log.last)
        sb->network_log.last = entry->sequence;
    co_cond_wake_all(&sb->network_log.news);
    struct collected *to = &job->items[job->count++];
    snprintf(to->id, sizeof(to->id), "%s", sb->id);
    record_of(entry, &to->record);
    return 0;
}

static void keep(struct sandboxes *s, struct write_job *job)
{
    struct network_logs *logs = s->networks.logs;
    int64_t now = loop_now(s->loop);
    if (logs->dir_fd < 0)
        return;
    workers_run(logs->workers, write_files, job);
    if (job->error.code != ERROR_NONE && now >= logs->warned_ms) {
        log_warn("networks' logs are not kept: %s", job->error.message);
        logs->warned_ms = now + WARN_EVERY_MS;
    }
}

/* One question, and what becomes of its answer. */
static int collect_once(struct sandboxes *s, struct channel *channel,
                        struct network_log_position *position, struct error *err)
{
    const struct egress_log_pull pull = {.after = position->change};
    _cleanup_free_ struct write_job *job = calloc(1, sizeof(*job));
    struct collection collection = {.sandboxes = s, .job = job};
    if (job == NULL)
        return error_sys(err, "collecting networks' logs");
    job->dir_fd = s->networks.logs->dir_fd;
    job->position = *position;
    struct arena *arena = arena_new();
    int r =
        channel_list(channel, &egress_log_pull_schema, &pull, &egress_log_entry_schema, arena,
                     EGRESS_LOG_PULL_MAX, collect, &collection, EGRESS_LOG_WAIT_MS + CALL_MS, err);
    arena_free(arena);
    if (r < 0)
        return -1;
    if (job->position.change != position->change) {
        *position = job->position;
        keep(s, job);
    }
    return co_sleep(s->loop, PAUSE_MS, err);
}

struct position_job {
    int dir_fd;
    struct network_log_position position;
};

static void read_position(void *arg)
{
    struct position_job *job = arg;
    job->position = network_log_position_read(job->dir_fd);
}

static int collect_from(struct sandboxes *s, struct channel *channel, struct error *err)
{
    struct network_logs *logs = s->networks.logs;
    struct position_job job = {.dir_fd = logs->dir_fd};
    struct egress_about about;
    struct arena *arena = arena_new();
    const struct egress_hello hello = {.epoch = s->networks.epoch};
    int r = channel_call(channel, &egress_hello_schema, &hello, &egress_about_schema, arena, &about,
                         CALL_MS, err);
    arena_free(arena);
    if (r < 0)
        return -1;
    workers_run(logs->workers, read_position, &job);
    if (job.position.egress != about.started_ms)
        job.position = (struct network_log_position){.egress = about.started_ms};
    while (!s->networks.closing)
        if (collect_once(s, channel, &job.position, err) < 0)
            return -1;
    return 0;
}

static void collector(void *arg)
{
    struct sandboxes *s = arg;
    struct networks *n = &s->networks;
    const struct channel_events events = {0};
    struct error err;
    n->logs->collector = co_self(s->loop);
    while (!n->closing) {
        int fd;
        struct channel *channel = NULL;
        if (net_connect_at(s->loop, n->run_fd, "egress.sock", CONNECT_MS, &fd, &err) == 0)
            channel = channel_new(s->loop, fd, &events, &err);
        if (channel != NULL) {
            if (collect_from(s, channel, &err) < 0)
                log_debug("collecting networks' logs: %s", err.message);
            channel_free(channel);
        }
        if (n->closing || co_sleep(s->loop, RETRY_MS, &err) < 0)
            break;
    }
    n->logs->collector = NULL;
}

/* ---- life ---- */

int network_logs_new(struct sandboxes *s, int data_dir_fd, struct error *err)
{
    struct error why;
    struct network_logs *logs = calloc(1, sizeof(*logs));
    if (logs == NULL)
        return error_sys(err, "allocating");
    logs->dir_fd = -1;
    s->networks.logs = logs;
    if (network_log_dir_open(data_dir_fd, &logs->dir_fd, &why) < 0)
        log_warn("networks' logs are not kept: %s", why.message);
    return 0;
}

static bool has_file(void *ctx, const char *id)
{
    struct sandboxes *s = ctx;
    struct sandbox *sb;
    HASH_FIND(by_id, s->ids, id, strlen(id), sb);
    if (sb != NULL)
        sb->network_log.unread = true;
    return sb != NULL;
}

void network_logs_start(struct sandboxes *s)
{
    struct network_logs *logs = s->networks.logs;
    struct error err;
    if (logs->workers != NULL || s->networks.closing)
        return;
    if (logs->dir_fd >= 0)
        network_log_dir_sweep(logs->dir_fd, has_file, s);
    logs->workers = workers_new(s->loop, 1, &err);
    if (logs->workers == NULL || co_spawn(s->loop, collector, s, NULL, &err) < 0)
        log_error("collecting networks' logs: %s", err.message);
}

void network_logs_stop(struct sandboxes *s)
{
    if (s->networks.logs->collector != NULL)
        co_cancel(s->networks.logs->collector);
}

void network_logs_free(struct sandboxes *s)
{
    struct network_logs *logs = s->networks.logs;
    if (logs == NULL)
        return;
    workers_free(logs->workers);
    cleanup_fd(&logs->dir_fd);
    free(steal_ptr(s->networks.logs));
}

struct file_job {
    int dir_fd;
    const char *id;
    struct network_log_record *records; /* EGRESS_LOG_MAX */
    size_t count;
    uint64_t last;
};

static void read_last(void *arg)
{
    struct file_job *job = arg;
    job->last = network_log_file_last(job->dir_fd, job->id);
}

static void read_file(void *arg)
{
    struct file_job *job = arg;
    job->count = network_log_file_read(job->dir_fd, job->id, job->records);
}

static void remove_file(void *arg)
{
    const struct file_job *job = arg;
    network_log_file_remove(job->dir_fd, job->id);
}

static void run(struct sandboxes *s, void (*fn)(void *arg), struct file_job *job)
{
    struct network_logs *logs = s->networks.logs;
    job->dir_fd = logs->dir_fd;
    if (logs->dir_fd >= 0 && logs->workers != NULL)
        workers_run(logs->workers, fn, job);
}

uint64_t network_log_after(struct sandbox *sb)
{
    struct sandbox_network_log *log = &sb->network_log;
    if (log->unread) {
        struct file_job job = {.id = sb->id};
        run(sb->owner, read_last, &job);
        log->unread = false;
        if (job.last > log->last)
            log->last = job.last;
    }
    return log->last == 0 ? 0 : log->last + NUMBERS_LEFT_OUT;
}

void network_log_forget(struct sandbox *sb)
{
    struct file_job job = {.id = sb->id};
    sb->network_log.forgotten = true;
    if (sb->network_log.last != 0 || sb->network_log.unread)
        run(sb->owner, remove_file, &job);
}

/* ---- reading ---- */

int network_log_verdicts(const char *text, uint64_t *ret_verdicts, struct error *err)
{
    static const struct {
        const char *text, *prefix;
    } groups[] = {{"allowed", "ALLOWED"}, {"refused", "REFUSED_"}, {"failed", "FAILED_"}};
    const char *prefix = NULL;
    uint64_t verdicts = 0;
    for (size_t i = 0; i < ARRAY_LEN(groups); i++)
        if (strcmp(groups[i].text, text) == 0)
            prefix = groups[i].prefix;
    for (int i = 0; i < NET_VERDICT_COUNT; i++) {
        const char *name = net_verdict_name((enum net_verdict)i);
        if (prefix != NULL ? strncmp(name, prefix, strlen(prefix)) == 0 : strcmp(name, text) == 0)
            verdicts |= UINT64_C(1) << i;
    }
    if (verdicts == 0)
        return error_set(err, ERROR_INVALID_ARGUMENT,
                         "verdict: \"%.40s\" is none of allowed, refused, failed, nor the name of "
                         "one, such as REFUSED_UNLISTED",
                         text);
    *ret_verdicts = verdicts;
    return 0;
}
_Static_assert(NET_VERDICT_COUNT <= 64, "verdicts are bits");

static bool is_wanted(const struct network_log_query *query, const struct egress_log_entry *entry)
{
    return entry->sequence > query->after && (int64_t)entry->last_ms >= query->since_ms &&
           (query->verdicts == 0 ||
            (entry->verdict < 64 && query->verdicts >> entry->verdict & 1)) &&
           (query->kinds == 0 || (entry->kind < 32 && query->kinds >> entry->kind & 1));
}

struct gathered {
    struct egress_log_entry *entries;
    size_t count;
};

static int gather(void *ctx, const void *item, struct error *err)
{
    struct gathered *gathered = ctx;
    if (gathered->count < EGRESS_LOG_MAX)
        gathered->entries[gathered->count++] = *(const struct egress_log_entry *)item;
    return 0;
}

/* One that is being restarted is back soon. */
static bool wait_for_egress(struct sandboxes *s)
{
    struct error err;
    int64_t until = loop_now(s->loop) + WAIT_MS;
    while (s->networks.egress == NULL)
        if (loop_now(s->loop) > until || co_sleep(s->loop, RETRY_MS / 5, &err) < 0)
            return false;
    return true;
}

/* What the egress process has: nothing, when it is not there. */
static int gather_new(struct sandbox *sb, struct arena *arena, struct gathered *new,
                      struct error *err)
{
    struct sandboxes *s = sb->owner;
    const struct egress_log_read request = {.id = sb->id};
    new->entries = arena_alloc(arena, EGRESS_LOG_MAX * sizeof(*new->entries));
    if (!wait_for_egress(s) || channel_list(s->networks.egress, &egress_log_read_schema, &request,
                                            &egress_log_entry_schema, arena, EGRESS_LOG_MAX, gather,
                                            new, CALL_MS, err) == 0)
        return 0;
    new->count = 0;
    return err->code == ERROR_CANCELLED ? -1 : 0; /* it has not tried anything yet, or it died */
}

/* What is older than that, as it was kept. */
static void gather_old(struct sandbox *sb, struct arena *arena, uint64_t before,
                       struct gathered *old)
{
    _cleanup_free_ struct network_log_record *records =
        malloc(EGRESS_LOG_MAX * sizeof(struct network_log_record));
    struct file_job job = {.id = sb->id, .records = records};
    if (records == NULL)
        abort();
    run(sb->owner, read_file, &job);
    old->entries = arena_alloc(arena, (job.count + 1) * sizeof(*old->entries));
    for (size_t i = 0; i < job.count; i++)
        if (records[i].sequence < before)
            old->entries[old->count++] = entry_of(arena, &records[i]);
}

static void add_wanted(const struct network_log_query *query, const struct gathered *from,
                       struct network_log *log)
{
    for (size_t i = 0; i < from->count; i++)
        if (is_wanted(query, &from->entries[i]))
            log->entries[log->count++] = from->entries[i];
}

/* Both, the newest so many of them. *ret_change: of the newest change that is in it. */
static int read_log(struct sandbox *sb, const struct network_log_query *query, struct arena *arena,
                    struct network_log *ret_log, uint64_t *ret_change, struct error *err)
{
    struct gathered new = {0}, old = {0};
    struct network_log log = {.last = query->after};
    if (gather_new(sb, arena, &new, err) < 0)
        return -1;
    gather_old(sb, arena, new.count > 0 ? new.entries[0].sequence : UINT64_MAX, &old);
    log.entries = arena_alloc(arena, (new.count + old.count + 1) * sizeof(*log.entries));
    add_wanted(query, &old, &log);
    add_wanted(query, &new, &log);
    const struct gathered *newest = new.count > 0 ? &new : &old;
    if (newest->count > 0 && newest->entries[newest->count - 1].sequence > log.last)
        log.last = newest->entries[newest->count - 1].sequence;
    for (size_t i = 0; i < new.count; i++)
        if (new.entries[i].change > *ret_change)
            *ret_change = new.entries[i].change;
    if (log.count > query->limit) {
        log.entries += log.count - query->limit;
        log.count = query->limit;
    }
    *ret_log = log;
    return 0;
}

int sandboxes_network_log(struct sandboxes *s, const char *workspace, const char *name,
                          const struct network_log_query *query, struct arena *arena,
                          struct network_log *ret_log, struct error *err)
{
    uint64_t change = 0;
    struct sandbox *sb = sandbox_find(s, workspace, name, err);
    if (sb == NULL)
        return -1;
    *ret_log = (struct network_log){.last = query->after};
    if (!s->networks.available)
        return 0; /* nothing was ever let through, or refused */
    sandbox_hold(sb);
    int r = read_log(sb, query, arena, ret_log, &change, err);
    sandbox_drop(sb);
    return r;
}

/* ---- following ---- */

struct network_log_reader {
    struct sandbox *sb; /* held */
    struct network_log_query query;
    bool begun;
    uint64_t egress; /* whose … */
    uint64_t change; /* … changes were given up to this one */
};

int sandboxes_network_log_follow(struct sandboxes *s, const char *workspace, const char *name,
                                 const struct network_log_query *query,
                                 struct network_log_reader **ret_reader, struct error *err)
{
    struct sandbox *sb = sandbox_find(s, workspace, name, err);
    if (sb == NULL)
        return -1;
    if (sb->network_log.followers >= LOG_FOLLOWERS_MAX)
        return error_set(err, ERROR_LIMIT_EXCEEDED, "%d follow the network's log of \"%s\" already",
                         LOG_FOLLOWERS_MAX, sb->name);
    struct network_log_reader *reader = calloc(1, sizeof(*reader));
    if (reader == NULL)
        abort();
    sandbox_hold(sb);
    sb->network_log.followers++;
    reader->sb = sb;
    reader->query = *query;
    *ret_reader = reader;
    return 0;
}

void network_log_end(struct network_log_reader *reader)
{
    if (reader == NULL)
        return;
    reader->sb->network_log.followers--;
    sandbox_drop(reader->sb);
    free(reader);
}

/* What was changed since the last look. */
static int look(struct network_log_reader *r, struct arena *arena, struct network_log *ret_log,
                struct error *err)
{
    struct networks *n = &r->sb->owner->networks;
    struct gathered new = {0};
    struct network_log log = {0};
    if (n->egress == NULL)
        return 0;
    if (gather_new(r->sb, arena, &new, err) < 0)
        return -1;
    if (r->egress != n->egress_started)
        r->change = 0; /* another one counts anew, and has nothing that was given before */
    r->egress = n->egress_started;
    uint64_t newest = r->change;
    log.entries = new.entries;
    for (size_t i = 0; i < new.count; i++) {
        const struct egress_log_entry entry = new.entries[i];
        if (entry.change > newest)
            newest = entry.change;
        if (entry.change > r->change && is_wanted(&r->query, &entry))
            log.entries[log.count++] = entry;
    }
    r->change = newest;
    *ret_log = log;
    return 0;
}

int network_log_next(struct network_log_reader *r, int64_t idle_ms, struct arena *arena,
                     struct network_log *ret_log, bool *ret_ended, struct error *err)
{
    struct sandboxes *s = r->sb->owner;
    int64_t until = loop_now(s->loop) + idle_ms;
    *ret_log = (struct network_log){0};
    if (!r->begun) {
        r->begun = true;
        *ret_ended = r->sb->gone;
        if (!s->networks.available)
            return 0;
        int rc = read_log(r->sb, &r->query, arena, ret_log, &r->change, err);
        r->egress = s->networks.egress_started;
        r->query.after = 0; /* one that was given may change */
        return rc;
    }
    for (;;) {
        struct error why;
        *ret_ended = r->sb->gone;
        if (look(r, arena, ret_log, err) < 0)
            return -1;
        if (ret_log->count > 0 || *ret_ended || loop_now(s->loop) >= until)
            return 0;
        if (co_cond_wait(s->loop, &r->sb->network_log.news, LOOK_MS, &why) < 0 &&
            why.code != ERROR_TIMEOUT) {
            *err = why;
            return -1;
        }
    }
}
