/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What the warden writes down of a sandbox (DIR/run/sandboxes/<id>), so that the warden after it
 * can adopt the sandbox or clean up what was half made. The record is the first thing made and
 * the last one removed: whatever exists of a sandbox in the kernel, there is a record of it.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/error.h"

/* Paused: it runs, and stands still until somebody has it go on (pause.c). */
enum record_state { RECORD_MAKING, RECORD_RUNNING, RECORD_PAUSED };

enum { BOOT_ID_LEN = 36 };

struct record {
    enum record_state state;
    pid_t pid; /* outside; 0 while it is being made */
    uint64_t start_time;
    int slot;          /* of the id range; -1: none yet */
    bool fresh;        /* its writable layer was made by this start */
    int net_index;     /* of its interface; -1: it has no network */
    uint32_t net_mark; /* net_filter.h */
    bool net_ruled;
    char boot_id[BOOT_ID_LEN + 1];
};

void record_format(const struct record *record, struct buf *out);

/* False when the text is not a whole record (a power cut, a stranger). */
bool record_parse(const char *text, struct record *ret_record);

int record_save(int dirfd, const char *id, const struct record *record, struct error *err);
int record_load(int dirfd, const char *id, struct record *ret_record, struct error *err);
int record_remove(int dirfd, const char *id, struct error *err);
