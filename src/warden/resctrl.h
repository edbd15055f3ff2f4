/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Memory bandwidth, by the resource control of some processors (Intel RDT, AMD QoS): a group of
 * the resctrl file system per sandbox that has a limit, with its share of the bandwidth in per
 * cent, which is what the hardware knows. Processors have few groups (8 or 16); a sandbox that
 * finds none left runs without a limit, which is logged.
 *
 * What is put into a group stays in it with all of its descendants.
 */

#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/limits.h"

enum { RESCTRL_TEXT_MAX = 128, RESCTRL_DOMAINS_MAX = 64 };

struct resctrl {
    int fd;             /* the file system's root; -1: memory bandwidth cannot be limited here */
    unsigned min, step; /* of the per cent that the hardware takes */
    unsigned domains[RESCTRL_DOMAINS_MAX];
    unsigned domain_count;
    char prefix[sizeof("cella--") + INSTANCE_ID_LEN]; /* of our groups' names */
    char why[RESCTRL_TEXT_MAX]; /* for people: what is in force, or "not enforced: …" */
};

/* Mounts the file system on `root` where that is possible; never fails, but says why not. Groups
 * that are left over from sandboxes of this instance stay. */
void resctrl_open(struct resctrl *resctrl, const char *root, const char *instance);
void resctrl_close(struct resctrl *resctrl);

/* Gives a sandbox's group this share (0: it needs none) and, unless pid is 0, puts the process into
 * it. Nothing happens where bandwidth cannot be limited. */
int resctrl_limit(const struct resctrl *resctrl, const char *id, uint64_t percent, pid_t pid,
                  struct error *err);
void resctrl_remove(const struct resctrl *resctrl, const char *id);

/* The domains of a line "MB:0=100;1=100" in `schemata`; 0: there is none. */
unsigned resctrl_parse_domains(const char *schemata, unsigned domains[RESCTRL_DOMAINS_MAX]);
