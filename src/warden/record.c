/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Records are lines of "key value", ended by a line "end", so that a cut-off one is recognised.
 * They are not synced to disk: they matter to the next warden of this boot only.
 */

#include "warden/record.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "warden/files.h"

enum { RECORD_TEXT_MAX = 512 };

static const char *const state_names[] = {
    [RECORD_MAKING] = "making",
    [RECORD_RUNNING] = "running",
    [RECORD_PAUSED] = "paused",
};

void record_format(const struct record *record, struct buf *out)
{
    buf_addf(out, "state %s\npid %d\nstart %" PRIu64 "\nslot %d\nfresh %d\nboot %s\n",
             state_names[record->state], record->pid, record->start_time, record->slot,
             record->fresh, record->boot_id);
    if (record->net_index >= 0)
        buf_addf(out, "net %d %" PRIu32 " %d\n", record->net_index, record->net_mark,
                 record->net_ruled);
    buf_adds(out, "end\n");
}

bool record_parse(const char *text, struct record *ret_record)
{
    char state[16];
    int fresh, ruled = 0, end = 0, tail = 0;
    struct record record = {.net_index = -1};
    int n = sscanf(text, "state %15s pid %d start %" SCNu64 " slot %d fresh %d boot %36s%n", state,
                   &record.pid, &record.start_time, &record.slot, &fresh, record.boot_id, &end);
    if (n != 6 || end == 0 || record.pid < 0)
        return false;
    if (sscanf(text + end, " net %d %" SCNu32 " %d%n", &record.net_index, &record.net_mark, &ruled,
               &tail) == 3)
        end += tail;
    else
        record.net_index = -1;
    if (strcmp(text + end, "\nend\n") != 0)
        return false;
    record.fresh = fresh != 0;
    record.net_ruled = ruled != 0;
    for (int i = RECORD_MAKING; i <= RECORD_PAUSED; i++)
        if (strcmp(state, state_names[i]) == 0) {
            record.state = (enum record_state)i;
            *ret_record = record;
            return true;
        }
    return false;
}

int record_save(int dirfd, const char *id, const struct record *record, struct error *err)
{
    _cleanup_buf_ struct buf text = BUF_INIT(RECORD_TEXT_MAX);
    record_format(record, &text);
    if (buf_check(&text, "the record", err) < 0)
        return -1;
    return file_replace_at(dirfd, id, text.data, 0600, err);
}

int record_load(int dirfd, const char *id, struct record *ret_record, struct error *err)
{
    char text[RECORD_TEXT_MAX];
    if (file_read_at(dirfd, id, text, sizeof(text), err) < 0)
        return -1;
    if (!record_parse(text, ret_record))
        return error_set(err, ERROR_INTERNAL, "the record of %s is damaged", id);
    return 0;
}

int record_remove(int dirfd, const char *id, struct error *err)
{
    if (unlinkat(dirfd, id, 0) < 0 && errno != ENOENT)
        return error_sys(err, "removing the record of %s", id);
    return 0;
}
