/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The first process of a sandbox, from its birth in new namespaces to the exec of the agent.
 *
 * It talks to the warden over a socketpair. The warden sends a byte when its ids are mapped, and
 * then, as soon as they are made, the sandbox's mounts (three fds); what the child can do without
 * either it does meanwhile, since most machines have more than one cpu. The child sends either a
 * struct error, once, and exits, or CHILD_READY, and closes the channel by exec.
 */

#include <stddef.h>

#include "base/error.h"
#include "warden/cgroup.h"
#include "warden/layers.h"
#include "wire/messages.h"

enum { CHILD_READY = 'r' };

struct birth {
    const struct plan *plan;
    uid_t base;
    struct cgroup_set cgroups;
    int listener;
    int agent;      /* the program; borrowed */
    int channel[2]; /* the warden's end, the child's end */
    const char *fail_at;
};

/* The child's life; never returns. Nothing in it may allocate. */
_Noreturn void child_main(const struct birth *birth);

/* The warden's half: says that ids are mapped; hands the mounts over. */
int child_send_go(int channel, struct error *err);
int child_send_layers(int channel, const struct layers *layers, struct error *err);

/* Names of the child's steps, for --list-steps; NULL at the end. */
extern const char *const child_step_names[];
