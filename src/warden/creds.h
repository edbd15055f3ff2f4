/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Doing one thing with the ids of a sandbox's root, and coming back.
 *
 * The kernel takes effective capabilities and the parent-death signal away at every such change;
 * both are put back. Coming back cannot fail: a warden that is stuck as somebody else aborts.
 */

#include <sys/types.h>

#include "base/error.h"

struct creds {
    int death_signal;
    pid_t parent;
};

/* Effective ids: user namespaces are charged to them, so that each sandbox has counters (inotify
 * instances, namespaces, …) of its own. */
int creds_enter(struct creds *creds, uid_t id, struct error *err);
void creds_leave(const struct creds *creds);

/* File-system ids only: overlayfs remembers them as the mounter's. */
int creds_enter_fs(struct creds *creds, uid_t id, struct error *err);
void creds_leave_fs(const struct creds *creds);
