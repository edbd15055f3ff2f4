/* SPDX-License-Identifier: Apache-2.0 */

/*
 * From the end to the beginning, since what is asked for is mostly new. Lines are compared as
 * bytes (audit/chain.h says why that is exact).
 */

#include "audit/query.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"

enum { PIECE = 256 * 1024, CONDITIONS_MAX = 5, MEMBER_MAX = 1024, CLOCK_STEP_MS = 3600 * 1000 };

/* One of two members has to be in the line. */
struct condition {
    struct buf either[2];
};

struct search {
    const struct audit_query *query;
    struct condition conditions[CONDITIONS_MAX];
    size_t condition_count;
    char since[AUDIT_TIME_LEN + 1], long_before[AUDIT_TIME_LEN + 1];
    struct buf *out;
    struct audit_matches matches;
    bool over;
};

static void add_condition(struct search *s, const char *one, const char *other, const char *value)
{
    if (value == NULL)
        return;
    struct condition *c = &s->conditions[s->condition_count++];
    buf_init(&c->either[0], 8 * MEMBER_MAX);
    buf_init(&c->either[1], 8 * MEMBER_MAX);
    audit_add_text(&c->either[0], one, slice_of(value), MEMBER_MAX);
    if (other != NULL)
        audit_add_text(&c->either[1], other, slice_of(value), MEMBER_MAX);
}

static bool has(struct slice text, const struct buf *member)
{
    return member->len > 0 && memmem(text.data, text.len, member->data, member->len) != NULL;
}

static bool matches(const struct search *s, const struct audit_line *line)
{
    for (size_t i = 0; i < s->condition_count; i++)
        if (!has(line->body, &s->conditions[i].either[0]) &&
            !has(line->body, &s->conditions[i].either[1]))
            return false;
    return true;
}

static void take_line(struct search *s, struct slice text)
{
    const struct audit_query *q = s->query;
    struct audit_line line;
    if (!audit_line_parse(text, &line) || (q->before != 0 && line.seq >= q->before))
        return;
    bool older = q->since_ms != 0 && memcmp(line.time.data, s->since, AUDIT_TIME_LEN) < 0;
    /* What is before it is older; but clocks are set back, now and then, by a little. */
    if (line.seq <= q->after ||
        (older && memcmp(line.time.data, s->long_before, AUDIT_TIME_LEN) < 0))
        s->over = true;
    if (s->over || older)
        return;
    if (!matches(s, &line))
        return;
    if (s->matches.count == q->limit) {
        s->matches.more = s->over = true;
        return;
    }
    if (s->matches.count++ > 0)
        buf_addc(s->out, ',');
    buf_add(s->out, text.data, text.len);
    s->matches.oldest = line.seq;
}

/* Lines from the last to the first. `tail` holds the beginning of a line whose end was not read. */
static int search_file(struct search *s, int fd, struct error *err)
{
    _cleanup_buf_ struct buf in = BUF_INIT(PIECE + AUDIT_LINE_MAX + 1);
    struct stat st;
    if (fstat(fd, &st) < 0)
        return error_sys(err, "reading the audit log");
    uint64_t end = (uint64_t)st.st_size;
    char rest[AUDIT_LINE_MAX];
    size_t rest_len = 0;
    while (end > 0 && !s->over) {
        size_t want = end < PIECE ? (size_t)end : PIECE;
        buf_clear(&in);
        char *to = buf_reserve(&in, want + rest_len);
        ssize_t n = to == NULL ? -1 : pread(fd, to, want, (off_t)(end - want));
        if (n < 0)
            return error_sys(err, "reading the audit log");
        if ((size_t)n < want) /* it was cut off meanwhile */
            return 0;
        memcpy(to + want, rest, rest_len);
        buf_commit(&in, want + rest_len);
        end -= want;
        size_t stop = in.len;
        const char *mark;
        while (!s->over && (mark = memrchr(in.data, '\n', stop)) != NULL) {
            size_t begin = (size_t)(mark - in.data) + 1;
            take_line(s, (struct slice){in.data + begin, stop - begin});
            stop = begin - 1;
        }
        rest_len = stop <= sizeof(rest) ? stop : 0; /* longer: no line */
        memcpy(rest, in.data, rest_len);
    }
    if (!s->over && rest_len > 0)
        take_line(s, (struct slice){rest, rest_len});
    return 0;
}

typedef int open_function(int dir_fd, uint64_t first, int *ret_fd, struct error *err);

/* Those that begin before line `end`, from the newest on. */
static int search_each(struct search *s, int dir_fd, const struct audit_files *files, uint64_t end,
                       open_function *open_file, struct error *err)
{
    int rc = 0;
    for (size_t i = files->count; rc == 0 && i > 0 && !s->over; i--) {
        _cleanup_fd_ int fd = -1;
        if (files->items[i - 1].first >= end)
            continue;
        if (open_file(dir_fd, files->items[i - 1].first, &fd, NULL) == 0)
            rc = search_file(s, fd, err);
    }
    return rc;
}

/* The chain, and before it what was retained of files that are gone. */
static int search_files(struct search *s, int dir_fd, struct error *err)
{
    struct audit_files files = {0}, kept = {0};
    uint64_t before = s->query->before != 0 ? s->query->before : UINT64_MAX;
    int rc = audit_files_list(dir_fd, &files, err) < 0 || audit_kept_list(dir_fd, &kept, err) < 0
                 ? -1
                 : 0;
    if (rc == 0)
        rc = search_each(s, dir_fd, &files, before, audit_file_open, err);
    uint64_t oldest = files.count > 0 ? files.items[0].first : UINT64_MAX;
    if (rc == 0)
        rc = search_each(s, dir_fd, &kept, oldest < before ? oldest : before, audit_kept_open, err);
    audit_files_release(&files);
    audit_files_release(&kept);
    return rc;
}

int audit_find(int dir_fd, const struct audit_query *query, struct buf *lines,
               struct audit_matches *ret_matches, struct error *err)
{
    struct search s = {.query = query, .out = lines};
    add_condition(&s, "workspace", NULL, query->workspace);
    add_condition(&s, "keyId", "key", query->key);
    add_condition(&s, "sandbox", "sandboxId", query->sandbox);
    add_condition(&s, "operation", "class", query->operation);
    add_condition(&s, "event", NULL, query->event);
    audit_time_text(query->since_ms, s.since);
    audit_time_text(query->since_ms > CLOCK_STEP_MS ? query->since_ms - CLOCK_STEP_MS : 0,
                    s.long_before);
    int rc = search_files(&s, dir_fd, err);
    for (size_t i = 0; i < s.condition_count; i++) {
        buf_release(&s.conditions[i].either[0]);
        buf_release(&s.conditions[i].either[1]);
    }
    if (rc < 0 || buf_check(lines, "the answer", err) < 0)
        return -1;
    *ret_matches = s.matches;
    return 0;
}
