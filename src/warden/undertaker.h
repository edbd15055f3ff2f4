/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A process that lets go of mount namespaces.
 *
 * Whoever drops the last reference to one unmounts what is in it, and unmounting an overlay writes
 * back everything that is dirty on the whole volume, other sandboxes' data included: a stop took
 * 300 ms while a neighbour was writing. So the warden holds on to the namespace of a sandbox that
 * is to die, whose processes then die at once, and hands it to a process that has time.
 */

#include <sys/types.h>

#include "base/error.h"

struct undertaker {
    pid_t pid; /* 0: none */
    int channel;
};

int undertaker_start(struct undertaker *undertaker, struct error *err);

/* Waits until everything that was handed over is gone. */
void undertaker_stop(struct undertaker *undertaker);

/* Takes fd over. Without an undertaker (it was killed) it is closed here, however long that takes.
 */
void undertaker_close(struct undertaker *undertaker, int fd);
