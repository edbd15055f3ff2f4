/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * /proc/PID/mountinfo, line by line. Parsing works in place: the strings of a struct mount_line
 * point into the line, with the kernel's \040 escapes undone.
 */

#include <stdbool.h>

#include "base/error.h"

struct mount_line {
    char *root;    /* which part of the file system is mounted */
    char *target;  /* where */
    char *fstype;  /* "cgroup2" */
    char *source;  /* "/dev/loop0" */
    char *options; /* of the super block: "rw,cpu,cpuacct" */
};

/* False when the line is not one of mountinfo's. */
bool mountinfo_parse(char *line, struct mount_line *ret_mount);

/* Whether a comma-separated list holds that word. */
bool option_listed(const char *options, const char *word);

/* Calls fn for each mount of this process's namespace, in order, until it returns non-zero;
 * returns that, or 0, or -1 with the error when the table cannot be read. */
typedef int (*mount_fn)(const struct mount_line *mount, void *arg);
int mountinfo_each(mount_fn fn, void *arg, struct error *err);
