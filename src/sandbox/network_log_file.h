/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Logs of networks on disk: a file for each sandbox in db/network, of EGRESS_LOG_MAX slots. The
 * place of an entry follows from its number alone, so that one that has changed is written over
 * itself, the oldest give way to the newest, and nothing ever grows beyond its size. A slot that
 * was written halfway is seen by its check and left out.
 *
 * Calls block, so they are made on a worker thread. What was written survives the death of this
 * process; a power cut may cost the last half minute.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/limits.h"

/* An entry as it is kept, in the order of this machine. */
struct network_log_record {
    uint32_t check; /* of all that follows */
    uint16_t port, type;
    uint64_t sequence; /* 0: nothing here */
    uint64_t first_ms, last_ms;
    uint64_t bytes_in, bytes_out;
    uint64_t count;
    uint8_t kind, verdict, protocol, open;
    char address[52], detail[208], name[256]; /* "": none */
};
_Static_assert(sizeof(struct network_log_record) == 576, "a file's bytes");

/* How far the changes of an egress process (by the time of its start) are in the files. */
struct network_log_position {
    uint64_t egress, change;
};

/* Opens the folder, which is made if need be. */
int network_log_dir_open(int data_dir_fd, int *ret_fd, struct error *err);

/* Puts entries, whose check is filled in, into the sandbox's file. */
int network_log_file_write(int dir_fd, const char *id, struct network_log_record *records,
                           size_t count, struct error *err);
/* Those that there are, the oldest first; returns how many. */
size_t network_log_file_read(int dir_fd, const char *id,
                             struct network_log_record out[EGRESS_LOG_MAX]);
/* The number of the last one that was ever written; 0: none. */
uint64_t network_log_file_last(int dir_fd, const char *id);
void network_log_file_remove(int dir_fd, const char *id);

/* Calls each() for every sandbox that has a file, and removes those for which it says no. */
void network_log_dir_sweep(int dir_fd, bool (*each)(void *ctx, const char *id), void *ctx);

/* Zeros when there is none. */
struct network_log_position network_log_position_read(int dir_fd);
int network_log_position_write(int dir_fd, const struct network_log_position *position,
                               struct error *err);
