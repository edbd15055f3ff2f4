/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A reader of a sandbox's log remembers how far it is: in the sandbox's own story, and in each
 * stream of each process. The first time it asks for the end of each stream only, as far back as
 * the lines that are wanted can reach; after that for what is new. The agent says which processes
 * have written something, so that asking often costs little.
 */

#include "sandbox/logs.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/limits.h"
#include "base/timetext.h"
#include "loop/co.h"
#include "sandbox/log_lines.h"
#include "sandbox/state.h"

enum {
    ANSWER_MS = 30 * 1000,
    READ_COST = 512,            /* of an answer without bytes */
    LOOK_MS = 250,              /* between two looks for what is new */
    BACK_FIRST = 32 * 1024,     /* how far from a stream's end its last lines are looked for, … */
    BACK_MAX = PROCESS_LOG_MAX, /* … and how far at most */
    CHANGES_MAX = 16 * PROCESSES_KEPT_MAX,
};

/* Of what happened in the same ms. */
enum rank { RANK_CREATED, RANK_NOTE, RANK_EVENT, RANK_LINE };

struct position {
    uint64_t sequence;
    uint64_t offset[2];
};

struct sandbox_log_reader {
    struct sandbox *sb; /* held */
    struct sandbox_log_query query;
    bool follow;
    bool begun; /* what there was is told */
    uint64_t event_seen, note_seen;
    uint64_t budget; /* bytes that may still be read in this look, whatever the agent claims */
    unsigned agent;  /* whose numbers these are: */
    uint64_t change_seen;
    struct position *positions;
    size_t position_count, position_cap;
};

static const char *const level_texts[] = {
#define X(name, text) [SANDBOX_LOG_##name] = text,
    SANDBOX_LOG_LEVELS(X)
#undef X
};

const char *sandbox_log_level_text(enum sandbox_log_level level)
{
    return level_texts[level];
}

int sandbox_log_level_parse(const char *text, enum sandbox_log_level *ret_level, struct error *err)
{
    if (strcmp(text, "warning") == 0)
        text = "warn";
    for (int i = 0; i < SANDBOX_LOG_LEVEL_COUNT; i++)
        if (strcmp(level_texts[i], text) == 0) {
            *ret_level = (enum sandbox_log_level)i;
            return 0;
        }
    return error_set(err, ERROR_INVALID_ARGUMENT,
                     "level \"%.40s\" is none of debug, info, warn, error", text);
}

/* --- the sandbox's own story --- */

static void add_text(struct sandbox_log_reader *r, struct log_lines *lines, int64_t time_ms,
                     enum sandbox_log_level level, const char *text, enum rank rank)
{
    if (level < r->query.level)
        return;
    const struct sandbox_log_entry entry = {
        .time_ms = time_ms, .level = level, .message = slice_of(text)};
    log_lines_add(lines, &entry, rank);
}

/* A log says it shorter. */
static const char *event_text(const struct event_record *event)
{
    if (strcmp(event->type, "START") == 0 && strcmp(event->status, "SUCCESS") == 0 &&
        strcmp(event->message, "Sandbox started successfully") == 0)
        return "Sandbox started";
    return event->message;
}

static void add_story(struct sandbox_log_reader *r, struct log_lines *lines)
{
    const struct sandbox *sb = r->sb;
    for (size_t i = 0; i < sb->event_count; i++) {
        const struct event_record *event = &sb->events[i];
        bool failed = strcmp(event->status, "FAILURE") == 0;
        bool created = strcmp(event->type, "CREATE") == 0 || strcmp(event->type, "CLONE") == 0;
        if (event->revision <= r->event_seen)
            continue;
        add_text(r, lines, event->time_ms, failed ? SANDBOX_LOG_ERROR : SANDBOX_LOG_INFO,
                 event_text(event), created ? RANK_CREATED : RANK_EVENT);
        r->event_seen = event->revision;
    }
    for (size_t i = 0; i < sb->note_count; i++) {
        const struct note_record *note = &sb->notes[i];
        if (note->number <= r->note_seen)
            continue;
        add_text(r, lines, note->time_ms, note->level, note->message, RANK_NOTE);
        r->note_seen = note->number;
    }
}

/* --- output --- */

/* What the agent may be asked about a stream, and what it said. */
struct stream_view {
    struct sandbox_log_reader *reader;
    struct channel *channel;
    struct arena *arena; /* for one answer at a time */
    const struct agent_change *change;
    unsigned stream; /* LOG_STDOUT, LOG_STDERR */
};

static int read_piece(const struct stream_view *view, uint64_t offset,
                      struct agent_timed *ret_piece, struct error *err)
{
    const struct agent_timed_read request = {.sequence = view->change->sequence,
                                             .stream = view->stream,
                                             .offset = offset,
                                             .max = WIRE_DATA_CHUNK};
    uint64_t *budget = &view->reader->budget;
    arena_clear(view->arena); /* the piece before is done with */
    if (arena_check(view->arena, WIRE_DATA_CHUNK + OUTPUT_TIMES_MAX, err) < 0)
        return -1;
    if (*budget == 0)
        return error_set(err, ERROR_LIMIT_EXCEEDED, "there is too much of it");
    if (channel_call(view->channel, &agent_timed_read_schema, &request, &agent_timed_schema,
                     view->arena, ret_piece, ANSWER_MS, err) < 0)
        return -1;
    uint64_t cost = ret_piece->data.len + READ_COST;
    *budget -= cost < *budget ? cost : *budget;
    if (ret_piece->data.len > 0 &&
        (ret_piece->offset < offset || ret_piece->offset > UINT64_MAX / 2))
        return error_set(err, ERROR_UNAVAILABLE, "the agent answers what was not asked");
    return 0;
}

static struct position *position_of(struct sandbox_log_reader *r, uint64_t sequence)
{
    for (size_t i = 0; i < r->position_count; i++)
        if (r->positions[i].sequence == sequence)
            return &r->positions[i];
    if (r->position_count ==
        CHANGES_MAX) { /* the oldest has not written for long, if it is there */
        r->position_count--;
        memmove(r->positions, r->positions + 1, r->position_count * sizeof(*r->positions));
    }
    if (r->position_count == r->position_cap) {
        r->position_cap = r->position_cap == 0 ? 16 : r->position_cap * 2;
        r->positions = realloc(r->positions, r->position_cap * sizeof(*r->positions));
        if (r->positions == NULL)
            abort(); /* a few KiB */
    }
    struct position *position = &r->positions[r->position_count++];
    *position = (struct position){.sequence = sequence};
    return position;
}

static size_t count_lines(struct slice data)
{
    size_t lines = 0;
    for (size_t i = 0; i < data.len; i++)
        lines += data.data[i] == '\n';
    return lines;
}

/* Where the stream's last `tail` lines begin, or a little before: somewhere in its kept part. */
static int find_tail(const struct stream_view *view, uint64_t total, size_t tail,
                     uint64_t *ret_offset, struct error *err)
{
    uint64_t offset = total;
    for (uint64_t back = BACK_FIRST; offset > 0; back *= 4) {
        struct agent_timed piece;
        size_t lines = 0;
        uint64_t from = total > back ? total - back : 0, at = from;
        do {
            if (read_piece(view, at, &piece, err) < 0)
                return -1;
            if (at == from)
                offset = piece.offset;
            lines += count_lines(piece.data);
            at = piece.offset + piece.data.len;
        } while (piece.data.len > 0 && at < total);
        if (lines > tail || offset > from || from == 0 || back >= BACK_MAX)
            break;
    }
    *ret_offset = offset;
    return 0;
}

/* The first line of what is read from the middle of a stream is the end of one. */
static size_t skip_to_line(struct slice data)
{
    const char *end = memchr(data.data, '\n', data.len);
    return end == NULL ? data.len : (size_t)(end - data.data) + 1;
}

static void note_gap(struct sandbox_log_reader *r, struct log_lines *lines,
                     const struct sandbox_log_entry *like, uint64_t bytes)
{
    char text[80];
    struct sandbox_log_entry entry = *like;
    snprintf(text, sizeof(text), "[%" PRIu64 " bytes of output were dropped]", bytes);
    entry.message = slice_of(text);
    entry.time_ms = time_now_ms();
    if (r->begun)
        log_lines_add(lines, &entry, RANK_LINE);
}

/* Adds the lines from *offset on, and moves it past them. */
static int add_lines(struct sandbox_log_reader *r, struct log_lines *lines,
                     const struct stream_view *view, bool from_middle, uint64_t *offset,
                     struct error *err)
{
    const struct sandbox_log_entry like = {
        .level = view->stream == LOG_STDERR ? SANDBOX_LOG_ERROR : SANDBOX_LOG_INFO,
        .pid = view->change->pid,
        .process = view->change->name,
        .stream = view->stream,
    };
    uint64_t end =
        view->stream == LOG_STDERR ? view->change->stderr_total : view->change->stdout_total;
    for (bool more = true; more;) {
        struct agent_timed piece;
        if (read_piece(view, *offset, &piece, err) < 0)
            return -1;
        if (piece.data.len == 0) /* all of it is gone */
            break;
        if (piece.offset > *offset)
            note_gap(r, lines, &like, piece.offset - *offset);
        size_t skipped = from_middle && piece.offset > 0 ? skip_to_line(piece.data) : 0;
        const struct log_piece part = {
            .data = {piece.data.data + skipped, piece.data.len - skipped},
            .offset = piece.offset + skipped,
            .times = piece.times,
            .now_ms = time_now_ms(),
        };
        uint64_t reached = piece.offset + piece.data.len;
        bool last = reached >= end;
        size_t used = log_lines_split(lines, &like, RANK_LINE, &part,
                                      last && (!r->follow || piece.open == 0));
        *offset = part.offset + used;
        from_middle = false;
        more = !last && skipped + used > 0;
    }
    return 0;
}

static int add_stream(struct sandbox_log_reader *r, struct log_lines *lines,
                      const struct stream_view *view, struct position *position, struct error *err)
{
    bool is_stderr = view->stream == LOG_STDERR;
    uint64_t total = is_stderr ? view->change->stderr_total : view->change->stdout_total;
    uint64_t *offset = &position->offset[view->stream - LOG_STDOUT];
    if ((is_stderr ? SANDBOX_LOG_ERROR : SANDBOX_LOG_INFO) < r->query.level || *offset >= total)
        return 0;
    bool from_middle = false;
    if (!r->begun) {
        if (r->query.tail == 0) {
            *offset = total;
            return 0;
        }
        if (find_tail(view, total, r->query.tail, offset, err) < 0)
            return -1;
        from_middle = *offset > 0;
    }
    return add_lines(r, lines, view, from_middle, offset, err);
}

struct change_list {
    struct agent_change *items;
    size_t count, cap;
    struct arena *arena;
};

static int add_change(void *ctx, const void *item, struct error *err)
{
    struct change_list *list = ctx;
    if (list->count == list->cap) {
        size_t cap = list->cap == 0 ? 16 : list->cap * 2;
        struct agent_change *items = arena_alloc(list->arena, cap * sizeof(*items));
        if (list->count > 0)
            memcpy(items, list->items, list->count * sizeof(*items));
        list->items = items;
        list->cap = cap;
    }
    memcpy(&list->items[list->count++], item, sizeof(*list->items));
    return 0;
}

/* An agent that was started anew counts anew. */
static void check_agent(struct sandbox_log_reader *r)
{
    if (r->agent == r->sb->agents)
        return;
    r->agent = r->sb->agents;
    r->change_seen = 0;
    r->position_count = 0;
}

static int add_changed(struct sandbox_log_reader *r, struct log_lines *lines, struct arena *arena,
                       struct error *err)
{
    _cleanup_sandbox_ struct sandbox *held = NULL;
    struct channel *channel;
    struct change_list list = {.arena = arena};
    check_agent(r);
    uint64_t seen = r->change_seen;
    const struct agent_changes request = {.after = seen};
    if (sandbox_agent(r->sb->owner, r->sb->workspace, r->sb->id, &held, &channel, err) < 0 ||
        channel_list(channel, &agent_changes_schema, &request, &agent_change_schema, arena,
                     CHANGES_MAX, add_change, &list, ANSWER_MS, err) < 0)
        return -1;
    for (size_t i = 0; i < list.count; i++) {
        const struct agent_change *change = &list.items[i];
        struct arena *answers = arena_new_for(arena_account(arena));
        int rc = 0;
        for (unsigned stream = LOG_STDOUT; stream <= LOG_STDERR && rc == 0; stream++) {
            const struct stream_view view = {r, channel, answers, change, stream};
            rc = add_stream(r, lines, &view, position_of(r, change->sequence), err);
            if (rc < 0 && err->code == ERROR_PROCESS_NOT_FOUND) /* forgotten meanwhile */
                rc = 0;
        }
        arena_free(answers);
        if (rc < 0)
            return -1; /* what is done is remembered by its positions */
        if (change->change > seen)
            seen = change->change;
    }
    r->change_seen = seen;
    return 0;
}

/* --- reading --- */

static unsigned sources(const struct sandbox_log_query *query)
{
    return query->sources == 0 ? SANDBOX_LOG_OF_SANDBOX | SANDBOX_LOG_OF_PROCESSES : query->sources;
}

/* A sandbox that does not run, or an agent that does not answer, has no output to show. */
static int gather(struct sandbox_log_reader *r, struct log_lines *lines, struct error *err)
{
    struct error why = {0};
    if (sources(&r->query) & SANDBOX_LOG_OF_SANDBOX)
        add_story(r, lines);
    if (!(sources(&r->query) & SANDBOX_LOG_OF_PROCESSES) || r->sb->status != SANDBOX_RUNNING)
        return 0;
    struct arena *arena = arena_new_for(lines->account);
    int rc = add_changed(r, lines, arena, &why);
    arena_free(arena);
    bool refused = why.code == ERROR_MEMORY_LIMITED || why.code == ERROR_OVERLOADED;
    if (rc < 0 && (why.code == ERROR_CANCELLED || refused)) {
        *err = why;
        return -1;
    }
    if (rc < 0 && !r->begun) {
        char text[ERROR_MESSAGE_MAX + 64];
        snprintf(text, sizeof(text), "Not all output of its processes can be read: %s",
                 why.message);
        add_text(r, lines, time_now_ms(), SANDBOX_LOG_WARN, text, RANK_LINE);
    }
    return 0;
}

static int read_once(struct sandbox_log_reader *r, struct arena *arena,
                     struct sandbox_log_entry **ret_entries, size_t *ret_count, struct error *err)
{
    struct log_lines lines = {
        .max_count = r->begun ? LOGS_TAIL_MAX : r->query.tail,
        .since_ms = r->query.since_ms,
        .account = arena_account(arena),
    };
    r->budget = LOGS_READ_MAX;
    int rc = gather(r, &lines, err);
    if (rc == 0)
        rc = arena_check(arena, lines.bytes, err);
    if (rc == 0)
        *ret_count = log_lines_take(&lines, arena, ret_entries);
    log_lines_release(&lines);
    r->begun = true;
    return rc;
}

static struct sandbox_log_reader *reader_new(struct sandbox *sb,
                                             const struct sandbox_log_query *query, bool follow)
{
    struct sandbox_log_reader *r = calloc(1, sizeof(*r));
    if (r == NULL)
        abort();
    sandbox_hold(sb);
    *r = (struct sandbox_log_reader){
        .sb = sb, .query = *query, .follow = follow, .agent = sb->agents};
    sb->log_followers += follow;
    return r;
}

void sandbox_log_end(struct sandbox_log_reader *r)
{
    if (r == NULL)
        return;
    r->sb->log_followers -= r->follow;
    sandbox_drop(r->sb);
    free(r->positions);
    free(r);
}

#define _cleanup_reader_ _cleanup_(cleanup_sandbox_log)

int sandbox_logs(struct sandboxes *s, const char *workspace, const char *name,
                 const struct sandbox_log_query *query, struct arena *arena,
                 struct sandbox_log_entry **ret_entries, size_t *ret_count, struct error *err)
{
    struct sandbox *sb = sandbox_find(s, workspace, name, err);
    if (sb == NULL)
        return -1;
    _cleanup_reader_ struct sandbox_log_reader *r = reader_new(sb, query, false);
    return read_once(r, arena, ret_entries, ret_count, err);
}

int sandbox_log_follow(struct sandboxes *s, const char *workspace, const char *name,
                       const struct sandbox_log_query *query,
                       struct sandbox_log_reader **ret_reader, struct error *err)
{
    struct sandbox *sb = sandbox_find(s, workspace, name, err);
    if (sb == NULL)
        return -1;
    if (sb->log_followers >= LOG_FOLLOWERS_MAX)
        return error_set(err, ERROR_LIMIT_EXCEEDED, "%d follow the log of \"%s\" already",
                         LOG_FOLLOWERS_MAX, sb->name);
    *ret_reader = reader_new(sb, query, true);
    return 0;
}

int sandbox_log_next(struct sandbox_log_reader *r, int64_t idle_ms, struct arena *arena,
                     struct sandbox_log_entry **ret_entries, size_t *ret_count, bool *ret_ended,
                     struct error *err)
{
    struct loop *loop = r->sb->owner->loop;
    int64_t until = loop_now(loop) + idle_ms;
    bool first = !r->begun;
    for (;;) {
        bool gone = r->sb->gone;
        if (read_once(r, arena, ret_entries, ret_count, err) < 0)
            return -1;
        *ret_ended = gone;
        if (*ret_count > 0 || first || gone || loop_now(loop) >= until)
            return 0;
        struct error why;
        if (co_cond_wait(loop, &r->sb->changed, LOOK_MS, &why) < 0 && why.code != ERROR_TIMEOUT) {
            *err = why;
            return -1;
        }
    }
}
