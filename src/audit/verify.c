/* SPDX-License-Identifier: Apache-2.0 */

/*
 * One walk through all lines. A line that is wrong is told, and the walk goes on from what it says
 * of itself, so that one change is one finding and not one for each line after it.
 */

#include "audit/verify.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"

enum { PIECE = 256 * 1024 };

/* What a line says of the retained lines of a file that is gone. */
struct attested {
    uint64_t first;
    unsigned char hash[AUDIT_HASH_SIZE];
    bool expired, met;
};

struct walk {
    struct audit_chain chain;
    struct audit_chain kept; /* over the retained lines of one file */
    struct attested *attested;
    size_t attested_count;
    audit_report *report;
    void *ctx;
    struct audit_summary summary;
    struct audit_file file;
    uint64_t line;
    uint64_t pruned; /* the newest line that is known to be gone by rotation */
    const struct audit_head *known;
    size_t known_count;
    bool *met; /* which of them */
};

typedef void line_function(struct walk *w, struct slice text);

static void finding(struct walk *w, bool is_note, uint64_t seq, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

static void finding(struct walk *w, bool is_note, uint64_t seq, const char *fmt, ...)
{
    struct audit_finding f = {.is_note = is_note, .line = w->line, .seq = seq};
    if (w->file.first != 0)
        audit_file_name(w->file.first, f.file);
    va_list args;
    va_start(args, fmt);
    vsnprintf(f.text, sizeof(f.text), fmt, args);
    va_end(args);
    w->summary.problems += is_note ? 0 : 1;
    w->report(w->ctx, &f);
}

/* --- what lines about the log itself say --- */

static bool is_event(struct slice body, const char *event)
{
    char member[64];
    int n = snprintf(member, sizeof(member), ",\"event\":\"%s\"", event);
    return memmem(body.data, body.len, member, (size_t)n) != NULL;
}

static uint64_t number_in(struct slice body, const char *name)
{
    char member[64], digits[24];
    int n = snprintf(member, sizeof(member), ",\"%s\":", name);
    const char *at = memmem(body.data, body.len, member, (size_t)n);
    if (at == NULL)
        return 0;
    size_t left = (size_t)(body.data + body.len - at) - (size_t)n;
    snprintf(digits, sizeof(digits), "%.*s", (int)(left < 20 ? left : 20), at + n);
    return strtoull(digits, NULL, 10);
}

/* The hash that a file's first line says it goes on from. */
static bool previous_of(struct slice body, unsigned char ret_hash[AUDIT_HASH_SIZE])
{
    static const char member[] = ",\"previous\":\"";
    const char *at = memmem(body.data, body.len, member, sizeof(member) - 1);
    return at != NULL &&
           (size_t)(body.data + body.len - at) >= sizeof(member) - 1 + AUDIT_HASH_TEXT &&
           audit_hash_parse(at + sizeof(member) - 1, ret_hash);
}

static struct attested *find_attested(const struct walk *w, uint64_t first)
{
    for (size_t i = w->attested_count; i > 0; i--) /* the newest counts */
        if (w->attested[i - 1].first == first)
            return &w->attested[i - 1];
    return NULL;
}

static struct attested *add_attested(struct walk *w, uint64_t first)
{
    if ((w->attested_count & (w->attested_count - 1)) == 0) { /* a power of two: full */
        size_t cap = w->attested_count == 0 ? 1 : 2 * w->attested_count;
        struct attested *items = realloc(w->attested, cap * sizeof(*items));
        if (items == NULL)
            abort(); /* a few bytes for each file: nothing sensible can go on */
        w->attested = items;
    }
    w->attested[w->attested_count] = (struct attested){.first = first};
    return &w->attested[w->attested_count++];
}

/* Lines on retained lines: that there are some, and that their time is over. */
static void take_attested(struct walk *w, struct slice body, bool older)
{
    static const char member[] = ",\"kept\":\"";
    const char *at = memmem(body.data, body.len, member, sizeof(member) - 1);
    unsigned char hash[AUDIT_HASH_SIZE];
    if (older && find_attested(w, number_in(body, "first")) != NULL)
        return; /* what is known already was said later */
    if (is_event(body, "audit.expired")) {
        add_attested(w, number_in(body, "first"))->expired = true;
    } else if (is_event(body, "audit.pruned") && at != NULL &&
               (size_t)(body.data + body.len - at) >= sizeof(member) - 1 + AUDIT_HASH_TEXT &&
               audit_hash_parse(at + sizeof(member) - 1, hash)) {
        memcpy(add_attested(w, number_in(body, "first"))->hash, hash, AUDIT_HASH_SIZE);
    }
}

static void take_own_events(struct walk *w, const struct audit_line *line)
{
    take_attested(w, line->body, false);
    if (is_event(line->body, "audit.pruned")) {
        uint64_t through = number_in(line->body, "through");
        w->pruned = through > w->pruned ? through : w->pruned;
    } else if (is_event(line->body, "audit.lost")) {
        finding(w, true, line->seq,
                "%" PRIu64 " lines could not be written before this one, since the disk was full",
                number_in(line->body, "lines"));
    } else if (is_event(line->body, "audit.repaired")) {
        finding(w, true, line->seq,
                "the server was killed while it wrote: %" PRIu64 " bytes that were no line were "
                "cut off before this one",
                number_in(line->body, "tornBytes"));
    } else if (is_event(line->body, "audit.missing")) {
        finding(w, false, line->seq,
                "the server found the lines %" PRIu64 " to %" PRIu64
                " missing at the log's end when it started",
                number_in(line->body, "from"), number_in(line->body, "through"));
    } else if (is_event(line->body, "audit.damaged")) {
        finding(w, false, line->seq, "the server found the log damaged when it started");
    }
}

/* --- lines --- */

/* The chain's beginning, by the first line that there is. */
static void begin_chain(struct walk *w, const struct audit_line *line)
{
    static const unsigned char zeros[AUDIT_HASH_SIZE];
    w->summary.first = line->seq;
    w->chain.seq = line->seq - 1;
    if (!previous_of(line->body, w->chain.head))
        finding(w, false, line->seq,
                "the oldest file does not begin with a line on what was "
                "before it: lines were removed from its beginning");
    else if (line->seq == 1 && memcmp(w->chain.head, zeros, sizeof(zeros)) != 0)
        finding(w, false, line->seq, "the first line of all names a line before it");
}

static void check_known(struct walk *w, const struct audit_line *line)
{
    for (size_t i = 0; i < w->known_count; i++) {
        if (w->known[i].seq != line->seq || w->met[i])
            continue;
        w->met[i] = true;
        if (memcmp(w->known[i].hash, line->hash, AUDIT_HASH_SIZE) != 0)
            finding(w, false, line->seq,
                    "its hash is not the one that was kept elsewhere: the log was written anew");
    }
}

static void take_line(struct walk *w, struct slice text)
{
    struct audit_line line;
    w->line++;
    w->summary.lines++;
    if (!audit_line_parse(text, &line)) {
        finding(w, false, 0, "this is not a line of the log: it was changed or put in");
        return;
    }
    if (w->line == 1 && line.seq != w->file.first)
        finding(w, false, line.seq,
                "the file is named after another line: it was renamed, or "
                "lines were removed from its beginning");
    if (w->summary.first == 0)
        begin_chain(w, &line);
    uint64_t expected = w->chain.seq + 1;
    if (line.seq < expected) {
        finding(w, false, line.seq,
                "it stands behind line %" PRIu64 ": it was moved, or put in a second time",
                w->chain.seq);
        return;
    }
    if (line.seq > expected)
        finding(w, false, line.seq,
                expected + 1 == line.seq ? "line %" PRIu64 " is missing before it"
                                         : "the lines %" PRIu64 " to %" PRIu64
                                           " are missing before it",
                expected, line.seq - 1);
    bool follows = audit_chain_follow(&w->chain, &line);
    if (!follows && line.seq == expected)
        finding(w, false, line.seq, "it was changed, or the one before it was: its hash is wrong");
    check_known(w, &line);
    take_own_events(w, &line);
}

static int read_lines(struct walk *w, int fd, line_function *take, struct error *err)
{
    _cleanup_buf_ struct buf in = BUF_INIT(2 * PIECE + AUDIT_LINE_MAX);
    for (;;) {
        char *to = buf_reserve(&in, PIECE);
        ssize_t n = to == NULL ? -1 : read(fd, to, PIECE);
        if (n < 0)
            return error_sys(err, "reading the audit log");
        buf_commit(&in, (size_t)n);
        w->summary.bytes += (uint64_t)n;
        size_t at = 0;
        const char *end;
        while ((end = memchr(in.data + at, '\n', in.len - at)) != NULL) {
            size_t len = (size_t)(end - in.data) - at;
            take(w, (struct slice){in.data + at, len});
            at += len + 1;
        }
        if (at == 0 && in.len > AUDIT_LINE_MAX) { /* no line is that long */
            take(w, (struct slice){in.data, in.len});
            at = in.len;
        }
        buf_consume(&in, at);
        if (n == 0)
            break;
    }
    if (in.len > 0) {
        w->line++;
        finding(w, true, 0,
                "the last line is not whole (%zu bytes): it is being written, or the server was "
                "killed; its next start repairs that",
                in.len);
    }
    return 0;
}

static int walk_file(struct walk *w, int dir_fd, struct error *err)
{
    _cleanup_fd_ int fd = -1;
    struct error why;
    w->line = 0;
    if (audit_file_open(dir_fd, w->file.first, &fd, &why) < 0) {
        if (why.code == ERROR_FILE_NOT_FOUND) /* by rotation, just now: a line tells of it */
            return 0;
        *err = why;
        return -1;
    }
    w->summary.files++;
    return read_lines(w, fd, take_line, err);
}

/* --- retained lines --- */

/* One hash is over all of them, so it is the only one that is looked at. */
static void take_kept_line(struct walk *w, struct slice text)
{
    struct audit_line line;
    w->line++;
    audit_chain_fold(&w->kept, text);
    if (audit_line_parse(text, &line))
        take_attested(w, line.body, true);
}

static int walk_kept(struct walk *w, int dir_fd, uint64_t first, struct error *err)
{
    static const unsigned char zeros[AUDIT_HASH_SIZE];
    _cleanup_fd_ int fd = -1;
    struct error why;
    const struct attested *attested = find_attested(w, first);
    size_t index = attested == NULL ? 0 : (size_t)(attested - w->attested);
    w->line = 0;
    w->file.first = 0;
    if (attested == NULL) {
        finding(w, false, 0,
                "there are lines of the pruned file of line %" PRIu64
                " that no line of the log tells of: they were put in",
                first);
        return 0;
    }
    w->attested[index].met = true;
    if (audit_kept_open(dir_fd, first, &fd, &why) < 0) {
        if (why.code == ERROR_FILE_NOT_FOUND) /* by rotation, just now */
            return 0;
        *err = why;
        return -1;
    }
    memcpy(w->kept.head, zeros, sizeof(zeros));
    if (read_lines(w, fd, take_kept_line, err) < 0)
        return -1;
    if (!w->attested[index].expired &&
        memcmp(w->attested[index].hash, w->kept.head, AUDIT_HASH_SIZE) != 0)
        finding(w, false, first,
                "the lines that were retained of the file of line %" PRIu64
                " are not those that were written: their hash is wrong",
                first);
    return 0;
}

/* From the newest on: the line on a file is in the chain, or retained of a newer file. One whose
 * own file is still there is being made. */
static int walk_all_kept(struct walk *w, int dir_fd, const struct audit_files *kept,
                         uint64_t oldest, struct error *err)
{
    if (audit_chain_init(&w->kept, err) < 0)
        return -1;
    int rc = 0;
    for (size_t i = kept->count; rc == 0 && i > 0; i--)
        if (kept->items[i - 1].first < oldest)
            rc = walk_kept(w, dir_fd, kept->items[i - 1].first, err);
    audit_chain_release(&w->kept);
    w->file.first = 0;
    w->line = 0;
    for (size_t i = 0; rc == 0 && i < w->attested_count; i++) {
        const struct attested *a = &w->attested[i];
        if (find_attested(w, a->first) == a && !a->expired && !a->met && a->first < oldest)
            finding(w, false, 0,
                    "the lines that were retained of the file of line %" PRIu64
                    " are gone, and no line tells of their removal",
                    a->first);
    }
    return rc;
}

/* --- the log as a whole --- */

static void check_ends(struct walk *w)
{
    uint64_t first = w->summary.first, last = w->chain.seq;
    w->file.first = 0;
    w->line = 0;
    if (first > 1 && w->pruned + 1 < first)
        finding(w, false, 0,
                "the lines %" PRIu64 " to %" PRIu64 " are missing at its beginning, and no line "
                "tells of their removal",
                w->pruned + 1, first - 1);
    for (size_t i = 0; i < w->known_count; i++) {
        uint64_t seq = w->known[i].seq;
        if (w->met[i] || seq == 0 || (first > 0 && seq < first && seq <= w->pruned))
            continue;
        if (seq > last)
            finding(w, false, 0,
                    "it ends with line %" PRIu64 ", and line %" PRIu64
                    " was written: lines were removed from its end",
                    last, seq);
        else
            finding(w, false, 0, "line %" PRIu64 ", whose hash was kept elsewhere, is not in it",
                    seq);
    }
}

int audit_verify(int dir_fd, const struct audit_head *known, size_t known_count,
                 audit_report *report, void *ctx, struct audit_summary *ret_summary,
                 struct error *err)
{
    struct walk w = {.report = report, .ctx = ctx, .known = known, .known_count = known_count};
    struct audit_files files = {0}, kept = {0};
    if (audit_chain_init(&w.chain, err) < 0)
        return -1;
    /* What is retained comes before its file goes, so it is listed last. */
    int rc = audit_files_list(dir_fd, &files, err);
    if (rc == 0)
        rc = audit_kept_list(dir_fd, &kept, err);
    _cleanup_free_ bool *met = calloc(known_count + 1, sizeof(*met));
    if (rc == 0 && met == NULL)
        rc = error_sys(err, "verifying the audit log");
    w.met = met;
    for (size_t i = 0; rc == 0 && i < files.count; i++) {
        w.file = files.items[i];
        rc = walk_file(&w, dir_fd, err);
    }
    if (rc == 0)
        rc = walk_all_kept(&w, dir_fd, &kept, files.count > 0 ? files.items[0].first : UINT64_MAX,
                           err);
    if (rc == 0) {
        check_ends(&w);
        w.summary.last.seq = w.chain.seq;
        memcpy(w.summary.last.hash, w.chain.head, AUDIT_HASH_SIZE);
        *ret_summary = w.summary;
    }
    audit_files_release(&files);
    audit_files_release(&kept);
    free(w.attested);
    audit_chain_release(&w.chain);
    return rc;
}
