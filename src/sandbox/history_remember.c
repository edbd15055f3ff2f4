/* SPDX-License-Identifier: Apache-2.0 */

/* Where executions ended: into the journal at once, into the sandbox's own list when it has to be.
 */

#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/timetext.h"
#include "sandbox/history_journal.h"
#include "sandbox/history_repo.h"
#include "sandbox/history_state.h"

static void collect(struct sandbox *sb, struct buf *out)
{
    if (sb->history == NULL)
        return;
    const struct buf *lines = &sb->history->lines;
    const char *end = lines->data + lines->len;
    for (const char *at = lines->data, *next; at < end; at = next) {
        next = (const char *)memchr(at, '\n', (size_t)(end - at)) + 1;
        buf_adds(out, sb->id);
        buf_addc(out, ' ');
        buf_add(out, at, (size_t)(next - at));
    }
}

/* All that is in memory. Not more than HISTORY_LINES_BYTES of each. */
static void write_journal_anew(struct sandboxes *s)
{
    _cleanup_buf_ struct buf lines = BUF_INIT(SIZE_MAX / 2);
    struct error err = {0};
    for (struct sandbox *sb = s->ids; sb != NULL; sb = sb->by_id.next)
        collect(sb, &lines);
    if (lines.failed ||
        journal_replace(&s->histories->journal, (struct slice){lines.data, lines.len}, &err) < 0)
        log_warn("history: %s", lines.failed ? "out of memory" : err.message);
}

/* A list that cannot be written now is written later; what there is no room for is in the journal.
 */
static void keep(struct sandbox *sb, struct slice line)
{
    struct buf *lines = &sb->history->lines;
    if (lines->len + line.len > HISTORY_LINES_BYTES)
        history_write_list(sb);
    if (lines->len + line.len > HISTORY_LINES_BYTES)
        buf_clear(lines);
    buf_add(lines, line.data, line.len);
}

void history_remember(struct sandbox *sb, const char *execution, const char *commit)
{
    struct journal *journal = &sb->owner->histories->journal;
    char text[EXECUTION_LINE_SIZE];
    struct error err;
    if (history_of(sb) == NULL)
        return;
    struct slice line = {text, execution_line(text, execution, commit, time_now_ms())};
    if (journal_add(journal, sb->id, line, &err) < 0)
        log_warn("sandbox %s: %s", sb->id, err.message);
    keep(sb, line);
    if (journal_is_old(journal))
        write_journal_anew(sb->owner);
}

void history_write_list(struct sandbox *sb)
{
    struct buf *lines = &sb->history->lines;
    struct error err;
    if (lines->len == 0)
        return;
    if (executions_append(sb->owner->histories->dir_fd, sb->id,
                          (struct slice){lines->data, lines->len}, &err) < 0)
        log_warn("sandbox %s: %s", sb->id, err.message);
    else
        buf_release(lines);
}

/* Older ones than there is room for were put into the list when there was none. */
static void give_back(void *ctx, struct slice id, struct slice line)
{
    struct sandboxes *s = ctx;
    struct sandbox *sb;
    HASH_FIND(by_id, s->ids, id.data, id.len, sb);
    if (sb == NULL || !execution_line_valid(line))
        return;
    struct buf *lines = &history_made(sb)->lines;
    while (lines->len + line.len > HISTORY_LINES_BYTES)
        buf_consume(lines,
                    (size_t)((char *)memchr(lines->data, '\n', lines->len) + 1 - lines->data));
    buf_add(lines, line.data, line.len);
}

int history_read_journal(struct sandboxes *s, struct error *err)
{
    if (journal_read(&s->histories->journal, give_back, s, err) < 0)
        return -1;
    write_journal_anew(s);
    return 0;
}
